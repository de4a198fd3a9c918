"""Looks at the first records of a snapshot: what has no text under the names it is looked for is refused at once."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing import json_lines
from pipeline_tasks.landing.brought_formats import brought_format
from pipeline_tasks.landing.formats import first_rows
from pipeline_tasks.landing.parquet import rows as parquet_rows
from pipeline_tasks.landing.parquet.footer import read_footer
from pipeline_tasks.landing.whole_files import is_whole
from pipeline_tasks.nearest import nearest
from pipeline_tasks.store import storage

FILES, ROWS = 3, 100
"""Files, and records of each, that are looked at: one record with a text is enough."""

OF_TABLES = ("json", "row")
"""Kinds of the records that have fields."""

_TEXTLESS = ("no_text", "field_type")
"""Errors of records that no text is read from; what is damaged otherwise says nothing about names."""

_ARRAY = "it is an array of JSON, and JSON lines are one object in each line, as `jq -c '.[]'` writes them"
_NAME_IT = (
    "Name the field that has the text: `--text-field NAME` of `refinery run`, `text_field` of a run of the DAG, or "
    "`fields: {text: NAME}` in the recipe, which takes url, id, date, source and html, too"
)
_HAS_TEXT = ""
_START = 1 << 10

UNREAD = re.compile(r"(?i)\.(csv|tsv|arrow|feather|orc|avro|xlsx?)(?:\.(?:gz|bz2|xz|zst|zip))?\Z")
"""Files of other tables, by their names; what is a document by its name, too, is one (`whole_files`)."""


def require_text(folder: str, names: Sequence[str], fields: Mapping[str, str]) -> None:
    """Raise RecipeError if the first files of a snapshot have records, and none of the first has a text.

    `names` are relative to `folder`; `fields` are the names of fields as the recipe gives them. Archives, and files
    whose beginning is damaged, are passed over. Of a table the names of all columns are compared, and nothing else.
    """
    unread = (name for name in names if UNREAD.search(name) and not brought_format(name) and not is_whole(name))
    other = next(unread, None)
    if other is not None:
        raise RecipeError(refusal_of_table(f"{folder}/{other}"))
    first = ""
    for name in names[:FILES]:
        missing = _missing(f"{folder}/{name}", name, fields)
        if missing == _HAS_TEXT:
            return
        if missing is not None:
            first = first or f"{folder}/{name}: {missing}"
    if first:
        raise RecipeError(first)


def missing_text(uri: str, name: str, fields: Mapping[str, str]) -> str:
    """Return why the first records of one file have no text by these names; "" if one has, or that cannot be known."""
    return _missing(uri, name, fields) or ""


def refusal_of_table(uri: str) -> str:
    """Return the message that refuses a table which is neither JSON lines nor Parquet, with a way out."""
    kind = UNREAD.search(uri)
    message = (
        f"{uri} is {kind[1].upper() if kind else 'another table'}, and a snapshot is WARC, ARC, WET, JSONL "
        "or Parquet; convert it"
    )
    if kind and kind[1].lower() in ("csv", "tsv"):
        message += " by a recipe of a source (kind `files`)"
    if kind and kind[1].lower() == "csv":
        lines = "c.ParseOptions(newlines_in_values=True)"  # quoted texts have line breaks
        code = (
            "import pyarrow.csv as c, pyarrow.parquet as p; "
            f"p.write_table(c.read_csv({uri!r}, parse_options={lines}), {uri + '.parquet'!r})"
        )
        message += f", or by `{sys.executable} -c {quote(code)}`, and run again"
    return message


def _missing(uri: str, name: str, fields: Mapping[str, str]) -> str | None:
    """Return why no text is read from a file, `_HAS_TEXT` if one is, None if that cannot be known from its start."""
    try:
        with storage.open_landed(uri) as stream:
            if stream.read(len(parquet_rows.MAGIC)) == parquet_rows.MAGIC:
                return _named(_missing_column(stream, fields), fields)
            stream.seek(0)
            if stream.read(_START).lstrip().startswith(b"["):
                return _ARRAY
            stream.seek(0)
            return _named(_missing_field(stream, name, fields), fields)
    except FileNotFoundError:  # whoever reads all of it says so
        return None


def _named(missing: str | None, fields: Mapping[str, str]) -> str | None:
    """Return why no text is read, with the way out: another name. A file that has one, or may have, is as it was."""
    return missing and f"{missing}{_meant(missing, fields)}. {_NAME_IT}"


def _meant(missing: str, fields: Mapping[str, str]) -> str:
    """Return which field of a record is written nearly as one that was looked for, "" for none."""
    there = missing.partition(json_lines.THERE)[2].removesuffix("...").split(", ")
    hints = (nearest(wanted, there, 0.8) for wanted in json_lines.names_of(fields)["text"])
    return next(filter(None, hints), "")


def _missing_column(stream: BinaryIO, fields: Mapping[str, str]) -> str | None:
    size = stream.seek(0, 2)
    try:
        read_footer(stream, size)  # which bounds what pyarrow is given
        schema = pq.ParquetFile(stream, pre_buffer=False).schema_arrow
    except parquet_rows.FAULTS as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return None
    return missing_column(schema, fields) or _HAS_TEXT


def missing_column(schema: pa.Schema, fields: Mapping[str, str]) -> str:
    """Return which named field, or text, a table does not have, and which columns it has; "" if all are there."""
    names = json_lines.names_of(fields)
    for target in dict.fromkeys((*(() if "html" in fields else ("text",)), *fields)):
        if not any(name in schema.names for name in names[target]) and not parquet_rows.paths_in(schema, names[target]):
            return json_lines.missing(target, _columns(schema), names)
    return ""


def _columns(schema: pa.Schema) -> Iterator[str]:
    """Yield the names of columns; those of the fields of structs behind the column's and a dot."""
    for field in schema:
        inner = [f"{field.name}.{child.name}" for child in field.type] if pa.types.is_struct(field.type) else []
        yield from inner or [str(field.name)]


def _missing_field(stream: BinaryIO, name: str, fields: Mapping[str, str]) -> str | None:
    missing: str | None = None
    for row in first_rows(name, stream, fields, ROWS):
        if row.error is None:
            return _HAS_TEXT if row.kind in OF_TABLES else None
        if row.error in _TEXTLESS and missing is None:
            missing = row.error_detail
    return missing
