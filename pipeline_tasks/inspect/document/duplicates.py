"""Finds the cluster that a document belongs to, over all snapshots, with the proof of every removal."""

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import copies_of
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, add_recipe, number, print_result, recipe_of
from pipeline_tasks.inspect.document.word_differences import side_by_side
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.inspect.unpublished import current_version
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import SIMILARITY, WINNER
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version, stages_that
from pipeline_tasks.publish.superseded import read_replaced, read_superseded
from pipeline_tasks.run.shuffle import shards_with
from pipeline_tasks.store.reading import read_in_order, read_manifest, read_shards

IN_DATASET = ("kept", "outdated")
"""Values of `became` for documents that deduplication left in the dataset."""

SHOWN = 5
"""Documents that an error message names."""

PLACE = ("id", "snapshot", "file", "offset", "url", "crawled_at")

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Member:
    """A document of a cluster, its outcome, and, if it was removed, the winner and the evidence.

    `became` is `kept`, the reason for which it was rejected, `superseded` (kept until a later snapshot had a better
    document) or `outdated` (still in the dataset, but its URL has newer content). `near` is the document that it was
    compared with: `similarity` (exact) and `bands` (shared bands) are of that pair; None where whole texts or URLs were
    compared. Its text is in `part` (`shards` or `rejects`) of `stage`. `lost` is the reason for which a stage after
    deduplication rejected it; no other member replaced it. "" if none did.
    """

    id: str
    snapshot: str
    file: str
    offset: int
    url: str | None
    crawled_at: str | None
    stage: str
    part: str
    became: str
    winner: str = ""
    winner_snapshot: str = ""
    near: str = ""
    similarity: float | None = None
    bands: int | None = None
    lost: str = ""

    @property
    def published(self) -> bool:
        """Whether it is in the dataset."""
        return self.became in IN_DATASET and not self.lost


@dataclass(frozen=True, slots=True)
class Cluster:
    """Documents with the same winner: `asked` is the requested document, `winner` the kept one (None if removed)."""

    asked: Member
    winner: Member | None
    members: tuple[Member, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document, the root, and how many members to show."""
    parser.add_argument("id", help="the document's id, or as many of its first digits as no other has")
    add_recipe(parser)
    parser.add_argument("--limit", type=number(int, 0), default=20, metavar="N", help="show at most N members (20)")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the cluster of the document."""
    recipe = recipe_of(options)
    cluster = duplicates(options.root, recipe, options.id)
    looked(options, len(cluster.members), [member.id for member in cluster.members], recipe=recipe)
    print_result(options, asdict(cluster), cluster_lines(options.root, recipe, cluster, options.limit))
    return 0


def duplicates(root: str, recipe: str, wanted: str) -> Cluster:
    """Return the cluster of the document whose id is, or begins with, `wanted`; RecipeError unless just one is.

    Reads the origins and evidence of all rejected duplicates, and the shards of kept documents that can contain an id
    of the cluster (all shards if `wanted` is a shortened id).
    """
    if not re.fullmatch("[0-9a-f]{4,32}", wanted):
        message = f"{wanted!r} is no document id: ids are 32 hex digits, of which the first 4 or more will do"
        raise RecipeError(message)
    versions = version_log.latest_by_snapshot(root, recipe) or [current_version(root, recipe)]
    name = _resolved(root, recipe, versions, wanted)
    chain, removed, later = _closure(root, recipe, versions, name)
    gone = {_place(member) for member in removed}
    lost = dict(_lost(root, versions, chain))
    kept = [
        replace(
            member,
            **later.get((member.id, member.snapshot), {}),
            lost=lost.get((member.snapshot, member.file, member.offset), ""),
        )
        for member in _kept(root, versions, chain)
        if _place(member) not in gone
    ]
    members = sorted([*kept, *removed], key=_order)
    document = next(member for member in members if member.id == name)
    return Cluster(document, _winner(document, [*kept, *removed]), tuple(members))


def _place(member: Member) -> tuple[str, str, int]:
    return member.snapshot, member.file, member.offset


def _order(member: Member) -> tuple[bool, str, str, str, int]:
    """Return the sort key of a cluster: kept members first, then by snapshot and id."""
    return member.became != "kept", member.snapshot, member.id, member.file, member.offset


def _winner(document: Member, members: Sequence[Member]) -> Member | None:
    """Follow the winners from a document to the kept one; None if a later stage removed that."""
    kept, member, seen = {member.id: member for member in members if member.became == "kept"}, document, set[str]()
    while member.became != "kept" and member.winner not in seen:
        seen.add(member.winner)
        if member.winner in kept:
            return kept[member.winner]
        member = next((other for other in members if other.id == member.winner and other.winner), member)
    return member if member.became in IN_DATASET else kept.get(member.id)


# --- Ids ------------------------------------------------------------------------------------------------------


def _resolved(root: str, recipe: str, versions: Sequence[Version], wanted: str) -> str:
    """Return the only id that begins with `wanted`; RecipeError if there is none or more than one."""
    whole = len(wanted) == 32  # noqa: PLR2004 -- digits of 128 bits
    matches: set[str] = set()
    for version in versions:
        kept = _kept_rows(root, version, [wanted] if whole else None)
        for batch in (*kept, *(rows for _, rows in _rejected(root, version))):
            ids = batch.column("id")
            matches.update(ids.filter(pc.starts_with(ids, wanted)).to_pylist())
    if len(matches) == 1:
        return matches.pop()
    if matches:
        shown = ", ".join(sorted(matches)[:SHOWN])
        message = f"{len(matches)} documents begin with {wanted!r} ({shown}, ...); give more digits"
        raise RecipeError(message)
    snapshots = ", ".join(version.snapshot for version in versions)
    if retracted := version_log.retractions(root, recipe):
        snapshots += f"; retracted, and not looked at: {', '.join(retracted)}"
    before = "; ".join(islice(_rejected_before(root, versions, wanted), SHOWN))
    way_out = before or "`refinery look trace` and column `id` of any shard show ids"
    message = (
        f"{root}: no document {wanted!r} came to deduplication in recipe {recipe} (snapshots {snapshots}); {way_out}"
    )
    raise RecipeError(message)


def _rejected_before(root: str, versions: Sequence[Version], wanted: str) -> Iterator[str]:
    """Yield a message per document whose id begins with `wanted` and that a stage before deduplication rejected."""
    for version in versions:
        for manifest in _others(root, version)[0]:
            stage = manifest.stage
            for batch in read_shards(root, manifest.rejects, ("id", "reason", "url")):
                for row in batch.filter(pc.starts_with(batch.column("id"), wanted)).to_pylist():
                    reason = f"{row['reason']}, {row['url'] or 'no URL'}"
                    yield f"{stage} of {version.snapshot} rejected {row['id']}: {reason}"


def _kept_rows(root: str, version: Version, ids: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield the places of kept documents, from the shards that can contain `ids`, or from all if `ids` is None."""
    manifest = _last(root, version)
    shards = shards_with(manifest, ids) if manifest else ()
    for batch in read_shards(root, shards, PLACE):
        yield batch.append_column("stage", pa.array([manifest.stage if manifest else ""] * batch.num_rows, pa.string()))


def _last(root: str, version: Version) -> Manifest | None:
    """Return the manifest of the last stage that compares all documents: those that it keeps are looked up."""
    stages = stages_that(root, version, _compares_all)
    return read_manifest(root, version.manifests[stages[-1]]) if stages else None


def compares_documents(stage: str) -> bool:
    """Return whether a stage removes a document for the sake of another."""
    return copies_of(stage).compared != ""


def _compares_all(stage: str) -> bool:
    return copies_of(stage).compared == "all"


def _others(root: str, version: Version) -> tuple[list[Manifest], list[Manifest]]:
    """Return the manifests of stages that reject documents for what they are, before and after the last comparison.

    Rejected rows of stages before the documents have their ids are not among them.
    """
    ordered = read_in_order(root, version.manifests)
    last = max((at for at, stage in enumerate(ordered) if _compares_all(stage)), default=0)
    parts = [*ordered.values()][:last], [*ordered.values()][last:]
    before, after = ([each for each in part if not compares_documents(each.stage) and _has_ids(each)] for part in parts)
    return before, after


def _has_ids(manifest: Manifest) -> bool:
    return "id" in dict(manifest.schema)


def _rejected(root: str, version: Version) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rejects of each deduplication stage, without texts."""
    for stage in stages_that(root, version, compares_documents):
        manifest = read_manifest(root, version.manifests[stage])
        for batch in read_shards(root, manifest.rejects, (*PLACE, "reason", "evidence")):
            yield stage, batch


# --- The cluster ----------------------------------------------------------------------------------------------


def _closure(
    root: str, recipe: str, versions: Sequence[Version], name: str
) -> tuple[set[str], list[Member], dict[tuple[str, str], dict[str, Any]]]:
    """Return the ids of all direct and indirect winners, the members that lost to them, and later outcomes.

    The last has the changed fields of documents that were kept in their own snapshot, by id and snapshot.
    """
    chain: set[str] = set()
    removed: dict[tuple[str, str, int, str], Member] = {}
    later: dict[tuple[str, str], dict[str, Any]] = {}
    front = {name}
    while front:
        chain |= front
        losers = [member for version in versions for member in _losers(root, version, front)]
        removed.update({(member.snapshot, member.file, member.offset, member.became): member for member in losers})
        replaced = dict(_replaced(root, recipe, versions, front))
        later.update(replaced)
        winners = {(member.id, member.winner) for member in losers}
        winners |= {(id_, outcome["winner"]) for (id_, _), outcome in replaced.items()}
        front = {winner for id_, winner in winners if id_ in chain} | {id_ for (id_, _) in replaced}
        front -= chain
    return chain, list(removed.values()), later


def _replaced(
    root: str, recipe: str, versions: Sequence[Version], front: set[str]
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield (id, snapshot) and outcome of superseded or outdated documents that are, or whose winner is, in `front`."""
    wanted = pa.array(sorted(front), pa.string())
    for version in versions:
        for batch in read_replaced(root, version):
            for row in _matching(batch, wanted, "id", "by_id"):
                outcome = {"became": "outdated", "winner": row["by_id"], "winner_snapshot": row["by_snapshot"]}
                yield (row["id"], row["snapshot"]), outcome
    names = ("winner", "winner_snapshot", "near", "similarity", "bands")
    for batch in read_superseded(root, recipe):
        for row in _matching(batch, wanted, "id", "winner"):
            yield (row["id"], row["snapshot"]), {"became": "superseded", **{name: row[name] for name in names}}


def _matching(rows: pa.RecordBatch, wanted: pa.Array, *columns: str) -> list[dict[str, Any]]:
    """Return the rows whose value in either of two columns is in `wanted`."""
    first, second = (pc.is_in(rows.column(name), value_set=wanted) for name in columns)
    matches: list[dict[str, Any]] = rows.filter(pc.or_(first, second)).to_pylist()
    return matches


def _losers(root: str, version: Version, front: set[str]) -> Iterator[Member]:
    """Yield the rejected documents that are, or whose winner is, in `front`."""
    wanted = pa.array(sorted(front), pa.string())
    for stage, batch in _rejected(root, version):
        winners = pc.coalesce(_extracted(batch, WINNER, "id"), batch.column("id"))
        for row in _matching(batch.append_column("winner", winners), wanted, "id", "winner"):
            yield _loser(stage, row)


def _extracted(batch: pa.RecordBatch, pattern: str, name: str) -> pa.Array:
    return pc.struct_field(pc.extract_regex(batch.column("evidence"), pattern), [name])


def _loser(stage: str, row: Mapping[str, Any]) -> Member:
    proof = json.loads(row["evidence"])
    winner = proof["winner"] if isinstance(proof["winner"], dict) else proof
    similarity = re.search(SIMILARITY, row["evidence"])
    return Member(
        **{name: row[name] for name in PLACE},
        stage=stage,
        part="rejects",
        became=row["reason"],
        winner=row["winner"],
        winner_snapshot=winner["snapshot"],
        near=proof.get("near", ""),
        similarity=float(similarity["value"]) if similarity else None,
        bands=proof.get("bands"),
    )


def _kept(root: str, versions: Sequence[Version], ids: set[str]) -> Iterator[Member]:
    """Yield the documents with these ids that deduplication kept."""
    wanted = pa.array(sorted(ids), pa.string())
    for version in versions:
        for batch in _kept_rows(root, version, sorted(ids)):
            for row in batch.filter(pc.is_in(batch.column("id"), value_set=wanted)).to_pylist():
                yield Member(**row, part="shards", became="kept")


def _lost(root: str, versions: Sequence[Version], ids: set[str]) -> Iterator[tuple[tuple[str, str, int], str]]:
    """Yield (snapshot, file, offset) and reason of these ids where a stage after deduplication rejected them."""
    wanted = pa.array(sorted(ids), pa.string())
    for version in versions:
        for manifest in _others(root, version)[1]:
            for batch in read_shards(root, manifest.rejects, ("id", "snapshot", "file", "offset", "reason")):
                for row in batch.filter(pc.is_in(batch.column("id"), value_set=wanted)).to_pylist():
                    yield (row["snapshot"], row["file"], row["offset"]), row["reason"]


# --- Texts ----------------------------------------------------------------------------------------------------


def text_of(root: str, recipe: str, member: Member) -> str:
    """Return the text of a member as deduplication compared it."""
    version = version_log.current(root, recipe, member.snapshot)
    manifest = read_manifest(root, version.manifests[member.stage])
    shards = manifest.rejects if member.part == "rejects" else shards_with(manifest, [member.id])
    for batch in read_shards(root, shards, ("id", "file", "offset", "text")):
        same = [pc.equal(batch.column(name), getattr(member, name)) for name in ("id", "file", "offset")]
        rows = batch.filter(pc.and_(pc.and_(same[0], same[1]), same[2]))
        if rows.num_rows:
            return str(rows.column("text")[0].as_py())
    message = f"{root}: document {member.id} is not where its manifest says; run `refinery verify {root}`"
    raise RecipeError(message)


def cluster_lines(root: str, recipe: str, cluster: Cluster, most: int = 20) -> Iterator[str]:
    """Yield a cluster as lines for a person: the winner, at most `most` other members, and how the texts differ."""
    document = cluster.asked
    winner = cluster.winner if cluster.winner != document else None
    yield f"document  {document.id}, {_outcome(document)}"
    yield from _origin(document)
    if winner is not None:
        yield f"winner    {winner.id}, {_outcome(winner)}"
        yield from _origin(winner)
    others = [member for member in cluster.members if member not in (document, winner)]
    published = sum(member.published for member in cluster.members)
    yield f"cluster   {counted(len(cluster.members), 'document')}, {published:,} of them in the dataset"
    yield from _other_lines(others, most)
    if winner is not None:
        yield from _difference_lines(root, recipe, winner, document)
    elif others:
        yield from _difference_lines(root, recipe, document, others[0])


def _other_lines(others: Sequence[Member], most: int) -> Iterator[str]:
    for member in others[:most]:
        yield f"  {member.id[:12]}  {member.snapshot}  {_outcome(member)}  {member.url or ''}"
    if len(others) > most:
        yield f"  ... and {len(others) - most:,} more (--limit)"


def _difference_lines(root: str, recipe: str, left: Member, right: Member) -> Iterator[str]:
    titles = (f"{left.id[:12]} of {left.snapshot}", f"{right.id[:12]} of {right.snapshot}")
    yield ""
    yield from side_by_side(text_of(root, recipe, left), text_of(root, recipe, right), titles)


def _outcome(member: Member) -> str:
    lost = f", then rejected: {member.lost}" if member.lost else ""
    if member.became == "kept":
        return f"kept{lost}"
    near = ""
    if member.similarity is not None:
        near = f"; {member.similarity:.3f} like {member.near[:12]}, {member.bands} bands shared"
    return f"{member.became} (winner {member.winner[:12]} of {member.winner_snapshot}{near}){lost}"


def _origin(member: Member) -> Iterator[str]:
    yield f"          {member.url or 'no URL'}, crawled {member.crawled_at or 'at an unknown time'}"
    yield f"          snapshot {member.snapshot}, {member.file} at {member.offset:,}"
