"""Checks the gzip members of a file as its bytes arrive: each is inflated, and its checksum and length compared."""

from zlib_ng import zlib_ng

from pipeline_tasks.errors import ContractError
from pipeline_tasks.landing.decompression import DEFLATE_ERROR, GZIP_WINDOW, STEP

OUTPUT = 1 << 20
"""Bytes that are inflated at a time; they are not kept."""


class Members:
    """The members of one file; ContractError, with the byte, for what is none."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._member = zlib_ng.decompressobj(GZIP_WINDOW)
        self._begun = False
        self._at = 0
        self.count = 0

    def feed(self, chunk: bytes) -> None:
        """Inflate the next bytes of the file."""
        for start in range(0, len(chunk), STEP):
            try:
                self._feed(chunk[start : start + STEP])
            except DEFLATE_ERROR as error:
                place = f"before byte {self._at + start + STEP:,}"
                message = f"{self._name} is damaged in gzip member {self.count}, {place} ({error})"
                raise ContractError(message) from error
        self._at += len(chunk)

    def _feed(self, rest: bytes) -> None:
        output = b""
        while rest or len(output) == OUTPUT:
            self._begun = True
            output, rest = self._member.decompress(rest, OUTPUT), self._member.unconsumed_tail
            if self._member.eof:
                output, rest = b"", self._member.unused_data
                self._member, self._begun = zlib_ng.decompressobj(GZIP_WINDOW), False
                self.count += 1

    def finish(self) -> None:
        """Raise ContractError unless the file ends where a member ends, and has one."""
        if self._begun or not self.count:
            what = "ends within a gzip member" if self._begun else "has no gzip member"
            message = f"{self._name} {what}: it was cut at byte {self._at:,}"
            raise ContractError(message)
