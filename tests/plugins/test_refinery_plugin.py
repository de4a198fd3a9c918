"""The page in Airflow's web UI: closed without a login, read-only, and nothing of a crawl runs in it."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.publish import version_log
from pipeline_tasks.sealed import path_of
from tests.archives import http, response, zipped
from tests.chain import reply

SCRIPT = "<script>alert(1)</script>"


def request(root: Path, **fields: Any) -> dict[str, Any]:
    return reply(**{"root": str(root), "recipe": "small", "snapshot": "2026-11-19"} | fields)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one published snapshot of two stages, one page of which tries to run a script."""
    folder = tmp_path_factory.mktemp("crawl") / "2026-11-19"
    folder.mkdir()
    text = "<p>The ferry leaves the harbor every morning before the fog has lifted from the water.</p>" * 4
    pages = [response("https://a.example.org/1", http(f"<html><body>{text}</body></html>".encode()))]
    pages += [response(f"https://a.example.org/?{SCRIPT}", http(b"<html><body></body></html>"))]
    (folder / "a.warc.gz").write_bytes(b"".join(zipped(pages)))
    root = tmp_path_factory.mktemp("root")
    landed = request(root, verb="land", input=str(folder))
    manifests, verdicts, parent = {"land": landed["manifest"]}, {}, landed["manifest"]
    for stage, params in (("ingest", {}), ("extract", {"min_chars": 20})):
        reply = request(root, verb="refine", stage=stage, params=params, parent=parent, landing=landed["landing"])
        judged = request(root, verb="judge", manifest=reply["manifest"], override="a test")
        manifests[stage], verdicts[stage], parent = reply["manifest"], judged["verdict"], reply["manifest"]
    request(root, verb="publish", landing=landed["landing"], manifests=manifests, verdicts=verdicts)
    return root


@pytest.fixture
def app(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("REFINERY_ROOT", str(root))
    import refinery_plugin

    return refinery_plugin.app


@pytest.fixture
def stranger(app: Any) -> Any:
    """A visitor who is not logged in."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    create_app(apps="core").mount("/refinery", app)  # makes Airflow's auth manager
    return TestClient(app)


@pytest.fixture
def visitor(stranger: Any, app: Any) -> Iterator[Any]:
    """A visitor who may see the web site."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import get_user

    app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="ada", role="VIEWER")
    yield stranger
    app.dependency_overrides.clear()


def paths(app: Any) -> list[str]:
    return [re.sub(r"\{\w+(:path)?\}", "x", route.path) for route in app.routes]


def test_every_route_refuses_who_is_not_logged_in(app: Any, stranger: Any) -> None:
    assert len(paths(app)) >= 6
    for path in paths(app):
        assert stranger.get(path).status_code == 401, path


def test_routes_only_read(app: Any) -> None:
    assert {method for route in app.routes for method in route.methods} <= {"GET", "HEAD"}


def test_snapshots_and_their_funnel_are_shown(visitor: Any) -> None:
    listed = visitor.get("/page")
    assert listed.status_code == 200
    assert "2026-11-19" in listed.text
    funnel = visitor.get("/snapshot/small/2026-11-19")
    assert funnel.status_code == 200
    assert "extract:empty" in funnel.text
    assert "overridden: a test" in funnel.text


def test_text_of_the_crawl_is_escaped_and_may_not_run(visitor: Any, root: Path) -> None:
    for path in ("/rejects/small/2026-11-19/extract", "/page", "/snapshot/small/2026-11-19"):
        page = visitor.get(path)
        assert page.status_code == 200
        assert SCRIPT not in page.text
        assert "script" not in page.headers["content-security-policy"]
        assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "&lt;script&gt;" in visitor.get("/rejects/small/2026-11-19/extract").text


def test_the_links_of_a_page_lead_somewhere(visitor: Any) -> None:
    links = re.findall(r'href="/refinery(/[^"]+)"', visitor.get("/snapshot/small/2026-11-19").text)
    assert len(links) > 5
    for path in links:
        assert visitor.get(path.replace("&amp;", "&")).status_code == 200, path


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "ledger.sqlite", "ingest/../ledger.sqlite"],
)
def test_only_the_account_of_a_snapshot_is_served(visitor: Any, root: Path, path: str) -> None:
    assert (root / "ledger.sqlite").exists()
    assert visitor.get(f"/files/{path}").status_code == 404
    assert visitor.get(f"/manifest/{path}").status_code == 404


def test_rows_are_not_served_as_files(visitor: Any, root: Path) -> None:
    shard = next(root.glob("extract/*/data/*"))
    assert visitor.get(f"/files/{shard.relative_to(root)}").status_code == 404
    manifest = next(root.glob("extract/*/manifest.json"))
    assert visitor.get(f"/files/{manifest.relative_to(root)}").json()["stage"] == "extract"


def test_what_is_not_there_is_said_in_words(visitor: Any) -> None:
    answer = visitor.get("/snapshot/small/2031-01-01")
    assert answer.status_code == 404
    assert "2031-01-01" in answer.text
    assert visitor.get("/trace/small/2026-11-19").status_code == 404


def test_an_empty_root_says_how_to_begin(visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path))
    assert "Nothing has been published yet" in visitor.get("/page").text


def test_a_retracted_snapshot_is_said_to_be_so(
    visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(root, tmp_path / "root")
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path / "root"))
    version_log.retract(str(tmp_path / "root"), "small", "2026-11-19", "<b>spam</b>")
    listed = visitor.get("/page").text
    assert re.search(r"2026-11-19</a> was retracted on [\d-]{10} [\d:]{5} UTC: &lt;b&gt;spam&lt;/b&gt;", listed)
    gone = visitor.get("/snapshot/small/2026-11-19")
    assert gone.status_code == 200
    assert re.search("was retracted on .* UTC: &lt;b&gt;spam&lt;/b&gt;", gone.text)
    assert "refinery retract --undo 2026-11-19" in gone.text
    (report,) = re.findall(r'href="/refinery(/files/[^"]+)"', gone.text)
    assert visitor.get(report).status_code == 200
    assert visitor.get("/rejects/small/2026-11-19/extract").status_code == 404


def stored_objects(root: Path) -> dict[str, Path]:
    """An object of every kind that the page of a snapshot reads."""
    version = version_log.current(str(root), "small")
    return {
        "entry of the log": root / version_log.version_path("small", version.number),
        "manifest": root / path_of(version.manifests["extract"]),
        "verdict": root / path_of(version.verdicts["extract"]),
        "ledger": root / "ledger.sqlite",
    }


@pytest.mark.parametrize("kind", ["entry of the log", "manifest", "verdict", "ledger"])
def test_a_damaged_object_is_a_page_that_says_so(kind: str, visitor: Any, root: Path) -> None:
    path = stored_objects(root)[kind]
    before = path.read_bytes()
    at = len(before) // 2
    for damage in (before[:at] + b"\xff" * 200 + before[at + 200 :], b"[]" * 99):
        path.write_bytes(damage)
        try:
            page = visitor.get("/snapshot/small/2026-11-19")
        finally:
            path.write_bytes(before)
        if kind == "ledger" and page.status_code == 200:
            continue  # the damage was in a page of the database that nothing read
        assert page.status_code == 409
        assert "<h1>Damaged</h1>" in page.text
        assert str(path) in page.text
        assert f"refinery verify {root}" in page.text


def test_a_file_as_root_is_a_page_that_says_so(visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("not a root")
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path / "README.md"))
    page = visitor.get("/page")
    assert page.status_code == 404
    assert "is a file, not a root" in page.text
