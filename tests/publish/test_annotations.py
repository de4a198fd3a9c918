"""Annotations of a crawl: each record once, by the keys and places that its columnar index has, without what is taken down."""

import gzip
import io
import json
import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st
from refinery_exports.annotations import writing
from refinery_exports.annotations.card import JOIN
from refinery_exports.annotations.columns import Decision
from refinery_exports.annotations.writing import Decided, Job, export_of
from refinery_exports.exporting import processes, run
from refinery_sources.admission import admitted
from refinery_sources.common_crawl import records as crawl_records
from refinery_sources.common_crawl.records import CrawlRecords
from refinery_sources.pull import Pull, landing_at, pull
from refinery_sources.source import Occasion

from pipeline_tasks.cli.main import main
from pipeline_tasks.engines.each import On
from pipeline_tasks.errors import ContractError, JobLost, LookRefused, RecipeError, RowsVanished
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.recipe import LOCAL, engine_names
from pipeline_tasks.store.access_log import PURPOSES, SETTING, looks
from tests.chain import Chain, How, refined
from tests.crawl_index import Crawled, add_crawl
from tests.crawl_mirror import CRAWL, Mirror, mirrored
from tests.refining import made_up_shard
from tests.sources.pulling import on_loopback

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs/how-to/build/train-from-a-dataset.md"

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 100}
  filter_language: {}
  dedup_exact: {buckets: 1}
  dedup_minhash: {buckets: 1}
"""

STAGES = ("ingest", "extract", "filter_language", "dedup_exact", "dedup_minhash")

SENTENCES = (
    "The river was wide and slow below the old mill.",
    "She walked to the station before the first train left.",
    "Nobody remembered who had planted the apple trees.",
    "A letter from the council arrived on the third day.",
    "The harbor was full of boats that waited for the wind.",
    "He repaired the clock with parts from a broken radio.",
    "Two sisters kept the shop open during the whole winter.",
    "The map showed a road that had never been built.",
    "They counted the birds on the lake every morning.",
    "Rain fell on the fields until the end of the month.",
    "The teacher read the story twice to a quiet class.",
    "An engineer explained why the bridge had to be closed.",
)

CUT = 12
"""Bytes that the last record of the crawl lacks."""

COPY, SHORT = "https://site1.example/copy", "https://site2.example/short"
COPIED = "https://site0.example/0"


def pages() -> list[Crawled]:
    """Thirty pages in English on ten hosts, one in German, a copy of the first, and one that is too short."""
    draws = random.Random(7)
    texts = [
        " ".join(f"{draws.choice(SENTENCES)[:-1]} {word}." for word in draws.sample(range(900), 14)) for _ in range(30)
    ]
    own = [Crawled(f"https://site{at % 10}.example/{at}", "eng", text) for at, text in enumerate(texts)]
    german = (
        "Der Fluss war breit und langsam unter der alten Mühle, und niemand wusste, wer die Bäume gepflanzt hatte. " * 3
    )
    return [
        *own,
        Crawled("https://site3.example/de", "deu", german),
        Crawled(COPY, "eng", texts[0]),
        Crawled(SHORT, "eng", "Short."),
    ]


@dataclass(frozen=True, slots=True)
class Annotated:
    """A refined crawl, the folder with its index, the rows of that, the list of its files, and where a record is cut."""

    chain: Chain
    landing: Path
    index: Path
    rows: Sequence[Mapping[str, Any]]
    paths: Path
    cut: tuple[str, int]

    @property
    def root(self) -> str:
        return self.chain.root


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Annotated:
    folder = tmp_path_factory.mktemp("crawl")
    mirror, landing = Mirror(), folder / CRAWL
    rows = add_crawl(mirror, pages())
    landing.mkdir()
    for path, body in mirror.files.items():
        if path.endswith(".warc.gz"):
            (landing / path.rpartition("/")[2]).write_bytes(body)
        else:
            place = folder / path.removeprefix("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(body)
    damaged = max(landing.iterdir())
    cut = damaged.stat().st_size
    with damaged.open("ab") as stream:
        stream.write(gzip.compress(b"WARC/1.0\r\nWARC-Type: response\r\n")[:-CUT])
    (folder / "small.yaml").write_text(RECIPE)
    chain = refined(str(folder / "root"), str(landing), How(recipe=str(folder / "small.yaml")))
    paths = folder / f"crawl-data/{CRAWL}/warc.paths.gz"
    return Annotated(chain, landing, folder / "cc-index/table/cc-main/warc", rows, paths, (damaged.name, cut))


def annotate(crawl: Annotated, to: Path, *arguments: str, root: str = "") -> int:
    places = ("--places", str(crawl.paths))
    return main(["annotations", root or crawl.root, "--recipe", "small", "--to", str(to), *places, *arguments])


def read(to: Path) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "subset": path.parent.name.removeprefix("subset="),
            "crawl": path.parent.parent.name.removeprefix("crawl="),
        }
        for path in sorted(to.rglob("*.parquet"))
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def decided(chain: Chain) -> dict[tuple[str, int], str]:
    """What became of each landed record: `kept`, or the reason for which a stage did not."""
    reasons = {
        (row["file"], row["offset"]): row["reason"]
        for stage in STAGES
        for row in chain.rejected_rows(stage, ["file", "offset", "reason"])
    }
    kept = {(row["file"], row["offset"]): "kept" for row in chain.rows(STAGES[-1], columns=["file", "offset"])}
    return {**reasons, **kept}


def whole(crawl: Annotated, path: Path) -> bytes:
    """The bytes of an archive before what is cut."""
    return path.read_bytes()[: crawl.cut[1] if path.name == crawl.cut[0] else None]


# --- Records ----------------------------------------------------------------------------------------------------------


def test_every_record_of_the_crawl_is_there_once(
    crawl: Annotated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert annotate(crawl, tmp_path, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    rows = read(tmp_path)
    landed = {
        (path.name, record.stream_pos): record.headers["WARC-Type"]
        for path in crawl.landing.iterdir()
        for record in ArchiveIterator(io.BytesIO(whole(crawl, path)), parse_http=False)
    }
    landed[crawl.cut] = "response"
    places = [(row["warc_filename"].rpartition("/")[2], row["warc_record_offset"]) for row in rows]
    assert sorted(places) == sorted(landed)
    outcomes = decided(crawl.chain)
    for place, row in zip(places, rows, strict=True):
        reasons = row["refinery_reasons"] or ["kept"]
        assert outcomes[place] in reasons
        assert (row["refinery_decision"] == "kept") == (outcomes[place] == "kept")
        assert (row["subset"] == "unindexed") == (landed[place] != "response")
    counts = Counter(row["refinery_decision"] for row in rows)
    assert {name: listed[name] for name in ("kept", "rejected", "quarantined")} == counts
    assert (listed["rows"], listed["left_out"], counts["quarantined"]) == (len(rows), 0, 1)
    assert counts["kept"] == crawl.chain.version.documents > 25


def test_files_are_sorted_by_the_key_and_lie_as_those_of_the_index_do(crawl: Annotated, tmp_path: Path) -> None:
    assert annotate(crawl, tmp_path) == 0
    assert {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")} == {
        f"crawl={CRAWL}/subset=warc",
        f"crawl={CRAWL}/subset=unindexed",
    }
    for path in tmp_path.rglob("*.parquet"):
        keys = [key for key in pq.ParquetFile(path).read()["url_surtkey"].to_pylist() if key is not None]
        assert keys == sorted(keys)


def test_each_entry_of_the_index_has_its_annotation_by_any_of_its_keys(crawl: Annotated, tmp_path: Path) -> None:
    assert annotate(crawl, tmp_path) == 0
    indexed = {row["warc_filename"] + str(row["warc_record_offset"]): row for row in crawl.rows}
    rows = [row for row in read(tmp_path) if row["subset"] == "warc" and row["refinery_decision"] != "quarantined"]
    assert len(rows) == len(indexed) == len({(row["url_surtkey"], row["fetch_time"]) for row in rows})
    for row in rows:
        entry = indexed[row["warc_filename"] + str(row["warc_record_offset"])]
        for name in ("url_surtkey", "url", "fetch_time", "warc_record_length"):
            assert row[name] == entry[name], name
        assert row["crawl"] == CRAWL


def test_a_copy_names_the_document_in_its_place_and_its_record(crawl: Annotated, tmp_path: Path) -> None:
    assert annotate(crawl, tmp_path) == 0
    by_url = {row["url"]: row for row in read(tmp_path) if row["subset"] == "warc"}
    [copy, winner] = sorted((by_url[COPY], by_url[COPIED]), key=lambda row: row["refinery_decision"], reverse=True)
    assert (copy["refinery_decision"], winner["refinery_decision"]) == ("rejected", "kept")
    assert copy["refinery_duplicate_of"] == winner["refinery_id"]
    assert copy["refinery_duplicate_of_snapshot"] == CRAWL
    for name in ("warc_filename", "warc_record_offset"):
        assert copy[f"refinery_duplicate_of_{name}"] == winner[name]
    others = [row for row in by_url.values() if row is not copy]
    assert all(row["refinery_duplicate_of"] is None for row in others)


def test_scores_are_there_from_the_stage_on_that_gives_them(crawl: Annotated, tmp_path: Path) -> None:
    assert annotate(crawl, tmp_path) == 0
    by_url = {row["url"]: row for row in read(tmp_path) if row["subset"] == "warc"}
    assert by_url[COPIED]["refinery_language"] == "en"
    assert by_url[COPIED]["refinery_language_score"] > 0.5
    assert (by_url[SHORT]["refinery_stage"], by_url[SHORT]["refinery_language"]) == ("extract", None)
    assert not any("text" in name or "title" in name for name in by_url[SHORT])


# --- The join ---------------------------------------------------------------------------------------------------------


def test_the_join_of_the_page_gives_what_it_shows(crawl: Annotated, tmp_path: Path) -> None:
    assert annotate(crawl, tmp_path) == 0
    page = PAGE.read_text()
    [query] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    [shown] = re.findall(r"```text\n(\+.*?)```", page, re.DOTALL)
    assert JOIN.partition("FROM")[2].strip() in query
    assert table(crawl, tmp_path, query) == shown
    whole = JOIN.replace("a.refinery_decision,", "a.refinery_decision, a.refinery_id,")
    rows = joined(crawl, tmp_path, whole).fetchall()
    assert len(rows) == len(crawl.rows)
    assert all(row[1] for row in rows)


def joined(crawl: Annotated, to: Path, query: str) -> Any:
    placed = query.replace("INDEX/", f"{crawl.index}/").replace("read_parquet('crawl=", f"read_parquet('{to}/crawl=")
    return duckdb.connect().execute(placed)


def table(crawl: Annotated, to: Path, query: str) -> str:
    """Return the rows of a query as a page shows them."""
    answer = joined(crawl, to, query)
    rows = [
        [name for name, *_ in answer.description],
        *(["NULL" if value is None else str(value) for value in row] for row in answer.fetchall()),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = f"+{'+'.join('-' * (width + 2) for width in widths)}+"
    cells = [f"| {' | '.join(value.ljust(width) for value, width in zip(row, widths, strict=True))} |" for row in rows]
    return "\n".join([line, cells[0], line, *cells[1:], line, ""])


# --- Where it runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in engine_names() if name != LOCAL])
def test_every_engine_writes_the_same_bytes(
    name: str, crawl: Annotated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(writing, "MOST_ROWS", 40)
    expected = exported(crawl, tmp_path / "local", On(workers=processes(1)))
    assert len(expected["shards"]) > 2
    assert exported(crawl, tmp_path / name, On(name, request.getfixturevalue(name))) == expected
    assert files(tmp_path / name) == files(tmp_path / "local")


def exported(crawl: Annotated, to: Path, on: On) -> Any:
    return run(export_of(crawl.root, [crawl.chain.version], []), str(to), on)


def killed(write: Any, job: Job, folder: Path) -> Mapping[str, int]:
    """Write a job, but for the last, whose process is killed."""
    if job.parts[-1].by.stage == "dedup_exact":
        os.kill(os.getpid(), signal.SIGKILL)
    return dict(write(job, folder))


def test_annotations_go_on_where_they_were_killed(
    crawl: Annotated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_ROWS", 40)
    monkeypatch.setattr("pipeline_tasks.engines.each.FEW", 0)
    export = export_of(crawl.root, [crawl.chain.version], [])
    dying = replace(export, shards=replace(export.shards, write=partial(killed, export.shards.write)))
    with pytest.raises(JobLost):
        run(dying, str(tmp_path / "to"), On(workers=processes(2)))
    assert list((tmp_path / "to").glob("receipts/**/*.json"))
    assert not (tmp_path / "to/files.json").exists()
    on = On(workers=processes(1))
    assert run(export, str(tmp_path / "to"), on) == run(export, str(tmp_path / "whole"), on)
    assert files(tmp_path / "to") == files(tmp_path / "whole")


ROWS = st.lists(st.lists(st.integers(0, 60), max_size=5), max_size=6)


@given(ROWS, st.integers(1, 100))
def test_jobs_have_each_shard_once_and_grow_with_records_alone(parts: list[list[int]], most: int) -> None:
    decided = [
        Decided(
            Decision(1 + at // 3, "kept", ""),
            tuple(made_up_shard("a", rows, 9, number) for number, rows in enumerate(own)),
        )
        for at, own in enumerate(parts)
        if own
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "MOST_ROWS", most)
        jobs = writing._jobs(decided)
    shards = [(part.by, shard) for job in jobs for part in job.parts for shard in part.shards]
    assert shards == [(part.by, shard) for part in decided for shard in part.shards]
    for job in jobs:
        sizes = [shard.rows for part in job.parts for shard in part.shards]
        assert sum(sizes) <= most or sum(sizes[:-1]) == 0
        assert len({part.by.version for part in job.parts}) == 1
    versions = len({part.by.version for part in decided})
    assert len(jobs) <= versions + 2 * sum(map(sum, parts)) // most


# --- What is left out, and refused ------------------------------------------------------------------------------------


@pytest.fixture
def copied(crawl: Annotated, tmp_path: Path) -> str:
    return str(shutil.copytree(crawl.root, tmp_path / "root"))


def take_down(root: str, *named: str) -> None:
    assert main(["takedown", root, *named, "--reason", "a letter"]) == 0


def test_rows_of_documents_that_are_taken_down_are_left_out_and_counted(
    crawl: Annotated, copied: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take_down(copied, "--site", "site4.example")
    gone = [row for row in rows_of(crawl, tmp_path / "all") if "site4.example" in (row["url"] or "")]
    capsys.readouterr()
    assert annotate(crawl, tmp_path / "to", "--json", root=copied) == 0
    listed = json.loads(capsys.readouterr().out)
    left = read(tmp_path / "to")
    assert not any("site4.example" in (row["url"] or "") for row in left)
    assert listed["left_out"] == len(gone) == 6, "requests and pages of three addresses"
    assert listed["rows"] + listed["left_out"] == listed["kept"] + listed["rejected"] + listed["quarantined"]
    assert b"site4" not in b"".join(files(tmp_path / "to").values())
    assert main(["erase", copied, "--by", "a steward"]) == 0
    capsys.readouterr()
    assert annotate(crawl, tmp_path / "erased", "--json", root=copied) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == listed["rows"]


def rows_of(crawl: Annotated, to: Path) -> list[dict[str, Any]]:
    assert annotate(crawl, to) == 0
    return read(to)


def test_a_copy_does_not_name_what_is_taken_down(crawl: Annotated, copied: str, tmp_path: Path) -> None:
    before = {row["url"]: row for row in rows_of(crawl, tmp_path / "all") if row["subset"] == "warc"}
    winner, copy = (COPIED, COPY) if before[COPIED]["refinery_decision"] == "kept" else (COPY, COPIED)
    take_down(copied, "--url", winner)
    assert annotate(crawl, tmp_path / "to", root=copied) == 0
    after = {row["url"]: row for row in read(tmp_path / "to") if row["subset"] == "warc"}
    assert winner not in after
    named = [name for name in after[copy] if name.startswith("refinery_duplicate_of")]
    assert len(named) == 4
    assert all(after[copy][name] is None for name in named)


def test_records_that_are_lost_are_noticed(crawl: Annotated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ordered_manifests

    def ordered(*of: Any) -> Any:
        manifests = whole(*of)
        return {**manifests, "extract": replace(manifests["extract"], rejects=())}

    monkeypatch.setattr(writing, "ordered_manifests", ordered)
    with pytest.raises(RowsVanished, match="refinery verify"):
        export_of(crawl.root, [crawl.chain.version], [])


def test_a_place_without_the_paths_of_the_crawl_has_the_names_of_files(
    crawl: Annotated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["annotations", crawl.root, "--recipe", "small", "--to", str(tmp_path)]) == 0
    assert "--places gives the path" in capsys.readouterr().out
    assert {row["warc_filename"] for row in read(tmp_path)} == {path.name for path in crawl.landing.iterdir()}


def test_records_that_were_pulled_one_by_one_have_the_places_of_the_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_records, "RECORDS", 8)
    landing = tmp_path / "landing"
    with mirrored() as mirror, on_loopback(workers=2) as on:
        rows = add_crawl(mirror, pages())
        asked = CrawlRecords(CRAWL, where="content_languages = 'eng'", name="english", address=mirror.address)
        with admitted(asked, on.gate):
            source = asked.resolved(Occasion(on, "", datetime.now(UTC)))
        pull(source, landing_at(str(landing), tmp_path / "spool"), Pull(on, 2))
    (tmp_path / "small.yaml").write_text(RECIPE)
    chain = refined(str(tmp_path / "root"), str(landing), How(recipe=str(tmp_path / "small.yaml")))
    arguments = ["annotations", chain.root, "--recipe", "small", "--to", str(tmp_path / "to")]
    assert main([*arguments, "--places", str(landing / "_records.parquet")]) == 0
    keys = ("url_surtkey", "fetch_time", "warc_filename", "warc_record_offset", "warc_record_length")
    assert sorted(tuple(row[name] for name in keys) for row in read(tmp_path / "to")) == sorted(
        tuple(row[name] for name in keys) for row in rows if row["content_languages"] == "eng"
    )
    assert {row["crawl"] for row in read(tmp_path / "to")} == {CRAWL}, "the crawl, and not the name of the snapshot"
    [copy] = [row for row in read(tmp_path / "to") if row["refinery_stage"] == "dedup_exact"]
    assert copy["refinery_duplicate_of_warc_filename"] in {row["warc_filename"] for row in rows}


def test_places_that_say_nothing_of_a_record_are_refused(crawl: Annotated, tmp_path: Path) -> None:
    for name, body, error in (
        ("absent", None, RecipeError),
        ("other", b"crawl-data/CC-MAIN-2026-01/segments/1.0/warc/other.warc.gz\n", ContractError),
        ("twice", b"a/x.warc.gz\nb/x.warc.gz\n", RecipeError),
        ("cut", crawl.paths.read_bytes()[:-9], RecipeError),
        ("none", b"", RecipeError),
    ):
        if body is not None:
            (tmp_path / name).write_bytes(body)
        arguments = ["annotations", crawl.root, "--recipe", "small", "--to", str(tmp_path / f"to-{name}")]
        assert main([*arguments, "--places", str(tmp_path / name)]) == error.exit_code, name


def test_a_shared_root_logs_who_took_addresses_out(
    crawl: Annotated, copied: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, PURPOSES)
    assert annotate(crawl, tmp_path / "none", root=copied) == LookRefused.exit_code
    assert not (tmp_path / "none").exists()
    assert annotate(crawl, tmp_path / "to", "--purpose", "a paper", root=copied) == 0
    *_, look = looks(copied)
    assert (look.through, look.what, look.purpose, look.of["snapshot"]) == ("command", "annotations", "a paper", CRAWL)
    assert look.rows == len(read(tmp_path / "to"))


@pytest.mark.parametrize(
    "arguments",
    [("--version", "9"), ("--version", "1", "--snapshot", CRAWL), ("--snapshot", "other"), ("--recipe", "no")],
)
def test_what_is_not_published_is_refused(crawl: Annotated, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert annotate(crawl, tmp_path / "to", *arguments) == RecipeError.exit_code
    assert not (tmp_path / "to").exists()


def test_a_place_in_the_root_is_refused(crawl: Annotated) -> None:
    assert annotate(crawl, Path(crawl.root, "annotations")) == RecipeError.exit_code
