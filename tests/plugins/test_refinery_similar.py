"""The page of `look similar`: what `refinery look similar` finds, for who may read texts, with links on and nothing that runs."""

import html
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refinery_vectors.similar import QUESTION, Query, similar
from refinery_vectors.syncing import sync
from refinery_vectors.table import is_installed

from tests.vector_root import DAYS, RECIPE, VectorRoot, texts, vector_root


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> VectorRoot:
    return vector_root(tmp_path_factory.mktemp("similar"))


@pytest.fixture(scope="module")
def root(published: VectorRoot) -> Path:
    return Path(published.root)


def words(page: str) -> str:
    return html.unescape(" ".join(re.sub("<[^>]+>", " ", page).split()))


@pytest.mark.parametrize("conditions", ["", "language=de, chars>=60"])
def test_the_page_shows_what_the_command_finds(visitor: Any, published: VectorRoot, conditions: str) -> None:
    one = next(iter(published.stored(DAYS[0]).values()))
    page = visitor.get(f"/ask/look-similar/{RECIPE}", params={"document": one["id"], "where": conditions}).text
    where = [part.strip() for part in conditions.split(",") if part]
    found = similar(published.root, RECIPE, Query(id=one["id"], limit=25, where=where))
    shown = re.findall(rf'<th scope="row"><a href="/refinery/document/{RECIPE}/([^?]+)\?doc=([0-9a-f]+)"', page)
    assert shown == [(each.snapshot, each.id) for each in (found.origin, *found.documents) if each]
    assert shown
    assert one["url"] in words(page)
    assert f"refinery look similar {published.root} --recipe {RECIPE} --document {one['id']}" in words(page)
    assert "without a store" in words(page)


def test_a_page_reads_so_many_bytes_and_says_what_it_did_not(
    visitor: Any, published: VectorRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUESTION.bounds, "most_bytes", 1)  # type: ignore[arg-type]
    one = next(iter(published.stored(DAYS[0]).values()))
    page = visitor.get(f"/ask/look-similar/{RECIPE}", params={"url": one["url"]}).text
    assert "not read: 2 snapshots" in words(page)
    assert "No other document" in words(page)


@pytest.mark.parametrize(
    ("params", "status"),
    [({}, 200), ({"document": "0" * 32}, 422), ({"doc": "<script>"}, 422), ({"url": "x", "where": "<b>"}, 422)],
)
def test_what_cannot_be_asked_for_is_a_message(
    visitor: Any, published: VectorRoot, params: dict[str, str], status: int
) -> None:
    answered = visitor.get(f"/ask/look-similar/{RECIPE}", params=params)
    assert answered.status_code == status
    assert ('role="alert"' in answered.text) == (status != 200)
    assert "<script>" not in answered.text
    assert "<b>" not in answered.text


def test_who_may_not_read_texts_sees_nothing(app: Any, stranger: Any, published: VectorRoot) -> None:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import get_user

    app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="eve", role="VIEWER")
    one = next(iter(published.stored(DAYS[0]).values()))
    refused = stranger.get(f"/ask/look-similar/{RECIPE}", params={"document": one["id"]})
    app.dependency_overrides.clear()
    assert (refused.status_code, one["id"] in refused.text, ".example/" in refused.text) == (403, False, False)


@pytest.mark.skipif(not is_installed(), reason="pylance is not installed (requirements-dev.txt has it)")
def test_with_a_store_the_page_says_so(
    visitor: Any, published: VectorRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = replace(published, root=str(shutil.copytree(published.root, tmp_path / "root")))
    monkeypatch.setenv("REFINERY_ROOT", copy.root)
    sync(copy.root, RECIPE)
    copy.publish(DAYS[2], texts(9, 15))
    one = next(iter(copy.stored(DAYS[0]).values()))
    page = words(visitor.get(f"/ask/look-similar/{RECIPE}", params={"document": one["id"]}).text)
    assert "40 documents of the store" in page
    assert "15 documents of 1 snapshot without a store" in page
