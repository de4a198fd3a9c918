"""Annotations of a crawl whose documents generated others: a landed record stays one row, with the decision on it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline_tasks.cli.main import main
from tests.chain import Chain, How, refined
from tests.crawl_index import Crawled, add_crawl
from tests.crawl_mirror import CRAWL, Mirror
from tests.offspring import UNFOLDER, WRITER

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("offspring")]

RECIPE = f"stages: {{ingest: {{}}, extract: {{min_chars: 100}}, {WRITER}: {{}}, {UNFOLDER}: {{}}, scrub_pii: {{}}}}"

SHORT = "https://site2.example/short"

PAGES = [
    Crawled(f"https://site{at % 5}.example/{at}", "eng", f"The river was wide on day {at}. " * 6) for at in range(20)
]


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of twenty pages, and one that is too short, with the list of its archives and a recipe beside it."""
    folder, mirror = tmp_path_factory.mktemp("crawl"), Mirror()
    (folder / CRAWL).mkdir()
    add_crawl(mirror, [*PAGES, Crawled(SHORT, "eng", "Short.")])
    for path, body in mirror.files.items():
        place = (
            folder / CRAWL / path.rpartition("/")[2] if path.endswith(".warc.gz") else folder / path.removeprefix("/")
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(body)
    (folder / "generating.yaml").write_text(RECIPE)
    return folder


def annotated(
    landed: Path, to: Path, capsys: pytest.CaptureFixture[str], **params: Any
) -> tuple[Chain, Any, list[Any]]:
    how = How(recipe=str(landed / "generating.yaml"), changes={UNFOLDER: params})
    chain = refined(str(to / "root"), str(landed / CRAWL), how)
    places = str(landed / f"crawl-data/{CRAWL}/warc.paths.gz")
    told = ("--recipe", "generating", "--to", str(to / "annotations"), "--places", places, "--json")
    capsys.readouterr()
    assert main(["annotations", chain.root, *told]) == 0
    files = sorted((to / "annotations").rglob("*.parquet"))
    rows = [row for path in files for row in pq.read_table(path, partitioning=None).to_pylist()]
    return chain, json.loads(capsys.readouterr().out), rows


@pytest.mark.parametrize(("keep", "decision"), [("both", "kept"), ("generated", "rejected")])
def test_a_record_has_the_decision_on_itself(
    keep: str, decision: str, landed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain, listed, rows = annotated(landed, tmp_path, capsys, keep=keep)
    assert sum(row["parent"] is not None for row in chain.rows("scrub_pii", columns=["parent"])) > 5
    places = Counter((row["warc_filename"], row["warc_record_offset"]) for row in rows)
    assert len(places) == len(rows) == chain.manifest("ingest").rows_in == listed["rows"]
    by_url = {row["url"]: row for row in rows if row["refinery_id"]}
    assert {by_url[page.url]["refinery_decision"] for page in PAGES} == {decision}
    sources = {row["url"]: row["id"] for row in chain.rows("extract", columns=["url", "id"])}
    assert {page.url: by_url[page.url]["refinery_id"] for page in PAGES} == sources
    counts = Counter(row["refinery_decision"] for row in rows)
    assert {name: listed[name] for name in counts} == counts
