"""The key of pseudonyms, from a connection or the environment: it is used, and nothing that is kept or shown has it."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service.requests.wire import encode
from pipeline_tasks.stage import Secret
from pipeline_tasks.stages.scrub_pii import KEY_VARIABLE
from pipeline_tasks.store.reading import read_manifest
from tests.embedded import PROJECT
from tests.stages.test_scrub_pii_key import KEY, holders, page

pytestmark = pytest.mark.slow

REFINES = """
name: pseudonyms
stages:
  ingest: {}
  extract: {min_chars: 10}
  dedup_exact: {}
  scrub_pii: {action: pseudonymize}
"""

BUILDS = """
name: corpus
versions: {recipe: pseudonyms}
stages:
  tokenize: {train: {vocab_size: 400, min_bytes: 1000}}
  select: {}
  mix: {}
  shuffle: {}
  pack: {method: best_fit, length: 256}
"""

SOURCES = {
    "a connection": {"AIRFLOW_CONN_REFINERY_PII": json.dumps({"conn_type": "generic", "password": KEY})},
    "the environment": {KEY_VARIABLE: KEY},
}
BOTH = SOURCES["a connection"] | SOURCES["the environment"]

DAYS = {"2026-11-20": "a connection", "2026-11-21": "the environment"}
"""The source of the key with which a day is refined."""

PAGES = 40
"""Pages of a day; one of them comes twice."""

COMMANDS = """
import json, os, sys
from pipeline_tasks.cli.main import main

for variables, words in json.loads(sys.argv[1]):
    before = dict(os.environ)
    os.environ.update(variables)
    if code := main(words):
        sys.exit(code)
    os.environ.clear()
    os.environ.update(before)
"""
"""Runs commands of `refinery` in one process, each with variables that the others lack."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A folder with everything that was written, its root, the logs of the commands, and what they printed."""

    folder: Path
    root: Path
    logs: list[Path]
    printed: str


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Days that were refined and built by the DAGs, with every gate and every log; each day has another source."""
    folder, given = tmp_path_factory.mktemp("kept"), tmp_path_factory.mktemp("given")
    (folder / "tmp").mkdir()
    for name, recipe in (("refines", REFINES), ("builds", BUILDS)):
        (given / f"{name}.yaml").write_text(recipe)
    root, places = folder / "root", PROJECT / ".refinery" / "logs"
    how = ["--output", str(root), "--engine", "local", "--json"]
    refine = ["run", "--recipe", str(given / "refines.yaml"), "--override", "publish=a test", "--no-build", *how]
    commands: list[tuple[dict[str, str], list[str]]] = []
    for at, (day, source) in enumerate(DAYS.items()):
        (given / day).mkdir()
        pages = map(page, (*range(at * PAGES, at * PAGES + PAGES), at * PAGES))
        (given / day / "pages.jsonl").write_text("\n".join(map(json.dumps, pages)))
        commands.append((SOURCES[source], [*refine, "--input", str(given / day)]))
    commands.append((BOTH, ["build", "--recipe", str(given / "builds.yaml"), *how]))
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "REFINERY_"))}
    env = keep | {"PYTHONPATH": str(PROJECT), "TMPDIR": str(folder / "tmp")}
    earlier = {*places.glob("run-*.log")}
    script = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    done = subprocess.run(script, env=env, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return Finished(folder, root, sorted({*places.glob("run-*.log")} - earlier), done.stdout + done.stderr)


@pytest.mark.parametrize("day", DAYS)
def test_the_key_was_used(finished: Finished, day: str) -> None:
    """A run without a key is refused, and the process has none that an earlier day has left."""
    version = version_log.current(str(finished.root), "pseudonyms", day)
    manifest = read_manifest(str(finished.root), version.manifests["scrub_pii"])
    assert manifest.params["key"] == {"check": Secret.of(KEY).check}
    assert manifest.rows > 0


def test_nothing_that_is_stored_or_printed_has_the_key(finished: Finished) -> None:
    """Manifests, receipts, verdicts, Data Docs, ledger, published files, reports, temporary files, and logs."""
    names = {path.name for path in finished.folder.rglob("*") if path.is_file()}
    assert {"manifest.json", "verdict.json", "index.html", "ledger.sqlite", "dataset.json", "build.json"} <= names
    assert any("receipts" in path.parts for path in finished.root.rglob("*.json"))
    assert finished.logs
    assert not [str(log) for log in finished.logs if KEY in log.read_text()]
    assert not holders(finished.folder, KEY)
    assert KEY not in finished.printed


@pytest.fixture
def root(finished: Finished) -> Path:
    """The root whose pages `visitor` sees."""
    return finished.root


@pytest.mark.parametrize("most", [4, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_no_page_shows_the_key(visitor: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Every page that links lead to, `most` of a kind, while the web server's own environment has the key."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    due, seen, opened = ["/page", "/find?site=example.org", "/trace/corpus/build?token=1"], set[str](), Counter[str]()
    while due:
        path = due.pop()
        if path in seen or opened[kind_of(path)] == most:
            continue
        seen.add(path)
        opened[kind_of(path)] += 1
        shown = visitor.get(path)
        assert shown.status_code == 200, path
        assert KEY not in shown.text, path
        if shown.headers["content-type"].startswith("text/html"):
            due += [link.replace("&amp;", "&") for link in re.findall(r'href="/refinery(/[^"]+)"', shown.text)]
    assert {"page", "find", "trace", "snapshot", "manifest", "files"} <= opened.keys()
    assert len(seen) > 12


def kind_of(path: str) -> str:
    """Return the first part of a page's path."""
    return path.split("/")[1].partition("?")[0]


def test_a_request_has_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    params = {"action": "pseudonymize"}
    request = RefineRequest(str(tmp_path), "scrub_pii", params, "extract/0/manifest.json", engine="ray")
    assert KEY not in json.dumps(encode(request))
    assert KEY not in repr(request)
