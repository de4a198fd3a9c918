"""Reads Zstandard files frame by frame: exact up to damage, on behind it, and with the dictionary of a .warc.zst."""

import io
import re

import zstandard

from pipeline_tasks.landing.decompression import BOMB_FLOOR, CHUNK, RATIO, STEP, Reader, Starts, seek

FRAME = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_DICTIONARY = b"\x5d\x2a\x4d\x18"
"""A skippable frame at the start with the dictionary of all others, itself compressed or not: the form of .warc.zst."""

_DICTIONARY_CAP = 16 << 20
_SKIPPABLE_HEAD = 8  # bytes: the mark and the length of what is skipped
_HELD = 1 << 18  # bytes of a frame that are looked through for the next one where they are damaged: two blocks
_PIECE = 1 << 11  # compressed bytes offered at once: each four of them may become a block of 128 KiB


def is_zstd(start: bytes) -> bool:
    """Return whether a file that begins with `start` is one of Zstandard frames."""
    return start.startswith(FRAME) or _SKIPPABLE.match(start) is not None


class ZstdSource:
    """The output of a Zstandard file, all its frames one after another."""

    def __init__(self, stored: Reader) -> None:
        """Start at the first frame, which is next in `stored`."""
        self.stored = stored
        self.damage: str | None = None
        self.damage_offset = 0
        self._out = 0
        self._start = stored.offset
        self._zstd = zstandard.ZstdDecompressor(dict_data=_read_dictionary(stored))
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._used = 0  # bytes ahead that the frame has used: a damaged one may have taken the next one for its own

    def read(self, size: int, /) -> bytes:
        """Return about `size` bytes at most, empty at the end or at damage (then `damage` says which)."""
        parts: list[bytes] = []
        filled = 0
        while filled < min(size, CHUNK) and self.damage is None and self._has_frame():
            parts.append(self._piece())
            filled += len(parts[-1])
        return b"".join(parts)

    def _has_frame(self) -> bool:
        """Start the next frame unless one is under way; False at the end of the file, or where no frame begins."""
        while self._frame is None:
            mark = self.stored.peek(_SKIPPABLE_HEAD)
            if mark.startswith(FRAME):
                self._frame = self._zstd.decompressobj()
            elif len(mark) == _SKIPPABLE_HEAD and _SKIPPABLE.match(mark):
                size = _SKIPPABLE_HEAD + _skippable_size(mark)
                if self.stored.skip(size) < size:
                    self._stop("zstd_truncated")
                    return False
            else:
                if mark:
                    self._stop("zstd_truncated" if FRAME.startswith(mark) or _SKIPPABLE.match(mark) else "zstd_corrupt")
                return False
        return True

    def _piece(self) -> bytes:
        """Return the output of the next piece of the frame; nothing where `damage` is set."""
        frame = self._frame
        if frame is None or (not self.stored.fill(self._used + _PIECE) and self.stored.ahead <= self._used):
            self._stop("zstd_truncated")
            return b""
        at = self.stored.at + self._used
        piece = self.stored.data[at : at + _PIECE]
        try:
            out = frame.decompress(piece)
        except zstandard.ZstdError:
            self._stop("zstd_corrupt")
            return b""
        self._used += len(piece) - len(frame.unused_data)
        self._out += len(out)
        if self._out > BOMB_FLOOR and self._out > RATIO * (self.stored.offset + self._used - self._start):
            self._stop("bomb")
            return b""
        if frame.eof:
            self._frame = None
        if frame.eof or self._used > _HELD:
            self.stored.at += self._used
            self._used = 0
        return out

    def _stop(self, why: str) -> None:
        self.damage, self.damage_offset = why, self.stored.offset + self._used
        self._frame, self._used = None, 0

    def resume(self, starts: Starts, /) -> bool:
        """Go on at the next frame whose output starts so."""
        if self.damage is None or not seek(self.stored, FRAME, lambda stored: self._is_start(stored, starts)):
            return False
        self.damage = None
        return True

    def _is_start(self, stored: Reader, starts: Starts) -> bool:
        stored.fill(STEP)
        out, frame = b"", self._zstd.decompressobj()
        try:
            for at in range(stored.at, min(stored.at + STEP, len(stored.data)), _PIECE):
                out = frame.decompress(stored.data[at : at + _PIECE])
                if out or frame.eof:
                    break
        except zstandard.ZstdError:
            return False
        return starts.match(out) is not None


def _skippable_size(head: bytes) -> int:
    return int.from_bytes(head[4:_SKIPPABLE_HEAD], "little")


def _read_dictionary(stored: Reader) -> zstandard.ZstdCompressionDict | None:
    """Pass the frame of a dictionary, if the file begins with one, and return it."""
    head = stored.peek(_SKIPPABLE_HEAD)
    if len(head) < _SKIPPABLE_HEAD or not head.startswith(_DICTIONARY) or _skippable_size(head) > _DICTIONARY_CAP:
        return None
    end = _SKIPPABLE_HEAD + _skippable_size(head)
    content = stored.peek(end)[_SKIPPABLE_HEAD:]
    if content.startswith(FRAME):
        try:
            content = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content)).read(_DICTIONARY_CAP)
        except zstandard.ZstdError:
            return None  # its frames then say that they are corrupt
    stored.skip(end)
    return zstandard.ZstdCompressionDict(content) if content else None
