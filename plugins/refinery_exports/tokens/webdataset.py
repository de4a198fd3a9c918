"""WebDataset: tar files with two members per sequence.

The key of a sample is the number of its sequence in the dataset. `<key>.input_ids.npy` has its ids with pads, in the
type of the dataset; `<key>.json` has `cu_seqlens` (0 and the end of each piece of a document; pads are the last
piece) and `n_tokens` (ids that are no pads). Headers have no time and no owner.
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from refinery_exports.format import Format
from refinery_exports.stretch import Ids, Stretch

MODE = 0o444

BLOCK = 512
"""Bytes of which a tar file has a multiple for each member, and two without any at its end."""

READING = """
from glob import glob

import webdataset

dataset = webdataset.WebDataset(sorted(glob("data/*.tar")), shardshuffle=False).decode()
sample = next(iter(dataset))
ids, borders = sample["input_ids.npy"], sample["json"]["cu_seqlens"]
"""


def write(stretch: Stretch, folder: Path, stem: str) -> None:
    """Write `<stem>.tar`."""
    with (folder / f"{stem}.tar").open("wb") as archive:
        for name, body in _members(stretch):
            archive.write(_header(name, len(body)) + body + bytes(-len(body) % BLOCK))
        archive.write(bytes(2 * BLOCK))


def _header(name: str, size: int) -> bytes:
    """Return the header of a member, as POSIX.1-1988 has it (`ustar`); `tarfile` makes it slower."""
    head = name.encode().ljust(100, b"\0") + b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (MODE, 0, 0, size, 0)
    tail = b"0" + bytes(100) + b"ustar\x0000"
    checksum = sum(head) + sum(tail) + 8 * ord(" ")
    return (head + b"%06o\0 " % checksum + tail).ljust(BLOCK, b"\0")


def _members(stretch: Stretch) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each member."""
    borders, offsets, tokens = stretch.borders.tolist(), stretch.offsets.tolist(), stretch.tokens.tolist()
    head = _npy_head(stretch.ids)
    ids = np.ascontiguousarray(stretch.ids)
    for row in range(len(stretch)):
        key = f"{stretch.first + row:012}"
        facts = {"cu_seqlens": borders[offsets[row] : offsets[row + 1]], "n_tokens": tokens[row]}
        yield f"{key}.input_ids.npy", head + ids[row].tobytes()
        yield f"{key}.json", json.dumps(facts).encode()


def _npy_head(ids: Ids) -> bytes:
    """Return what comes before the ids of a sequence in a file of NumPy."""
    out = io.BytesIO()
    np.save(out, np.zeros(ids.shape[1], ids.dtype))
    return out.getvalue()[: -ids.shape[1] * ids.dtype.itemsize]


FORMAT = Format(write=write, shard_bytes=256 << 20, reading=READING, pattern="*.tar")
