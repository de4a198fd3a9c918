"""Chooses the part of a snapshot that a trial reads: whole files, and pieces of large ones."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Piece(NamedTuple):
    """What is read or left out as a whole: a file, or a piece of one from its byte `start` on."""

    path: str
    start: int
    size: int


def sampled(pieces: Iterable[Piece], wanted: float) -> set[tuple[str, int]]:
    """Return path and start of the fewest pieces that have `wanted` bytes together, in an order by their hashes.

    The same pieces are chosen in each run, and those of a smaller sample are among those of a larger one. At least one
    piece is chosen, of any size.
    """
    return {(piece.path, piece.start) for piece in _until(sorted(pieces, key=_hash), wanted)}


def _until(pieces: Iterable[Piece], wanted: float) -> Iterator[Piece]:
    total = 0
    for piece in pieces:
        yield piece
        total += piece.size
        if total >= wanted:
            return


def _hash(piece: Piece) -> bytes:
    return hashlib.sha256(f"{piece.start} {piece.path}".encode("utf-8", "surrogateescape")).digest()
