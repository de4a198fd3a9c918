"""Zstandard files, frame by frame: damage costs its frame, and a .warc.zst may have a dictionary of its own."""

import random

import pytest
import zstandard

from pipeline_tasks.landing import zstd_frames
from tests.archives import covers, http, read, response

RECORDS = [
    response(f"https://example.org/{at}", http(b"<p>%d " % at + random.Random(at).randbytes(300).hex().encode()))
    for at in range(40)
]
URLS = [f"https://example.org/{at}" for at in range(40)]
SKIPPED = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"


def frames(records: list[bytes], dictionary: zstandard.ZstdCompressionDict | None = None) -> list[bytes]:
    compressor = zstandard.ZstdCompressor(write_checksum=True, dict_data=dictionary)
    return [compressor.compress(record) for record in records]


def urls(data: bytes, name: str = "a.warc.zst") -> list[str | None]:
    return [row["url"] for row in read(data, name) if row["error"] is None]


@pytest.mark.parametrize("is_compressed", [True, False])
def test_the_dictionary_of_a_warc_zst_is_used(is_compressed: bool) -> None:
    dictionary = zstandard.train_dictionary(8192, [*RECORDS, *RECORDS])
    content = dictionary.as_bytes()
    stored = zstandard.compress(content) if is_compressed else content
    head = b"\x5d\x2a\x4d\x18" + len(stored).to_bytes(4, "little") + stored
    data = head + b"".join(frames(RECORDS, dictionary))
    assert urls(data) == URLS
    assert [row["error"] for row in read(data[len(head) :])] == ["zstd_corrupt"]


def test_frames_to_skip_are_skipped_wherever_they_are() -> None:
    parts = frames(RECORDS)
    assert urls(SKIPPED + parts[0] + SKIPPED + b"".join(parts[1:]) + SKIPPED) == URLS
    rows = read(b"".join(parts) + SKIPPED[:-1])
    assert [row["error"] for row in rows] == [*[None] * 40, "zstd_truncated"]


def test_damage_costs_its_frame() -> None:
    parts = frames(RECORDS)
    broken = bytearray(parts[7])
    broken[-1] ^= 0xFF
    data = b"".join([*parts[:7], bytes(broken), *parts[8:]])
    rows = read(data)
    assert [row["url"] for row in rows if row["error"] is None] == [*URLS[:7], *URLS[8:]]
    assert [row["error"] for row in rows if row["error"]] == ["zstd_corrupt"]
    assert covers(rows, sum(map(len, [*RECORDS[:7], *RECORDS[8:]])))


def test_records_before_a_cut_are_read() -> None:
    rows = read(b"".join(frames(RECORDS))[:-100])
    assert [row["error"] for row in rows] == [*[None] * 39, "zstd_truncated"]
    many = [
        response(f"https://example.org/{at}", http(random.Random(at).randbytes(500).hex().encode()))
        for at in range(900)
    ]
    one_frame = zstandard.compress(b"".join(many))
    found = urls(one_frame[: len(one_frame) // 2])
    assert found == [f"https://example.org/{at}" for at in range(len(found))]
    assert len(found) > 300


def test_a_frame_that_was_cut_hides_none_behind_it() -> None:
    parts = frames(RECORDS)
    assert urls(b"".join([*parts[:5], parts[5][:-9], *parts[6:]])) == [*URLS[:5], *URLS[6:]]


@pytest.mark.parametrize(
    ("rubbish", "error"),
    [
        (bytes(100), "zstd_corrupt"),
        (b"rubbish!" * 20, "zstd_corrupt"),
        (b"rub", "zstd_corrupt"),
        (SKIPPED[:5], "zstd_truncated"),
        (SKIPPED[:-1], "zstd_truncated"),
    ],
)
def test_rubbish_behind_frames_is_one_row(rubbish: bytes, error: str) -> None:
    rows = read(b"".join(frames(RECORDS)) + rubbish)
    assert [row["error"] for row in rows] == [*[None] * 40, error]


@pytest.mark.parametrize("floor", [32 << 20, pytest.param(zstd_frames.BOMB_FLOOR, marks=pytest.mark.nightly)])
def test_what_inflates_without_end_is_a_bomb(floor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_frames, "BOMB_FLOOR", floor)
    frame = zstandard.ZstdCompressor(level=1).compress(bytes(8 << 20))
    frames_to_floor = floor // (8 << 20)
    assert read(frame * frames_to_floor)[-1]["error"] != "bomb"
    assert read(frame * (frames_to_floor + 1))[-1]["error"] == "bomb"
