"""Reads a list of addresses: one in a line, the first field of a table, or objects of JSON with their `url`."""

import json
from collections.abc import Iterator

from pipeline_tasks.errors import ContractError
from pipeline_tasks.landing.listing import LISTING_BYTES, LISTING_LINES

URL = "url"
"""The key of an object that has the address, and the head of a table's first column."""


def addresses_in(body: bytes, where: str) -> tuple[str, ...]:
    """Return the addresses of a list, sorted, each once; ContractError for what is no list, or one without any.

    It is what `refinery look cut` prints, with or without `--json`; blank lines and fields behind the first say
    nothing.
    """
    try:
        found = tuple(sorted(set(_read(body.decode("utf-8-sig")))))
        _require_size(len(body), len(found))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{where} is no list of addresses ({str(error)[:300]}); nothing of it is fetched: correct it"
        raise ContractError(message) from error
    return found


def _require_size(size: int, count: int) -> None:
    if size > LISTING_BYTES or not 0 < count <= LISTING_LINES:
        message = (
            f"it has {count:,} addresses in {size:,} bytes; a list has 1 to {LISTING_LINES:,} in {LISTING_BYTES:,}"
        )
        raise ValueError(message)


def _read(text: str) -> Iterator[str]:
    start = text.lstrip()[:1]
    if start == "[":
        yield from (_url(entry) for entry in json.loads(text))
        return
    for number, line in enumerate(filter(None, map(str.strip, text.split("\n")))):
        first = _url(json.loads(line)) if start == "{" else line.partition("\t")[0].strip()
        if number or first != URL:
            yield first


def _url(entry: object) -> str:
    url = entry[URL] if isinstance(entry, dict) else entry
    if not isinstance(url, str):
        message = f"{str(entry)[:100]!a} has no url"
        raise TypeError(message)
    return url
