"""Deletes rows of a Delta table by deletion vectors, as the protocol's text says: delta-rs reads them and writes none.

<https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vectors>, and for the bitmaps in them
<https://github.com/RoaringBitmap/RoaringFormatSpec>.
"""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

MAGIC = 1681511377
"""How a bitmap of 64-bit numbers begins that is stored in the portable form."""

NO_RUNS = 12346
"""How a bitmap of 32-bit numbers begins whose containers are all arrays or bitmaps."""

_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def bitmap(rows: Collection[int]) -> bytes:
    """Return row numbers below 2**32 as a RoaringBitmapArray."""
    by_key: dict[int, list[int]] = {}
    for row in sorted(rows):
        by_key.setdefault(row >> 16, []).append(row & 0xFFFF)
    assert all(len(lows) <= 4096 for lows in by_key.values()), "more than an array container holds"
    header = struct.pack("<II", NO_RUNS, len(by_key))
    header += b"".join(struct.pack("<HH", key, len(lows) - 1) for key, lows in by_key.items())
    at, offsets, body = len(header) + 4 * len(by_key), b"", b""
    for lows in by_key.values():
        offsets += struct.pack("<I", at + len(body))
        body += struct.pack(f"<{len(lows)}H", *lows)
    return struct.pack("<iq", MAGIC, 1) + struct.pack("<I", 0) + header + offsets + body


def z85(data: bytes) -> str:
    """Return bytes, a multiple of four, in the alphabet of ZeroMQ's Base85."""
    return base64.b85encode(data).translate(bytes.maketrans(_B85, _Z85)).decode()


def inline(rows: Collection[int]) -> dict[str, Any]:
    """Return the descriptor of a vector that is in the log itself."""
    data = bitmap(rows)
    padded = data + bytes(-len(data) % 4)
    return {"storageType": "i", "pathOrInlineDv": z85(padded), "sizeInBytes": len(data), "cardinality": len(rows)}


def stored(table: Path, rows: Collection[int]) -> dict[str, Any]:
    """Write a vector to a file beside the data; return its descriptor."""
    data, name = bitmap(rows), uuid.UUID(int=sum(rows) + 1)
    body = b"\x01" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (table / f"deletion_vector_{name}.bin").write_bytes(body)
    about = {"pathOrInlineDv": z85(name.bytes), "offset": 1, "sizeInBytes": len(data), "cardinality": len(rows)}
    return {"storageType": "u", **about}


def delete_rows(table: Path, vectors: dict[str, dict[str, Any]]) -> int:
    """Commit a version in which the data files with these paths have vectors; return its number."""
    log = sorted((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for file in log for line in file.read_text().splitlines()]
    adds = {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed", "appendOnly", "invariants"],
    }
    removed = [{"path": path, "dataChange": True, "deletionTimestamp": 1, **_old(adds[path])} for path in vectors]
    added = [{**adds[path], "dataChange": True, "deletionVector": vector} for path, vector in vectors.items()]
    lines = [{"protocol": protocol}, *({"remove": one} for one in removed), *({"add": one} for one in added)]
    version = len(log)
    file = table / "_delta_log" / f"{version:020d}.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return version


def _old(add: dict[str, Any]) -> dict[str, Any]:
    return {"deletionVector": add["deletionVector"]} if add.get("deletionVector") else {}
