"""The page of the foreign document: texts for those who may read them, one answer per draw, shares for everybody."""

import html
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from refinery_study.intruder.answers import answers
from refinery_study.intruder.drawing import draw, population, schema_of
from refinery_study.intruder.groups import grouping

from pipeline_tasks.publish.logs import version_log
from tests.intruder_root import DAY, RECIPE, build
from tests.markup import assert_inert
from tests.plugins.test_refinery_read import field
from tests.visitors import be

SCRIPT = "<script>alert(1)</script>"
PAGE = f"/intruder/{RECIPE}/{DAY}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root of documents whose texts try to run a script."""
    build(tmp_path / "root", script=SCRIPT)
    return tmp_path / "root"


def drawn_of(root: Path, by: str, seed: int = 1, group: str = "") -> Any:
    version = version_log.current(str(root), RECIPE, DAY)
    return draw(population(str(root), version, grouping(by, schema_of(str(root), version))), seed, group)


def choose(visitor: Any, page: Any, chosen: str, **other: str) -> Any:
    """Press the button of a document, as a browser does, and do not follow where it leads."""
    [address] = re.findall(r'method="post" action="/refinery([^"]+)"', page.text)
    form = {"chosen": chosen, "token": field(page.text, "token")} | other
    return visitor.post(html.unescape(address), data=form, follow_redirects=False)


def test_a_reader_chooses_and_then_sees_which_one_was_foreign(visitor: Any, root: Path) -> None:
    drawn = drawn_of(root, "topic")
    page = visitor.get(PAGE, params={"by": "topic"})
    assert page.status_code == 200
    assert re.findall(r'name="chosen" value="([^"]+)"', page.text) == list(drawn.ids)
    for told in ("Right.", "Wrong.", "foreign</span>", f"<code>{drawn.group}</code>", f"<code>{drawn.other}</code>"):
        assert told not in page.text
    given = choose(visitor, page, drawn.foreign)
    assert given.status_code == 303
    assert given.headers["location"] == f"/refinery{PAGE}?by=topic&seed=1"
    told = visitor.get(given.headers["location"].removeprefix("/refinery")).text
    assert "<strong>Right.</strong>" in told
    assert f"Document {drawn.place + 1} is of <code>{drawn.other}</code>" in told
    assert told.count("foreign</span>") == 1
    assert f'href="/refinery{PAGE}?by=topic&amp;seed=2"' in told
    second = drawn_of(root, "topic", 2)
    wrong = next(key for key in second.ids if key != second.foreign)
    choose(visitor, visitor.get(PAGE, params={"by": "topic", "seed": "2"}), wrong)
    told = visitor.get(PAGE, params={"by": "topic", "seed": "2"}).text
    assert "<strong>Wrong.</strong>" in told
    assert "your answer</span>" in told
    assert [answer.is_right for answer in answers(str(root), RECIPE, "topic")] == [True, False]
    [row] = re.findall(r'<th scope="row">all</th>(.*?)</tr>', told)
    assert re.findall(r">([^<]+)</td>", row) == ["2", "1", "50.0 %", "1.3 % to 98.7 %", "20.0 %"]


def test_the_form_names_a_column_its_bands_and_a_group(visitor: Any, root: Path) -> None:
    assert f'href="/refinery{PAGE}"' not in visitor.get(f"/snapshot/{RECIPE}/{DAY}").text, "there is no report to it"
    page = visitor.get(PAGE, params={"column": "level", "bands": "3", "group": "3 of 3", "seed": "4"})
    assert re.findall(r'name="chosen" value="([^"]+)"', page.text) == list(drawn_of(root, "level/3", 4, "3 of 3").ids)
    assert "<option selected>level</option>" in page.text
    assert "<option selected>3 of 3</option>" in page.text
    assert "refinery look intruder" in page.text
    assert "--by level/3 --group &#39;3 of 3&#39; --seed=4" in page.text
    usual = visitor.get(PAGE)
    assert "by language" in usual.text, "a version without scores is grouped by language"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"by": "topics"}, "no column 'topics'"),
        ({"column": "topic", "bands": "5"}, "write COLUMN/BANDS"),
        ({"by": "topic", "group": SCRIPT}, "has no such group"),
        ({"by": SCRIPT}, "no column"),
    ],
)
def test_a_wrong_choice_is_said(visitor: Any, fields: dict[str, str], message: str) -> None:
    page = visitor.get(PAGE, params=fields)
    assert page.status_code == 422
    [alert] = re.findall(r'role="alert"><p>(.*?)</p>', page.text)
    assert message in html.unescape(alert)
    assert SCRIPT not in page.text
    assert "data-judge" not in page.text


def test_texts_run_nothing(visitor: Any) -> None:
    page = visitor.get(PAGE, params={"by": "topic"})
    assert_inert(page.text, SCRIPT)
    assert html.escape(SCRIPT) in page.text


def test_who_may_only_look_sees_shares_and_stores_nothing(
    visitor: Any, app: Any, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "refinery"):
        page = visitor.get(PAGE, params={"by": "topic"})
    assert f"ada reads texts: {PAGE}" in caplog.text
    choose(visitor, page, drawn_of(root, "topic").foreign)
    be(app, "eve", "VIEWER")
    looked = visitor.get(PAGE, params={"by": "topic"})
    assert looked.status_code == 200
    assert "100.0 %" in looked.text
    assert "ferry" not in looked.text
    assert 'name="chosen"' not in looked.text
    sent = visitor.post(
        f"{PAGE}?by=topic&seed=2",
        data={"chosen": drawn_of(root, "topic", 2).foreign, "token": field(page.text, "token")},
    )
    assert sent.status_code == 403
    assert len(answers(str(root), RECIPE)) == 1


def test_a_form_of_another_site_or_of_another_user_stores_nothing(visitor: Any, app: Any, root: Path) -> None:
    page, foreign = visitor.get(PAGE, params={"by": "topic"}), drawn_of(root, "topic").foreign
    form = {"chosen": foreign, "token": field(page.text, "token")}
    address = f"{PAGE}?by=topic&seed=1"
    assert visitor.post(address, data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert visitor.post(address, data=form | {"token": "f" * 64}).status_code == 403
    be(app, "bob", "USER")
    assert visitor.post(address, data=form).status_code == 403
    assert answers(str(root), RECIPE) == []


def test_a_document_that_is_not_drawn_is_no_answer(visitor: Any, root: Path) -> None:
    page = visitor.get(PAGE, params={"by": "topic"})
    given = choose(visitor, page, "0" * 32)
    assert given.status_code == 422
    assert "Choose one of the five" in given.text
    assert "data-judge" in given.text
    assert answers(str(root), RECIPE) == []
