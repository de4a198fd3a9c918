"""Reads the rows that people have as Arrow, and gives them the columns that a landing would have given them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import writers_of
from pipeline_tasks.schema import DOCUMENT, FIELDS, LOCATOR, RECORD, VERDICT
from pipeline_tasks.sealed import canonical
from pipeline_tasks.stage import Stage, reject

BATCH_ROWS = 4096
UNNAMED = "rows"
"""The `file` of rows that are of no file."""

SOURCE = "crawl"
"""The `source` of rows that name none, as of landed records."""

NO_TEXT = "error:no_text"
CONTENTS = {"text", "payload"}
"""What a page is: a ready text, or markup."""

NULLABLE = ("title", "status", "metadata", "error", "error_detail")
"""Columns that landed rows of tables are without."""


@runtime_checkable
class Stream(Protocol):
    """What gives its rows by Arrow's own interface: a table, a reader, a frame of Polars, a relation of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule of a stream of Arrow."""


@runtime_checkable
class Formatted(Protocol):
    """A dataset of Hugging Face: `with_format("arrow").iter` gives tables of those of its rows that are selected."""

    def with_format(self, type: str) -> Any:  # noqa: A002, ANN401 -- its own name; a dataset again
        """Return the dataset with rows as Arrow."""


Rows: TypeAlias = Stream | Formatted | pa.RecordBatch | Path | str
"""Rows, or the path of a Parquet file, or of a folder with such files at any depth."""


COMPUTED = ("chars", "offset", "length", "payload_digest", "kind", "error", "error_detail")
"""Columns that follow from a row, whatever those of such a name are in rows that no stage of ours left."""


class Piece(NamedTuple):
    """Rows in a row: the name of their file, and the number of the first in it."""

    file: str
    start: int
    batch: pa.RecordBatch


def pieces(rows: Rows) -> Iterator[Piece]:
    """Yield rows in order; at least one piece, empty if there are none. RecipeError for what has no rows of Arrow."""
    if isinstance(rows, str | Path):
        for path, name in _files(Path(rows)):
            with _opened(path) as file:
                yield from _numbered(name, file.schema_arrow, file.iter_batches(BATCH_ROWS))
    elif isinstance(rows, Formatted):
        tables = rows.with_format("arrow").iter(batch_size=BATCH_ROWS)
        yield from _numbered(UNNAMED, pa.schema([]), (batch for table in tables for batch in table.to_batches()))
    else:
        stream = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        if not isinstance(stream, Stream):
            message = (
                f"rows are a {type(rows).__name__}; give a table or a reader of Arrow, a dataset of Hugging Face, "
                "or the path of Parquet files"
            )
            raise RecipeError(message)
        reader = pa.RecordBatchReader.from_stream(stream)
        yield from _numbered(UNNAMED, reader.schema, reader)


def _files(path: Path) -> list[tuple[Path, str]]:
    """Return Parquet files with their names, in the order of names; RecipeError if there are none."""
    found = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    if not found:
        message = f"{path}: no such file, and no folder with files *.parquet; correct the path"
        raise RecipeError(message)
    return [(file, file.name if file == path else file.relative_to(path).as_posix()) for file in found]


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        message = f"{path} is no Parquet file ({error}); name one, or read it as a table of Arrow"
        raise RecipeError(message) from error


def _numbered(file: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    start = -1
    for batch in batches:
        start = max(start, 0)
        yield Piece(file, start, batch)
        start += batch.num_rows
    if start < 0:
        yield Piece(file, 0, pa.RecordBatch.from_pylist([], schema=schema))


class Needed(NamedTuple):
    """What a stage needs of rows: columns with their types, those of a document too if it takes documents.

    `named` are columns that its params name, of any type. Those that are `optional` are null where rows lack them.
    """

    card: Stage[Any]
    columns: pa.Schema
    named: tuple[str, ...]
    optional: Sequence[str] = ()

    @property
    def of_pages(self) -> bool:
        """Whether it takes pages or records, which may have a text or a payload."""
        return "payload" in self.columns.names


def needed_by(card: Stage[Any], params: object, optional: Sequence[str] = ()) -> Needed:
    """Return what a stage needs by its params."""
    of_pages = "payload" in card.reads.names
    implied = [RECORD.field("status")] if of_pages else () if card.wiring.builds else DOCUMENT
    own = {field.name: field for field in (*implied, *card.reads)}
    named = card.reads_for(params) if card.reads_for else ()
    return Needed(card, pa.schema(list(own.values())), named, optional)


def completed(piece: Piece, needed: Needed) -> pa.RecordBatch:
    """Return rows with the columns that a stage needs; RecipeError for one that does not follow from the others.

    Rows with all columns of `schema.LOCATOR` are of a stage, and stay as they are. Of others, fields are looked for as
    in landed tables (`schema.FIELDS`): `id` is the name of a record, and not the identity of its text. A column that
    follows from a row (`COMPUTED`) is computed.
    """
    _require_free(piece.batch.schema.names, needed.card.name)
    columns = dict(zip(piece.batch.schema.names, piece.batch.columns, strict=True))
    computed = {*COMPUTED} & {*needed.columns.names}
    if not set(LOCATOR.names) <= columns.keys():
        columns = _located({name: columns[name] for name in columns if name not in computed}, piece)
    for name in needed.columns.names:
        if name not in columns and (value := _filled(name, columns, piece.batch.num_rows, needed)) is not None:
            columns[name] = value
    _require_columns(columns, piece, needed)
    kinds = {field.name: field.type for field in needed.columns}
    typed = {name: _cast(name, column, kinds.get(name, column.type)) for name, column in columns.items()}
    ordered = [*(name for name in needed.columns.names), *(name for name in typed if name not in kinds)]
    return pa.record_batch([typed[name] for name in ordered], names=ordered)


def _require_free(names: Sequence[str], stage: str) -> None:
    """Raise RecipeError for columns of one name, and for those of a verdict."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    taken = [name for name in VERDICT.names if name in names]
    if twice or taken:
        why = "there twice" if twice else f"where {stage} says what it rejects"
        message = f"the column {(twice or taken)[0]!r} of the rows is {why}; drop or rename it"
        raise RecipeError(message)


def _located(columns: dict[str, pa.Array], piece: Piece) -> dict[str, pa.Array]:
    """Return columns with the place of each row, and with fields of other names by those of a record."""
    from pipeline_tasks.landing.dates import iso_date

    rows = piece.batch.num_rows
    text = next((name for name in FIELDS["text"] if name in columns), "")
    rest = {name: column for name, column in columns.items() if name not in ("id", text)}
    own = {"text": _cast(text, columns[text], pa.large_string())} if text else {}
    offsets = range(piece.start, piece.start + rows)
    places = pa.array([f"{piece.file}:{offset}" for offset in offsets], pa.string())
    named = [None if value is None else str(value) for value in columns.get("id", pa.nulls(rows)).to_pylist()]
    dated = next((columns[name] for name in FIELDS["date"] if name in columns), pa.nulls(rows))
    dates = [None if value is None else iso_date(str(value)) for value in dated.to_pylist()]
    return {
        "source": pa.repeat(pa.scalar(SOURCE), rows),
        "snapshot": pa.repeat(pa.scalar(""), rows),
        "file": pa.repeat(pa.scalar(piece.file), rows),
        "length": pa.repeat(pa.scalar(1, pa.int64()), rows),
        "record_id": pc.coalesce(pa.array(named, pa.string()), places),
        "url": pa.nulls(rows, pa.string()),
        "payload_digest": _digests(rest.get("payload", own.get("text", pa.nulls(rows)))),
        **rest,
        "offset": pa.array(offsets, pa.int64()),
        "crawled_at": pa.array(dates, pa.string()),
        **own,
    }


def _digests(bodies: pa.Array) -> pa.Array:
    from pipeline_tasks.landing.archives.record import sha1

    values = bodies.cast(pa.large_binary()).to_pylist()
    return pa.array([None if body is None else sha1(body) for body in values], pa.string())


def _filled(name: str, columns: dict[str, pa.Array], rows: int, needed: Needed) -> pa.Array | None:
    """Return a column that follows from others, or that rows may be without; None for any other."""
    kind = needed.columns.field(name).type
    if name in (*NULLABLE, *needed.optional):
        return pa.nulls(rows, kind)
    if name == "kind":
        return pa.repeat(pa.scalar("row"), rows)
    return _of_page(name, columns, rows, kind) if needed.of_pages else _of_text(name, columns, kind)


def _of_page(name: str, columns: dict[str, pa.Array], rows: int, kind: pa.DataType) -> pa.Array | None:
    """Return the label of a page as markup, or nulls for what its bytes tell, and for the one of the two it is not."""
    from pipeline_tasks.landing.json_lines import HTML

    if name == "content_type":
        return pa.repeat(pa.scalar(HTML if "payload" in columns else None, kind), rows)
    is_told = name == "type" or (name in CONTENTS and CONTENTS & columns.keys())
    return pa.nulls(rows, kind) if is_told else None


def _of_text(name: str, columns: dict[str, pa.Array], kind: pa.DataType) -> pa.Array | None:
    """Return the identity or the length of each text."""
    from pipeline_tasks.text.page.identity import identity

    if name not in ("id", "chars") or "text" not in columns:
        return None
    texts = columns["text"].cast(pa.large_string())
    if name == "chars":
        return pc.utf8_length(texts).cast(kind)
    return pa.array([None if text is None else identity(text) for text in texts.to_pylist()], kind)


def _require_columns(columns: dict[str, pa.Array], piece: Piece, needed: Needed) -> None:
    """Raise RecipeError for a column that rows lack: which stage writes it, or by which names it was looked for."""
    from pipeline_tasks.landing.json_lines import missing

    lacking = [name for name in (*needed.columns.names, *needed.named) if name not in columns]
    if not lacking:
        return
    stage, name = needed.card.name, lacking[0]
    there = piece.batch.schema.names
    if "text" in lacking:
        message = f"{stage}: {missing('text', there, FIELDS)}"
        raise RecipeError(message)
    writers = [other for other in writers_of(name) if other != stage]
    way_out = f"apply {' or '.join(writers)} to them first" if writers else "no stage writes it"
    message = f"{stage} reads the column {name!r}, which the rows do not have ({', '.join(there)}); {way_out}"
    raise RecipeError(message)


def _cast(name: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column in a type; RecipeError for values that are none of it, as numbers are no texts."""
    if column.type == kind:
        return column
    own = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    why: object = "it is no text"
    if not _is_text(kind) or _is_text(own) or pa.types.is_null(own):
        try:
            return column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            why = error
    message = f"the column {name!r} is {column.type} and cannot be read as {kind} ({why}); cast or rename it"
    raise RecipeError(message)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def parted(batch: pa.RecordBatch, needed: Needed) -> Sequence[pa.RecordBatch]:
    """Return the rows that a stage can read, and those without a text, which are quarantined as at a landing."""
    if needed.of_pages or "text" not in needed.columns.names:
        return batch, batch.slice(0, 0)
    absent = pc.is_null(batch.column("text"))
    if not pc.any(absent).as_py():
        return batch, batch.slice(0, 0)
    unread = batch.filter(absent)
    proof = canonical({"detail": "the text is null"}).decode()
    marked = reject(unread, pa.repeat(pa.scalar(NO_TEXT), len(unread)), pa.repeat(pa.scalar(proof), len(unread)))
    return batch.filter(pc.invert(absent)), marked
