"""The main text of a page by the model of its blocks, as the stage extracts it."""

import random
import re

import pyarrow as pa
import pytest

from pipeline_tasks.schema import LOCATOR, PAGE
from pipeline_tasks.stages.extract import STAGE, Params, extract_pages
from pipeline_tasks.text.blocks.model import SHIPPED

SENTENCE = "The {} of the harbor was rebuilt after the storm, and ships of every size have called there since {}. "
MENU = "".join(f'<li class=m{n}><a href="/{n}">Section {n}</a></li>' for n in range(12))


def paragraph(name: str, count: int = 3) -> str:
    return "".join(SENTENCE.format(f"{name} {n}", 1900 + n) for n in range(count))


def page(body: str, title: str = "The old harbor") -> str:
    return (
        f"<!doctype html><html lang=en><head><title>{title} - Port News</title></head><body>"
        f'<nav class="menu"><ul>{MENU}</ul></nav><main><h1>{title}</h1>{body}</main>'
        f'<footer class="foot"><p><a href="/a">About</a> <a href="/c">Contact</a></p><p>\u00a9 2026 Port News</p></footer>'
    )


def extracted(html: str, **params: object) -> dict[str, object]:
    origin = {name: name for name in LOCATOR.names} | {"offset": 0, "length": 9}
    row = origin | {"content_type": "text/html", "payload": html.encode(), "text": None, "metadata": None}
    rows = pa.Table.from_pylist([row], PAGE)
    [batch] = extract_pages(iter(rows.to_batches()), params=Params(method="blocks", **params))  # type: ignore[arg-type] -- params by name
    return dict(batch.to_pylist()[0])


BODY = (
    f"<p>{paragraph('quay')}</p><div class=sidebar><p>{paragraph('lighthouse')}</p></div><p>{paragraph('wall')}</p>"
    "<p>It has three parts:</p><ul><li><a href=/x>the northern mole</a></li><li>the basin</li><li>the yard</li></ul>"
    "<p>Its depth follows <span class=katex><math><mi>d</mi></math><span aria-hidden=true>d</span></span> in all "
    f"places. {paragraph('yard')}</p><pre>def depth(x):\n    return x * 2</pre><p hidden>{paragraph('secret')}</p>"
)


def test_text_is_whole_and_without_what_is_around_it() -> None:
    row = extracted(page(BODY))
    text = str(row["text"])
    assert row["extractor"] == "blocks"
    assert row["title"] == "The old harbor - Port News"
    assert row["html_language"] == "en"
    assert text.startswith("The old harbor\n\nThe quay 0")
    assert "lighthouse 2" in text
    assert "three parts:\n\n- the northern mole\n- the basin\n- the yard\n\n" in text
    assert "def depth(x):\n    return x * 2" in text
    assert "follows d in all" in text
    assert "secret" not in text
    assert "Section 3" not in text
    assert "Contact" not in text


def test_markdown_keeps_headings_and_code() -> None:
    text = str(extracted(page(BODY), output="markdown")["text"])
    assert text.startswith("# The old harbor\n\n")
    assert "```\ndef depth(x):\n    return x * 2\n```" in text


def test_names_decide_nothing() -> None:
    renamed = random.Random(7)
    shuffled = re.sub(
        r"class=[\"']?\w+[\"']?", lambda _: f"class=c{renamed.randrange(9**9)}", page(BODY.replace("katex", "x"))
    )
    assert extracted(shuffled)["text"] == extracted(page(BODY.replace("katex", "x")))["text"]


@pytest.mark.parametrize("betas", [(0.5, 1.0), (1.0, 2.0), (2.0, 4.0)])
def test_a_higher_beta_keeps_no_less(betas: tuple[float, float]) -> None:
    less, more = (str(extracted(page(BODY), beta=beta)["text"]) for beta in betas)
    assert set(less.split("\n")) <= set(more.split("\n"))


def test_the_model_is_identity() -> None:
    assert STAGE.resources is not None
    assert STAGE.resources(Params(method="blocks")) == (str(SHIPPED),)
    assert STAGE.resources(Params(method="auto")) == ()
