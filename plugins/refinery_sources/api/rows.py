"""Makes rows of records: the fields of a document by their own names, and the rest as metadata."""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from pipeline_tasks.errors import ContractError
from pipeline_tasks.schema import FIELDS
from pipeline_tasks.store.credential import masked
from refinery_sources.api.journal import DATA, GONE, Record
from refinery_sources.api.moments import order_of
from refinery_sources.api.places import ABSENT, fields_of, kind_of, value_at, without
from refinery_sources.api.query import Query

_NAMES = frozenset(name for names in FIELDS.values() for name in names) | frozenset(FIELDS)
"""The names that `ingest` reads as something else than metadata."""

_JSON = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
_DIGEST = 16
"""Hex digits of the digest of a record's content: those of one id are compared."""


def data_record(query: Query, record: Mapping[str, Any], where: str) -> Record:
    """Return a record of the query; ContractError for one without id, or without the field of `since`."""
    identifier = identifier_of(record, query.id, where)
    try:
        digest = digest_of(record)
    except orjson.JSONEncodeError as error:
        message = f"{where} has the record {identifier[:100]!a}, which cannot be written ({error}); tell who made it"
        raise ContractError(message) from error
    is_gone = query.deleted is not None and bool(query.deleted.field) and _says(record, query.deleted.field)
    row, secrets = masked(gone_row(identifier) if is_gone else data_row(query, record, identifier))
    return Record(identifier, GONE if is_gone else DATA, digest, _moment(query, record, where), row, secrets)


def identifier_of(record: object, path: str, where: str) -> str:
    """Return the id of a record as text; ContractError if it is neither a text nor a whole number."""
    value = value_at(record, path) if isinstance(record, dict) else ABSENT
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        what = kind_of(value) if value != "" else "empty"
        message = f"{where} has a record whose id at {path} is {what}, and no text or whole number; {fields_of(record)}"
        raise ContractError(message)
    return str(value)


def has_text(query: Query, record: object) -> bool:
    """Return whether a record has a text."""
    return isinstance(value_at(record, query.fields.get("html") or query.fields["text"]), str)


def digest_of(record: object) -> str:
    """Return the digest of a record's content."""
    return hashlib.sha256(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_DIGEST]


def gone_row(identifier: str) -> bytes:
    """Return the row of a record that its source has deleted: by its id alone, as others may have its URL."""
    return orjson.dumps({"id": identifier}, option=_JSON)


def data_row(query: Query, record: Mapping[str, Any], identifier: str) -> bytes:
    """Return a record as a line of JSON: `ingest` reads it without names of fields.

    A text of HTML becomes a whole document, which `ingest` takes for a page. Another field that has a name by which
    `ingest` reads something else gets `_` behind it.
    """
    values = {target: value_at(record, path) for target, path in _paths(query, record).items()}
    values = {target: value for target, value in values.items() if value is not ABSENT and value is not None}
    rest = without(record, [query.id, *_paths(query, record).values()])
    row = {_other_name(name, rest) if name in _NAMES else name: value for name, value in rest.items()}
    row |= {target: value for target, value in values.items() if target != "html"}
    html = values.get("html")
    if html is not None:
        row["text"] = document_of(html) if isinstance(html, str) else html
    return orjson.dumps({**row, "id": identifier}, option=_JSON)


def _other_name(name: str, taken: Collection[str]) -> str:
    """Return a name with as many `_` behind it as make it one of its own."""
    while name in taken or name in _NAMES:
        name += "_"
    return name


def document_of(html: str) -> str:
    """Return a piece of HTML as a whole document, and a whole one as it is."""
    if html.lstrip().lower().startswith(("<!doctype html", "<html")) or not html.strip():
        return html
    return f'<!doctype html><html><head><meta charset="utf-8"></head><body><article>{html}</article></body></html>'


def _paths(query: Query, record: Mapping[str, Any]) -> dict[str, str]:
    """Return the path of each target in a record: the query's, or the first usual name that has a plain value."""
    paths = dict(query.fields)
    for target in ("url", "date", "source"):
        if target not in paths:
            name = next((name for name in FIELDS[target] if isinstance(record.get(name), str | int)), None)
            paths |= {target: name} if name is not None else {}
    return {target: path for target, path in paths.items() if target == "html" or target in FIELDS}


def _says(record: object, path: str) -> bool:
    value = value_at(record, path)
    return value is not ABSENT and bool(value)


def _moment(query: Query, record: object, where: str) -> float | None:
    if query.since is None:
        return None
    value = value_at(record, query.since.field)
    order = order_of(value)
    if order is None:
        message = (
            f"{where} has a record whose {query.since.field} is {kind_of(value)}, and no number or time of ISO 8601 by "
            f"which it could be compared; {fields_of(record)}"
        )
        raise ContractError(message)
    return order
