"""Files that say under which rights the data is land beside it with their digests, and are no data."""

import hashlib
from pathlib import Path

import pytest

from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.listing import list_snapshot
from tests.archives import http, response, zipped
from tests.crawl_mirror import CRAWL, Mirror, archive, archives
from tests.sources.pulling import promise_of, pull_source

PAGE = b"<html>Use it as you like.</html>"
ROBOTS = b"User-agent: *\nDisallow: /\n"


def crawl(mirror: Mirror, **query: str) -> dict[str, object]:
    return {"common_crawl": {"crawl": CRAWL, "address": mirror.address, **query}}


def test_pages_archives_and_files_land_beside_the_data_with_digests(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(2))
    mirror.files |= {"/terms": PAGE, "/crawl/robots-0.warc.gz": archive("robots", 40_000)}
    (tmp_path / "LICENSE").write_bytes(b"Attribution.\n")
    rights = [f"{mirror.address}/terms", f"{mirror.address}/crawl/robots-0.warc.gz", str(tmp_path / "LICENSE")]
    place, landed = pull_source(crawl(mirror), tmp_path / "landings", rights=rights)
    assert landed.files == 2
    source = promise_of(place)["source"]
    assert "beside" not in source
    assert [file["address"] for file in source["rights"]] == rights
    bodies = [(place / file["path"]).read_bytes() for file in source["rights"]]
    assert bodies == [PAGE, mirror.files["/crawl/robots-0.warc.gz"], b"Attribution.\n"]
    assert [file["sha256"] for file in source["rights"]] == [hashlib.sha256(body).hexdigest() for body in bodies]
    listing = list_snapshot(str(place))
    assert {name for name, _, _ in listing.files} == set(archives(2))
    assert (listing.ignored, listing.skipped) == ((), ())
    again, before = pull_source(crawl(mirror), tmp_path / "landings", rights=rights)
    assert (again, before.is_new) == (place, False)
    (place / source["rights"][0]["path"]).write_bytes(b"changed")
    with pytest.raises(ContractError, match="terms"):
        pull_source(crawl(mirror), tmp_path / "landings", rights=rights)


def test_without_its_rights_nothing_lands(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(1))
    with pytest.raises(SnapshotIncomplete, match="/terms"):
        pull_source(crawl(mirror), tmp_path / "landings", rights=[f"{mirror.address}/terms"])
    assert not list(tmp_path.rglob("snapshot.json"))
    mirror.files["/terms"] = PAGE
    place, _ = pull_source(crawl(mirror), tmp_path / "landings", rights=[f"{mirror.address}/terms"])
    assert len(promise_of(place)["source"]["rights"]) == 1
    assert len(mirror.data()) == 1


@pytest.mark.parametrize(
    "rights", [["a/LICENSE", "b/LICENSE"], ["https://user:secret@a.org/terms"], ["https://a.org/terms?key=secret"]]
)
def test_rights_that_make_no_sense_are_refused(rights: list[str], mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as raised:
        pull_source(crawl(mirror), tmp_path / "landings", rights=rights)
    assert "user:secret" not in str(raised.value)
    assert mirror.asked == []


def test_archives_of_robots_txt_land_as_files_that_are_read(mirror: Mirror, tmp_path: Path) -> None:
    answer = response("https://example.org/robots.txt", http(ROBOTS, headers="Content-Type: text/plain"))
    mirror.add({"a.warc.gz": zipped([answer])[0]}, kind="robotstxt")
    place, _ = pull_source(crawl(mirror, kind="robotstxt"), tmp_path / "landings")
    assert [name for name, _, _ in list_snapshot(str(place)).files] == ["a.warc.gz"]
    with (place / "a.warc.gz").open("rb") as stream:
        [record] = [row for batch in read_records("a.warc.gz", stream, snapshot="s") for row in batch.to_pylist()]
    assert (record["url"], record["payload"]) == ("https://example.org/robots.txt", ROBOTS)
