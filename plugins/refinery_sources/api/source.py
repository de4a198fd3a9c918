"""An API as a source: a part for each split of the query, written in the order of ids when all pages are there."""

import gzip
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial as bound
from pathlib import Path
from typing import IO, Any, cast

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.profiles.record_schema import added, merged
from pipeline_tasks.store.local_store import flush, os_errors
from refinery_sources.api.call import Call
from refinery_sources.api.credentials import headers_of, params_of
from refinery_sources.api.gather import alone, gathered
from refinery_sources.api.journal import DATA, GONE, KNOWN, Journal, Record, State, journal_in
from refinery_sources.api.moments import bound_of, order_of, sent
from refinery_sources.api.query import Query, Split, text_of, url_with
from refinery_sources.api.rows import data_record, digest_of, gone_row, identifier_of
from refinery_sources.budget import Stopped
from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.web import Web

ALL, DELETED = "records.jsonl.gz", "_deleted.jsonl"
"""The part of a query that is not split, and that of what the API has deleted: a line `{"id"}` of each record."""

MOMENT = "%Y%m%dT%H%M%SZ"

MOST_AT_BORDER = 10_000
"""Records from the newest moment on that a later pull knows again; more of them it lands again."""

_LEVEL = 6
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Api(Query):
    """A query of an API; resolved, it has its moment, and what earlier snapshots say of each part.

    `refusals` are those of parts since it was resolved: what is deleted does not follow from them.
    """

    recipe: str = field(default="", init=False)
    moment: str = field(default="", init=False)
    after: Mapping[str, Any] = field(default_factory=dict, init=False)
    before: Mapping[str, Any] = field(default_factory=dict, init=False)
    schema_before: Mapping[str, Any] = field(default_factory=dict, init=False)
    refusals: dict[str, ContractError] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def snapshot(self) -> str:
        return f"{self.recipe or 'api'}-{self.moment}"

    @property
    def cursor(self) -> str:
        return self.moment

    @property
    def terms(self) -> Terms:
        text = self.terms_text or f"Data of {self.url}, under the terms of who offers it; its recipe names none."
        return Terms(self.terms_url or self.url, text)

    @property
    def typical_bytes(self) -> int:
        return 10_000_000

    def query(self) -> Mapping[str, Any]:
        return {**self.written(), **({"moment": self.moment, "after": self.after} if self.moment else {})}

    def resolved(self, occasion: Occasion) -> "Api":
        """Return the query as it is asked now, or as an unfinished pull of it asks.

        RecipeError for a secret that is not there, or a clock that is behind the snapshot before.
        """
        headers_of(self.auth), params_of(self.auth)
        begun = occasion.unfinished
        is_same = {name: begun[name] for name in begun if name not in ("moment", "after")} == self.written()
        moment = str(begun["moment"]) if is_same else occasion.moment.strftime(MOMENT)
        last = str(occasion.before.get("query", {}).get("moment", ""))
        if last >= moment:
            message = (
                f"the clock says {moment}, and {occasion.name} has landed at {last}; set the clock, and pull again"
            )
            raise RecipeError(message)
        facts = _facts_before(occasion.before)
        after = {name: value for name in self._names() if (value := self._after(facts.get(name, {}))) is not None}
        known = [each for each in facts.values() if each.get("schema_version", 1) == self.schema_version]
        schema = merged(*(each.get("schema", {}) for each in known))
        return _resolved(self, recipe=occasion.name, moment=moment, after=after, before=facts, schema_before=schema)

    def parts(self, _web: Web) -> Sequence[Part]:
        self.refusals.clear()
        return [Part(call.name, _shown(call.first)) for call in self._calls()] + (
            [Part(DELETED, _shown(self._deletions().first if self.deleted.url else self.url))] if self.deleted else []
        )

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        with os_errors(str(partial)), journal_in(partial.parent) as journal:
            if part.name == DELETED:
                return self._receive_deleted(web, journal, partial, flow)
            call = self._call(part.name)
            state = self._gathered(web, call, journal, partial, flow)
            size, digest, rows = write_rows(partial, journal.rows((call.name,), DATA), is_packed=True)
            return Received(size, digest, rows=rows, facts=self._facts(call, journal, state))

    # --- What is asked --------------------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return [_part_name(self.split, row) for row in self.split.rows] if self.split else [ALL]

    def _calls(self) -> list[Call]:
        """Return the calls of the parts of data."""
        return [self._call(name) for name in self._names()]

    def _call(self, name: str) -> Call:
        return Call(
            name=name,
            query=self,
            url=self.url,
            params={**self.params, **self._split_of(name), **self._since(name)},
            records=self.records,
            record=bound(data_record, self),
            since=self._bound(name),
            until=datetime.strptime(self.moment, MOMENT).replace(tzinfo=UTC).timestamp() if self.moment else None,
            known=self.before.get(name, {}).get("border", {}),
            schema=self.schema_before,
            may_be_empty=bool(self.split or name in self.after),
        )

    def _split_of(self, name: str) -> dict[str, Any]:
        """Return the params that are a part's own."""
        if self.split is None:
            return {}
        row = next(row for row in self.split.rows if _part_name(self.split, row) == name)
        return dict(zip(self.split.params, row, strict=True))

    def _deletions(self) -> Call:
        """Return the call of what is deleted, where it has a URL of its own: since the part that is asked for most."""
        deleted = cast("Any", self.deleted)
        is_since = self.since is not None and all(name in self.after for name in self._names())
        earliest = min(self._names(), key=self._bound) if is_since else ""
        params = {**self.params, **self._since(earliest)}
        return Call(DELETED, self, deleted.url, params, deleted.records, self._gone, is_data=False)

    def _bound(self, name: str) -> float:
        """Return the place in time since which a part is asked for, one before all others where it says none."""
        bound_there = bound_of(self.since, self.after[name]) if self.since and name in self.after else None
        return -math.inf if bound_there is None else bound_there

    def _gone(self, record: object, where: str) -> Record:
        identifier = identifier_of(record, cast("Any", self.deleted).id, where)
        return Record(f"{DELETED}:{identifier}", GONE, digest_of(identifier), None, gone_row(identifier))

    def _since(self, name: str) -> dict[str, Any]:
        return {self.since.param: self.after[name]} if self.since and name in self.after else {}

    def _after(self, facts: Mapping[str, Any]) -> str | float | None:
        """Return what a part is asked since, None for all."""
        if self.since is None:
            return None
        newest = facts.get("newest")
        return (self.since.first if self.since.first != "" else None) if newest is None else sent(self.since, newest)

    # --- What is received -----------------------------------------------------------------------------------------

    def _receive_deleted(self, web: Web, journal: Journal, partial: Path, flow: Flow) -> Received:
        """Write the ids of what is deleted, when the pages that say so are there."""
        calls = [self._deletions()] if cast("Any", self.deleted).url else self._calls()
        for call in calls:
            self._gathered(web, call, journal, partial, flow)
        rows = journal.rows([call.name for call in calls], GONE)
        size, digest, count = write_rows(partial, rows, is_packed=False)
        return Received(size, digest, rows=count)

    def _gathered(self, web: Web, call: Call, journal: Journal, partial: Path, flow: Flow) -> State:
        """Take all pages of a part, whichever thread needs them first; Stopped if another has found them refused."""
        with alone(partial.parent, call.name):
            if call.name in self.refusals:
                raise Stopped
            try:
                return gathered(web, call, journal, flow)
            except ContractError as error:
                self.refusals[call.name] = error
                raise

    def _facts(self, call: Call, journal: Journal, state: State) -> dict[str, Any]:
        """Return what is proven of a part, and what the next pull needs to know of it."""
        before = self.before.get(call.name, {})
        schema = merged(call.schema, state.schema)
        facts = {
            "pages": state.pages,
            "records": state.records,
            "repeated": state.repeated,
            "superseded": state.superseded,
            "unchanged": journal.count(call.name, KNOWN),
            "deleted": journal.count(call.name, GONE),
            "without_text": state.textless,
            "begun": state.begun,
            "end": state.end,
            "total": [state.least, state.most] if state.most >= 0 else None,
            "split": self._split_of(call.name) or None,
            "schema": schema,
            "schema_version": self.schema_version,
            "added": added(call.schema, schema) if call.schema else [],
        }
        facts |= {"masked": state.masked} if state.masked else {}
        return {**facts, **(self._border(call, journal, state, before) if self.since else {})}

    def _border(self, call: Call, journal: Journal, state: State, before: Mapping[str, Any]) -> dict[str, Any]:
        """Return the newest value that has come, and which records a later pull sees again."""
        since = cast("Any", self.since)
        newest, order = state.newest, order_of(state.newest)
        earlier = order_of(before.get("newest"))
        if order is None or (earlier is not None and earlier > order):
            return {"newest": before.get("newest"), "border": before.get("border", {})}
        least = bound_of(since, sent(since, newest))
        border = journal.border(call.name, order if least is None else min(least, order), MOST_AT_BORDER)
        return {"newest": newest, "border": border}


def _resolved(query: Api, **known: object) -> Api:
    """Return a query with what it is resolved by: a recipe cannot write these fields."""
    resolved = type(query)(**{name: getattr(query, name) for name in Query.__dataclass_fields__})
    for name, value in known.items():
        object.__setattr__(resolved, name, value)
    return resolved


def _facts_before(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of each part of data of the snapshot before."""
    return {name: facts for name, facts in before.get("facts", {}).items() if name != DELETED}


def _part_name(split: Split, row: Sequence[Any]) -> str:
    """Return the name of the part of some values: it follows from them alone."""
    words = "-".join(_NO_WORD.sub("-", text_of(value)).strip("-") for value in row)[:60] or "part"
    pairs = url_with("", dict(zip(split.params, row, strict=True)))
    return f"{words}-{hashlib.sha256(pairs.encode()).hexdigest()[:8]}.jsonl.gz"


def _shown(url: str) -> str:
    """Return a URL as the address of a part: it is not asked without what says who asks."""
    return url.partition("://")[2]


def write_rows(path: Path, rows: Iterable[bytes], *, is_packed: bool) -> tuple[int, str, int]:
    """Write rows, flushed; return bytes, SHA-256 and rows. Equal rows are equal bytes."""
    count = 0
    with path.open("wb") as stream:
        file: IO[bytes] = cast("IO[bytes]", gzip.GzipFile("", "wb", _LEVEL, stream, mtime=0)) if is_packed else stream
        for row in rows:
            file.write(row)
            count += 1
        if is_packed:
            file.close()
        flush(stream)
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return path.stat().st_size, digest, count


SOURCE = Api
