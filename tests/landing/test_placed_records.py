"""Records that are read by their places are those of the whole file, and whatever cannot be is read whole."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pipeline_tasks.errors import ContractError, DigestMismatch
from pipeline_tasks.landing.archives import placed_records
from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.run.tasks.landed_files import LandedFiles
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import LANDING, Shard
from pipeline_tasks.store.local_store import LocalStore
from pipeline_tasks.store.protocol import MERGE_GAP
from pipeline_tasks.store.shards.rows import PLACED, Places
from tests.archives import PAGE, http, response, warc, zipped

URL = "https://example.org/"
NAME = "a.warc.gz"
RECORDS = 40
COLUMNS = ("payload", "text", "url")


def archive() -> bytes:
    """Return an archive of pages of unequal size, with a request before each."""
    records = []
    for at in range(RECORDS):
        records += [warc("request", b"GET / HTTP/1.1\r\n\r\n", f"{URL}{at}")]
        records += [response(f"{URL}{at}", http(PAGE + bytes(str(at), "ascii") * 300 * (at % 7 + 1)))]
    return b"".join(zipped(records))


def landed(folder: Path, body: bytes, name: str = NAME) -> tuple[LandedFiles, Shard, pa.Table]:
    """Land a file; return how it is read, its shard, and all of its records."""
    (folder / name).write_bytes(body)
    files = LandedFiles(str(folder), "s", 7)
    shard = Shard(f"{LANDING}{name}", 0, len(body), sha256(body))
    return files, shard, pa.Table.from_batches(files.read(shard, (*COLUMNS, *PLACED)))


def places(records: pa.Table, rows: Sequence[int]) -> Places:
    numbers = np.array(rows, np.int64)
    return Places(numbers, records.select(PLACED).take(pa.array(numbers)))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened, to be read whole."""
    names: list[str] = []
    open_ = LocalStore.open
    monkeypatch.setattr(LocalStore, "open", lambda store, path: (names.append(path), open_(store, path))[1])
    monkeypatch.setattr(LocalStore, "read_ranges", _ranges)
    return names


def _ranges(store: LocalStore, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    body = Path(store.root, path).read_bytes()
    return [body[start:stop] for start, stop in ranges]


@pytest.mark.parametrize("rows", [[], [1], [3, 5, 7, 33], list(range(0, 2 * RECORDS, 5)), [2 * RECORDS - 1]])
@pytest.mark.parametrize("group", [1, 2000, 1 << 20])
def test_few_records_are_read_without_the_others(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch, rows: list[int], group: int
) -> None:
    monkeypatch.setattr(placed_records, "GROUP_BYTES", group)
    monkeypatch.setattr(
        placed_records, "MERGE_GAP", -1
    )  # a store reads these gaps, of a hundred bytes, with the records
    files, shard, whole = landed(tmp_path, archive())
    opened.clear()
    read = pa.Table.from_batches(files.read(shard, COLUMNS, places(whole, rows)))
    assert read.combine_chunks() == whole.select(COLUMNS).take(pa.array(rows, pa.int64())).combine_chunks()
    assert opened == []


def test_most_records_are_read_with_the_whole_file_which_is_checked(tmp_path: Path, opened: list[str]) -> None:
    files, shard, whole = landed(tmp_path, archive())
    rows = [row for row in range(whole.num_rows) if row % 9]
    opened.clear()
    read = pa.Table.from_batches(files.read(shard, COLUMNS, places(whole, rows)))
    assert read.combine_chunks() == whole.select(COLUMNS).take(pa.array(rows)).combine_chunks()
    assert opened == [NAME]


@pytest.mark.parametrize("form", ["several in a member", "one stream", "lines"])
def test_records_that_are_no_members_of_their_own_are_read_with_the_whole_file(
    tmp_path: Path, opened: list[str], form: str
) -> None:
    pages = [response(f"{URL}{at}") for at in range(RECORDS)]
    bodies = {
        "several in a member": b"".join([*zipped(pages[:9]), *zipped([b"".join(pages[9:12])]), *zipped(pages[12:])]),
        "one stream": gzip.compress(b"".join(pages)),
        "lines": gzip.compress(b"".join(b'{"text": "words of %d"}\n' % at for at in range(RECORDS))),
    }
    name = "a.jsonl.gz" if form == "lines" else NAME
    files, shard, whole = landed(tmp_path, bodies[form], name)
    small = pa.Table.from_pylist(
        [{**row, "length": min(row["length"], 200)} for row in whole.to_pylist()], whole.schema
    )
    rows = [3, 10, 20]
    opened.clear()
    asked = places(small if form != "several in a member" else whole, rows)
    read = pa.Table.from_batches(files.read(shard, COLUMNS, asked))
    assert read.combine_chunks() == whole.select(COLUMNS).take(pa.array(rows)).combine_chunks()
    assert opened == [name]


@pytest.mark.parametrize("change", ["another page", "a byte", "cut short", "shifted"])
def test_a_file_that_was_changed_is_found_by_the_records_that_are_read(tmp_path: Path, change: str) -> None:
    body = archive()
    files, shard, whole = landed(tmp_path, body)
    place = whole.select(PLACED).to_pylist()[41]
    start, stop = place["offset"], place["offset"] + place["length"]
    other = {
        "another page": body[:start] + zipped([response(f"{URL}20", http(b"<p>forged"))])[0] + body[stop:],
        "a byte": body[: start + 40] + bytes([body[start + 40] ^ 1]) + body[start + 41 :],
        "cut short": body[: start + 9],
        "shifted": zipped([response(URL)])[0] + body,
    }
    (tmp_path / NAME).write_bytes(other[change])
    with pytest.raises((DigestMismatch, ContractError), match=NAME):
        list(files.read(shard, COLUMNS, places(whole, [41])))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    files, shard, whole = landed(tmp_path, archive())
    (tmp_path / NAME).unlink()
    with pytest.raises(ContractError, match=f"{NAME} vanished"):
        list(files.read(shard, COLUMNS, places(whole, [4])))


@pytest.mark.parametrize(
    ("records", "read"),
    [
        ([], 0),
        ([(7, 40)], 40),
        ([(0, 10), (10, 30)], 40),
        ([(5, 10), (35, 30), (70, 2)], 10 + 20 + 30 + 5 + 2),
        ([(0, 10), (10 + MERGE_GAP, 1)], 10 + MERGE_GAP + 1),
        ([(0, 10), (11 + MERGE_GAP, 1)], 11),
        ([(0, 10), (20 + MERGE_GAP, 4), (30 + MERGE_GAP, 100)], 10 + 4 + 6 + 100),
    ],
)
def test_a_file_is_read_by_places_up_to_three_quarters_of_its_bytes(records: list[tuple[int, int]], read: int) -> None:
    """What counts are the bytes of the records, and of gaps that a store reads with them."""
    offsets, lengths = ([record[at] for record in records] for at in (0, 1))
    found = pa.table({"offset": pa.array(offsets, pa.int64()), "length": pa.array(lengths, pa.int64())})
    least = -(-read * 4 // 3)
    assert [placed_records.is_worth_it(found, size) for size in (least, least - 1)] == [True, False]


def test_a_group_has_the_gaps_that_a_store_reads_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placed_records, "GROUP_BYTES", 10_000)
    near = [{"offset": 1000 * at, "length": 10, "record_id": "", "payload_digest": ""} for at in range(100)]
    read: list[int] = []

    def ranges(asked: Sequence[tuple[int, int]]) -> list[bytes]:
        read.append(asked[-1][1] - asked[0][0])
        return [b""] * len(asked)

    monkeypatch.setattr(placed_records, "_is", lambda *_: True)
    monkeypatch.setattr(placed_records, "_row", lambda *place: Row(place[-1], 10))
    places_near = pa.Table.from_pylist(near)
    list(placed_records.read_placed(NAME, ranges, places_near, snapshot="s", columns=("url",)))
    assert max(read) <= 11_000
    assert not placed_records.is_worth_it(places_near, 100_000), "nearly all of it is read"
    far = pa.Table.from_pylist([{**place, "offset": place["offset"] * 1000} for place in near])
    assert placed_records.is_worth_it(far, 100_000_000)
