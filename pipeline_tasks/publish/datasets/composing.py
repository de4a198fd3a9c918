"""Composes the input of a training dataset: the documents of a selection of published versions."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.cards import has_param
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest, identified, stage_prefix
from pipeline_tasks.profiles.columns import merge
from pipeline_tasks.publish.datasets.cluster_sizes import sizes_within
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.publish.superseded import read_replaced
from pipeline_tasks.publish.takedowns import PINNED, beginning, holds, pinned_list
from pipeline_tasks.recipe import COMPOSE, Versions
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.sealed import digest_of, path_of
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.committing import commit_manifest
from pipeline_tasks.store.reading import commit_slot, read_committed, read_manifest
from pipeline_tasks.store.shards.file import ShardWriter

SUPERSEDED = "superseded"
"""The history section of a composition: documents that another selected snapshot supersedes."""

LEAVING = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("snapshot", pa.string()),  # of the document that leaves
        pa.field("winner", pa.string()),  # the document that stays for it
        pa.field("winner_snapshot", pa.string()),
    ]
)
"""Rows of `SUPERSEDED`, sorted by id and snapshot."""

CLUSTERS = "clusters"
"""The history section of a composition that counts them (`versions.cluster_sizes`): sizes of clusters."""


_VERSION = 2


class Composition(NamedTuple):
    """A committed composition: its manifest, and the versions that it selects, oldest snapshot first."""

    path: str
    manifest: Manifest
    versions: tuple[Version, ...]


def compose(root: str, name: str, selection: Versions) -> Composition:
    """Commit the manifest of the documents of a selection of versions, for the dataset `name`.

    The newest version of each selected snapshot counts. What was taken down is left out by `select`, but for what was
    taken down since the dataset was last built of the same versions: that leaves behind `shuffle`, so that its mixture
    and all shards without such a document stay as they are. RecipeError if none is selected, or none has a
    document, or snapshots were published under the name. ContractError if their documents have different columns.
    """
    version_log.require_kind(root, name, builds=True)
    versions = selected(root, selection)
    _require_documents(name, versions)
    inputs = _inputs(root, versions)
    sections = _sections(root, selection.recipe, versions, sized=selection.cluster_sizes)
    pinned = _taken_down(root, name, _params(name, versions))
    return _committed(root, _composed(name, versions, inputs, sections, pinned), sections, versions)


def _require_documents(name: str, versions: Sequence[Version]) -> None:
    if not any(version.documents for version in versions):
        snapshots = ", ".join(version.snapshot for version in versions[-version_log.NAMED :])
        message = (
            f"dataset {name} would be empty: no snapshot that its recipe selects has a document ({snapshots}); "
            "`refinery look funnel` shows which stage removed them"
        )
        raise RecipeError(message)


def compose_again(
    root: str, name: str, versions: Sequence[Version], fingerprint: str, resources: Mapping[str, str]
) -> Composition:
    """Commit the composition of these versions that had a fingerprint, and the digests `resources`.

    Versions that were published since may name other winners, so the log is read as it was after each of its entries,
    the newest first. ContractError if none gives the same composition.
    """
    recipe, inputs = versions[0].recipe, _inputs(root, versions)
    for entry in reversed(version_log.log(root, recipe)):
        sections = _sections(root, recipe, versions, sized=CLUSTERS in resources, until=entry.number)
        whole = _composed(name, versions, inputs, sections, resources)
        if whole.fingerprint == fingerprint:
            return _committed(root, whole, sections, versions)
    message = (
        f"{root}: the versions that {name} was composed of do not give compose/{fingerprint} any more: other documents "
        "are superseded than were, by versions that are not in this log, or by another release"
    )
    raise ContractError(message)


Sections = Mapping[str, pa.Table]
"""The tables that a composition saves, by name."""


def _sections(
    root: str, recipe: str, versions: Sequence[Version], *, sized: bool, until: int | None = None
) -> Sections:
    """Return the sections of a composition, with the sizes of clusters if asked; by the log up to entry `until`."""
    sections = {SUPERSEDED: superseded_within(root, recipe, [version.snapshot for version in versions], until)}
    return sections | ({CLUSTERS: sizes_within(root, recipe, versions, until)} if sized else {})


Inputs = Sequence[tuple[Manifest, str]]
"""The manifest of the documents of each version, and its digest."""


def _inputs(root: str, versions: Sequence[Version]) -> Inputs:
    inputs = [read_committed(root, version.refined) for version in versions]
    _require_alike(root, versions, [manifest for manifest, _ in inputs])
    return inputs


def _composed(
    name: str, versions: Sequence[Version], inputs: Inputs, sections: Sections, pinned: Mapping[str, str]
) -> Manifest:
    """Return the manifest of versions, whose sections are not stored yet; `pinned` are resources of other names."""
    whole = Manifest(
        stage=COMPOSE,
        version=_VERSION,
        fingerprint="",
        params=_params(name, versions),
        parents=tuple(manifest.fingerprint for manifest, _ in inputs),
        parent_digests=tuple(digest for _, digest in inputs),
        covers=tuple(shard.identity for manifest, _ in inputs for shard in manifest.shards),
        schema=next((manifest.schema for manifest, _ in inputs if manifest.schema), ()),
        shards=tuple(shard for manifest, _ in inputs for shard in manifest.shards),
        history={},
        rejects=(),
        quarantine=(),
        rows_in=sum(manifest.rows for manifest, _ in inputs),
        bytes_in=sum(manifest.bytes for manifest, _ in inputs),
        rejected={},
        quarantined={},
        metrics={"kept": merge(manifest.metrics["kept"] for manifest, _ in inputs), "rejects": {}},
        resources={**pinned, **{section: digest_of(rows.to_pylist()) for section, rows in sections.items()}},
    )
    return identified(whole)


def _committed(root: str, whole: Manifest, sections: Sections, versions: Sequence[Version]) -> Composition:
    """Store the sections of a composition, and commit its manifest."""
    folder = f"{stage_prefix(COMPOSE, whole.fingerprint)}/data"
    manifest = replace(whole, history={section: (_stored(root, rows, folder),) for section, rows in sections.items()})
    store = storage.connect(root)
    path = commit_slot(store, COMPOSE, manifest.fingerprint)
    return Composition(path, commit_manifest(store, path, manifest), tuple(versions))


def _params(name: str, versions: Sequence[Version]) -> dict[str, Any]:
    return {"dataset": name, "versions": [_named(version) for version in versions]}


def _taken_down(root: str, name: str, params: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the list that the dataset's last composition of the same versions pins, else the one that holds now.

    A list with entries that were undone since is not kept: their documents would stay away. A composition that was
    removed, as is the way out of a damaged one, pins none.
    """
    store = storage.connect(root)
    for version in version_log.latest_by_snapshot(root, name):
        if store.size(path_of(version.manifests[COMPOSE])) is None:
            continue
        composed = read_manifest(root, version.manifests[COMPOSE])
        if composed.params == params and holds(root, composed.resources):
            return {key: digest for key, digest in composed.resources.items() if key == PINNED}
    return pinned_list(root)


def with_superseded(request: RefineRequest) -> RefineRequest:
    """Return a request to select from a composition with its sections as params; another as it is."""
    sections = [section for section in (SUPERSEDED, CLUSTERS) if has_param(request.stage, section)]
    if not sections:
        return request
    history = beginning(request.root, request.parent).history
    named = [(section, shard) for section in sections for shard in history.get(section, ())]
    files = {section: f"{request.root}/{shard.path}" for section, shard in named if shard.rows or section == CLUSTERS}
    return replace(request, params={**request.params, **files})


def selected(root: str, selection: Versions) -> list[Version]:
    """Return the versions that a selection names, oldest snapshot first; RecipeError if there are none."""
    published = version_log.latest_by_snapshot(root, selection.recipe)
    chosen = [version for version in published if _is_selected(version.snapshot, selection)]
    if not chosen:
        names = ", ".join(version.snapshot for version in published[-version_log.NAMED :]) or _of_others(root)
        message = (
            f"{root}: no published snapshot of recipe {selection.recipe} is selected by {_written(selection)}; "
            f"published: {names}. Refine one, or correct `versions` in the recipe"
        )
        raise RecipeError(message)
    return chosen


def _of_others(root: str) -> str:
    """Return what stands for the snapshots of a recipe that has none: the recipes that have some."""
    others = [name for name in version_log.recipes(root) if not version_log.is_build(root, name)]
    return f"nothing (of other recipes: {', '.join(others)})" if others else "nothing"


def _written(selection: Versions) -> str:
    fields = {name: value for name, value in asdict(selection).items() if value and name != "recipe"}
    return ", ".join(f"{name}: {value}" for name, value in fields.items()) or "all"


def _is_selected(snapshot: str, selection: Versions) -> bool:
    names = selection.snapshots
    return (
        (not names or any(fnmatchcase(snapshot, name) for name in names))
        and snapshot >= selection.since
        and (not selection.until or snapshot <= selection.until)
    )


def _require_alike(root: str, versions: Sequence[Version], manifests: Sequence[Manifest]) -> None:
    """Raise ContractError unless the documents of all versions that have some have the same columns."""
    filled = [(version, manifest) for version, manifest in zip(versions, manifests, strict=True) if manifest.schema]
    for version, manifest in filled:
        if manifest.schema != filled[0][1].schema:
            message = (
                f"{root}: snapshot {version.snapshot} of recipe {version.recipe} has documents with other columns than "
                f"{filled[0][0].snapshot}; run one of them again by the present recipe, or select them apart "
                "(`versions: {since: ...}`)"
            )
            raise ContractError(message)


def _named(version: Version) -> dict[str, Any]:
    """Return a version as the identity of a composition has it: by what it is, not by when it was published."""
    return {
        "recipe": version.recipe,
        "snapshot": version.snapshot,
        "manifest": path_of(version.refined),
    }


def superseded_within(root: str, recipe: str, snapshots: Sequence[str], until: int | None = None) -> pa.Table:
    """Return the documents of selected snapshots that one of another selected snapshot supersedes: rows of `LEAVING`.

    A document whose winner was superseded in turn leaves if any document of that line is selected. `until` is the
    number of the last entry of the recipe's log that counts.
    """
    wins = _winners(root, recipe, until)
    chosen = set(snapshots)
    losers = [loser for loser in sorted(wins) if loser[1] in chosen]
    pairs = [(loser, winner) for loser in losers if (winner := _selected_winner(loser, wins, chosen))]
    rows = [dict(zip(LEAVING.names, (*loser, *winner), strict=True)) for loser, winner in pairs]
    return pa.Table.from_pylist(rows, schema=LEAVING)


Node = tuple[str, str]
"""A document: its id and its snapshot."""


def _winners(root: str, recipe: str, until: int | None) -> dict[Node, list[Node]]:
    """Return the winners of each superseded document, by the newest version that names it.

    A version supersedes near duplicates, and older pages of the same URL where its recipe compares URLs; several
    stages may supersede a document.
    """
    winners: dict[Node, list[Node]] = {}
    for version in version_log.latest_by_snapshot(root, recipe, until):
        named: dict[Node, list[Node]] = defaultdict(list)
        for batch in read_replaced(root, version):
            for row in batch.to_pylist():
                named[row["id"], row["snapshot"]].append((row["by_id"], row["by_snapshot"]))
        if version.superseded_path:
            body = read_published_file(root, version.file("superseded.parquet"), version.way_out)
            table = pq.read_table(pa.BufferReader(body), columns=LEAVING.names)
            columns = [table[name].to_pylist() for name in LEAVING.names]
            for id_, snapshot, winner, winner_snapshot in zip(*columns, strict=True):
                named[id_, snapshot].append((winner, winner_snapshot))
        winners |= named
    return winners


def _selected_winner(loser: Node, wins: Mapping[Node, list[Node]], chosen: set[str]) -> Node | None:
    """Return the first winner of a selected snapshot on the lines that lead from a document."""
    seen, lines = {loser}, deque(wins.get(loser, ()))
    while lines:
        node = lines.popleft()
        if node[1] in chosen and node not in seen:
            return node
        lines.extend(wins.get(node, ()) if node not in seen else ())
        seen.add(node)
    return None


def _stored(root: str, rows: pa.Table, folder: str) -> Shard:
    writer = ShardWriter(rows.schema)
    for batch in rows.combine_chunks().to_batches():
        writer.write(batch)
    return writer.store(root, folder)
