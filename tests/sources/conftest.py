"""A mirror of Common Crawl, an API, and budgets that end with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from refinery_sources import budget

from tests.crawl_mirror import Mirror, mirrored
from tests.sources.api_server import Api, serving


@pytest.fixture(autouse=True)
def budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for budgets of this test alone: a server of another test may have had the same port."""
    place = tmp_path / "budgets"
    place.mkdir()
    monkeypatch.setattr(budget, "PLACE", place)
    return place


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with mirrored() as running:
        yield running


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as running:
        yield running
