"""The overview names what has landed, also before anything is published, and says why if it cannot."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty root."""
    root = tmp_path / "root"
    root.mkdir()
    return root


def test_folders_that_are_no_snapshots_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.pages.landed import Landed, landed_now

    for name in ("2026-11-20", "2026-11-19", "_tmp", ".hidden", "x" * 201, "crawl-7"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes.txt").write_text("no folder")
    monkeypatch.setenv("REFINERY_LANDING", str(tmp_path))
    assert landed_now() == Landed(str(tmp_path), ["2026-11-19", "2026-11-20", "crawl-7"])
    monkeypatch.delenv("REFINERY_LANDING")
    assert landed_now() == Landed("")


def test_an_empty_root_shows_what_to_begin_with(visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    landing = tmp_path / "landing"
    monkeypatch.setenv("REFINERY_LANDING", str(landing))
    assert f"Landed below {landing}: nothing." in visitor.get("/page").text
    for day in range(1, 26):
        (landing / f"2026-11-{day:02}").mkdir(parents=True)
    page = visitor.get("/page").text
    assert f"Landed below {landing}: 2026-11-25, 2026-11-24" in page
    assert "2026-11-06, and 5 before." in page
    assert "2026-11-05" not in page


def test_a_landing_that_cannot_be_listed_does_not_hide_the_page(visitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_LANDING", "ftp://crawl.example.org/<b>")
    page = visitor.get("/page")
    assert page.status_code == 200
    assert "What has landed below ftp://crawl.example.org/&lt;b&gt; is not shown: " in page.text
