"""Says what became of records: which document is in the place of a copy, and what is taken down or used."""

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.inspect.document import KEPT
from pipeline_tasks.inspect.document.duplicates import compares_documents
from pipeline_tasks.inspect.search.find import reach_of, uses
from pipeline_tasks.inspect.why.records import RETRACTED, Reading, Record, Snapshot, records_of
from pipeline_tasks.inspect.why.sought import Sought
from pipeline_tasks.profiles.removals import WINNER
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.superseded import read_replaced, read_superseded
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.schema import PARENT
from pipeline_tasks.store.erasures import completed
from pipeline_tasks.store.taken_down import takedowns
from pipeline_tasks.store.taken_down import taken_down as taken_down_now
from pipeline_tasks.text.urls.takedown import DOC, URL, TakenDown, evidence, of_entries

pc: Any = pyarrow.compute

IN, TRIAL, GONE = "in the dataset", "in a trial", "no longer in it"
"""How a record stands; `GONE` is told instead of a reason that is not shown to who asks."""

SUPERSEDED, TAKEN_DOWN, ERASED = "superseded", "taken down", "erased"

WINNERS = 10
"""Documents in the place of copies that are looked up."""

NEAREST = 5
"""Addresses of a host that are shown."""

COMPARED = 2000
"""Addresses of a host that are compared with the one that is sought."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A document that gave way to another: it is a copy of it, or superseded or outdated by one of a later snapshot.

    `where` says where the other one is, as far as it was found.
    """

    recipe: str
    snapshot: str
    id: str
    became: str
    by: str
    by_snapshot: str
    by_url: str = ""
    where: str = ""


def replaced(root: str, found: Sequence[Record]) -> list[Replaced]:
    """Return what gave way to other documents."""
    return [*_copies(found), *_later(root, found)]


def looked_up(root: str, known: Sequence[Replaced], every: Sequence[Snapshot], reading: Reading) -> list[Replaced]:
    """Return it with where the other documents are: the first of them are looked up."""
    return [_found(root, each, every, reading) if at < WINNERS else each for at, each in enumerate(known)]


def _copies(found: Iterable[Record]) -> Iterator[Replaced]:
    """Yield the copies among records, by their evidence."""
    for record in found:
        match = re.search(WINNER, record.evidence) if compares_documents(record.stage) else None
        if match or (record.reason and record.evidence and compares_documents(record.stage)):
            proof = json.loads(record.evidence)
            winner = proof.get("winner", proof)
            of = winner if isinstance(winner, dict) else proof
            by = match["id"] if match else record.id
            snapshot, url = str(of.get("snapshot") or record.of.name), str(of.get("url") or "")
            yield Replaced(record.of.recipe, record.of.name, record.id, f"copy ({record.reason})", by, snapshot, url)


def _later(root: str, found: Iterable[Record]) -> Iterator[Replaced]:
    """Yield the documents among kept records that later snapshots superseded, or whose address has a newer one."""
    kept = sorted((record for record in found if record.is_published), key=lambda record: record.of.recipe)
    for recipe, records in groupby(kept, key=lambda record: record.of.recipe):
        own = {(id_, record.of.name) for record in records for id_ in record.ids}
        ids = pa.array(sorted({id_ for id_, _ in own}), pa.string())
        for batch in read_superseded(root, recipe):
            for row in batch.filter(pc.is_in(batch["id"], value_set=ids)).to_pylist():
                if (row["id"], row["snapshot"]) in own:
                    by, by_snapshot = row["winner"], row["winner_snapshot"]
                    yield Replaced(recipe, row["snapshot"], row["id"], SUPERSEDED, by, by_snapshot)
        first = min(snapshot for _, snapshot in own)
        for version in version_log.latest_by_snapshot(root, recipe):
            for batch in read_replaced(root, version) if version.snapshot > first else ():
                for row in batch.filter(pc.is_in(batch["id"], value_set=ids)).to_pylist():
                    if (row["id"], row["snapshot"]) in own:
                        yield Replaced(recipe, row["snapshot"], row["id"], "outdated", row["by_id"], row["by_snapshot"])


def _found(root: str, each: Replaced, every: Sequence[Snapshot], reading: Reading) -> Replaced:
    """Return it with where the other document is: in its snapshot alone."""
    of = [one for one in every if (one.recipe, one.name) == (each.recipe, each.by_snapshot)]
    known = list(records_of(root, of, Sought("document", each.by), reading))
    named = [record for record in known if each.by_url in ("", record.url)]
    for record in [*(one for one in known if one.outcome == KEPT), *named]:
        where = f"{record.outcome} by {record.stage}{f': {record.reason}' if record.reason else ''}"
        return replace(each, by_url=record.url, where=where)
    return each


@dataclass(frozen=True, slots=True)
class Taken:
    """A takedown that holds of what is sought, or of records of it: of those at the places `holds` among all.

    `of` is what it names: a document, a URL or a site.
    """

    number: int
    at: str
    of: Mapping[str, object]
    state: str
    reason: str
    holds: frozenset[int]

    @property
    def facts(self) -> dict[str, object]:
        """It as JSON has it."""
        own = {name: getattr(self, name) for name in ("at", "of", "state", "reason")}
        return {"takedown": self.number, **own}


def taken_down(root: str, wanted: Sought, found: Sequence[Record]) -> list[Taken]:
    """Return the takedowns that hold of what is sought, or of a record of it."""
    listed = taken_down_now(root)
    if not listed.counts:
        return []
    proofs: dict[int, dict[str, Any]] = {}
    holds: dict[int, set[int]] = {}
    for place, proof in _proofs(listed, wanted, found):
        named = json.loads(proof)
        number = int(named.pop("takedown"))
        proofs[number] = named
        holds.setdefault(number, set()).update(() if place is None else (place,))
    erased, by_number = completed(root), {each.number: each for each in takedowns(root)}
    return [
        Taken(
            number,
            by_number[number].at,
            proofs[number],
            ERASED if number <= erased else TAKEN_DOWN,
            by_number[number].reason,
            frozenset(holds[number]),
        )
        for number in sorted(proofs)
    ]


def _proofs(listed: TakenDown, wanted: Sought, found: Sequence[Record]) -> Iterator[tuple[int | None, str]]:
    """Yield the evidence of takedowns with the place of the record that it is of, None for what is sought itself."""
    asked = {kind: [value for each, value in wanted.entries if each == kind] for kind in (URL, DOC)}
    urls, ids = [*asked[URL], *(record.url for record in found)], [*asked[DOC], *(record.id for record in found)]
    parents = [*([""] * len(asked[DOC])), *(record.parent for record in found)]
    by_url, by_id = pa.record_batch({"url": urls}), pa.record_batch({"id": ids, PARENT: parents})
    proofs = ((URL, evidence(listed, by_url)), (DOC, evidence(listed, by_id)))
    for kind, column in proofs:
        for at, proof in enumerate(column.to_pylist(), -len(asked[kind])):
            if proof:
                yield (None if at < 0 else at), proof


def standings(found: Sequence[Record], gave_way: Sequence[Replaced], taken: Sequence[Taken]) -> list[str]:
    """Return of each record how it stands: `IN` the dataset, in a `TRIAL`, or why it is in none."""
    gone = {(each.recipe, each.snapshot, each.id) for each in gave_way if each.became == SUPERSEDED}
    states = {place: each.state for each in sorted(taken, key=_is_erased) for place in each.holds}
    return [_standing(record, states.get(place, ""), gone) for place, record in enumerate(found)]


def _is_erased(taken: Taken) -> bool:
    return taken.state == ERASED


def _standing(record: Record, taken: str, gone: Container[tuple[str, str, str]]) -> str:
    if record.outcome != KEPT:
        return record.outcome
    if not record.is_published:
        return RETRACTED if record.of.state == RETRACTED else "not published"
    if taken:
        return taken
    if any((record.of.recipe, record.of.name, id_) in gone for id_ in record.ids):
        return SUPERSEDED
    return TRIAL if is_trial(record.of.recipe) else IN


def used(root: str, wanted: Sought, found: Sequence[Record], reading: Reading) -> list[dict[str, object]]:
    """Return the newest versions of training datasets that have what is sought, with the tokens of each document."""
    named = [*wanted.entries, *((DOC, record.id) for record in found if record.id)]
    versions = version_log.built_versions(root)
    if not named or not versions:
        return []
    left = max(reading.most - reading.bytes, 1) if reading.most else 1 << 62
    reach = reach_of(root, versions, 0, left)
    reading.bytes += reach.read
    reading.unread += reach.total - reach.end
    by = attrgetter("recipe", "version", "id", "url", "snapshot")
    places = sorted(uses(root, versions, of_entries(list(dict.fromkeys(named))), reach), key=by)
    return [
        {**dict(zip(("recipe", "version", "id", "url", "snapshot"), key, strict=True)), **_sums(list(own))}
        for key, own in groupby(places, key=by)
    ]


def _sums(places: Sequence[Any]) -> dict[str, object]:
    return {"places": len(places), "tokens": sum(place.length for place in places)}


def nearest(wanted: Sought, hosted: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the addresses of the host that are most like the one that is sought, with what became of their records."""
    urls = sorted(filter(None, hosted))[:COMPARED]
    likeness = {url: SequenceMatcher(None, wanted.value.partition("://")[2], url.partition("://")[2]) for url in urls}
    best = sorted(urls, key=lambda url: -likeness[url].ratio())[:NEAREST]
    return [{"url": url, "became": hosted[url]} for url in best]
