"""Names what is erased: the records of documents that are taken down, in whatever table they occur."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.schema import KNOWN_BY, PARENT
from pipeline_tasks.store.shards.names import (
    CONTENT,
    PLACE,
    SEPARATOR,
    asked_names,
    content_names,
    learned_names,
    record_names,
)
from pipeline_tasks.text.base.key_filter import Hashes
from pipeline_tasks.text.urls.takedown import TakenDown, address_of, evidence
from pipeline_tasks.upkeep.rewriting.rows import ADDRESS

pc: Any = pyarrow.compute

IDENTITY = (*KNOWN_BY, *PLACE, "payload_digest")
"""Columns by which rows are known to be of a document."""


@dataclass(slots=True)
class Documents:
    """What is taken down, and the records that are known to be of it: as they are found, in any order.

    A row is known by its address or id. It is also known by its record together with its id, if another table had more:
    `scrub_pii` rewrites addresses. Where it has no id yet, it is known by its record with its address, or by its
    address with the digest of what was there. A generated document has the place and the address of its parent, which
    may stay: it is known by nothing but its ids.
    `records` and `ids` have what their rows have as address when they are erased, null for none: not more than the log
    of takedowns says. `others` are the ids of records that are not taken down: the same text is at another address.
    `urls` are the addresses that rows still have. `generated` are the ids of those that a model wrote. `names` are
    those by which tables are asked for rows of them.
    """

    taken: TakenDown
    records: dict[str, str | None] = field(default_factory=dict)
    ids: dict[str, str | None] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    urls: set[str] = field(default_factory=set)
    generated: set[str] = field(default_factory=set)
    names: Hashes = field(init=False)

    def __post_init__(self) -> None:
        self.names = asked_names(self.taken)

    def learn(self, batch: pa.RecordBatch) -> pa.Array:
        """Add the records of rows that are taken down; return which rows these are."""
        named = proofs(self.taken, batch)
        is_named = pc.is_valid(named)
        own, addresses = batch.filter(is_named), [address_of(proof) for proof in named.drop_null().to_pylist()]
        is_source = pc.is_null(_own(own, PARENT))
        of_pages = (pc.if_else(is_source, names, None) for names in (record_names(own, "url"), content_names(own)))
        records = (record_names(own, "id"), *of_pages)
        for column, known in (*((column, self.records) for column in records), (_ids(own), self.ids)):
            for key, address in zip(column.to_pylist(), addresses, strict=True):
                if key is not None:
                    known.setdefault(key, address)
        if "url" in own.schema.names:
            pairs = zip(pc.if_else(is_source, own["url"], None).to_pylist(), addresses, strict=True)
            self.urls.update(url for url, address in pairs if url and url != address)
        self.generated.update(_ids(own.filter(pc.invert(is_source))).to_pylist())
        if own.num_rows:
            self.names = np.union1d(self.names, learned_names(own))
        return is_named

    def learn_others(self, batch: pa.RecordBatch) -> None:
        """Note the ids, among those that are known, of records that are not taken down: the text is elsewhere, too."""
        same = batch.filter(pc.is_in(_ids(batch), value_set=_keys(self.ids)))
        if same.num_rows and _names_records(batch):
            self.others.update(_ids(same).filter(pc.is_null(self.matched(same))).to_pylist())

    def matched(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for each row what its address is when it is erased, in a struct; null for rows that are not erased.

        Rows that name no record are those of a text: of one that no other record has.
        """
        found: list[dict[str, str | None] | None] = [None] * batch.num_rows
        if not _names_records(batch):
            alone = {id_: address for id_, address in self.ids.items() if id_ not in self.others}
            _note(found, _ids(batch), alone)
        if "id" in batch.schema.names:
            _note(found, record_names(batch, "id"), self.records)
        else:
            _note(found, content_names(batch), self.records)
            _note(found, record_names(batch, "url"), self.records)
        named = proofs(self.taken, batch)
        for at in np.flatnonzero(pc.is_valid(named).to_numpy(zero_copy_only=False)).tolist():
            found[at] = {"url": address_of(named[at].as_py())}
        return pa.array(found, ADDRESS)

    def places(self) -> list[dict[str, str]]:
        """Return the landed records of the documents: where they are outside the root."""
        named = (key.split(SEPARATOR) for key in self.records if not key.startswith(CONTENT[1]))
        places = {tuple(names[1:4]) for names in named if names[-1] not in self.generated}
        return [dict(zip(PLACE, place, strict=False)) for place in sorted(places)]


def proofs(taken: TakenDown, batch: pa.RecordBatch) -> pa.Array:
    """Return the entry of the list by which each row is taken down, as JSON, null for none."""
    found = evidence(taken, batch)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _note(found: list[dict[str, str | None] | None], keys: pa.Array, addresses: Mapping[str, str | None]) -> None:
    """Note the address of each row whose key has one."""
    if addresses:
        known = pc.is_in(keys, value_set=_keys(addresses), skip_nulls=True)
        for at in np.flatnonzero(known.to_numpy(zero_copy_only=False)).tolist():
            found[at] = {"url": addresses[keys[at].as_py()]}


def _names_records(batch: pa.RecordBatch) -> bool:
    """Return whether rows say which record they are of, and not the text alone."""
    return "url" in batch.schema.names or set(PLACE) <= set(batch.schema.names)


def _keys(known: Mapping[str, object]) -> pa.Array:
    return pa.array(list(known), pa.string())


def _ids(batch: pa.RecordBatch) -> pa.Array:
    return _own(batch, "id")


def _own(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column of texts, null where rows have none."""
    names = batch.schema.names
    return batch.column(name).cast(pa.string()) if name in names else pa.nulls(batch.num_rows, pa.string())
