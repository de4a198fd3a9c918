"""Asks for one page of an API, and reads it: what is cut or no JSON is asked for again, and then refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.errors import ContractError, RecipeError, SourceBusy
from pipeline_tasks.landing.json_lines import parse
from refinery_sources.api.call import Call
from refinery_sources.api.credentials import headers_of, params_of
from refinery_sources.api.places import ABSENT, fields_of, kind_of, value_at
from refinery_sources.download import DAMAGED_TRIES
from refinery_sources.web import TRIES, Web, answered, bounded, contents

PAGE_BYTES = 64 << 20
"""Bytes of a page at most."""

OK, NO_CONTENT = frozenset({200, 206}), 204
REFUSED = frozenset({400, 404, 410, 416, 422})
"""Statuses by which an API says that there is no such page."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A page: its status, the value of its body, its records, its headers, and its bytes."""

    status: int
    body: Any
    records: list[Any]
    headers: Mapping[str, str]
    bytes: int

    @property
    def is_refused(self) -> bool:
        """Whether there is no such page."""
        return self.status in REFUSED


def ask(on: Web, call: Call, url: str) -> Answer:
    """Ask for a page; ContractError for one that stays damaged, SourceBusy for one that does not come."""
    busy = damaged = 0
    while True:
        try:
            return _answer(on, call, url)
        except SourceBusy:
            busy += 1
            if busy == TRIES:
                raise
        except ContractError:
            damaged += 1
            if damaged == DAMAGED_TRIES:
                raise
        on.pause(busy + damaged)


def _answer(on: Web, call: Call, url: str) -> Answer:
    auth = call.query.auth
    headers = {"Accept": "application/json", **call.query.headers, **headers_of(auth)}
    accepted = OK | {NO_CONTENT} | REFUSED
    with answered(on, url, headers=headers, secret=params_of(auth), accepted=accepted) as response:
        body = bounded(on, url, contents(response, url), PAGE_BYTES)
        if body is None:
            message = f"{url} has more than {PAGE_BYTES:,} bytes; ask for smaller pages by `size`"
            raise RecipeError(message)
        status = response.status_code
        if status in REFUSED or status == NO_CONTENT:
            return Answer(status, {}, [], response.headers, len(body))
        value = _value(body, url)
        return Answer(status, value, _records(value, call, url), response.headers, len(body))


def _value(body: bytes, url: str) -> object:
    value, error, detail, _ = parse(body.removeprefix(b"\xef\xbb\xbf"))
    if error is not None:
        message = f"{url} was answered with {len(body):,} bytes that are no JSON, or cut ({detail}); pull again later"
        raise ContractError(message)
    return value


def _records(value: object, call: Call, url: str) -> list[Any]:
    records = value_at(value, call.records)
    if not isinstance(records, list):
        what = "nothing" if records is ABSENT else kind_of(records)
        message = f"{url} has {what} at {call.records or 'its top'}, where `records` says a list is; {fields_of(value)}"
        raise ContractError(message)
    return records
