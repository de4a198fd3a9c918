"""Records in several parts: segments of WARC 1.1, and gzip members that are cut anywhere."""

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.archives import PAGE, covers, http, read, response, warc, zipped

URLS = [f"https://example.org/{at}" for at in range(6)]


@given(st.lists(st.integers(1, 12), max_size=8))
def test_members_that_are_cut_anywhere_lose_nothing(cuts: list[int]) -> None:
    """The first member is a whole record, as of files whose later members are not."""
    records = [warc("warcinfo", b"software: x"), *map(response, URLS)]
    rest = b"".join(records[1:])
    ends = sorted({0, len(rest), *(cut * len(rest) // 13 for cut in cuts)})
    parts = [rest[begin:end] for begin, end in pairwise(ends)]
    members = zipped([records[0], *parts])
    rows = read(b"".join(members))
    assert covers(rows, sum(map(len, members)))
    assert [(row["url"], row["payload"], row["error"]) for row in rows[1:]] == [(url, PAGE, None) for url in URLS]


def test_a_run_of_cut_members_ends_before_the_next_record() -> None:
    records = [response(url) for url in URLS[:4]]
    members = zipped([records[0], records[1][:300], records[1][300:], records[2], records[3]])
    rows = read(b"".join(members))
    sizes = [len(member) for member in members]
    assert [row["length"] for row in rows] == [sizes[0], sizes[1] + sizes[2], sizes[3], sizes[4]]


def segments(*sizes: int, total: bool = True) -> list[bytes]:
    """A page in parts that end behind `sizes` bytes of its message."""
    block = http()
    ends = [0, *sizes, len(block)]
    parts = [block[begin:end] for begin, end in pairwise(ends)]
    fields = {"WARC_Segment_Origin_ID": f"<urn:x:{URLS[0]}>"}
    last = {"WARC_Segment_Total_Length": str(len(block))} if total else {}
    first = response(URLS[0], parts[0], WARC_Segment_Number="1")
    further = [
        warc("continuation", part, WARC_Segment_Number=str(at), **fields, **(last if at == len(parts) else {}))
        for at, part in enumerate(parts[1:], 2)
    ]
    return [first, *further]


@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize("sizes", [(10,), (200, 400)])
def test_segments_that_follow_each_other_are_one_record(sizes: tuple[int, ...], members: bool) -> None:
    stored = [*segments(*sizes), response(URLS[1])]
    data = b"".join(zipped(stored) if members else stored)
    rows = read(data)
    assert covers(rows, len(data))
    assert [(row["url"], row["payload"], row["error"]) for row in rows] == [(url, PAGE, None) for url in URLS[:2]]


@pytest.mark.parametrize("lacks", ["the last", "the total"])
def test_a_record_without_its_further_segments_says_that_it_was_cut(lacks: str) -> None:
    stored = segments(200, 400)[:-1] if lacks == "the last" else segments(200, 400, total=False)
    first, *others = read(b"".join([*stored, response(URLS[1])]))
    assert '"warc-truncated":"segment"' in first["metadata"]
    assert PAGE.startswith(first["payload"])
    assert [row["url"] for row in others] == [URLS[1]]


def test_a_segment_of_another_record_is_no_part_of_this_one() -> None:
    own, others = segments(200), [part.replace(b"<urn:x:", b"<urn:y:") for part in segments(200)]
    rows = read(b"".join([own[0], others[1], own[1]]))
    assert [row["kind"] for row in rows] == ["response", "continuation", "continuation"]
    assert '"warc-truncated":"segment"' in rows[0]["metadata"]


def test_a_gzip_member_behind_a_whole_one_is_not_joined_to_it() -> None:
    members = [*zipped([response(URLS[0])]), gzip.compress(b"no record"), *zipped([response(URLS[1])])]
    rows = read(b"".join(members))
    assert [row["error"] for row in rows] == [None, "bad_header", None]
