"""Draws documents of a version that a person reads to judge its recipe: some were kept, some were rejected."""

import hashlib
import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipeline_tasks.cards import known_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.document.text_edits import scrubbed
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.erasures import expired
from pipeline_tasks.store.reading import read_manifest, read_shards

PLACE = ("id", "file", "offset")
DRAWN_BY = (*PLACE, "chars", "language", "reason")
COLUMNS = (*PLACE, "url", "title", "language", "text", "reason", "evidence")


@dataclass(frozen=True, slots=True)
class Choice:
    """How many documents are drawn, by which seed, and whether only those of some reasons or languages are."""

    kept: int = 30
    rejected: int = 30
    seed: int = 1
    reasons: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where a drawn document is: in which shard, of which `stage` that rejected it ("" if it was kept)."""

    stage: str
    shard: Shard
    id: str
    file: str
    offset: int

    @property
    def place(self) -> tuple[str, str, int]:
        """What tells it from all others of its version."""
        return self.id, self.file, self.offset


@dataclass(frozen=True, slots=True)
class Sampled:
    """A document to read, as its version keeps it, or as it was when `stage` rejected it for `reason`.

    Both are empty for one that was kept. `text` is without the personal data that `scrub_pii` replaces.
    """

    id: str
    file: str
    offset: int
    url: str = ""
    title: str = ""
    language: str = ""
    text: str = ""
    stage: str = ""
    reason: str = ""
    evidence: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether the version has it."""
        return not self.reason


def sample(root: str, version: Version, choice: Choice) -> list[Sampled]:
    """Return the documents that a seed draws, kept and rejected ones mixed; the same for the same version and seed.

    Every document is as likely as any other. Reads places, reasons and languages of all documents, and the texts of the
    shards that have a drawn one. RecipeError for a training dataset, and for a reason that rejected nothing.
    """
    return read_drawn(root, version, draw(root, version, choice))


def draw(root: str, version: Version, choice: Choice) -> list[Drawn]:
    """Return the places of the documents of `sample`, in their order."""
    manifests = _judges(root, version)
    _require_known(choice.reasons, manifests)
    kept = read_manifest(root, version.refined)
    drawn = [] if choice.reasons else _drawn(root, [("", kept.shards)], choice, choice.kept)
    rejects = [(stage, _with_texts(root, of.rejects)) for stage, of in manifests.items()]
    drawn += _drawn(root, rejects, choice, choice.rejected)
    return sorted(drawn, key=lambda each: _rank(choice.seed + 1, *each.place))


def _with_texts(root: str, rejects: Iterable[Shard]) -> list[Shard]:
    """Return shards of rejected rows but those that had texts of their own and have expired."""
    gone = expired(root)
    return [shard for shard in rejects if shard.below or shard.path not in gone]


def rows_drawn_from(root: str, version: Version) -> int:
    """Return how many rows `draw` looks at."""
    rejects = [shard for manifest in _judges(root, version).values() for shard in manifest.rejects]
    return sum(shard.rows for shard in (*read_manifest(root, version.refined).shards, *rejects))


def read_drawn(root: str, version: Version, drawn: Iterable[Drawn]) -> list[Sampled]:
    """Return drawn documents with their texts, in the order given; reads the shards that have one."""
    wanted: dict[Shard, dict[tuple[Any, ...], int]] = {}
    for at, each in enumerate(drawn):
        wanted.setdefault(each.shard, {})[each.place] = at
    stages = {each.shard: each.stage for each in drawn}
    found = {
        places[document.id, document.file, document.offset]: document
        for shard, places in wanted.items()
        for document in _documents(root, stages[shard], shard, places)
    }
    return _without_personal_data(root, version, [found[at] for at in sorted(found)])


def reasons_of_judges(root: str, version: Version) -> dict[str, int]:
    """Return how many documents were rejected for each reason that is read of, in the order of the stages."""
    return {why: rows for manifest in _judges(root, version).values() for why, rows in manifest.rejected.items()}


def _judges(root: str, version: Version) -> dict[str, Manifest]:
    """Return the manifests of the stages that reject a document for what it is, in order.

    A duplicate may be a good text, so reading it says nothing.
    """
    if COMPOSE in version.manifests:
        message = f"{version.recipe} is a training dataset; read the recipes that its documents are from"
        raise RecipeError(message)
    cards = {stage: known_card(stage) for stage in stages_of(root, version)}
    judges = [stage for stage, card in cards.items() if card is not None and card.removes == "unfit"]
    return {stage: read_manifest(root, version.manifests[stage]) for stage in judges}


def _require_known(reasons: Iterable[str], manifests: Mapping[str, Manifest]) -> None:
    known = {why for manifest in manifests.values() for why in manifest.rejected}
    if unknown := sorted(set(reasons) - known):
        message = f"nothing was rejected for {', '.join(unknown)}; the reasons are {', '.join(sorted(known)) or 'none'}"
        raise RecipeError(message)


def _drawn(root: str, parts: Iterable[tuple[str, Iterable[Shard]]], choice: Choice, count: int) -> list[Drawn]:
    """Return the documents of lowest rank."""
    return heapq.nsmallest(count, _places(root, parts, choice), key=lambda each: _rank(choice.seed, *each.place))


def _places(root: str, parts: Iterable[tuple[str, Iterable[Shard]]], choice: Choice) -> Iterator[Drawn]:
    for stage, shards in parts:
        for shard in shards:
            for batch in read_shards(root, [shard], DRAWN_BY):
                for row in batch.to_pylist():
                    if row["chars"] and _is_chosen(row, choice):
                        yield Drawn(stage, shard, *(row[name] for name in PLACE))


def _is_chosen(row: Mapping[str, Any], choice: Choice) -> bool:
    is_language = not choice.languages or row.get("language") in choice.languages
    return is_language and (not choice.reasons or row.get("reason") in choice.reasons)


def _rank(seed: int, *place: object) -> bytes:
    """Return a rank that follows from the seed and the record alone."""
    return hashlib.blake2b("\t".join(map(str, (seed, *place))).encode(), digest_size=8).digest()


def _documents(root: str, stage: str, shard: Shard, wanted: Collection[tuple[Any, ...]]) -> Iterator[Sampled]:
    for some in read_shards(root, [shard], COLUMNS):
        places = zip(*(some.column(name).to_pylist() for name in PLACE), strict=True)
        rows = [at for at, place in enumerate(places) if place in wanted]
        for row in some.take(pa.array(rows, pa.int64())).to_pylist():
            offset = row.pop("offset")
            yield Sampled(**{name: str(value or "") for name, value in row.items()}, offset=offset, stage=stage)


def _without_personal_data(root: str, version: Version, documents: Sequence[Sampled]) -> list[Sampled]:
    """Return documents, those that were rejected scrubbed: `scrub_pii` saw the others."""
    unseen = [document for document in documents if not document.is_kept]
    columns = ([getattr(each, name) for each in unseen] for name in ("text", "language", "url"))
    texts = iter(scrubbed(root, version, *columns) if unseen else ())
    return [each if each.is_kept else replace(each, text=next(texts)) for each in documents]
