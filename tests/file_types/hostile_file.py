"""A file that is made to harm who reads it, and what compresses well."""

import zlib
from functools import cache
from typing import NamedTuple

MEGABYTE = 1 << 20


class Hostile(NamedTuple):
    """A file of a type, the ends that are right for it (none: any that is allowed), and what no text may have."""

    name: str
    type: str
    body: bytes
    ends: tuple[str, ...] = ()
    absent: str = ""

    def __repr__(self) -> str:
        """Return its name and size: bytes of megabytes say nothing."""
        return f"<{self.name}, {len(self.body)} bytes>"


@cache
def raw_bomb(unit: bytes, megabytes: int) -> bytes:
    """Return so many MiB of a unit, deflated without a head: a block that is compressed once, repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(unit * (MEGABYTE // len(unit))) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


def bomb(unit: bytes, megabytes: int) -> bytes:
    """Return so many MiB of a unit, deflated as zlib has it; the checksum at its end is right for blanks alone."""
    return b"\x78\xda" + raw_bomb(unit, megabytes) + zlib.adler32(b"").to_bytes(4, "big")
