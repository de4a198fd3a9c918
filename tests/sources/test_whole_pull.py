"""A pull lands a crawl whole or not at all, whatever the server does, and asks for no byte and no permission twice."""

import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from refinery_sources import budget
from refinery_sources.budget import Rate
from refinery_sources.common_crawl.files import CommonCrawl
from refinery_sources.common_crawl.news import CrawlNews
from refinery_sources.download import PIECE
from refinery_sources.pull import Landed, Pull, landing_at, pull
from refinery_sources.source import Flow
from refinery_sources.testing import check_source

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import (
    ContractError,
    RecipeError,
    SnapshotIncomplete,
    SourceBusy,
    SourceRefused,
)
from pipeline_tasks.landing.arrival import INCOMPLETE, arrival_of
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.store.storage import connect
from tests.crawl_mirror import CRAWL, Asked, Fault, Mirror, archive, archives
from tests.sources.pulling import FAST, SLEW, on_loopback


def pulled(
    mirror: Mirror,
    to: str,
    rate: Rate = FAST,
    workers: int = 4,
    on_bytes: Callable[[str, int], None] = lambda _name, _size: None,
    spool: Path = Path("nowhere"),
    **query: object,
) -> Landed:
    source = CommonCrawl(CRAWL, address=mirror.address, **query)  # type: ignore[arg-type]
    with on_loopback(rate, workers) as on:
        return pull(source, landing_at(to, spool), Pull(on, workers, Flow(PIECE, on_bytes)))


def names_in(folder: str | Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in Path(folder).rglob("*") if file.is_file())


def assert_whole(folder: str | Path, expected: dict[str, bytes]) -> None:
    assert names_in(folder) == sorted([*expected, "snapshot.json"])
    promise = json.loads(Path(folder, "snapshot.json").read_bytes())
    assert {file["path"]: file["sha256"] for file in promise["files"]} == {
        name: hashlib.sha256(body).hexdigest() for name, body in expected.items()
    }
    assert {name: Path(folder, name).read_bytes() for name in expected} == expected
    assert list_snapshot(str(folder)).ignored == ()


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_a_crawl_lands_with_digests_its_query_and_its_terms(
    mirror: Mirror, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    files = archives(3)
    mirror.add(files)
    to = str(tmp_path / "landing") if kind == "local" else request.getfixturevalue("s3_root")
    landed = pulled(mirror, to, spool=tmp_path / "spool")
    assert landed == Landed(CRAWL, 3, sum(map(len, files.values())))
    listing = list_snapshot(to)
    assert listing.snapshot == CRAWL
    assert dict((name, digest) for name, _, digest in listing.files) == {  # noqa: C402
        name: hashlib.sha256(body).hexdigest() for name, body in files.items()
    }
    assert (listing.ignored, listing.skipped) == ((), ())
    if kind == "local":
        assert_whole(to, files)
        source = json.loads(Path(to, "snapshot.json").read_bytes())["source"]
        assert source["query"] == CommonCrawl(CRAWL, address=mirror.address).query()
        assert source["terms"]["sha256"] == hashlib.sha256(source["terms"]["text"].encode()).hexdigest()
        assert (source["files"], source["bytes"]) == (3, landed.bytes)


def test_a_crawl_keeps_what_every_source_promises(mirror: Mirror) -> None:
    files = archives(3)
    cut = mirror.add(files)[1]
    mirror.files[f"/{cut}"] = files["part-00001.warc.gz"][:-100]
    whole = CommonCrawl(CRAWL, address=mirror.address, without=("part-00001.warc.gz",))
    check_source(whole, cut=CommonCrawl(CRAWL, address=mirror.address))


def test_a_complete_landing_is_asked_nothing_and_another_query_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(2))
    to = str(tmp_path / "landing")
    first = pulled(mirror, to)
    before, asked = names_in(to), len(mirror.asked)
    assert pulled(mirror, to) == Landed(CRAWL, 2, first.bytes, found=2, is_new=False)
    with pytest.raises(RecipeError, match="sample"):
        pulled(mirror, to, sample=0.5)
    assert (names_in(to), len(mirror.asked)) == (before, asked)
    Path(to, before[0]).unlink()
    with pytest.raises(ContractError, match=before[0]):
        pulled(mirror, to)


def test_a_landing_of_another_kind_is_refused_by_the_kind_alone(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(1))
    to = str(tmp_path / "landing")
    pulled(mirror, to)
    news, landing = CrawlNews("2026-01-01", address=mirror.address), landing_at(to, tmp_path / "spool")
    with on_loopback() as on, pytest.raises(RecipeError, match=r"common_crawl.*common_crawl_news") as raised:
        pull(news, landing, Pull(on, 1))
    assert "day None" not in str(raised.value)


def test_a_place_with_other_files_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(1))
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "notes.txt").write_text("mine")
    with pytest.raises(RecipeError, match=r"notes\.txt"):
        pulled(mirror, str(tmp_path / "landing"))
    assert mirror.asked == []


@pytest.mark.parametrize("seed", range(3))
def test_faults_on_the_way_leave_the_same_bytes_and_files_go_on_where_they_broke_off(
    mirror: Mirror, tmp_path: Path, seed: int
) -> None:
    files = archives(12)
    mirror.add(files)
    chance, injected = random.Random(seed), []
    kinds = [Fault(500), Fault(503), Fault(drop_after=100_000), Fault(drop_after=0), Fault(longer=7), Fault(longer=-7)]

    def fault(asked: Asked) -> Fault | None:
        if asked.is_data and (len(injected) < 6 or chance.random() < 0.05):
            injected.append(kinds[len(injected) % len(kinds)])
            return injected[-1]
        return None

    mirror.fault = fault
    pulled(mirror, str(tmp_path / "landing"))
    assert_whole(tmp_path / "landing", files)
    assert len(injected) >= 6
    dropped = sum(fault.drop_after == 100_000 for fault in injected)
    assert sum(asked.start > 0 for asked in mirror.data()) >= dropped  # continued and not begun anew


def test_a_file_that_is_cut_at_the_source_is_named_and_nothing_lands(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(3)
    paths = mirror.add(files)
    mirror.files[f"/{paths[1]}"] = files["part-00001.warc.gz"][:-100]
    with pytest.raises(ContractError, match=r"part-00001\.warc\.gz ends within a gzip member") as caught:
        pulled(mirror, str(tmp_path / "landing"))
    assert "2 of 3 files are complete" in str(caught.value)
    with pytest.raises(SnapshotIncomplete):
        list_snapshot(str(tmp_path / "landing"))
    mirror.files[f"/{paths[1]}"] = files["part-00001.warc.gz"]
    asked = len(mirror.asked)
    assert pulled(mirror, str(tmp_path / "landing")).found == 2
    assert [asked.path for asked in mirror.asked[asked:] if asked.is_data] == [f"/{paths[1]}"]
    assert_whole(tmp_path / "landing", files)


def test_a_flipped_byte_is_damage(mirror: Mirror, tmp_path: Path) -> None:
    body = bytearray(archive("x", 200_000))
    body[100_000] ^= 0xFF
    mirror.add({"x.warc.gz": bytes(body)})
    with pytest.raises(ContractError, match=r"x\.warc\.gz"):
        pulled(mirror, str(tmp_path / "landing"))
    assert "x.warc.gz" not in names_in(tmp_path / "landing")


def test_a_file_that_is_listed_and_missing_is_named_and_may_be_left_out(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(3)
    paths = mirror.add(files)
    del mirror.files[f"/{paths[2]}"], files["part-00002.warc.gz"]
    with pytest.raises(SnapshotIncomplete, match=r"part-00002\.warc\.gz"):
        pulled(mirror, str(tmp_path / "landing"))
    assert "snapshot.json" not in names_in(tmp_path / "landing")
    pulled(mirror, str(tmp_path / "other"), without=("part-00002.warc.gz",))
    assert_whole(tmp_path / "other", files)
    with pytest.raises(RecipeError, match="nowhere"):
        pulled(mirror, str(tmp_path / "third"), without=("nowhere",))


def test_no_request_comes_after_a_refusal_from_any_worker_or_process(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(20, 20_000)
    mirror.add(files)
    mirror.fault = lambda asked: Fault(403) if asked.number >= 8 else None
    to = str(tmp_path / "landing")
    with pytest.raises(SourceRefused) as caught:
        pulled(mirror, to, workers=8)
    assert len(mirror.asked) == 9
    assert caught.value.exit_code == RecipeError.exit_code
    complete = [name for name in names_in(to) if not name.startswith(".pull/")]
    assert f"{len(complete)} of 20 files are complete in {to}" in str(caught.value)
    with pytest.raises(SourceRefused, match="--again"):
        pulled(mirror, str(tmp_path / "another"))
    arguments = ["pull", "cc", "--crawl", CRAWL, "--from", mirror.address, "--to", to, "--rate", "1000"]
    assert main(arguments) == SourceRefused.exit_code
    assert len(mirror.asked) == 9
    mirror.fault = lambda _asked: None
    assert main([*arguments, "--again"]) == 0
    assert_whole(to, files)
    assert len(mirror.data()) == 8 + 20 - len(complete)  # of the first nine requests one was for the list


def test_a_source_that_asks_to_wait_is_not_asked_earlier(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(6, 20_000)
    mirror.add(files)
    moments: list[float] = []

    def fault(asked: Asked) -> Fault | None:
        if asked.number in (3, 5):
            moments.append(time.time())
            return Fault(429 if asked.number == 3 else 503, (("Retry-After", "1"),))
        return None

    mirror.fault = fault
    pulled(mirror, str(tmp_path / "landing"), workers=8)
    assert_whole(tmp_path / "landing", files)
    assert len(moments) == 2
    for number, moment in zip((3, 5), moments, strict=True):
        later = [asked.at for asked in mirror.asked if asked.number > number]
        assert later
        assert min(later) >= moment + 1 - SLEW


def test_a_source_that_asks_to_wait_for_hours_ends_the_pull(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(3, 20_000))
    mirror.fault = lambda asked: Fault(429, (("Retry-After", "7200"),)) if asked.number == 2 else None
    with pytest.raises(SourceBusy, match="UTC"):
        pulled(mirror, str(tmp_path / "landing"))
    assert len(mirror.asked) == 3


def test_a_source_that_stays_busy_is_tried_eight_times(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(1, 20_000))
    mirror.fault = lambda asked: Fault(500) if asked.is_data else None
    with pytest.raises(SourceBusy, match="500"):
        pulled(mirror, str(tmp_path / "landing"))
    assert len(mirror.data()) == 8


def test_a_redirect_is_not_followed(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(1, 20_000))
    mirror.fault = lambda asked: Fault(302, (("Location", "http://169.254.169.254/x"),)) if asked.is_data else None
    with pytest.raises(RecipeError, match=r"169\.254\.169\.254"):
        pulled(mirror, str(tmp_path / "landing"))
    assert len(mirror.data()) == 1


@pytest.mark.parametrize("size", [250_000, 300_000, 100_000])
@pytest.mark.parametrize("heeds_if_range", [True, False])
def test_a_file_that_changes_between_tries_is_begun_anew(
    mirror: Mirror, tmp_path: Path, size: int, heeds_if_range: bool
) -> None:
    (path,) = mirror.add({"x.warc.gz": archive("old", 300_000)})
    changed = archive("new", size)
    mirror.heeds_if_range = heeds_if_range

    def fault(asked: Asked) -> Fault | None:
        if len(mirror.data()) == 2:
            mirror.files[f"/{path}"] = changed
        return Fault(drop_after=200_000) if len(mirror.data()) == 1 else None

    mirror.fault = fault
    pulled(mirror, str(tmp_path / "landing"))
    assert_whole(tmp_path / "landing", {"x.warc.gz": changed})
    assert [asked.start for asked in mirror.data()] == [0, 3 * PIECE, *([] if heeds_if_range else [0])]


def test_a_bucket_keeps_what_is_complete_for_another_machine(mirror: Mirror, tmp_path: Path, s3_root: str) -> None:
    files = archives(3, 20_000)
    paths = mirror.add(files)
    mirror.fault = lambda asked: Fault(404) if asked.path == f"/{paths[0]}" else None
    with pytest.raises(SnapshotIncomplete, match="2 of 3 files are complete"):
        pulled(mirror, s3_root, spool=tmp_path / "one")
    with pytest.raises(SnapshotIncomplete, match="refinery pull"):
        list_snapshot(s3_root)
    mirror.fault, asked = lambda _asked: None, len(mirror.asked)
    assert pulled(mirror, s3_root, spool=tmp_path / "another").found == 2
    assert [asked.path for asked in mirror.asked[asked:] if asked.is_data] == [f"/{paths[0]}"]
    assert [entry.path for entry in connect(s3_root).list("")] == [*files, "snapshot.json"]
    assert names_in(tmp_path / "another") == []


def test_a_file_that_was_cut_in_the_landing_is_pulled_again(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(2, 20_000)
    paths = mirror.add(files)
    mirror.fault = lambda asked: Fault(404) if asked.path == f"/{paths[0]}" else None
    with pytest.raises(SnapshotIncomplete):
        pulled(mirror, str(tmp_path / "landing"))
    os.truncate(tmp_path / "landing/part-00001.warc.gz", 1000)
    mirror.fault = lambda _asked: None
    assert pulled(mirror, str(tmp_path / "landing")).found == 0
    assert_whole(tmp_path / "landing", files)


def test_requests_of_all_workers_are_within_the_rate(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(12, 20_000))
    begin = time.time()
    pulled(mirror, str(tmp_path / "landing"), rate=Rate(20.0), workers=8)
    moments = sorted(asked.at for asked in mirror.asked)
    assert len(moments) == 13
    for place, moment in enumerate(moments):  # the n-th request is sent n/20 seconds after the first one or later
        assert moment >= begin + place / 20.0 - SLEW


def test_pulls_share_one_rate(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(5, 20_000))
    begin = time.time()
    places = [str(tmp_path / name) for name in ("one", "two")]
    threads = [threading.Thread(target=pulled, args=(mirror, place, Rate(20.0), 4)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    moments = sorted(asked.at for asked in mirror.asked)
    assert len(moments) == 12
    assert all(moment >= begin + place / 20.0 - SLEW for place, moment in enumerate(moments))


KILLED = """
import os, signal, sys
from pathlib import Path
from refinery_sources import budget
from refinery_sources.budget import Rate
from refinery_sources.common_crawl.files import CommonCrawl
from refinery_sources.common_crawl.news import CrawlNews
from refinery_sources.source import Flow
from refinery_sources.pull import Pull, landing_at, pull
from refinery_sources.web import web

address, to, place, crawl, at, flush, names = sys.argv[1:]
budget.PLACE = Path(place)
left, unnamed = int(at), int(names)

def count_names(event, arguments):
    global unnamed
    if event == "os.rename" and not str(arguments[1]).endswith(".json"):
        unnamed -= 1
        if unnamed == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count_names)

def count(name, size):
    global left
    left -= size
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

with web(Rate(1000.0), 1) as on:
    pull(CommonCrawl(crawl, address=address), landing_at(to, Path(to)), Pull(on, 1, Flow(int(flush), count)))
"""


def killed(mirror: Mirror, to: str, position: int = 0, flush: int = PIECE, names: int = 0) -> int:
    """Pull in a process that is killed at a byte, or before so many files get their names; return its exit code."""
    arguments = [mirror.address, to, budget.PLACE, CRAWL, position or 1 << 40, flush, names]
    command = [sys.executable, "-c", KILLED, *map(str, arguments)]
    return subprocess.run(command, check=False, cwd=Path(__file__).parents[2]).returncode


@pytest.mark.slow
def test_a_pull_that_is_killed_before_a_file_gets_its_name_asks_for_no_byte_again(
    mirror: Mirror, tmp_path: Path
) -> None:
    files = archives(2, 50_000)
    mirror.add(files)
    to = str(tmp_path / "landing")
    codes = [killed(mirror, to, names=names) for names in (1, 2, 3)]
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert_whole(to, files)
    data = {path.rpartition("/")[2]: size for path, size in mirror.sent.items() if "paths" not in path}
    assert data == {name: len(body) for name, body in files.items()}


@pytest.mark.slow
def test_a_killed_pull_goes_on_where_it_was_and_gets_no_flushed_byte_twice(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(2, 700_000)
    first, second = mirror.add(files)
    to, flush, starts, flushed = str(tmp_path / "landing"), 2 * PIECE, [], 0
    for position in (1, 2 * PIECE, 5 * PIECE, 6 * PIECE + 1):
        assert killed(mirror, to, position, flush) == -signal.SIGKILL
        with pytest.raises(SnapshotIncomplete, match="refinery pull"):
            list_snapshot(to)
        assert arrival_of(to).state == INCOMPLETE  # the schedule waits for it
        starts.append(flushed)
        written = -(-position // PIECE) * PIECE  # it is killed behind the piece in which the position is
        flushed += (written - 1) // flush * flush  # and before that is flushed: at most one flush is lost
    pulled(mirror, to)
    assert_whole(to, files)
    assert [asked.start for asked in mirror.data() if asked.path == f"/{first}"] == [*starts, flushed]
    assert [asked.start for asked in mirror.data() if asked.path == f"/{second}"] == [0]
    assert flushed == 10 * PIECE


def test_two_pulls_of_one_landing_do_not_meet(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(1, 20_000)
    mirror.add(files)
    met: list[str] = []

    def second(_name: str, _size: int) -> None:
        if not met:
            with pytest.raises(SourceBusy, match="another pull") as caught:
                pulled(mirror, str(tmp_path / "landing"))
            met.append(str(caught.value))

    pulled(mirror, str(tmp_path / "landing"), on_bytes=second)
    assert len(met) == 1
    assert_whole(tmp_path / "landing", files)


def test_a_list_that_changes_between_tries_is_refused(mirror: Mirror, tmp_path: Path) -> None:
    files = archives(3, 20_000)
    paths = mirror.add(files)
    mirror.fault = lambda asked: Fault(404) if asked.path == f"/{paths[0]}" else None
    with pytest.raises(SnapshotIncomplete):
        pulled(mirror, str(tmp_path / "landing"))
    mirror.list_paths(paths[1:])
    with pytest.raises(RecipeError, match="lists other files now"):
        pulled(mirror, str(tmp_path / "landing"))


def test_no_password_is_kept_of_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = str(tmp_path / "landing")
    assert main(["pull", "cc", "--crawl", CRAWL, "--to", to, "--from", "http://me:secret@127.0.0.1:1"]) == 78
    assert "secret" not in capsys.readouterr().err
    assert not Path(to).exists()


def dropped_once(mirror: Mirror) -> Callable[[Asked], Fault | None]:
    """Drop the first file after 200,000 bytes, and then have none."""
    return lambda asked: (
        (asked.is_data and (Fault(drop_after=200_000) if len(mirror.data()) == 1 else Fault(404))) or None
    )


@pytest.mark.parametrize("to", ["gs://bucket/landing", "s3:/bucket", "file"])
def test_a_place_that_is_none_is_refused_before_a_request(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    mirror.add(archives(1, 20_000))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    before = names_in(tmp_path)
    with pytest.raises(RecipeError, match=to):
        pulled(mirror, to)
    assert (mirror.asked, names_in(tmp_path)) == ([], before)


def test_a_partial_file_is_believed_as_far_as_it_was_flushed(mirror: Mirror, tmp_path: Path) -> None:
    (path,) = mirror.add({"x.warc.gz": archive("x", 300_000)})
    mirror.fault = dropped_once(mirror)
    with pytest.raises(SnapshotIncomplete):
        pulled(mirror, str(tmp_path / "landing"))
    part = tmp_path / "landing/.pull/x.warc.gz.part"
    flushed = json.loads(part.with_name("x.warc.gz.part.json").read_bytes())["flushed"]
    assert flushed == 3 * PIECE
    with part.open("ab") as stream:
        stream.write(b"what a machine that crashed left behind")
    mirror.fault = lambda _asked: None
    pulled(mirror, str(tmp_path / "landing"))
    assert mirror.data()[-1].start == flushed
    assert_whole(tmp_path / "landing", {"x.warc.gz": mirror.files[f"/{path}"]})


def test_a_short_partial_file_is_begun_anew(mirror: Mirror, tmp_path: Path) -> None:
    (path,) = mirror.add({"x.warc.gz": archive("x", 300_000)})
    mirror.fault = dropped_once(mirror)
    with pytest.raises(SnapshotIncomplete):
        pulled(mirror, str(tmp_path / "landing"))
    os.truncate(tmp_path / "landing/.pull/x.warc.gz.part", 1000)
    mirror.fault = lambda _asked: None
    pulled(mirror, str(tmp_path / "landing"))
    assert mirror.data()[-1].start == 0
    assert_whole(tmp_path / "landing", {"x.warc.gz": mirror.files[f"/{path}"]})


def test_an_empty_file_is_no_archive(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add({"x.warc.gz": b"", "y.warc.gz": gzip.compress(b"y", mtime=0)})
    with pytest.raises(ContractError, match=r"x\.warc\.gz has no gzip member"):
        pulled(mirror, str(tmp_path / "landing"))
