"""The page of sources: what has landed, what is missing or not published, who refuses, and under which terms."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from refinery_sources import budget
from refinery_sources.budget import Budget, Rate

from pipeline_tasks.publish.logs import version_log
from tests.known_dags import known_dags
from tests.publish.test_taking_down import published, records

HOST = "data.commoncrawl.org"


def landed(landing: Path, name: str, recipe: str, hours: float, **facts: Any) -> Path:
    """Land a snapshot as a pull does, some hours ago."""
    folder = landing / name
    folder.mkdir(parents=True)
    body = "".join(json.dumps(row) + "\n" for row in records(*range(3)))
    (folder / "a.jsonl").write_text(body)
    at = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    terms = {"address": "https://example.org/terms", "text": "Take it <b>as it is</b>.", "sha256": "0f" * 32}
    query = {"source": "common_crawl", "address": f"https://{HOST}", "crawl": name}
    source = {"recipe": recipe, "query": query, "cursor": name, "terms": terms, "pulled": at, "files": 1}
    source |= {"bytes": len(body), **facts}
    files = [{"path": "a.jsonl", "bytes": len(body), "sha256": ""}]
    (folder / "snapshot.json").write_text(json.dumps({"snapshot": name, "source": source, "files": files}))
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root that has published one of two crawls, retracted another, and knows nothing of a third source."""
    root, landing = tmp_path / "root", tmp_path / "landing"
    monkeypatch.setattr(budget, "PLACE", tmp_path / "budgets")
    (tmp_path / "budgets").mkdir()
    monkeypatch.setenv("REFINERY_LANDING", str(landing))
    published(root, landed(landing, "CC-MAIN-2026-40", "common_crawl", 1000), "tiny")
    published(root, landed(landing, "CC-MAIN-2026-42", "common_crawl", 500), "tiny")
    version_log.retract(str(root), "tiny", "CC-MAIN-2026-42", "a test")
    landed(landing, "CC-MAIN-2026-45", "common_crawl", 49, rows=3, facts={"a.jsonl": {"truncated": 1234}})
    landed(landing, "blog-20261101", "blog", 2, rows=3)
    landed(landing, "blog-20261102", "blog", 1, files=0)
    begun = landing / "CC-MAIN-2026-50" / ".pull"
    begun.mkdir(parents=True)
    note = {"query": {"source": "common_crawl"}, "parts": "", "recipe": "common_crawl", "files": 10}
    (begun / "query.json").write_text(json.dumps(note))
    for number in range(4):
        (begun / f"{number}.warc.gz.receipt.json").write_text("{}")
        (begun.parent / f"{number}.warc.gz").write_bytes(bytes(1000))
    with Budget(HOST, Rate(1000.0)).turn() as turn:
        turn.refuse(f"https://{HOST}/x was answered with 403")
    return root


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def section(page: str, name: str) -> str:
    """The text of one source's part of the page."""
    parts = page.split("<section")[1:]
    return next(text_of(part) for part in parts if f">{name}</h2>" in part)


def test_it_shows_what_landed_what_is_missing_and_who_refuses(visitor: Any) -> None:
    assert "/dags/pull_common_crawl" not in visitor.get("/sources").text
    with known_dags("pull_common_crawl"):
        page = visitor.get("/sources").text
    crawl = section(page, "common_crawl")
    assert "Landed 3" in crawl
    assert "Not published 1 the oldest for 2 days" in crawl
    assert "Not ended 1 1 pull to go on with" in crawl
    assert "Cut at the source 1,234" in crawl
    assert f"{HOST} is asked nothing until " in crawl
    assert "was answered with 403" in crawl
    assert re.search(r"CC-MAIN-2026-50 [\d-]+ [\d:]+ 4 6 4.0 kB", crawl)
    assert re.search(r"CC-MAIN-2026-45 .* nobody, for 2 days", crawl)
    assert re.search(r"CC-MAIN-2026-42 .*tiny \(retracted\)", crawl)
    assert 'href="/refinery/snapshot/tiny/CC-MAIN-2026-40">tiny</a>' in page
    assert 'href="/dags/pull_common_crawl" data-airflow>DAG' in page
    assert "0f" * 32 in crawl
    assert "Take it &lt;b&gt;as it is&lt;/b&gt;." in page
    blog = section(page, "blog")
    assert "no recipe known here" in blog
    assert "Landed 2" in blog
    assert "Not published 1 " in blog
    assert re.search(r"blog-20261102 .* nothing to publish", blog)


def test_the_newest_run_of_a_sources_dag_is_named(visitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.pages import standing as refinery_standing
    from refinery_airflow.runs.newest import NewestRun

    with known_dags("pull_common_crawl"):
        assert "it never ran" in section(visitor.get("/sources").text, "common_crawl")
    run = NewestRun("failed", "2026-11-02 06:00", "/dags/pull_common_crawl/runs/x")
    monkeypatch.setattr(refinery_standing, "newest_run", lambda _dag: run)
    page = visitor.get("/sources").text
    assert "Newest run failed 2026-11-02 06:00" in section(page, "common_crawl")
    assert 'href="/dags/pull_common_crawl/runs/x"' in page


def test_what_cannot_be_shown_is_said(visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("source: {ftp: {}}\n")
    monkeypatch.setenv("REFINERY_SOURCES", str(broken))
    page = visitor.get("/sources")
    assert (page.status_code, "Recipes of sources are not known" in page.text) == (200, True)
    assert "Landed 2" in section(page.text, "blog")
    monkeypatch.setenv("REFINERY_LANDING", "ftp://x")
    assert "What has landed below ftp://x is not shown" in visitor.get("/sources").text
    monkeypatch.delenv("REFINERY_LANDING")
    assert "REFINERY_LANDING is not set" in visitor.get("/sources").text


def test_strangers_see_nothing(stranger: Any) -> None:
    assert stranger.get("/sources").status_code == 401
