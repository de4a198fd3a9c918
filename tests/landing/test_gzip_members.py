"""Archives of one gzip member per record, and members that are damaged or have several."""

import gzip
import io
import random
from functools import cache

import pytest

from pipeline_tasks.landing.archives.gzip_members import is_one_record_per_member, read_members
from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.landing.decompression import PlainSource, Reader
from tests.archives import covers, http, read, response, zipped

ONE, TWO, THREE = (response(f"https://example.org/{number}") for number in (1, 2, 3))


def opened(data: bytes) -> Reader:
    return Reader(PlainSource(io.BytesIO(data)))


def read_http(record: bytes) -> bytes:
    """The body of the response in a record."""
    return record.split(b"\r\n\r\n", 2)[2].removesuffix(b"\r\n\r\n")


def rows(data: bytes) -> list[Row]:
    return list(read_members(opened(data), "f"))


def test_records_of_one_member_have_a_byte_of_its_place_each() -> None:
    member = gzip.compress(ONE + TWO + THREE.replace(b"WARC-Record-ID: <urn:x:https://example.org/3>\r\n", b""))
    before = gzip.compress(ONE)
    read_rows = rows(before + member)[1:]
    at = len(before)
    assert [(row.offset, row.length) for row in read_rows] == [(at, 1), (at + 1, 1), (at + 2, len(member) - 2)]
    assert [row.record_id for row in read_rows][1:] == ["<urn:x:https://example.org/2>", f"f:{at + 2}"]


def test_rubbish_between_the_records_of_one_member_is_one_row() -> None:
    read_rows = rows(gzip.compress(ONE) + gzip.compress(b"rubbish\n" + TWO + b"rubbish\n" + THREE))
    assert [row.error for row in read_rows] == [None, "bad_header", None, "bad_header", None]


MANY = [
    response(f"https://example.org/{number}", http(random.Random(number).randbytes(3 << 20))) for number in range(16)
]


@cache
def member_of_many() -> bytes:
    return gzip.compress(b"".join(MANY), 1)


@pytest.mark.parametrize("before", [[], [ONE]])
@pytest.mark.parametrize("behind", [[], [TWO]])
def test_a_member_of_many_records_is_read_to_its_end(before: list[bytes], behind: list[bytes]) -> None:
    data = b"".join([*zipped(before), member_of_many(), *zipped(behind)])
    read_rows = read(data)
    assert [row["error"] for row in read_rows] == [None] * (len(before) + len(MANY) + len(behind))
    assert [row["payload"] for row in read_rows[len(before) :][: len(MANY)]] == [read_http(one) for one in MANY]
    assert len({row["offset"] for row in read_rows}) == len(read_rows)


def test_damage_within_a_member_of_many_records_costs_what_is_behind_it() -> None:
    members = [*zipped([ONE]), member_of_many(), *zipped([TWO])]
    broken = bytearray(members[1])
    broken[len(broken) // 2] ^= 0xFF
    read_rows = read(members[0] + bytes(broken) + members[2])
    errors = [row["error"] for row in read_rows]
    assert errors.count(None) > 8
    assert (errors[0], errors[-2], errors[-1]) == (None, "gzip_corrupt", None)
    assert covers(read_rows, len(b"".join(members)))
    assert [row["error"] for row in read(members[0] + members[1][:-100])][-1] == "gzip_truncated"


def test_a_giant_record_hides_none_behind_it_in_its_member() -> None:
    giant = response("https://example.org/giant", http(random.Random(0).randbytes(34 << 20)))
    member = gzip.compress(giant + TWO, 1)
    assert [row["error"] for row in read(member)] == ["oversize", None]
    assert [row["error"] for row in read(gzip.compress(ONE) + member)] == [None, "oversize", None]


def test_members_without_a_record() -> None:
    assert [row.error for row in rows(gzip.compress(b""))] == ["empty_member"]
    assert [row.error for row in rows(gzip.compress(b"words"))] == ["bad_header"]
    assert [row.error for row in rows(gzip.compress(ONE) + b"tail")] == [None, "gzip_corrupt"]
    assert [row.error for row in rows(gzip.compress(ONE)[:-9])] == ["gzip_truncated"]


@pytest.mark.parametrize(
    ("data", "is_one"),
    [
        (gzip.compress(ONE) + gzip.compress(TWO), True),
        (gzip.compress(ONE), True),
        (gzip.compress(ONE)[:-9], True),
        (gzip.compress(ONE + TWO), False),
        (gzip.compress(ONE + TWO)[:-9], False),
        (gzip.compress(ONE[:-40]) + gzip.compress(TWO), True),
        (gzip.compress(ONE[:-40]) + gzip.compress(ONE[-40:] + TWO), False),
        (gzip.compress(b"words"), True),
        (gzip.compress(b""), False),
    ],
    ids=["two", "one", "cut", "both", "both-cut", "short", "across", "words", "empty"],
)
def test_the_first_member_shows_whether_each_has_one_record(data: bytes, *, is_one: bool) -> None:
    reader = opened(data)
    assert is_one_record_per_member(reader) is is_one
    assert reader.peek(len(data)) == data
