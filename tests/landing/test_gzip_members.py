"""Archives of one gzip member per record, and members that are damaged or have several."""

import gzip
import io

from pipeline_tasks.landing.decompression import PlainSource, Reader
from pipeline_tasks.landing.gzip_members import inflate_member, is_one_record_per_member, read_members
from pipeline_tasks.landing.record import Row
from tests.archives import response, zipped

ONE, TWO, THREE = (response(f"https://example.org/{number}") for number in (1, 2, 3))


def opened(data: bytes) -> Reader:
    return Reader(PlainSource(io.BytesIO(data)))


def rows(data: bytes) -> list[Row]:
    return list(read_members(opened(data), "f"))


def test_places_are_those_of_the_members() -> None:
    members = zipped([ONE, TWO, THREE])
    places = [(row.offset, row.length) for row in rows(b"".join(members))]
    assert places == [
        (0, len(members[0])),
        (len(members[0]), len(members[1])),
        (len(members[0] + members[1]), len(members[2])),
    ]


def test_records_of_one_member_share_its_place() -> None:
    member = gzip.compress(ONE + TWO)
    read_rows = rows(member)
    assert [(row.offset, row.length, row.error) for row in read_rows] == [(0, len(member), None)] * 2


def test_a_damaged_member_is_one_row_and_the_next_is_read() -> None:
    members = zipped([ONE, TWO, THREE])
    broken = bytearray(members[1])
    broken[len(broken) // 2] ^= 0xFF
    read_rows = rows(members[0] + bytes(broken) + members[2])
    assert [row.error for row in read_rows] == [None, "gzip_corrupt", None]
    assert (read_rows[1].offset, read_rows[1].length) == (len(members[0]), len(broken))


def test_members_without_a_record() -> None:
    assert [row.error for row in rows(gzip.compress(b""))] == ["empty_member"]
    assert [row.error for row in rows(gzip.compress(b"words"))] == ["bad_header"]
    assert [row.error for row in rows(gzip.compress(ONE) + b"tail")] == [None, "gzip_corrupt"]
    assert [row.error for row in rows(gzip.compress(ONE)[:-9])] == ["gzip_truncated"]


def test_bounds_of_a_member() -> None:
    member = gzip.compress(bytes(64 << 20))
    data, size, error = inflate_member(opened(member))
    assert (size, error) == (0, "bomb")
    assert len(data) < 64 << 20
    data, size, error = inflate_member(opened(gzip.compress(b"words")))
    assert (data, error) == (b"words", None)


def test_layouts_are_distinguished_by_the_first_member() -> None:
    assert is_one_record_per_member(opened(b"".join(zipped([ONE, TWO]))))
    assert is_one_record_per_member(opened(gzip.compress(ONE)))
    assert not is_one_record_per_member(opened(gzip.compress(ONE + TWO)))
    assert not is_one_record_per_member(opened(gzip.compress((ONE + TWO)[:-5])[:-5] + b"xxxxx"))
