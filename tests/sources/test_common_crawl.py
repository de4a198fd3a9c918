"""Which files of a crawl a query takes, and which lists are refused."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from refinery_sources.admission import admitted
from refinery_sources.common_crawl.files import CommonCrawl, read_paths, require_query
from refinery_sources.source import Occasion

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from tests.commands import Refinery
from tests.crawl_mirror import CRAWL, Mirror, archives
from tests.sources.pulling import on_loopback

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://mirror.example/warc.paths.gz"
PATHS = [
    f"crawl-data/{CRAWL}/segments/17000000{segment:02}.{segment}/warc/f-{segment}-{number}.warc.gz"
    for segment in range(10)
    for number in range(40)
]


def body(*lines: str) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in lines).encode())


def names(mirror: Mirror, **query: object) -> list[str]:
    mirror.list_paths(PATHS)
    with on_loopback() as on:
        source = CommonCrawl(CRAWL, address=mirror.address, **query)  # type: ignore[arg-type]
        with admitted(source, on.gate):
            parts = source.parts(on)
    assert all(part.address == f"{mirror.address}/{path}" for part in parts for path in PATHS if part.name in path)
    return [part.name for part in parts]


def test_segments_are_numbers_in_the_order_of_their_names(mirror: Mirror) -> None:
    assert names(mirror) == [path.rpartition("/")[2] for path in PATHS]
    assert {name.split("-")[1] for name in names(mirror, segments="0-2,9")} == {"0", "1", "2", "9"}
    assert len(names(mirror, segments="7")) == 40
    for segments in ("10", "3-2", "0-10"):
        with pytest.raises(RecipeError, match="segments 0 to 9"):
            names(mirror, segments=segments)


def test_a_larger_sample_has_all_files_of_a_smaller_one(mirror: Mirror) -> None:
    small, large = names(mirror, sample=0.1), names(mirror, sample=0.4)
    assert set(small) < set(large)
    assert 20 <= len(small) <= 60
    assert 120 <= len(large) <= 200
    assert small == names(mirror, sample=0.1)
    assert small != names(mirror, sample=0.1, seed=1)
    few = names(mirror, files=5, segments="0-4")
    assert (len(few), len(names(mirror, files=1000))) == (5, 400)
    assert set(few) < set(names(mirror, files=9, segments="0-4"))
    assert few[0] not in names(mirror, without=(few[0],))
    with pytest.raises(RecipeError, match="none of them is chosen"):
        names(mirror, sample=1e-9)


WHOLE = body(*PATHS)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (WHOLE[:-20], "cut or damaged"),
        (WHOLE[: len(WHOLE) // 2], "cut or damaged"),
        (b"<html>", "cut or damaged"),
        (b"", "is empty"),
        (gzip.compress(b""), "is empty"),
        (body(*PATHS[:2], PATHS[2].replace(CRAWL, "CC-MAIN-2026-46")), "line 3"),
        (body(PATHS[0], f"crawl-data/{CRAWL}/segments/1.0/warc/../../x.warc.gz"), "line 2"),
        (body("https://169.254.169.254/x.warc.gz"), "line 1"),
        (body(PATHS[0], ""), "line 2"),
        (body(PATHS[0].replace("/warc/", "/wet/")), "line 1"),
        (body(PATHS[0], PATHS[0]), "2 files that are named f-0-0.warc.gz"),
        (body(PATHS[0] + "\x1b[2J"), "line 1"),
    ],
)
def test_a_list_that_is_not_whole_or_leads_elsewhere_is_refused_by_name(content: bytes, named: str) -> None:
    with pytest.raises(ContractError, match=named) as caught:
        read_paths(content, URL, CRAWL, "warc")
    assert URL in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_whole_list_of_each_kind_is_read() -> None:
    assert read_paths(WHOLE, URL, CRAWL, "warc") == PATHS
    texts = [path.replace("/warc/", "/wet/").replace(".warc.gz", ".warc.wet.gz") for path in PATHS]
    assert read_paths(body(*texts), URL, CRAWL, "wet") == texts


@pytest.mark.parametrize("words", [[], ["--where", "true"]])
def test_an_unknown_crawl_is_refused_with_those_that_there_are(
    mirror: Mirror, tmp_path: Path, refinery: Refinery, words: list[str]
) -> None:
    mirror.add(archives(1), crawl="CC-MAIN-2026-45")
    known = ["CC-MAIN-2026-45", "CC-MAIN-2026-40", "CC-MAIN-2025-01"]
    command = ["pull", "cc", "--crawl", "CC-MAIN-2026-46", "--from", mirror.address, "--to", tmp_path / "to", *words]
    assert refinery(*command).returncode == SnapshotIncomplete.exit_code  # nobody says which crawls there are
    mirror.files["/collinfo.json"] = json.dumps([{"id": crawl} for crawl in known]).encode()
    done = refinery(*command)
    assert done.returncode == RecipeError.exit_code
    assert all(crawl in done.stderr for crawl in known)
    mirror.files["/collinfo.json"] = json.dumps([{"id": "CC-MAIN-2026-46"}]).encode()
    assert refinery(*command).returncode == SnapshotIncomplete.exit_code  # it is there, and its list is not


def test_the_latest_crawl_is_the_newest_of_the_list(mirror: Mirror) -> None:
    crawls = [{"id": "CC-MAIN-2026-41"}, {"id": CRAWL}, {"id": "CC-MAIN-2008-2009"}]
    mirror.files["/collinfo.json"] = json.dumps(crawls).encode()
    query = CommonCrawl("latest", address=mirror.address)
    with on_loopback() as on, admitted(query, on.gate):
        assert query.resolved(Occasion(on, "", NOW)).crawl == CRAWL
        for broken in (b"[]", b"{}", b"<html>", b'[{"name": 1}]'):
            mirror.files["/collinfo.json"] = broken
            with pytest.raises(ContractError, match=r"collinfo\.json"):
                query.resolved(Occasion(on, "", NOW))


@pytest.mark.parametrize(
    "wrong",
    [
        {"crawl": "../x"},
        {"crawl": ""},
        {"segments": "a"},
        {"segments": "1-"},
        {"sample": 0.0},
        {"sample": 1.1},
        {"sample": float("nan")},
        {"files": -1},
        {"address": "s3://commoncrawl"},
        {"address": "file:///etc"},
        {"address": "https://me:secret@mirror.example"},
    ],
)
def test_a_query_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    require_query(CommonCrawl(CRAWL))
    with pytest.raises(RecipeError):
        require_query(CommonCrawl(**{"crawl": CRAWL, **wrong}))  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["--rate=0", "--rate=nan", "--workers=0", "--workers=100", "--bytes-per-second=-1"])
def test_a_rate_that_makes_no_sense_is_refused(tmp_path: Path, option: str) -> None:
    assert main(["pull", "cc", "--crawl", CRAWL, "--to", str(tmp_path / "x"), option]) == RecipeError.exit_code
    assert not (tmp_path / "x").exists()
