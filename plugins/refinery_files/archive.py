"""Reads members of zip archives within bounds: names are never paths, and an archive in an archive stays closed.

Sizes that an archive states are not believed: DEFLATE says by itself where it ends, and what is unpacked is counted. An
archive that is cut has no directory at its end; its members are then found one behind the other, as they were written.
Source: PKWARE's APPNOTE 6.3.10.
"""

import zlib
from collections.abc import Iterator
from struct import Struct, error
from typing import NamedTuple

from pipeline_tasks.text.page.file_text import DAMAGED, ENCRYPTED, TOO_LARGE, FileRefused

MOST_MEMBERS = 10_000
"""Members of an archive that is read: an EPUB of 6,000 pages has as many images."""

MOST_BYTES = 256 << 20
"""Bytes that are unpacked of one archive, over all of its members."""

MOST_RATIO = 400
"""Bytes that a byte may unpack to in a member above `LEAST_SUSPECT`: sheets of zeros have 250, bombs 1,030."""

LEAST_SUSPECT = 8 << 20

_END, _MEMBER, _LOCAL = Struct("<4s4H2LH"), Struct("<4s6H3L5H2L"), Struct("<4s5H3L2H")
_END_MARK, _MEMBER_MARK, _LOCAL_MARK = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_LONGEST_COMMENT = 0xFFFF
_UNKNOWN = 0xFFFFFFFF
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _HAS_DESCRIPTOR, _UTF8 = 1, 8, 0x800
_STEP = 1 << 20


class _Member(NamedTuple):
    """Where a member's packed bytes begin, how they are packed, how many they are (-1: unknown)."""

    start: int
    method: int
    size: int
    flags: int


class Archive:
    """The members of a zip archive by name; of two with one name the last, as where a writer has replaced the first.

    `is_cut` says that the archive has no directory, or that a member which was read ends early. FileRefused: too many
    members; nothing that is an archive.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._unpacked = 0
        self.is_cut = False
        try:
            self._members = dict(_directory(body))
        except (error, LookupError):
            self._members = {}
        if not self._members:
            self.is_cut = True
            self._members = dict(_members_in_order(body))
        if not self._members:
            raise FileRefused(DAMAGED)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the members, as the archive states them."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """Return a member, as far as it can be unpacked, b"" if there is none.

        FileRefused: it needs a password; it unpacks to more than the bounds allow.
        """
        member = self._members.get(name)
        if member is None:
            return b""
        if member.flags & _ENCRYPTED:
            raise FileRefused(ENCRYPTED)
        packed = memoryview(self._body)[member.start :]
        if member.method == _STORED:
            data = bytes(packed[: member.size] if member.size >= 0 else packed)
            self.is_cut = self.is_cut or len(data) < member.size
            self._count(len(data))
            return data
        return self._inflated(packed) if member.method == _DEFLATED else b""

    def _inflated(self, packed: memoryview) -> bytes:
        """Return what DEFLATE has packed, up to where it ends or is damaged."""
        unpack, parts, size, at = zlib.decompressobj(-zlib.MAX_WBITS), list[bytes](), 0, 0
        while not unpack.eof and (unpack.unconsumed_tail or at < len(packed)):
            rest = unpack.unconsumed_tail
            fed = rest or packed[at : at + _STEP]
            at += 0 if rest else len(fed)
            try:
                part = unpack.decompress(fed, _STEP)
            except zlib.error:
                break
            parts.append(part)
            size += len(part)
            self._count(len(part))
            if size > LEAST_SUSPECT and size > MOST_RATIO * (at - len(unpack.unconsumed_tail)):
                raise FileRefused(TOO_LARGE)
        self.is_cut = self.is_cut or not unpack.eof
        return b"".join(parts)

    def _count(self, size: int) -> None:
        self._unpacked += size
        if self._unpacked > MOST_BYTES:
            raise FileRefused(TOO_LARGE)


def first_names(body: bytes, count: int = 40) -> tuple[str, ...]:
    """Return the names of the first members of an archive's directory, or those that a cut one begins with.

    Looks at no member; b"" has none.
    """
    try:
        names = [name for _, name in zip(range(count), _names(body), strict=False)]
    except (error, LookupError):
        names = []
    return tuple(names) or tuple(name for _, (name, _) in zip(range(count), _members_in_order(body), strict=False))


def _names(body: bytes) -> Iterator[str]:
    start, size = _directory_place(body)
    at = start
    while at < start + size:
        fields = _MEMBER.unpack_from(body, at)
        if fields[0] != _MEMBER_MARK:
            raise LookupError(at)
        name, extra, comment = fields[10:13]
        yield _text(body[at + _MEMBER.size : at + _MEMBER.size + name], fields[3])
        at += _MEMBER.size + name + extra + comment


def _directory_place(body: bytes) -> tuple[int, int]:
    """Return where the directory of an archive begins and its bytes; LookupError if it has none."""
    at = body.rfind(_END_MARK, max(len(body) - _LONGEST_COMMENT - _END.size, 0))
    if at < 0:
        raise LookupError(at)
    size, offset = _END.unpack_from(body, at)[5:7]
    start = at - size
    if start < 0 or body[start : start + 4] != _MEMBER_MARK:  # the end's extensions of ZIP64 are between
        start = offset
    return start, size


def _directory(body: bytes) -> Iterator[tuple[str, _Member]]:
    """Yield each member that the directory names; LookupError or struct.error where it is none."""
    start, size = _directory_place(body)
    offset = _END.unpack_from(body, body.rfind(_END_MARK))[6]
    shift = start - offset if start > offset else 0  # bytes before the archive, as of one that extracts itself
    at, count = start, 0
    while at < start + size:
        fields = _MEMBER.unpack_from(body, at)
        if fields[0] != _MEMBER_MARK:
            raise LookupError(at)
        count += 1
        if count > MOST_MEMBERS:
            raise FileRefused(TOO_LARGE)
        flags, method, packed = fields[3], fields[4], fields[8]
        name, extra, comment = fields[10:13]
        local = fields[16] + shift
        if body[local : local + 4] == _LOCAL_MARK:
            own = _LOCAL.unpack_from(body, local)
            first = local + _LOCAL.size + own[9] + own[10]
            known = -1 if packed == _UNKNOWN else packed
            text = _text(body[at + _MEMBER.size : at + _MEMBER.size + name], flags)
            yield text, _Member(first, method, known, flags)
        at += _MEMBER.size + name + extra + comment


def _members_in_order(body: bytes) -> Iterator[tuple[str, _Member]]:
    """Yield the members of an archive without a directory, each found by the mark that is behind the one before."""
    at = body.find(_LOCAL_MARK, 0, 1 << 16)
    count = 0
    while at >= 0:
        if at + _LOCAL.size > len(body):
            return
        count += 1
        if count > MOST_MEMBERS:
            raise FileRefused(TOO_LARGE)
        fields = _LOCAL.unpack_from(body, at)
        flags, method, packed, name, extra = fields[2], fields[3], fields[7], fields[9], fields[10]
        first = at + _LOCAL.size + name + extra
        text = _text(body[at + _LOCAL.size : at + _LOCAL.size + name], flags)
        is_known = not flags & _HAS_DESCRIPTOR and packed != _UNKNOWN
        following = body.find(_LOCAL_MARK, first + (packed if is_known else 0))
        if is_known:
            yield text, _Member(first, method, packed, flags)
        else:
            yield text, _Member(first, method, (following if following >= 0 else len(body)) - first, flags)
        at = following


def _text(name: bytes, flags: int) -> str:
    return name.decode("utf-8" if flags & _UTF8 else "cp437", "replace")
