"""Records of a crawl by a query on its index: those that meet it and no others, each proved to be that record."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator
from refinery_sources.admission import admitted
from refinery_sources.common_crawl import records as crawl_records
from refinery_sources.common_crawl.records import CrawlRecords
from refinery_sources.pull import Landed, Pull, landing_at, pull
from refinery_sources.source import Flow, Occasion

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError, SourceRefused
from pipeline_tasks.landing.listing import list_snapshot
from tests.crawl_index import Crawled, add_crawl, add_index, crawled
from tests.crawl_mirror import CRAWL, Asked, Fault, Mirror
from tests.sources.pulling import on_loopback

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GERMAN = "content_languages = 'deu' AND fetch_status = 200"


@pytest.fixture(autouse=True)
def small_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_records, "RECORDS", 15)
    monkeypatch.setattr(crawl_records, "GAP", 500)


def asked_for(mirror: Mirror, to: Path, workers: int = 2, **query: Any) -> Landed:
    with on_loopback(workers=workers) as on:
        asked = CrawlRecords(CRAWL, address=mirror.address, **query)
        with admitted(asked, on.gate):
            source = asked.resolved(Occasion(on, "", NOW))
        return pull(source, landing_at(str(to), to / "spool"), Pull(on, workers, Flow(flush=1)))


def urls_in(folder: Path) -> list[str]:
    return [
        record.headers["WARC-Target-URI"]
        for file in sorted(folder.glob("*.warc.gz"))
        for record in ArchiveIterator(file.open("rb"))
    ]


def test_the_records_that_meet_a_condition_land_and_no_others(mirror: Mirror, tmp_path: Path) -> None:
    pages = crawled(120)
    rows = add_crawl(mirror, pages)
    landed = asked_for(mirror, tmp_path / "to", where=GERMAN)
    expected = {page.url for page in pages if page.language == "deu"}
    there = urls_in(tmp_path / "to")
    assert (set(there), len(there), landed.files) == (expected, 40, 3)
    promise = json.loads((tmp_path / "to" / "snapshot.json").read_bytes())
    assert promise["source"]["query"]["where"] == GERMAN
    assert promise["source"]["rows"] == 40
    (beside,) = promise["source"]["beside"]
    table = pq.read_table(tmp_path / "to" / beside["path"])
    assert (beside["rows"], set(table["url"].to_pylist())) == (40, expected)
    assert [name for name, _, _ in list_snapshot(str(tmp_path / "to")).files] == [
        file["path"] for file in promise["files"]
    ]
    assert len(rows) == 120


def test_what_lands_beside_says_where_each_record_has_landed(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(120))
    asked_for(mirror, tmp_path / "to", where=GERMAN)
    rows = pq.read_table(tmp_path / "to" / crawl_records.BESIDE).to_pylist()
    assert len({row["file"] for row in rows}) == 3
    for row in rows:
        body = (tmp_path / "to" / row["file"]).read_bytes()[row["offset"] :][: row["warc_record_length"]]
        assert body == mirror.files[f"/{row['warc_filename']}"][row["warc_record_offset"] :][: len(body)]
        (record,) = ArchiveIterator(io.BytesIO(body))
        assert record.headers["WARC-Target-URI"] == row["url"]


def test_equal_queries_give_equal_bytes_and_a_larger_share_has_all_of_a_smaller_one(
    mirror: Mirror, tmp_path: Path
) -> None:
    add_crawl(mirror, crawled(120))
    for name, share in (("one", 0.2), ("two", 0.2), ("more", 0.5)):
        asked_for(mirror, tmp_path / name, sample=share)
    one, two, more = (json.loads((tmp_path / name / "snapshot.json").read_bytes()) for name in ("one", "two", "more"))
    assert one["files"] == two["files"]
    assert set(urls_in(tmp_path / "one")) < set(urls_in(tmp_path / "more"))
    assert 10 < one["source"]["rows"] < 40 < more["source"]["rows"] < 85


def test_a_number_of_records_is_taken_over_all_files_of_the_index(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(120))
    asked_for(mirror, tmp_path / "some", records=20)
    asked_for(mirror, tmp_path / "more", records=35)
    assert len(urls_in(tmp_path / "some")) == 20
    assert set(urls_in(tmp_path / "some")) < set(urls_in(tmp_path / "more"))


def test_files_of_the_index_are_chosen_by_number(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(120), parts=3)
    for name, index in (("first", "0"), ("others", "1-2")):
        asked_for(mirror, tmp_path / name, index=index)
    first, others = (set(urls_in(tmp_path / name)) for name in ("first", "others"))
    assert (len(first), len(others), first & others) == (40, 80, set())
    with pytest.raises(RecipeError, match="0 to 2"):
        asked_for(mirror, tmp_path / "none", index="7")


def test_only_what_the_condition_needs_is_read_of_the_index(mirror: Mirror, tmp_path: Path) -> None:
    noise = [Crawled(f"https://a.example/{number:032x}{'x' * 3000}", "eng", "text") for number in range(400)]
    add_crawl(mirror, [*noise, Crawled("https://z.example/last", "deu", "text")], parts=1)
    (index,) = [path for path in mirror.files if path.endswith(".parquet")]
    asked_for(mirror, tmp_path / "to", where="url_host_name = 'z.example'")
    assert urls_in(tmp_path / "to") == ["https://z.example/last"]
    assert mirror.sent[index] < len(mirror.files[index]) / 2


def test_a_killed_pull_asks_for_no_record_again(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(120))
    mirror.fault = lambda _: Fault(403) if len(mirror.data()) > 12 else None
    with pytest.raises(SourceRefused):
        asked_for(mirror, tmp_path / "to", where=GERMAN, workers=1)
    before = {(asked.path, asked.start) for asked in mirror.data()[:-1]}
    mirror.fault = lambda _: None
    crawl_records._tables.clear()
    with on_loopback() as on:
        on.budget(mirror.address).reopen()
    asked = len(mirror.asked)
    asked_for(mirror, tmp_path / "to", where=GERMAN, workers=1)
    after = [(one.path, one.start) for one in mirror.asked[asked:]]
    assert not before & set(after)
    assert not [path for path, _ in after if "cc-index" in path]
    assert len(urls_in(tmp_path / "to")) == 40


def test_faults_on_the_way_leave_the_same_bytes(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(120))
    asked_for(mirror, tmp_path / "calm", where=GERMAN)

    def fault(asked: Asked) -> Fault | None:
        return {0: Fault(503), 1: Fault(drop_after=7)}.get(asked.number % 9)

    mirror.fault = fault
    crawl_records._tables.clear()
    asked_for(mirror, tmp_path / "stormy", where=GERMAN)
    calm, stormy = (json.loads((tmp_path / name / "snapshot.json").read_bytes()) for name in ("calm", "stormy"))
    assert calm["files"] == stormy["files"]


@pytest.mark.parametrize(
    "change",
    [
        {"warc_record_offset": 3},
        {"warc_record_length": -1},
        {"warc_filename": "crawl-data/../../etc/passwd.warc.gz"},
        {"url": "https://other.example/", "content_digest": None},
        {"content_digest": "A" * 32},
    ],
)
def test_a_place_without_the_record_that_the_index_names_is_damage(
    mirror: Mirror, tmp_path: Path, change: dict[str, Any]
) -> None:
    rows = add_crawl(mirror, crawled(20))
    add_index(mirror, [{**row, **(change if number == 7 else {})} for number, row in enumerate(rows)])
    with pytest.raises(ContractError):
        asked_for(mirror, tmp_path / "to")
    assert not (tmp_path / "to" / "snapshot.json").exists()


def test_an_index_with_a_record_twice_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    rows = add_crawl(mirror, crawled(20))
    add_index(mirror, [*rows, rows[3]])
    with pytest.raises(ContractError, match="two records"):
        asked_for(mirror, tmp_path / "to")


def test_an_index_that_is_no_parquet_file_is_refused_by_name(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(20), parts=1)
    (index,) = [path for path in mirror.files if path.endswith(".parquet")]
    mirror.files[index] = mirror.files[index][:-40] + bytes(40)
    with pytest.raises(ContractError, match="part-00000"):
        asked_for(mirror, tmp_path / "to")


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("languages = 'deu'", "languages"),
        ("content_languages =", "syntax"),
        ("url IN (SELECT * FROM read_csv('/etc/passwd'))", "a query in it"),
        ("url IN (FROM entries SELECT url USING SAMPLE 10)", "a query in it"),
        ("url = (TABLE entries)", "a query in it"),
        ("fetch_status = 200) OR (fetch_status = 404", "one SQL expression"),
        ("txid_current() % 2 = 0", "txid_current"),
        ("true); SELECT (true", "where"),
        ("CAST(url AS INTEGER) > 5", "where .*url.*INT"),
        ("fetch_status = 'ok'", "where .*ok"),
        ("random() < 0.1", "random"),
        ("fetch_time < now()", "now"),
    ],
)
def test_a_condition_that_is_none_is_refused_before_a_request(
    mirror: Mirror, tmp_path: Path, where: str, named: str
) -> None:
    with pytest.raises(RecipeError, match=named):
        asked_for(mirror, tmp_path / "to", where=where)
    assert not mirror.asked


def test_words_of_a_text_are_no_functions(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, [*crawled(5), Crawled("https://now.example/random", "eng", "text")])
    asked_for(mirror, tmp_path / "to", where="url = 'https://now.example/random' -- ours")
    assert urls_in(tmp_path / "to") == ["https://now.example/random"]


def test_a_query_that_nothing_meets_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(5))
    with pytest.raises(RecipeError, match="no record"):
        asked_for(mirror, tmp_path / "to", where="content_languages = 'xho'")


def test_a_mirror_without_ranges_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    add_crawl(mirror, crawled(5))
    mirror.heeds_range = False
    with pytest.raises(RecipeError, match="range"):
        asked_for(mirror, tmp_path / "to")


def test_records_are_pulled_by_the_command(mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_crawl(mirror, crawled(60))
    command = ["pull", "cc", "--crawl", CRAWL, "--from", mirror.address, "--rate", "1000", "--where", GERMAN]
    command += ["--to", str(tmp_path / "{snapshot}"), "--records", "15", "--json"]
    assert main([*command, "--dry-run"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (planned["files"], planned["complete"]) == (2, 0)
    assert main(command) == 0
    landed = json.loads(capsys.readouterr().out)
    assert landed["snapshot"].endswith(CRAWL)
    assert len(urls_in(tmp_path / landed["snapshot"])) == 15
    assert main([*command, "--files", "3"]) == RecipeError.exit_code
