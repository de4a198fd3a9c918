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

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, add_recipe, number, print_result, recipe_of
from pipeline_tasks.inspect.differences import side_by_side
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import SIMILARITY, WINNER
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.superseded import read_superseded
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import STAGES as ORDER
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.stage import Shards
from pipeline_tasks.store.reading import read_history, read_manifest, read_shards

STAGES = ("dedup_url", "dedup_exact", "dedup_minhash")
"""Stages that remove a document for the sake of another."""

BEFORE = tuple(one for one in ORDER[: ORDER.index(STAGES[0])] if one != "ingest")
"""Stages that reject documents before; what `ingest` rejects has no text and no id."""

AFTER = ORDER[ORDER.index(STAGES[-1]) + 1 :]
"""Stages that may reject what deduplication kept."""

STANDING = ("kept", "outdated")
"""What documents became that deduplication left in the dataset."""

SHOWN = 5
"""Documents that a refusal names."""

PLACE = ("id", "snapshot", "file", "offset", "url", "crawled_at")

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Member:
    """A document of a cluster, what became of it, and, if it had to go, for which other and on what proof.

    `became` is `kept`, the reason for which it was rejected, `superseded` (kept until a later snapshot brought a
    better one) or `outdated` (in the dataset still, but its URL holds something newer). `near` is the document that it
    was compared with: `similarity` (exact) and `bands` (that both share) are of that pair; None where whole texts or
    URLs were compared. `stage` and `part` (`shards` or `rejects`) say where its text is. `lost` is the reason for which
    a stage after deduplication rejected it, and no other of its cluster replaced it; "" if none did.
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
        """Tell whether it is in the dataset."""
        return self.became in STANDING and not self.lost


@dataclass(frozen=True, slots=True)
class Cluster:
    """All documents that stand or fell for one: `asked` is the one that was looked for, `winner` the one that stays."""

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
    print_result(options, asdict(cluster), told(options.root, recipe, cluster, options.limit))
    return 0


def duplicates(root: str, recipe: str, wanted: str) -> Cluster:
    """Return the cluster of the document whose id is, or begins with, `wanted`; RecipeError unless there is just one.

    Reads the origins and evidence of everything that was rejected as a duplicate, and of kept documents the shards
    that can hold an id of the cluster (all of them to find the rest of a shortened id).
    """
    if not re.fullmatch("[0-9a-f]{4,32}", wanted):
        message = f"{wanted!r} is no document id: ids are 32 hex digits, of which the first 4 or more will do"
        raise RecipeError(message)
    versions = version_log.latest_by_snapshot(root, recipe) or [version_log.current(root, recipe)]
    name = _resolved(root, recipe, versions, wanted)
    chain, removed, later = _closure(root, recipe, versions, name)
    lost = dict(_lost(root, versions, chain))
    kept = [
        replace(one, **later.get((one.id, one.snapshot), {}), lost=lost.get((one.snapshot, one.file, one.offset), ""))
        for one in _kept(root, versions, chain)
    ]
    members = [*kept, *removed]
    standing = [one for one in members if one.became == "kept"]
    mine = [one for one in members if one.id == name]
    order = sorted(members, key=lambda one: (one.became != "kept", one.snapshot, one.id, one.file, one.offset))
    asked = min(mine, key=lambda one: (one.became != "kept", one.snapshot, one.file, one.offset))
    return Cluster(asked, _stands_for(asked, standing, members), tuple(order))


def _stands_for(asked: Member, standing: Sequence[Member], members: Sequence[Member]) -> Member | None:
    """Follow the winners from a document to the one that is kept; None if that was removed by a later stage."""
    kept, at, seen = {one.id: one for one in standing}, asked, set[str]()
    while at.became != "kept" and at.winner not in seen:
        seen.add(at.winner)
        if at.winner in kept:
            return kept[at.winner]
        at = next((one for one in members if one.id == at.winner and one.winner), at)
    return at if at.became in STANDING else kept.get(at.id)


# --- Ids ------------------------------------------------------------------------------------------------------


def _resolved(root: str, recipe: str, versions: Sequence[Version], wanted: str) -> str:
    """Return the one id that begins with `wanted`."""
    whole = len(wanted) == 32  # noqa: PLR2004 -- digits of 128 bits
    found: set[str] = set()
    for version in versions:
        kept = _home(root, version, [wanted] if whole else None)
        for batch in (*kept, *(rows for _, rows in _rejected(root, version))):
            ids = batch.column("id")
            found.update(ids.filter(pc.starts_with(ids, wanted)).to_pylist())
    if len(found) == 1:
        return found.pop()
    if found:
        shown = ", ".join(sorted(found)[:SHOWN])
        message = f"{len(found)} documents begin with {wanted!r} ({shown}, ...); give more digits"
        raise RecipeError(message)
    snapshots = ", ".join(version.snapshot for version in versions)
    if gone := version_log.retractions(root, recipe):
        snapshots += f"; retracted, and not looked at: {', '.join(gone)}"
    before = "; ".join(islice(_rejected_before(root, versions, wanted), SHOWN))
    way_out = before or "`refinery trace` and column `id` of any shard show ids"
    message = (
        f"{root}: no document {wanted!r} came to deduplication in recipe {recipe} (snapshots {snapshots}); {way_out}"
    )
    raise RecipeError(message)


def _rejected_before(root: str, versions: Sequence[Version], wanted: str) -> Iterator[str]:
    """Yield where a document (or those whose ids begin so) was rejected by a stage before deduplication, and why."""
    for version in versions:
        for stage in (one for one in BEFORE if one in version.manifests):
            made = read_manifest(root, version.manifests[stage])
            for batch in read_shards(root, made.rejects, ("id", "reason", "url")):
                for row in batch.filter(pc.starts_with(batch.column("id"), wanted)).to_pylist():
                    why = f"{row['reason']}, {row['url'] or 'no URL'}"
                    yield f"{stage} of {version.snapshot} rejected {row['id']}: {why}"


def _home(root: str, version: Version, ids: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield where the documents that deduplication kept are: of the shards that can hold `ids`, or of all."""
    made = _last(root, version)
    shards = _shards_of(made, ids) if made else ()
    for batch in read_shards(root, shards, PLACE):
        yield batch.append_column("stage", pa.array([made.stage if made else ""] * batch.num_rows, pa.string()))


def _last(root: str, version: Version) -> Manifest | None:
    stages = [stage for stage in STAGES if stage in version.manifests]
    return read_manifest(root, version.manifests[stages[-1]]) if stages else None


def _shards_of(made: Manifest, ids: Sequence[str] | None) -> Shards:
    """Return the shards that can hold `ids`: after dedup_exact an id's bucket is the number of its shard."""
    if ids is None or made.stage == "dedup_url":
        return made.shards
    return tuple(made.shards[at] for at in sorted(set(bucket_of(pa.array(ids), len(made.shards)).tolist())))


def _rejected(root: str, version: Version) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield what each stage rejected as a duplicate of other documents, without texts."""
    for stage in (one for one in STAGES if one in version.manifests):
        made = read_manifest(root, version.manifests[stage])
        for batch in read_shards(root, made.rejects, (*PLACE, "reason", "evidence")):
            yield stage, batch


# --- The cluster ----------------------------------------------------------------------------------------------


def _closure(
    root: str, recipe: str, versions: Sequence[Version], name: str
) -> tuple[set[str], list[Member], dict[tuple[str, str], dict[str, Any]]]:
    """Return the ids that a document lost to, directly or not, what lost to any of them, and what did so later.

    The last is what became of documents that were kept in their own snapshot, by id and snapshot.
    """
    chain: set[str] = set()
    removed: dict[tuple[str, str, int, str], Member] = {}
    later: dict[tuple[str, str], dict[str, Any]] = {}
    front = {name}
    while front:
        chain |= front
        rows = [one for version in versions for one in _losers(root, version, front)]
        removed.update({(one.snapshot, one.file, one.offset, one.became): one for one in rows})
        fallen = dict(_fallen(root, recipe, versions, front))
        later.update(fallen)
        ends = {(one.id, one.winner) for one in rows} | {(id_, told["winner"]) for (id_, _), told in fallen.items()}
        front = {winner for one, winner in ends if one in chain} | {one for (one, _) in fallen}
        front -= chain
    return chain, list(removed.values()), later


def _fallen(
    root: str, recipe: str, versions: Sequence[Version], front: set[str]
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield (id, snapshot) of what was superseded or outdated, in `front` or by one that is, and what became of it."""
    wanted = pa.array(sorted(front), pa.string())
    for version in (one for one in versions if "dedup_url" in one.manifests):
        manifest = read_manifest(root, version.manifests["dedup_url"])
        for batch in read_history(root, manifest, "superseded"):
            for row in _of(batch, wanted, "id", "by_id"):
                told = {"became": "outdated", "winner": row["by_id"], "winner_snapshot": row["by_snapshot"]}
                yield (row["id"], row["snapshot"]), told
    names = ("winner", "winner_snapshot", "near", "similarity", "bands")
    for row in _of(read_superseded(root, recipe), wanted, "id", "winner"):
        yield (row["id"], row["snapshot"]), {"became": "superseded", **{name: row[name] for name in names}}


def _of(rows: pa.RecordBatch | pa.Table, wanted: pa.Array, *columns: str) -> list[dict[str, Any]]:
    """Return the rows in which one of two columns is `wanted`."""
    first, second = (pc.is_in(rows.column(name), value_set=wanted) for name in columns)
    found: list[dict[str, Any]] = rows.filter(pc.or_(first, second)).to_pylist()
    return found


def _losers(root: str, version: Version, front: set[str]) -> Iterator[Member]:
    """Yield what was rejected that is in `front`, or lost to a document of `front`."""
    wanted = pa.array(sorted(front), pa.string())
    for stage, batch in _rejected(root, version):
        winners = pc.coalesce(_extracted(batch, WINNER, "id"), batch.column("id"))
        for row in _of(batch.append_column("winner", winners), wanted, "id", "winner"):
            yield _loser(stage, row)


def _extracted(batch: pa.RecordBatch, pattern: str, name: str) -> Any:  # noqa: ANN401 -- an Arrow array
    return pc.struct_field(pc.extract_regex(batch.column("evidence"), pattern), [name])


def _loser(stage: str, row: Mapping[str, Any]) -> Member:
    proof = json.loads(row["evidence"])
    told = proof["winner"] if isinstance(proof["winner"], dict) else proof
    similarity = re.search(SIMILARITY, row["evidence"])
    return Member(
        **{name: row[name] for name in PLACE},
        stage=stage,
        part="rejects",
        became=row["reason"],
        winner=row["winner"],
        winner_snapshot=told["snapshot"],
        near=proof.get("near", ""),
        similarity=float(similarity["value"]) if similarity else None,
        bands=proof.get("bands"),
    )


def _kept(root: str, versions: Sequence[Version], ids: set[str]) -> Iterator[Member]:
    """Yield the documents with these ids that deduplication kept."""
    wanted = pa.array(sorted(ids), pa.string())
    for version in versions:
        for batch in _home(root, version, sorted(ids)):
            for row in batch.filter(pc.is_in(batch.column("id"), value_set=wanted)).to_pylist():
                yield Member(**row, part="shards", became="kept")


def _lost(root: str, versions: Sequence[Version], ids: set[str]) -> Iterator[tuple[tuple[str, str, int], str]]:
    """Yield (snapshot, file, offset) of what stages after deduplication rejected of these ids, with the reason."""
    wanted = pa.array(sorted(ids), pa.string())
    for version in versions:
        for stage in (one for one in AFTER if one in version.manifests):
            made = read_manifest(root, version.manifests[stage])
            for batch in read_shards(root, made.rejects, ("id", "snapshot", "file", "offset", "reason")):
                for row in batch.filter(pc.is_in(batch.column("id"), value_set=wanted)).to_pylist():
                    yield (row["snapshot"], row["file"], row["offset"]), row["reason"]


# --- Texts ----------------------------------------------------------------------------------------------------


def text_of(root: str, recipe: str, member: Member) -> str:
    """Return the text of a member, as it was when it was compared."""
    version = version_log.current(root, recipe, member.snapshot)
    made = read_manifest(root, version.manifests[member.stage])
    shards = made.rejects if member.part == "rejects" else _shards_of(made, [member.id])
    for batch in read_shards(root, shards, ("id", "file", "offset", "text")):
        same = [pc.equal(batch.column(name), getattr(member, name)) for name in ("id", "file", "offset")]
        rows = batch.filter(pc.and_(pc.and_(same[0], same[1]), same[2]))
        if rows.num_rows:
            return str(rows.column("text")[0].as_py())
    message = f"{root}: document {member.id} is not where its manifest says; run `refinery verify {root}`"
    raise RecipeError(message)


def told(root: str, recipe: str, cluster: Cluster, most: int = 20) -> Iterator[str]:
    """Yield a cluster as lines for a person: who stays, who went and why, and what texts differ in."""
    asked, winner = cluster.asked, cluster.winner
    yield f"document  {asked.id}, {_what(asked)}"
    yield from _origin(asked)
    if winner is not None and winner != asked:
        yield f"winner    {winner.id}, {_what(winner)}"
        yield from _origin(winner)
    others = [one for one in cluster.members if one not in (asked, winner)]
    standing = sum(one.published for one in cluster.members)
    yield f"cluster   {len(cluster.members):,} documents, {standing:,} of them in the dataset"
    for one in others[:most]:
        yield f"  {one.id[:12]}  {one.snapshot}  {_what(one)}  {one.url or ''}"
    if len(others) > most:
        yield f"  ... and {len(others) - most:,} more (--limit)"
    other = winner if winner is not None and winner != asked else next(iter(others), None)
    if other is not None:
        left, right = (other, asked) if other is winner else (asked, other)
        titles = (f"{left.id[:12]} of {left.snapshot}", f"{right.id[:12]} of {right.snapshot}")
        yield ""
        yield from side_by_side(text_of(root, recipe, left), text_of(root, recipe, right), titles)


def _what(one: Member) -> str:
    lost = f", then rejected: {one.lost}" if one.lost else ""
    if one.became == "kept":
        return f"kept{lost}"
    near = (
        f"; {one.similarity:.3f} like {one.near[:12]}, {one.bands} bands shared" if one.similarity is not None else ""
    )
    return f"{one.became} (winner {one.winner[:12]} of {one.winner_snapshot}{near}){lost}"


def _origin(one: Member) -> Iterator[str]:
    yield f"          {one.url or 'no URL'}, crawled {one.crawled_at or 'at an unknown time'}"
    yield f"          snapshot {one.snapshot}, {one.file} at {one.offset:,}"
