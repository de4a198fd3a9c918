"""Takes the pages of a part one after the other, each with its records and what is asked next in one transaction."""

import contextlib
import math
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError
from pipeline_tasks.profiles.record_schema import differences, merged, schema_of
from refinery_sources.api.answers import Answer, ask
from refinery_sources.api.call import Call
from refinery_sources.api.journal import GONE, KNOWN, Journal, Record, State
from refinery_sources.api.moments import order_of
from refinery_sources.api.paging import next_state
from refinery_sources.api.places import ABSENT, fields_of, kind_of, place_in, printed, value_at
from refinery_sources.api.query import NUMBERED
from refinery_sources.api.rows import has_text
from refinery_sources.download import DAMAGED_TRIES, NUMBER
from refinery_sources.source import Flow
from refinery_sources.web import Web

SHOWN = 10
"""Differences of a schema that an error names."""


class _Moved(Exception):
    """The list of records has changed under its pages, or is not known any more: the part is begun anew."""


class _Page(NamedTuple):
    """A page: its answer and records, those to store, and how many were new, came again, or came with other content."""

    answer: Answer
    records: list[Record]
    stored: list[Record]
    new: int
    repeated: int
    superseded: int


def gathered(on: Web, call: Call, journal: Journal, flow: Flow) -> State:
    """Return the state of a part of which all pages are there, after asking for those that are not.

    ContractError if pages contradict each other, or nothing proves their end; what they brought is forgotten then.
    """
    state = journal.state(call.name)
    if state is None:
        state = State(call.first)
        journal.begin(call.name, state)
    is_old = bool(state.pages)
    try:
        while state.url:
            try:
                state = _paged(on, call, journal, state, flow, is_old=is_old)
            except _Moved as error:
                if state.begun == DAMAGED_TRIES:
                    message = f"{error}; it was begun {DAMAGED_TRIES} times. Pull again when less changes there"
                    raise ContractError(message) from error
                state = State(call.first, begun=state.begun + 1)
                journal.begin(call.name, state)
            is_old = False
    except ContractError:
        journal.begin(call.name, State(call.first))
        raise
    return state


def _paged(on: Web, call: Call, journal: Journal, state: State, flow: Flow, *, is_old: bool) -> State:
    """Take one page; `is_old` if an earlier pull has taken the page before."""
    url = state.url
    if journal.was_asked(call.name, url):
        message = f"{url} is named as the next page a second time: the pages go round in a circle"
        raise ContractError(message)
    page = _new_page(on, call, journal, url, is_behind=state.behind and call.query.pages.end == "total")
    answer = page.answer
    if answer.is_refused and not state.behind:
        message = f"{url} was answered with {answer.status}"
        if is_old:
            raise _Moved(message)
        pages = counted(state.pages, "page")
        message += f", behind {pages}: this is no end that `pages` names" if state.pages else "; correct the query"
        raise ContractError(message)
    state = next_state(call, url, answer, _counted(call, url, page, state), new=page.new)
    if not state.url:
        _require_total(call, state)
    try:
        journal.commit(call.name, url, state, page.stored)
    except sqlite3.IntegrityError:
        _page(call, url, answer, journal)  # another part has brought one of the records meanwhile: this says which
        raise
    flow.on_bytes(call.name, answer.bytes)
    return state


def _new_page(on: Web, call: Call, journal: Journal, url: str, *, is_behind: bool) -> _Page:
    """Return a page; ContractError if it has nothing but what pages before it had, however often it is asked for.

    One that `is_behind` the total may have the last page again.
    """
    for attempt in range(1, DAMAGED_TRIES + 1):
        answer = ask(on, call, url)
        page = _page(call, url, answer, journal)
        if page.new or not page.records or is_behind:
            return page
        if attempt < DAMAGED_TRIES:
            on.pause(attempt)
    message = (
        f"{url} repeats what pages before it had: {counted(len(page.records), 'record')}, none of them new. Correct "
        "`pages`: either the API does not know this param, or it gives its last page for any that is not there, which "
        "takes a `total` and `end: total`"
    )
    raise ContractError(message)


def _page(call: Call, url: str, answer: Answer, journal: Journal) -> _Page:
    """Say of each record of a page whether it is new; ContractError for one that came with other content before."""
    records = [call.record(record, url) for record in answer.records]
    known = journal.known([record.id for record in records])
    stored: dict[str, Record] = {}
    new = repeated = superseded = 0
    for record in records:
        part, before = known.get(record.id, (call.name, None))
        if part != call.name:
            message = (
                f"{url} has the record {record.id[:100]!a}, and so has {part}: a record is landed once. Split by "
                "what each record has one value of"
            )
            raise ContractError(message)
        before = stored.get(record.id, before)
        if before is None:
            new += 1
            stored[record.id] = _as_known(call, record)
        elif before.digest == record.digest:
            repeated += 1
        else:
            superseded += 1
            if _is_newer(record, before, url):
                stored[record.id] = record
    return _Page(answer, records, list(stored.values()), new, repeated, superseded)


def _as_known(call: Call, record: Record) -> Record:
    """Return a record without its row if an earlier snapshot has it as it is."""
    return record._replace(kind=KNOWN, row=b"") if call.known.get(record.id) == record.digest else record


def _is_newer(record: Record, before: Record, url: str) -> bool:
    """Return whether a record is newer than the one of the same id; ContractError if nothing says which is."""
    if record.moment is None or before.moment is None or record.moment == before.moment:
        message = (
            f"{url} has the record {record.id[:100]!a} with other content than a page before, and nothing says which "
            "is newer; name by `since: {field}` when a record changed, or pull again when less changes there"
        )
        raise ContractError(message)
    return record.moment > before.moment


def _counted(call: Call, url: str, page: _Page, state: State) -> State:
    """Return the state with the counts, the schema, the total and the newest moment of a page."""
    answer = page.answer
    if call.is_data:
        _require_since(call, url, page)
        state = _with_texts(call, url, page, state)
        state = replace(state, schema=_schema(call, url, answer, state), newest=_newest(call, page, state))
    least, most = _total(call, url, answer, state)
    return replace(
        state,
        pages=state.pages + 1,
        received=state.received + len(page.records),
        records=state.records + page.new,
        repeated=state.repeated + page.repeated,
        superseded=state.superseded + page.superseded,
        masked=state.masked + sum(record.masked for record in page.records),
        empties=0 if page.records else state.empties + 1,
        least=least,
        most=most,
    )


def _with_texts(call: Call, url: str, page: _Page, state: State) -> State:
    """Count the records with and without a text; ContractError if none so far has one, as the path leads elsewhere."""
    pairs = zip(page.answer.records, page.records, strict=True)
    data = [value for value, record in pairs if record.kind != GONE]
    texts = sum(has_text(call.query, value) for value in data)
    if data and not texts and not state.texts:
        target = "html" if "html" in call.query.fields else "text"
        path = call.query.fields[target]
        message = (
            f"{url}: none of {counted(len(data), 'record')} has a {target} at {path}; in the first it is "
            f"{kind_of(value_at(data[0], path))}, and {fields_of(data[0])}. Correct `fields: {{{target}: ...}}`"
        )
        raise ContractError(message)
    return replace(state, texts=state.texts + texts, textless=state.textless + len(data) - texts)


def _require_since(call: Call, url: str, page: _Page) -> None:
    """Raise ContractError for a record that changed before what was asked for: the API does not choose by that."""
    since = call.query.since
    if since is None:
        return
    for value, record in zip(page.answer.records, page.records, strict=True):
        if record.moment is not None and record.moment < call.since:
            message = (
                f"{url} has a record whose {since.field} is {value_at(value, since.field)!a:.80}, before what "
                f"{since.param} asks for: this API does not choose by it; correct `since`, or let it `overlap`"
            )
            raise ContractError(message)


def _schema(call: Call, url: str, answer: Answer, state: State) -> Mapping[str, Any]:
    """Return the schema of all records so far; ContractError, with the difference, if it breaks the one before."""
    schema = merged(state.schema, *map(schema_of, answer.records))
    broken = differences(call.schema, schema)
    if broken:
        more = f" and {len(broken) - SHOWN:,} more" if len(broken) > SHOWN else ""
        named = "; ".join(map(printed, broken[:SHOWN]))
        message = (
            f"{url} has records of another schema than the snapshot before: {named}{more}. Look at what reads them; "
            "then raise `schema_version` in the recipe by one"
        )
        raise ContractError(message)
    return schema


def _newest(call: Call, page: _Page, state: State) -> object:
    """Return the newest value of the field by which records are asked for later, as a record has it.

    A time after the pull is none: asked since then, the API would say nothing of what changes until then.
    """
    since = call.query.since
    if since is None:
        return state.newest
    values = [state.newest, *(value_at(record, since.field) for record in page.answer.records)]
    orders = [(order, value) for value in values if (order := order_of(value)) is not None]
    late = call.until or math.inf
    past = [pair for pair in orders if pair[0] <= late or not (since.format or isinstance(pair[1], str))]
    return max(past, key=lambda pair: pair[0], default=(0.0, state.newest))[1]


# --- Totals -------------------------------------------------------------------------------------------------------


def _total(call: Call, url: str, answer: Answer, state: State) -> tuple[int, int]:
    """Return the least and the most that pages have declared; ContractError for a total that is none.

    Where pages are counted, another total means that records have moved from page to page.
    """
    if not call.query.total or not call.is_data or answer.is_refused:
        return state.least, state.most
    value = place_in(answer.body, answer.headers, call.query.total)
    if value is ABSENT and state.pages:  # some declare it on the first page alone
        return state.least, state.most
    total = int(value) if isinstance(value, str) and re.fullmatch(NUMBER, value.strip()) else value
    if isinstance(total, bool) or not isinstance(total, int) or total < 0:
        message = f"{url} has {kind_of(value)} at {call.query.total}, where `total` says a number of records is"
        raise ContractError(message)
    if state.most < 0:
        return total, total
    if total != state.most and call.query.pages.by in NUMBERED:
        message = f"{url} declares {counted(total, 'record')}, and the pages before it {state.most:,}"
        raise _Moved(message)
    return min(state.least, total), max(state.most, total)


def _require_total(call: Call, state: State) -> None:
    """Raise ContractError unless the pages have as many records as they declared, and any at all where some must be."""
    if state.most >= 0 and not state.least <= state.records <= state.most:
        declared = f"{state.least:,} to {state.most:,}" if state.least < state.most else f"{state.most:,}"
        message = (
            f"{call.first} gave {counted(state.records, 'different record')} in {counted(state.pages, 'page')} "
            f"({state.end}), and declares {declared}"
        )
        raise ContractError(message)
    if not state.records and state.most != 0 and not call.may_be_empty:
        message = f"{call.first} gave no record ({state.end}), and no snapshot before it: correct the query"
        raise ContractError(message)


# --- One thread for each part -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Locks:
    """A lock for each part of a pull: the part of what is deleted waits for the others."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    locks: dict[tuple[Path, str], threading.Lock] = field(default_factory=dict)

    def of(self, folder: Path, part: str) -> threading.Lock:
        with self.guard:
            return self.locks.setdefault((folder, part), threading.Lock())


_LOCKS = _Locks()


@contextlib.contextmanager
def alone(folder: Path, part: str) -> Iterator[None]:
    """Hold a part of the pull in a folder."""
    with _LOCKS.of(folder, part):
        yield
