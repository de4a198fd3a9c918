"""The page of a map: points that lead to documents, and nothing of them without the right; it computes no map."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from refinery_study.map.projecting import path_of

from pipeline_tasks.publish.logs import version_log
from tests.map_root import RECIPE, SCRIPT, SNAPSHOT, given_map, published
from tests.markup import assert_inert

PAGE = f"/map/{RECIPE}/{SNAPSHOT}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    published(tmp_path)
    return tmp_path


@pytest.fixture
def drawn(root: Path) -> Any:
    return given_map(root, version_log.current(str(root), RECIPE, SNAPSHOT))


def spec(page: str) -> Any:
    [written] = re.findall(r'data-spec="([^"]+)"', page)
    return json.loads(html.unescape(written))


def test_points_are_colored_by_a_column_and_lead_to_their_documents(visitor: Any, drawn: Any) -> None:
    page = visitor.get(PAGE, params={"by": "kind"})
    assert page.status_code == 200
    assert_inert(page.text, SCRIPT)
    shown = spec(page.text)
    assert {row["id"] for row in shown["data"]["values"]} == {*drawn.ids}
    assert shown["encoding"]["color"]["scale"]["domain"] == ["court", "engine", "garden"]
    [step] = shown["transform"]
    [address] = re.findall(r"^'/refinery(/[^']+)' \+ datum.id$", step["calculate"])
    assert address == f"/document/{RECIPE}/{SNAPSHOT}?doc="
    assert visitor.get(f"{address}{drawn.ids[0]}").status_code == 200
    assert "30 documents, drawn of 30" in page.text


def test_a_map_that_was_not_made_is_not_made_by_a_request(visitor: Any, root: Path) -> None:
    page = visitor.get(PAGE)
    assert page.status_code == 200
    assert "No map was made of this snapshot" in page.text
    assert f"refinery look map {root} --recipe {RECIPE} --snapshot {SNAPSHOT}" in page.text
    assert not (root / path_of(version_log.current(str(root), RECIPE, SNAPSHOT))).exists()


def test_a_column_that_is_not_there_is_said_and_escaped(visitor: Any, drawn: Any) -> None:
    page = visitor.get(PAGE, params={"by": SCRIPT})
    assert page.status_code == 422
    assert_inert(page.text, SCRIPT)
    assert "kind" in page.text
