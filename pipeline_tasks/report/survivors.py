"""Compares near duplicates that were removed with the documents kept in their place: what the loser had more of."""

import heapq
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute
import xxhash

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import SIMILARITY
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.superseded import superseded_by
from pipeline_tasks.run.shuffle import shards_with
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.erasures import expired
from pipeline_tasks.store.reading import read_manifest, read_shards, sampled
from pipeline_tasks.text.base.timestamps import sortable_timestamps

KINDS: Mapping[str, float] = {"length": 0.02, "whole sentences": 0.05, "date": 0.0, "score": 0.01}
"""What a pair is compared by, and how much more is more.

Length: as a share of the shorter text; below are a byline or a date. The others: as a difference, of the share of
lines that end as sentences do, of seconds, and of the column that the recipe ranks by.
"""

READ_BYTES = 256 * 1024 * 1024
"""Stored bytes of removed rows, and of kept ones, that a report reads, in whole shards."""

NAMES = ("id", "snapshot", "url", "language", "crawled_at", "text")

pc: Any = pyarrow.compute


@dataclass(frozen=True)
class Document:
    """One side of a pair: the text as near-dedup compared it. `score` is None where no stage before gave one."""

    id: str
    snapshot: str
    url: str
    language: str
    crawled_at: str
    text: str
    score: float | None = None

    @cached_property
    def measures(self) -> Mapping[str, float | None]:
        """What it has of each of `KINDS`; None where that is not known."""
        second = sortable_timestamps(pa.array([self.crawled_at or None], pa.string()))[0].as_py()
        return {
            "length": float(len(self.text)),
            "whole sentences": whole_sentences(self.text),
            "date": float(second) if second else None,
            "score": self.score,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """A removed document and the one that is kept in its place.

    `superseded` says that an earlier snapshot had kept the loser. `near` is the document that it was compared with,
    another one than the winner where the cluster is a chain; `similarity` is of that pair.
    """

    stage: str
    loser: Document
    winner: Document
    near: str
    similarity: float
    superseded: bool

    def more(self) -> dict[str, int]:
        """Return for each known one of `KINDS` whether the loser has more (1), the winner (-1) or none of them (0)."""
        found = {}
        for kind, least in KINDS.items():
            lost, kept = self.loser.measures[kind], self.winner.measures[kind]
            if lost is not None and kept is not None:
                bound = least * min(lost, kept) if kind == "length" else least
                found[kind] = (lost - kept > bound) - (kept - lost > bound)
        return found


@dataclass(frozen=True, slots=True)
class Tally:
    """Of the pairs in which one kind is known of both: in how many the loser, and the winner, has more."""

    kind: str
    compared: int
    loser: int
    winner: int


def tallies(pairs: Iterable[Pair]) -> list[Tally]:
    """Return how often each side has more, by `KINDS`; those that no pair knows are left out."""
    signs = defaultdict[str, list[int]](list)
    for pair in pairs:
        for kind, sign in pair.more().items():
            signs[kind].append(sign)
    return [Tally(kind, len(of), of.count(1), of.count(-1)) for kind in KINDS if (of := signs[kind])]


def whole_sentences(text: str) -> float | None:
    """Return the share of a text's lines that end as a sentence does; None for a text without a line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return sum(map(_ends_sentence, lines)) / len(lines) if lines else None


def _ends_sentence(line: str) -> bool:
    """Return whether the last character is a full stop or the like, closing quotes and brackets aside."""
    from pipeline_tasks.text.base.characters import TERMINAL, classes

    index, flags = classes()
    for letter in reversed(line):
        code = ord(letter)
        if letter == "\u2026" or flags[(int(index[code >> 8]) << 8) + (code & 255)] & TERMINAL:
            return True
        if unicodedata.category(letter) not in ("Pe", "Pf") and letter not in "\"'":
            return False
    return False


# --- Drawing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Loss:
    """A removal by its evidence. `shard` has the rejected row; None for a document that an earlier snapshot kept."""

    manifest: Manifest
    shard: Shard | None
    loser: tuple[str, str]
    winner: tuple[str, str]
    near: str
    similarity: float


def survivors(
    root: str, recipe: str, near: Sequence[Manifest], most: int, *, seed: int = 1, within: int = READ_BYTES
) -> list[Pair]:
    """Return at most `most` pairs of what these stages of a snapshot removed or superseded, by a hash of their ids.

    `near` are `publish.superseded.near_manifests`. Each pair is as likely as any other among the shards that `within`
    bytes hold, those of the lowest digests. A pair is left out whose texts have expired, were retracted with their
    snapshot, or are in shards beyond these bytes.
    """
    gone = expired(root)
    losses = chain.from_iterable(_losses(root, manifest, within, gone) for manifest in near)
    drawn = heapq.nsmallest(most, losses, key=lambda loss: _rank(seed, loss))
    lost = _rejected(root, [loss for loss in drawn if loss.shard])
    kept = _kept(root, recipe, drawn, within, gone)
    pairs = []
    for loss in drawn:
        stage = loss.manifest.stage
        loser = (lost if loss.shard else kept).get((stage, *loss.loser))
        winner = kept.get((stage, *loss.winner))
        if loser and winner:
            pairs.append(Pair(stage, loser, winner, loss.near, loss.similarity, superseded=loss.shard is None))
    return pairs


def _rank(seed: int, loss: _Loss) -> int:
    name = "\t".join((str(seed), loss.manifest.stage, *loss.loser, *loss.winner))
    return int(xxhash.xxh64_intdigest(name.encode()))


def _some(shards: Iterable[Shard], within: int, gone: Collection[str]) -> list[Shard]:
    """Return shards of at most so many bytes, or the first alone if that has more."""
    there = [shard for shard in shards if shard.path not in gone]
    return [*sampled(there, within)] or sorted(there, key=lambda shard: shard.digest)[:1]


def _losses(root: str, manifest: Manifest, within: int, gone: Collection[str]) -> Iterator[_Loss]:
    for shard in _some(manifest.rejects, within, gone):
        for batch in read_shards(root, [shard], ("id", "snapshot", "evidence")):
            for row in batch.to_pylist():
                proof, value = json.loads(row["evidence"]), re.search(SIMILARITY, row["evidence"])
                loser, winner = (row["id"], row["snapshot"]), (proof["winner"], proof["snapshot"])
                yield _Loss(manifest, shard, loser, winner, proof["near"], float(value["value"]) if value else 0.0)
    history = {name: (*_some(shards, within, gone),) for name, shards in manifest.history.items()}
    for batch in superseded_by(root, [replace(manifest, history=history)]):
        for row in batch.to_pylist():
            loser, winner = (row["id"], row["snapshot"]), (row["winner"], row["winner_snapshot"])
            yield _Loss(manifest, None, loser, winner, row["near"], row["similarity"])


# --- Texts ------------------------------------------------------------------------------------------------------------

_Place = tuple[str, str, str]
"""Stage, id and snapshot of a document."""


def _rejected(root: str, losses: Iterable[_Loss]) -> dict[_Place, Document]:
    wanted = defaultdict[Shard, list[_Loss]](list)
    for loss in losses:
        if loss.shard:
            wanted[loss.shard].append(loss)
    return {
        (of[0].manifest.stage, document.id, document.snapshot): document
        for shard, of in wanted.items()
        for document in _documents(root, of[0].manifest, shard, [loss.loser for loss in of])
    }


def _kept(
    root: str, recipe: str, losses: Sequence[_Loss], within: int, gone: Collection[str]
) -> dict[_Place, Document]:
    """Return the winners, and the losers that an earlier snapshot had kept, as their own snapshots kept them."""
    wanted = defaultdict[tuple[str, str], set[str]](set)
    for loss in losses:
        for id_, snapshot in (loss.winner, *([] if loss.shard else [loss.loser])):
            wanted[loss.manifest.stage, snapshot].add(id_)
    own = {(loss.manifest.stage, loss.loser[1]): loss.manifest for loss in losses if loss.shard}
    own |= {(loss.manifest.stage, loss.winner[1]): loss.manifest for loss in losses if not loss.shard}
    earlier = {version.snapshot: version.manifests for version in version_log.latest_by_snapshot(root, recipe)}
    places: dict[Shard, tuple[Manifest, list[tuple[str, str]]]] = {}
    for (stage, snapshot), ids in sorted(wanted.items()):
        referred = earlier.get(snapshot, {}).get(stage)
        manifest = own.get((stage, snapshot)) or (read_manifest(root, referred) if referred else None)
        if manifest is not None:
            places |= {shard: (manifest, [(id_, snapshot) for id_ in ids]) for shard in shards_with(manifest, ids)}
    return {
        (places[shard][0].stage, document.id, document.snapshot): document
        for shard in _some(places, within, gone)
        for document in _documents(root, places[shard][0], shard, places[shard][1])
    }


def _documents(root: str, manifest: Manifest, shard: Shard, wanted: Iterable[tuple[str, str]]) -> Iterator[Document]:
    score = str(manifest.params.get("quality", ""))
    places, ids = {*wanted}, pa.array(sorted({id_ for id_, _ in wanted}), pa.string())
    for batch in read_shards(root, [shard], (*NAMES, score)):
        for row in batch.filter(pc.is_in(batch.column("id"), value_set=ids)).to_pylist():
            if (row["id"], row["snapshot"]) in places:
                id_, snapshot, url, language, crawled_at, text = (str(row.get(name) or "") for name in NAMES)
                yield Document(id_, snapshot, url, language, crawled_at, text, row.get(score))
