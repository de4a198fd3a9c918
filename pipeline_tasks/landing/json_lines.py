"""JSON lines and rows of tables as records: one object each, split on line feeds only, bounded and strict."""

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from pipeline_tasks.landing.archives.record import Row, sha1
from pipeline_tasks.landing.dates import iso_date
from pipeline_tasks.landing.decompression import Reader
from pipeline_tasks.profiles.field_types import shape_at
from pipeline_tasks.schema import FIELDS

LINE_CAP = 32 << 20
Names = Mapping[str, Sequence[str]]
"""The names by which each of `schema.FIELDS` is looked for."""

HTML = "text/html; charset=utf-8"
"""Content type of a field that is HTML: it goes through extraction as a page does."""

THERE = "; the fields are "
"""Words of an `error_detail` before the names of the fields that a record has."""

DETAIL = 200
"""Characters of an `error_detail`."""

VALUES_CAP = 1 << 22  # values of one line: each takes 50 bytes or more in memory, and three in a line
_COUNTED = 1 << 20  # bytes from which on a line is looked at for that
LINE_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*[\"}]")
"""How a file of lines begins, and a part of a compressed file from which on it is read behind damage."""

_KEY = re.compile(rb'"[ \t\r]*:')
_JSON = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
_CONSTANT = re.compile(rb"\b(?:NaN|Infinity)\b")
_INTEGERS = -(1 << 63), (1 << 64) - 1
_DIGITS = 20  # of the longest of them
_NO_WORDS = (dict, list, bytes)
_UTF_16 = re.compile(rb"(?:\xff\xfe|\xfe\xff)?(?:\0[^\0]\0[^\0]|[^\0]\0[^\0]\0)")
"""How JSON in UTF-16 begins, of which the first two characters are ASCII (RFC 4627, section 3)."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def names_of(fields: Mapping[str, str]) -> Names:
    """Return the names by which fields are looked for where some have a name of their own: that one alone."""
    return {**FIELDS, **{target: (name,) for target, name in fields.items()}}


def read_lines(reader: Reader, file: str, names: Names = FIELDS) -> Iterator[Row]:
    """Read one object per line of `reader`; blank lines count as part of the line before."""
    if reader.peek(3) == b"\xef\xbb\xbf":
        reader.at += 3
    blank = True
    while True:
        start = reader.offset
        end = line_end(reader)
        if end is None:
            blank = False
            yield Row(start, skip_line(reader), error="oversize", error_detail=f"line over {LINE_CAP} bytes")
            continue
        line = reader.data[reader.at : end]
        reader.at = end
        is_last = reader.source.damage is not None and not reader.ahead and reader.ended
        if is_last and not line.endswith(b"\n"):
            detail = f"compressed byte {reader.source.damage_offset}"
            yield Row(start, len(line), error=reader.source.damage, error_detail=detail)
            blank = False
            if not reader.resume(LINE_START):
                return
            continue
        if not line:
            break
        if line.strip():
            blank = False
            yield _line_row(line, start, file, names)
    if blank:
        yield Row(0, reader.offset, error="empty_file", error_detail="nothing but blank lines")


def line_end(reader: Reader) -> int | None:
    """Return where the line ahead ends in the window (its line feed included); None if it is too long to hold."""
    searched = 0
    while True:
        at = reader.data.find(b"\n", reader.at + searched)
        if at >= 0:
            return at + 1
        searched = reader.ahead
        if searched > LINE_CAP:
            return None
        if not reader.fill(searched + 1):
            return reader.at + reader.ahead


def skip_line(reader: Reader) -> int:
    """Skip a line that is too long to hold; return its bytes."""
    start = reader.offset
    while reader.fill(1):
        at = reader.data.find(b"\n", reader.at)
        if at >= 0:
            reader.at = at + 1
            break
        reader.skip(reader.ahead)
    return reader.offset - start


def _line_row(line: bytes, offset: int, file: str, names: Names) -> Row:
    if len(line) > _COUNTED and sum(map(line.count, (b",", b"[", b"{"))) > VALUES_CAP:
        return Row(offset, len(line), error="oversize", error_detail=f"more than {VALUES_CAP} values")
    value, error, detail, replaced = parse(line)
    if error is None and not isinstance(value, dict):
        error, detail = "json", f"a {type(value).__name__}, not an object"
    if error is not None:
        return Row(offset, len(line), error=error, error_detail=detail)
    return object_row(value, offset, len(line), file, "json", replaced, names)


def parse(line: bytes) -> tuple[Any, str | None, str | None, int]:
    """Parse one line strictly: (value, error, detail, lone surrogates replaced).

    A key given twice is an error that the fast parser does not report, so a line with more key-like places than keys
    is parsed again by the slow one, and so is one with numbers that JSON does not have (NaN, Infinity): they are null.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if "depth" in error.msg:
            return None, "json_depth", "nested too deeply", 0
        if encoding := _other_encoding(line):
            return None, "json", encoding, 0
        if "surrogate" in error.msg or "infinity" in error.msg or _CONSTANT.search(line):
            return _parse_slowly(line)
        return None, "json", f"{error.msg[:80]} at byte {error.pos}", 0
    if len(_KEY.findall(line)) == _keys(value):
        return value, None, None, 0
    return _parse_slowly(line)


def _other_encoding(line: bytes) -> str:
    """Return why a line is no text in UTF-8, "" for one that is."""
    if _UTF_16.match(line):
        return "not UTF-8: every second byte is NUL, as in UTF-16"
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    return ""


def _keys(value: object) -> int:
    """Count keys at all levels, without recursion: orjson takes deeper values than Python's stack does."""
    count = 0
    parts: list[Any] = [value] if isinstance(value, dict | list) else []
    while parts:
        part = parts.pop()
        count += len(part) if isinstance(part, dict) else 0
        inner = part.values() if isinstance(part, dict) else part
        parts += [value for value in inner if isinstance(value, dict | list)]
    return count


class _DuplicateKeyError(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _DuplicateKeyError
    return fields


def _integer(digits: str) -> int | float | None:
    """Return an integer as the fast parser does: one that 64 bits do not hold is a float."""
    value = int(digits) if len(digits) <= _DIGITS else None
    return value if value is not None and _INTEGERS[0] <= value <= _INTEGERS[1] else _finite(digits)


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


def _none(_constant: str) -> None:
    """Return what stands for NaN and Infinity, which Python writes: only the field is lost."""


def _parse_slowly(line: bytes) -> tuple[Any, str | None, str | None, int]:
    try:
        value, replaced = _clean(_DECODER.decode(line.decode().strip(" \t\r\n")))
    except _DuplicateKeyError:
        return None, "dup_key", "a key is given twice", 0
    except RecursionError:
        return None, "json_depth", "nested too deeply", 0
    except ValueError:
        return None, "json", "not JSON", 0
    return value, None, None, replaced


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_none, parse_int=_integer, parse_float=_finite)


def _clean(value: object) -> tuple[Any, int]:
    """Replace lone surrogates, which no encoding can carry, and count them."""
    if isinstance(value, str):
        return (value, 0) if value.isascii() else _SURROGATE.subn("\ufffd", value)
    if isinstance(value, list):
        parts = [_clean(part) for part in value]
        return [part for part, _ in parts], sum(count for _, count in parts)
    return _clean_fields(value) if isinstance(value, dict) else (value, 0)


def _clean_fields(fields: dict[str, Any]) -> tuple[dict[str, Any], int]:
    pairs = [(_clean(name), _clean(part)) for name, part in fields.items()]
    return {name[0]: part[0] for name, part in pairs}, sum(name[1] + part[1] for name, part in pairs)


def object_row(
    fields: dict[str, Any], offset: int, length: int, file: str, kind: str, replaced: int = 0, names: Names = FIELDS
) -> Row:
    """Map an object's fields to columns; fields without a column become metadata."""
    rest, shape = dict(fields), shape_at(offset, fields, is_row=kind == "row")
    html = _take(fields, rest, names["html"]) if names["html"] else None
    text = _take(fields, rest, names["text"]) if html is None else html
    if not isinstance(text, str):
        target = "html" if names["html"] else "text"
        detail = (
            missing(target, _named(fields, names), names) if text is None else f"{target} is a {type(text).__name__}"
        )
        error = "no_text" if text is None else "field_type"
        return Row(offset, length, kind=kind, error=error, error_detail=detail, shape=shape)
    others = [names[target] for target in ("url", "id", "date", "source")]
    for looked_for in others:
        for name in looked_for:
            if isinstance(_value(fields, name), _NO_WORDS):
                detail = f"{name} is a {type(_value(fields, name)).__name__}"[:DETAIL]
                return Row(offset, length, kind=kind, error="field_type", error_detail=detail, shape=shape)
    url, record_id, date, source = (_string(_take(fields, rest, looked_for)) for looked_for in others)
    crawled_at = iso_date(date) if date else None
    if date and not crawled_at:  # it stays to be read by people
        there = {name: _value(fields, name) for name in names["date"] if name not in rest}
        rest |= {name: value for name, value in there.items() if value is not None}
    if replaced:
        rest["surrogates_replaced"] = replaced
    try:
        metadata = orjson.dumps(rest, default=_described, option=_JSON).decode() if rest else None
    except orjson.JSONEncodeError:
        return Row(offset, length, kind=kind, error="json_depth", error_detail="metadata nested too deeply")
    if len(text) + len(metadata or "") > LINE_CAP:
        return Row(offset, length, kind=kind, error="oversize", error_detail=f"over {LINE_CAP} characters")
    body = text.encode()
    row = Row(
        offset,
        length,
        record_id=record_id or f"{file}:{offset}",
        url=url,
        crawled_at=crawled_at,
        payload_digest=sha1(body),
        kind=kind,
        text=text,
        metadata=metadata,
        source=source,
        shape=shape,
    )
    return row if html is None else row._replace(text=None, payload=body, content_type=HTML)


def _described(value: object) -> str:
    """Return a value that JSON has no type for as text; of bytes only how many they are."""
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


def _string(value: object) -> str | None:
    return str(value) if value is not None else None


def missing(target: str, there: Iterable[str], names: Names) -> str:
    """Return which fields were looked for in a record without one of `schema.FIELDS`, and which it has, cut short."""
    known = ", ".join(name if name.isprintable() else ascii(name) for name in there) or "none"
    detail = f"no {target}: looked for {', '.join(names[target])}{THERE}{known}"
    return detail if len(detail) <= DETAIL else f"{detail[: DETAIL - 3]}..."


def _take(fields: Mapping[str, Any], rest: dict[str, Any], names: Sequence[str]) -> object:
    """Return the value of the first field that is there, and remove it from the rest."""
    for name in names:
        value = fields.get(name)
        if value is not None:
            rest.pop(name, None)
            return value
        if "." in name and (value := _value(fields, name)) is not None:
            _remove(rest, name)
            return value
    return None


def _value(fields: Mapping[str, Any], name: str) -> object:
    """Return the value of a field, None if it is not there; a name with dots that no field has is a path."""
    value = fields.get(name)
    if value is not None or "." not in name:
        return value
    value = fields
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def is_there(fields: Mapping[str, Any], name: str) -> bool:
    """Return whether an object has a field, or one at the end of a path, be it null."""
    if name in fields:
        return True
    first, _, below = name.partition(".")
    inner = fields.get(first)
    return bool(below) and isinstance(inner, dict) and is_there(inner, below)


def _remove(rest: dict[str, Any], name: str) -> None:
    """Remove a field; the objects on the way to it are copied, and those that become empty are removed with it."""
    if name in rest or "." not in name:
        rest.pop(name, None)
        return
    first, _, below = name.partition(".")
    inner = rest.get(first)
    if isinstance(inner, dict):
        rest[first] = dict(inner)
        _remove(rest[first], below)
        if not rest[first]:
            del rest[first]


def _named(fields: Mapping[str, Any], names: Names) -> Iterator[str]:
    """Yield the names of fields; where paths are looked for, those in an object behind its name and a dot."""
    has_paths = any("." in name for name in itertools.chain(*names.values()))
    for name, value in fields.items():
        if has_paths and isinstance(value, dict) and value:
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield name
