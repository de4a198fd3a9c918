"""The main text of a page by the model of its blocks, as the stage extracts it."""

import json
import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.schema import LOCATOR, PAGE
from pipeline_tasks.stages.extract import STAGE, Params, extract_pages
from pipeline_tasks.text.blocks import SHIPPED
from pipeline_tasks.text.urls.takedown import LIST

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


def extracted(html: str, **params: object) -> dict[str, Any]:
    [row] = extracted_all([html], **params)
    return row


def extracted_all(bodies: list[str], kind: str = "text/html", **params: object) -> list[dict[str, Any]]:
    origin = {name: name for name in LOCATOR.names} | {"offset": 0, "length": 9}
    facts = origin | {"text": None, "metadata": None}
    kinds = [kind if body.startswith("<") else "text/plain" for body in bodies]
    rows = [facts | {"payload": body.encode(), "content_type": kind} for body, kind in zip(bodies, kinds, strict=True)]
    [batch] = extract_pages(
        iter(pa.Table.from_pylist(rows, PAGE).to_batches()), params=Params(**{"method": "blocks"} | params)
    )  # type: ignore[arg-type] -- params by name
    rows_out: list[dict[str, Any]] = batch.to_pylist()
    return rows_out


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
    assert STAGE.resources(Params(method="resiliparse")) == ()


def places(row: dict[str, Any]) -> list[str]:
    """The stretches of its text that its kept blocks have."""
    return [row["text"][block["start"] : block["end"]] for block in row["blocks"] if block["start"] is not None]


def test_each_block_has_its_score_and_its_place_in_the_text() -> None:
    row = extracted(page(BODY))
    assert re.sub(r"\n+", "\n", row["text"]) == "\n".join(places(row))
    kept, lost = ([block for block in row["blocks"] if block["kept"] == is_kept] for is_kept in (True, False))
    assert len(lost) == 12 + 2, "the menu and the foot"
    assert {(block["start"], block["end"]) for block in lost} == {(None, None)}
    assert max(block["score"] for block in lost) < max(block["score"] for block in kept)
    assert {block["words"] for block in lost} == {2, 3}


INGREDIENTS = [f"{count} g of {name}" for count, name in enumerate(["flour", "butter", "sugar", "salt"], 100)]
RECIPE = {"@type": "Recipe", "recipeIngredient": INGREDIENTS, "recipeInstructions": [paragraph("quay")]}
DECOMPOSED = unicodedata.normalize(
    "NFD", "Die größte Brücke über den Fluß ist für alle Schüler geöffnet, \U0001f600 und mehr. "
)
MOJIBAKE = "The caf\u00c3\u00a9 of the harbor is open. "
CHANGED = {
    "code points": page(f"<p>{DECOMPOSED * 6}</p><p>{paragraph('wall')}</p>"),
    "a headline that is there twice": page(
        f"<h2>The old harbor</h2><p>{paragraph('wall')}</p><p>{paragraph('quay')}</p>"
    ),
    "lines of a recipe": page(
        f"<script type=application/ld+json>{json.dumps(RECIPE)}</script><p>{paragraph('wall')}</p><p>{paragraph('quay')}</p>"
    ),
    "mojibake": page(f"<p>{paragraph('quay')}</p><p>{MOJIBAKE * 6}</p><p>{paragraph('wall')}</p>"),
}


def test_places_follow_what_changed_since_the_blocks_were_written_and_each_page_has_its_own() -> None:
    rows = extracted_all(["A harbor. " * 40, *CHANGED.values(), page(BODY)])
    assert [row["blocks"] is None for row in rows] == [True, False, False, False, False, False], "one is no HTML"
    whole, twice, recipe, mojibake = map(places, rows[1:5])
    assert whole == ["The old harbor", unicodedata.normalize("NFC", DECOMPOSED * 6).strip(), paragraph("wall").strip()]
    assert twice == recipe == ["The old harbor", paragraph("wall").strip(), paragraph("quay").strip()]
    assert mojibake == ["The old harbor", paragraph("quay").strip(), paragraph("wall").strip()]
    assert [sum(block["kept"] for block in row["blocks"]) for row in rows[1:5]] == [3, 4, 3, 4]
    before, _, after = rows[3]["text"].partition(f"- {INGREDIENTS[0]}\n")
    assert "wall 2" in before
    assert "quay 0" in after
    assert (rows[4]["repaired"], "caf\u00e9" in rows[4]["text"]) == (1, True)
    assert places(rows[-1]) == places(extracted(page(BODY)))


def test_a_text_by_another_method_has_no_blocks() -> None:
    assert extracted(page(BODY), method="resiliparse")["blocks"] is None


def test_what_was_taken_down_keeps_no_text_and_no_block(tmp_path: Path) -> None:
    entry = {"kind": "doc", "key": "", "value": extracted(page(BODY))["id"], "takedown": 1}
    pq.write_table(pa.Table.from_pylist([entry], LIST), tmp_path / "list.parquet")
    row = extracted(page(BODY), taken_down=str(tmp_path / "list.parquet"))
    assert (row["reason"], row["text"], row["blocks"]) == ("extract:taken_down", None, None)
