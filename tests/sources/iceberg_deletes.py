"""Adds delete files to an Iceberg table, as its specification says: PyIceberg reads positions and writes none.

<https://iceberg.apache.org/spec/#delete-formats>, <https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type>
"""

import json
import struct
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from tests.sources.delta_vectors import bitmap

SNAPSHOT = 77
"""Id of the snapshot that has the deletes."""

_FIELD_IDS = {"file_path": b"2147483546", "pos": b"2147483545"}


class _Deletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def positions(folder: Path, data_file: str, rows: Collection[int]) -> tuple[DataFileContent, FileFormat, Path]:
    """Write a file of positions that are deleted."""
    fields = [
        pa.field(name, kind, nullable=False, metadata={b"PARQUET:field_id": _FIELD_IDS[name]})
        for name, kind in (("file_path", pa.string()), ("pos", pa.int64()))
    ]
    path = folder / "positions.parquet"
    pq.write_table(pa.table([[data_file] * len(rows), sorted(rows)], schema=pa.schema(fields)), path)
    return DataFileContent.POSITION_DELETES, FileFormat.PARQUET, path


def vector(folder: Path, data_file: str, rows: Collection[int]) -> tuple[DataFileContent, FileFormat, Path]:
    """Write a deletion vector in a file of Puffin."""
    data = bitmap(rows)
    blob = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    about = {
        "type": "deletion-vector-v1",
        "fields": [2147483645],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(blob),
        "properties": {"referenced-data-file": data_file, "cardinality": str(len(rows))},
    }
    footer = json.dumps({"blobs": [about]}).encode()
    path = folder / "vector.puffin"
    body = b"PFA1" + blob + b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
    path.write_bytes(body)
    return DataFileContent.POSITION_DELETES, FileFormat.PUFFIN, path


def equal_rows(folder: Path, values: dict[str, list[Any]]) -> tuple[DataFileContent, FileFormat, Path]:
    """Write a file of values: rows that have them are deleted."""
    path = folder / "equal.parquet"
    pq.write_table(pa.table(values), path)
    return DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET, path


def with_deletes(table: Table, deletes: tuple[DataFileContent, FileFormat, Path], rows: int) -> str:
    """Write metadata whose newest snapshot has deletes; return its place."""
    content, kind, path = deletes
    snapshot = table.current_snapshot()
    assert snapshot is not None
    folder, number = path.parent, snapshot.sequence_number + 1
    data_file = DataFile.from_args(
        content=content,
        file_path=str(path),
        file_format=kind,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=path.stat().st_size,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
    )
    entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT, data_file=data_file)
    output = table.io.new_output(str(folder / "deletes.avro"))
    with _Deletes(table.spec(), table.schema(), output, SNAPSHOT, "null") as manifest:
        manifest.add_entry(entry)
    listed = table.io.new_output(str(folder / "deletes-list.avro"))
    with write_manifest_list(2, listed, SNAPSHOT, snapshot.snapshot_id, number, "null") as manifests:
        manifests.add_manifests([manifest.to_manifest_file(), *snapshot.manifests(table.io)])
    metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    total = dict(snapshot.summary.additional_properties)["total-records"] if snapshot.summary else "0"
    newest = {
        "snapshot-id": SNAPSHOT,
        "parent-snapshot-id": snapshot.snapshot_id,
        "sequence-number": number,
        "timestamp-ms": snapshot.timestamp_ms + 1,
        "manifest-list": str(folder / "deletes-list.avro"),
        "summary": {"operation": "delete", "total-records": total},
        "schema-id": table.schema().schema_id,
    }
    metadata["snapshots"].append(newest)
    metadata |= {"current-snapshot-id": SNAPSHOT, "last-sequence-number": number}
    metadata["refs"] = {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}}
    place = folder / "deletes.metadata.json"
    place.write_text(json.dumps(metadata))
    return str(place)
