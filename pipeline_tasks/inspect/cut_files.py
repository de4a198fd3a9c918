"""Finds the files of a snapshot that were cut: by the crawler, which says so, or as their reader finds no end."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.cards import known_card
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.stage import Shards
from pipeline_tasks.store.reading import read_shards

KEPT = "kept"

TRUNCATED, METADATA = "truncated", "metadata"
"""The column of documents, and that of records, whose JSON has the header field, that say so."""

_HEADER = "warc-truncated"
_TAKEN_DOWN = ":taken_down"
_SHOWN = ("url", "length", "type", "file", "offset", "reason")


class CutFile(NamedTuple):
    """A file that was cut: the bytes of its record as it landed, why, its type, and what became of it there.

    `why` is the word of the header `WARC-Truncated`, `unspecified` where its reader finds no end. `became` is `kept`
    by the stage that reads files, or the reason for which it, or a stage before it, rejected it.
    """

    url: str
    bytes: int
    why: str
    type: str | None
    became: str
    file: str
    offset: int


def cut_files(root: str, version: Version) -> list[CutFile]:
    """Return the files of a version that were cut, one for each address, by address; none that was taken down.

    Records that brought no new page are left out: the page of an earlier snapshot is theirs.
    """
    found: dict[str, CutFile] = {}
    for manifest in ordered_manifests(root, version).values():
        names = {name for name, _ in manifest.schema}
        is_reader = TRUNCATED in names
        if is_reader or METADATA in names:
            for cut in _cut_in(root, manifest, TRUNCATED if is_reader else METADATA):
                found.setdefault(cut.url, cut)
        if is_reader:  # stages behind it have the same rows, and its column
            break
    return [found[url] for url in sorted(found)]


def _cut_in(root: str, manifest: Manifest, column: str) -> Iterator[CutFile]:
    """Yield the files that rows of a stage say are cut: rejected ones and, if it reads files, kept ones."""
    parts: tuple[Shards, ...] = (manifest.rejects, manifest.quarantine)
    parts += (manifest.shards,) if column == TRUNCATED else ()
    card = known_card(manifest.stage)
    no_page = card.no_page if card else ()
    for shards in parts:
        for batch in read_shards(root, shards, (*_SHOWN, column)):
            yield from _rows(batch, column, frozenset(no_page))


def _rows(batch: pa.RecordBatch, column: str, no_page: frozenset[str]) -> Iterator[CutFile]:
    if column not in batch.schema.names:  # rows that were quarantined with their partition
        return
    cut = batch[column]
    is_cut = pc.is_valid(cut) if column == TRUNCATED else pc.match_substring(cut, f'"{_HEADER}"')
    for row in batch.filter(pc.fill_null(pc.and_(is_cut, pc.is_valid(batch["url"])), fill_value=False)).to_pylist():
        reason = row.get("reason") or KEPT
        if reason not in no_page and not reason.endswith(_TAKEN_DOWN):
            why = row[column] if column == TRUNCATED else _word(row[column])
            place = row["file"], row["offset"]
            yield CutFile(row["url"], row["length"] or 0, why, row.get("type"), reason, *place)


def _word(metadata: str) -> str:
    facts: dict[str, Any] = json.loads(metadata)
    return str(facts.get(_HEADER)).strip().lower()[:40]
