"""A file that is cut gives the rows of the whole file, whatever is damaged, and each of its bytes is in one piece."""

import gzip
import hashlib
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import DigestMismatch
from pipeline_tasks.landing import cuts, listing
from pipeline_tasks.landing.decompression import STEP
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.stage import WHOLE
from pipeline_tasks.store.shards.file import PieceStream
from tests.archives import http, read, response, warc, zipped


def records(draws: random.Random, count: int) -> list[bytes]:
    """Return archive records of many sizes, kinds and separators, some of which quote others or lie about themselves."""
    made = [warc("warcinfo", b"software: test")]
    for number in range(count):
        body = draws.randbytes(draws.choice([0, 30, 400, 3000])) + b"text " * draws.randrange(40)
        if draws.random() < 0.1:
            body += b"\r\n\r\n" + response("https://quoted.example.org")
        length = {"length": str(draws.choice([0, 7, 5000, 10**12]))} if draws.random() < 0.05 else {}
        made.append(response(f"https://example.org/{number}", http(body), **length))
    return made


def members(draws: random.Random) -> bytes:
    made = zipped(records(draws, draws.choice([3, 20, 200])))
    if draws.random() < 0.3:
        made.insert(draws.randrange(1, len(made)), gzip.compress(b"".join(records(draws, 2)), mtime=0))
    return b"".join(made)


def stream(draws: random.Random) -> bytes:
    return b"".join(records(draws, draws.randrange(2, 40)))


def lines(draws: random.Random) -> bytes:
    made = []
    for number in range(draws.randrange(2, 60)):
        text = "words of a text " * draws.randrange(1, 40)
        made.append(json.dumps({"text": text, "id": str(number)}).encode())
        made += draws.choice([[], [], [], [b""], [b"  "], [b"[1]"], [b"WARC/1.0"], [b"no json"]])
    return b"\n".join(made) + draws.choice([b"", b"\n"])


def damaged(data: bytes, draws: random.Random) -> bytes:
    """Return data with bytes changed, removed, repeated or cut off."""
    broken = bytearray(data)
    for _ in range(draws.randrange(4)):
        at, size = draws.randrange(len(broken)), draws.choice([1, 3, 50, 500])
        broken[at : at + size] = draws.choice([b"", draws.randbytes(size), bytes(size), broken[:size], b"\n"])
    return bytes(broken or data)


KINDS: dict[str, Callable[[random.Random], bytes]] = {"a.warc.gz": members, "a.warc": stream, "a.jsonl": lines}


REACH = {"a.warc.gz": 2 * STEP, "a.warc": 0, "a.jsonl": 0}
"""How far the reader of damage really looks ahead: zlib is given `STEP` bytes at once."""


def rows_of_pieces(data: bytes, name: str, pieces: list[cuts.Piece]) -> list[dict[str, Any]]:
    """Read each piece as a task does: its bytes alone."""
    rows: list[dict[str, Any]] = []
    for piece in pieces:
        part: Any = PieceStream(io.BytesIO(data), piece.start, piece.size)
        batches = list(read_records(name, part, snapshot="s", start=piece.start))
        rows += pa.Table.from_batches(batches).to_pylist()
    return rows


@given(name=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 10**9), size=st.integers(1, 9000), broken=st.booleans())
def test_pieces_give_the_rows_of_the_whole_file(name: str, seed: int, size: int, broken: bool) -> None:
    draws = random.Random(seed)
    data = KINDS[name](draws)
    data = damaged(data, draws) if broken else data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "REACH", REACH[name])
        digest, pieces = cuts.cut(io.BytesIO(data), len(data), size)
    assert digest == hashlib.sha256(data).hexdigest()
    assert b"".join(data[piece.start : piece.start + piece.size] for piece in pieces) == data
    assert [piece.digest for piece in pieces] == [
        hashlib.sha256(data[piece.start : piece.start + piece.size]).hexdigest() for piece in pieces
    ]
    assert [piece.size for piece in pieces[:-1] if piece.size < size] == []
    assert rows_of_pieces(data, name, pieces) == read(data, name)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_sound_file_is_cut_into_pieces_of_about_equal_bytes(name: str) -> None:
    sound = [response(f"https://example.org/{number}", http(bytes(number * 7))) for number in range(300)]
    whole = {"a.warc.gz": zipped(sound), "a.warc": sound, "a.jsonl": [lines(random.Random(1)) + b"\n"] * 30}
    data = b"".join(whole[name])
    _, pieces = cuts.cut(io.BytesIO(data), len(data), len(data) // 8)
    assert 6 <= len(pieces) <= 8
    assert abs(len(cuts.foretold(name, len(data), len(data) // 8)) - len(pieces)) <= 2
    sizes = [piece.size for piece in pieces]
    assert max(sizes) <= 2 * min(sizes)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl.gz", gzip.compress(b'{"text": "words"}\n' * 500, 0)),
        ("a.jsonl.zst", zstandard.compress(b'{"text": "words"}\n' * 500)),
        ("a.warc.gz", gzip.compress(b"".join(records(random.Random(1), 30)), 0)),
        ("a.warc.gz", b"\x1f\x8b" + bytes(20_000)),
        ("a.jsonl", b"x" * 20_000),
        ("a.jsonl", b""),
    ],
    ids=["gzip of lines", "zstd", "gzip of all records", "no gzip", "one line", "empty"],
)
def test_what_cannot_be_read_from_an_offset_is_one_piece(name: str, data: bytes) -> None:
    digest, pieces = cuts.cut(io.BytesIO(data), len(data), 500)
    assert pieces == [cuts.Piece(0, len(data), digest)]
    assert name


def test_nothing_is_cut_within_reach_of_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    made = zipped([response(f"https://example.org/{number}") for number in range(40)])
    sound, made[10] = b"".join(made), made[10][:-9]
    data = b"".join(made)
    monkeypatch.setattr(cuts, "REACH", len(data) // 2)
    at = sum(map(len, made[:11]))
    starts = [piece.start for piece in cuts.cut(io.BytesIO(data), len(data), len(made[0]))[1]]
    assert not [start for start in starts if at <= start < at + cuts.REACH]
    assert [start for start in starts if start > at]
    assert len(cuts.cut(io.BytesIO(sound), len(sound), len(made[0]))[1]) > len(starts)


@given(st.lists(st.integers(0, 4 * 10**8), min_size=1, max_size=30))
def test_the_size_of_pieces_follows_from_the_files(sizes: list[int]) -> None:
    piece = cuts.piece_bytes(sizes)
    assert piece == cuts.piece_bytes(reversed(sizes))
    middle = sorted(sizes)[(len(sizes) - 1) // 2]
    assert piece == sorted((cuts.LEAST, cuts.MEDIANS * middle, cuts.MOST))[1]


def test_a_snapshot_without_files_has_a_size_of_pieces_too() -> None:
    assert cuts.LEAST <= cuts.piece_bytes([]) <= cuts.MOST


@pytest.mark.parametrize("name", ["a.warc.gz", "a.arc", "A.WET.GZ", "folder/a.wat", "a.jsonl", "a.json", "a.ndjson"])
def test_the_pieces_of_a_file_from_twice_their_size_on_are_foretold_by_its_name(name: str) -> None:
    assert [cuts.foretold(name, size, 100) for size in (0, 100, 199)] == [[0], [100], [199]]
    assert cuts.foretold(name, 200, 100) == [100, 100]
    assert cuts.foretold(name, 399, 100) == [133, 133, 133]


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.gz", "a.warc.zst", "a.pdf", "a.warc/b", "warc", "a.jsonlx"])
def test_a_file_whose_name_says_nothing_is_foretold_in_one_piece(name: str) -> None:
    assert cuts.foretold(name, 1000, 100) == [1000]


# --- In a snapshot --------------------------------------------------------------------------------------------


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cuts, "LEAST", 2000)
    folder = tmp_path / "2026-11-20"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.warc.gz").write_bytes(zipped([response(f"https://small.example.org/{number}")])[0])
    large = zipped([response(f"https://large.example.org/{number}") for number in range(60)])
    (folder / "large.warc.gz").write_bytes(b"".join(large))
    return folder


def test_only_a_large_file_is_listed_in_pieces(crawl: Path, tmp_path: Path) -> None:
    _, manifest, _ = listing.land(str(tmp_path / "root"), str(crawl))
    small = [shard for shard in manifest.shards if shard.start == WHOLE]
    large = [shard for shard in manifest.shards if shard.start != WHOLE]
    assert len(small) == 6
    assert len(large) > 3
    assert {shard.path for shard in large} == {"landing:large.warc.gz"}
    assert sum(shard.bytes for shard in large) == (crawl / "large.warc.gz").stat().st_size
    assert len({shard.identity for shard in manifest.shards}) == len(manifest.shards)


def test_a_large_file_that_is_not_what_was_promised_is_not_landed(crawl: Path, tmp_path: Path) -> None:
    files = [{"path": file.name, "bytes": file.stat().st_size, "sha256": "0" * 64} for file in sorted(crawl.iterdir())]
    promise = {"files": files}
    (crawl / "snapshot.json").write_text(json.dumps(promise))
    with pytest.raises(DigestMismatch, match=re.escape(f"{crawl}/large.warc.gz: ")):
        listing.land(str(tmp_path / "root"), str(crawl))


def test_a_large_file_in_which_no_place_begins_a_record_is_one_shard(crawl: Path, tmp_path: Path) -> None:
    body = random.Random(3).randbytes(30_000)
    (crawl / "large.warc.gz").write_bytes(body)
    (crawl / "small.warc.gz").write_bytes(body[:10])
    _, manifest, _ = listing.land(str(tmp_path / "root"), str(crawl))
    assert len(manifest.shards) == 8
    (large,) = (shard for shard in manifest.shards if shard.path == "landing:large.warc.gz")
    assert (large.start, large.bytes, large.digest) == (WHOLE, len(body), hashlib.sha256(body).hexdigest())
    assert {shard.rows for shard in manifest.shards} == {0}, "no record is counted before it is read"
