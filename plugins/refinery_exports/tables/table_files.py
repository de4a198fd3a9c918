"""Writes the files of the tables of a version into its root, once, on any engine: sorted, and parted by columns."""

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.engines.each import On, Work
from pipeline_tasks.errors import DigestMismatch
from pipeline_tasks.inspect.views.rows import ID, Hidden, Part, Rows
from pipeline_tasks.publish.exported import EXPORTS, FILES, files_of
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import PublishedFile, open_published_file
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.sealed import canonical, digest_of, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import conformed
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.text.urls.takedown import TakenDown, evidence, of_rows
from refinery_exports.exporting import Export, Shards, run
from refinery_exports.format import Written
from refinery_exports.tables.catalog import PARTED, DataFile, Table
from refinery_exports.tables.layout import DATASETS, Layout, Piece, layout_of

pc: Any = pyarrow.compute

TABLES = "tables"
"""The folder of the tables of a version among its exports; behind a hyphen a digest of what else they follow from."""

LISTED = "tables.json"
"""The file that says which columns and files each table has."""

GROUP_ROWS, GROUP_BYTES = 1 << 16, 32 << 20
"""Rows of a row group, and bytes of one in memory, at most: what a reader reads of a file for a few rows."""

LEVEL = 3
"""The level of zstd, as of shards."""

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What paths have in place of a null, as Hive and Spark write them."""

KEYS = pa.schema([(name, pa.string()) for name in KNOWN_BY])
"""The columns by which documents are taken down."""

NOTHING_HIDDEN = Hidden(of_rows([]))

LONGEST, DIGITS = 128, 32
"""Letters of a value in a path, and digits of the digest that a longer one ends with: names of files have 255 bytes."""

_OTHER = re.compile(r"[^A-Za-z0-9_.-]")

FORMAT = 1
"""The format of these files: another one is written beside them."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the workers that write files have: the root, the tables, and what is taken down."""

    root: str
    tables: Mapping[str, Table]
    taken: TakenDown


@dataclass(frozen=True, slots=True)
class Held:
    """The tables of a version, with the files that each has in the root, in order; `hidden` rows are in none."""

    version: Version
    tables: Mapping[str, tuple[Table, tuple[DataFile, ...]]]
    hidden: int = 0


def tables_of(root: str, version: Version, on: On) -> Held:
    """Return the tables of a version; files that are not in the root are written, where `on` says.

    Rows of documents that are taken down now are in no file.
    """
    taken = taken_down(root)
    if taken.is_empty and (held := _held(root, version, place_of(root, version, ()))):
        return held
    layout = layout_of(root, version, taken)
    source = Source(root, layout.tables, taken)
    hidden = _hidden(source, layout, on)
    place = place_of(root, version, hidden)
    run(_export(source, version, layout, hidden), place, on)
    return held_at(root, version, place)


def written_tables(root: str, version: Version, on: On) -> Held | None:
    """Return the tables of a version as `tables_of` would, None if their files are not in the root."""
    taken = taken_down(root)
    layout = layout_of(root, version, taken) if not taken.is_empty else None
    hidden = [] if layout is None else _hidden(Source(root, layout.tables, taken), layout, on)
    return _held(root, version, place_of(root, version, hidden))


def _held(root: str, version: Version, place: str) -> Held | None:
    """Return the tables at a place, None if they are not all there."""
    return held_at(root, version, place) if storage.connect(place).size(FILES) is not None else None


def place_of(root: str, version: Version, hidden: Sequence[Mapping[str, Any]]) -> str:
    """Return where the tables of a version are, of whose pieces these rows are hidden.

    Versions of the same manifests share a prefix, and may have other verdicts.
    """
    without = [*hidden] if any(each["rows"] for each in hidden) else []
    own = digest_of({"layout": FORMAT, "verdicts": version.verdicts, "without": without})
    return f"{root}/{version.prefix}/{EXPORTS}/{TABLES}-{own[:16]}"


def held_at(root: str, version: Version, place: str) -> Held:
    """Return the tables that an export has listed; ContractError if its list was changed or is gone."""
    store = storage.connect(place)
    listed = files_of(place, store.read(FILES))
    stored = {file["path"]: file for file in listed["files"]}
    body = json.loads(_listed_body(place, stored[LISTED]["sha256"]))
    below = place.removeprefix(f"{root}/")
    tables: dict[str, tuple[Table, tuple[DataFile, ...]]] = {}
    for name, said in body.items():
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(said["schema"])))
        table = Table(version.recipe, name, schema, tuple(said["parted_by"]), tuple(said["sorted_by"]))
        files = [path for path in stored if path.startswith(f"{name}/")]
        tables[name] = (table, tuple(_data_file(root, below, stored[path]) for path in files))
    return Held(version, tables, listed["hidden"])


def _listed_body(place: str, digest: str) -> bytes:
    """Return the list of tables of an export; ContractError if it was changed or is gone."""
    try:
        body = storage.connect(place).read(LISTED)
    except FileNotFoundError:
        body = b""
    if sha256(body) != digest:
        message = f"{place}/{LISTED} was changed or is gone; remove the folder {place}, and register again"
        raise DigestMismatch(message)
    return body


def _data_file(root: str, below: str, file: Mapping[str, Any]) -> DataFile:
    path = f"{below}/{file['path']}"
    return DataFile(root, path, address_of(root, path), file["bytes"], file["sha256"])


def address_of(root: str, path: str) -> str:
    """Return the address by which others open a file of a root."""
    whole = f"{root}/{path}"
    return whole if "://" in whole else f"file://{whole}"


# --- What is hidden ---------------------------------------------------------------------------------------------------


def _hidden(source: Source, layout: Layout, on: On) -> list[Mapping[str, Any]]:
    """Return of each piece how many rows are taken down, and a digest of which; nothing is read if nothing is."""
    if source.taken.is_empty:
        return []
    work = Work("export", source.root, "", on)
    reads = partial(_hidden_rows, source)
    return list(work.each("hidden", reads, layout.pieces, key=lambda piece: piece, weight=lambda piece: piece.weight))


def _hidden_rows(source: Source, piece: Piece) -> Mapping[str, Any]:
    gone: list[str] = []
    for batch in _read(source.root, piece, KEYS):
        is_taken = pc.is_valid(evidence(source.taken, batch))
        gone += map(str, batch.filter(is_taken).column(ID).to_pylist())
    return {"rows": len(gone), "digest": sha256(canonical(sorted(gone)))}


def _read(root: str, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece with the columns of a schema, each after the digest of its shard is checked."""
    if piece.table != DATASETS:
        yield from Rows(root, (Part(piece.stage, piece.shards),), schema, NOTHING_HIDDEN).batches(schema.names)
        return
    for shard in piece.shards:
        with open_published_file(root, PublishedFile(shard.path, shard.bytes, shard.digest)) as stream:
            for batch in pq.ParquetFile(stream).iter_batches():
                yield conformed(batch, schema)


# --- Writing ----------------------------------------------------------------------------------------------------------


def _export(source: Source, version: Version, layout: Layout, hidden: Sequence[Mapping[str, Any]]) -> Export:
    count = sum(each["rows"] for each in hidden)
    facts = {
        "export": TABLES,
        "layout": FORMAT,
        "recipe": version.recipe,
        "snapshot": version.snapshot,
        "manifests": digest_of(version.manifests),
        "verdicts": digest_of(version.verdicts),
        "hidden": count,
    }
    expected = {name: layout.rows(name) for name in layout.tables if name not in (DATASETS, *layout.small)}
    for piece, each in zip(layout.pieces, hidden, strict=False):
        if piece.table in expected:
            expected[piece.table] -= each["rows"]
    shards = Shards(partial(write_piece, source), list(layout.pieces), lambda piece: piece.weight)
    return Export(facts, shards, partial(_beside, layout), expected)


def _beside(layout: Layout, shards: Sequence[Written]) -> Mapping[str, bytes]:
    del shards
    bodies = {f"{name}/part-00000.parquet": _whole(layout.tables[name], rows) for name, rows in layout.small.items()}
    return {**bodies, LISTED: json.dumps(_listed(layout.tables), sort_keys=True, indent=1).encode()}


def _listed(tables: Mapping[str, Table]) -> Mapping[str, Any]:
    return {
        name: {
            "schema": table.schema.serialize().to_pybytes().hex(),
            "columns": table.schema.names,
            "parted_by": table.parted_by,
            "sorted_by": table.sorted_by,
        }
        for name, table in tables.items()
    }


def _whole(table: Table, rows: pa.Table) -> bytes:
    stream = io.BytesIO()
    _write(rows.cast(table.schema), stream)
    return stream.getvalue()


def write_piece(source: Source, piece: Piece, folder: Path) -> Mapping[str, int]:
    """Write the rows of a piece into a file for each value of the columns that part its table; return how many."""
    table = source.tables[piece.table]
    hidden = Hidden(source.taken)
    batches = [_adding(hidden.visible(batch), piece.adds) for batch in _read(source.root, piece, table.schema)]
    rows = pa.Table.from_batches(batches, table.schema)
    if by := (*table.parted_by, *table.sorted_by):
        rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in by]))
    for values, part in _parted(rows, table.parted_by):
        path = folder / piece.table / "/".join(f"{name}={value}" for name, value in values.items() if name != PARTED)
        path.mkdir(parents=True, exist_ok=True)
        with (path / f"part-{piece.number:05}.parquet").open("wb") as stream:
            _write(part, stream)
    return {piece.table: rows.num_rows}


def _adding(batch: pa.RecordBatch, adds: Sequence[tuple[str, str]]) -> pa.RecordBatch:
    for name, value in adds:
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, batch.schema.field(at), pa.array([value] * batch.num_rows, pa.string()))
    return batch


def _parted(rows: pa.Table, by: Sequence[str]) -> Iterator[tuple[Mapping[str, str], pa.Table]]:
    """Yield the rows that have the same values of some columns, by which they are sorted, with these values as text."""
    if not rows.num_rows:
        return
    keys = rows.select(list(by)).combine_chunks().to_batches()[0] if by else None
    starts = [0] if keys is None else _run_starts(keys)
    for start, stop in pairwise([*starts, rows.num_rows]):
        values = {} if keys is None else {name: _as_text(keys.column(name)[start].as_py()) for name in by}
        yield values, rows.slice(start, stop - start)


def _run_starts(keys: pa.RecordBatch) -> list[int]:
    """Return the rows at which a key differs from that of the row before."""
    codes = [pc.dictionary_encode(column, null_encoding="encode").indices.to_numpy() for column in keys.columns]
    differs = np.zeros(keys.num_rows, bool)
    differs[:1] = True
    for code in codes:
        differs[1:] |= code[1:] != code[:-1]
    return [int(start) for start in np.flatnonzero(differs)]


def _as_text(value: object) -> str:
    """Return a value as a part of a path, in letters that addresses have as they are: two values have two texts."""
    if value is None:
        return NULL
    text = _OTHER.sub(lambda match: f"~{ord(match[0]):x}~", str(value))
    if text != NULL and len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - DIGITS]}={sha256(str(value).encode())[:DIGITS]}"


def _write(rows: pa.Table, stream: BinaryIO) -> None:
    """Write rows as Parquet with bounds of all columns, by which readers leave out files, row groups and pages."""
    each = max(rows.nbytes // max(rows.num_rows, 1), 1)
    writing = {"compression": "zstd", "compression_level": LEVEL, "store_schema": False}
    with pq.ParquetWriter(stream, rows.schema, write_page_index=True, write_page_checksum=True, **writing) as writer:
        writer.write_table(rows, row_group_size=max(min(GROUP_ROWS, GROUP_BYTES // each), 1))
