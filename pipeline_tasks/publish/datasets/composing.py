"""Composes the input of a training dataset: the documents of a selection of published versions."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.cards import has_param
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest, identified, stage_prefix
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.publish.datasets.cluster_sizes import SIZES, sizes_within
from pipeline_tasks.publish.datasets.leaving import KEYS, LEAVING, superseded_within
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.takedowns import PINNED, beginning, holds, pinned_list
from pipeline_tasks.recipe import COMPOSE, Versions
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.sealed import digest_of_all, path_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.committing import commit_manifest
from pipeline_tasks.store.reading import commit_slot, read_committed, read_manifest
from pipeline_tasks.store.shards.segment_writer import SegmentWriter

SUPERSEDED = "superseded"
"""The history section of a composition: documents that another selected snapshot supersedes."""

CLUSTERS = "clusters"
"""The history section of a composition that counts them (`versions.cluster_sizes`): sizes of clusters."""

_VERSION = 3
"""Since 3 a section is a segment, where `select` looks ids up. The digest of its rows in `resources` is as before."""


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
    pinned = _taken_down(root, name, _params(name, versions))
    with _sections(root, selection.recipe, versions, sized=selection.cluster_sizes) as sections:
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
        with _sections(root, recipe, versions, sized=CLUSTERS in resources, until=entry.number) as sections:
            whole = _composed(name, versions, inputs, sections, resources)
            if whole.fingerprint == fingerprint:
                return _committed(root, whole, sections, versions)
    message = (
        f"{root}: the versions that {name} was composed of do not give compose/{fingerprint} any more: other documents "
        "are superseded than were, by versions that are not in this log, or by another release"
    )
    raise ContractError(message)


class Saved(NamedTuple):
    """A table that a composition saves: on this machine until it is stored, and the digest of its rows."""

    writer: SegmentWriter
    digest: str


Sections = Mapping[str, Saved]
"""The tables that a composition saves, by name."""


@contextlib.contextmanager
def _sections(
    root: str, recipe: str, versions: Sequence[Version], *, sized: bool, until: int | None = None
) -> Iterator[Sections]:
    """Give the sections of a composition, with the sizes of clusters if asked; by the log up to entry `until`."""
    leaving = superseded_within(root, recipe, [version.snapshot for version in versions], until)
    with contextlib.ExitStack() as stack:
        sections = {SUPERSEDED: _saved(leaving, SegmentWriter(LEAVING, KEYS), stack)}
        if sized:
            sizes = sizes_within(root, recipe, versions, until)
            sections[CLUSTERS] = _saved(sizes.to_batches(), SegmentWriter(SIZES, ("id",)), stack)
        yield sections


def _saved(batches: Iterable[pa.RecordBatch], writer: SegmentWriter, stack: contextlib.ExitStack) -> Saved:
    """Write a section to this machine's disk, where it is until the end."""
    stack.callback(writer.discard)

    def rows() -> Iterator[dict[str, object]]:
        for batch in batches:
            writer.write(batch)
            yield from batch.to_pylist()

    return Saved(writer, digest_of_all(rows()))


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
        resources={**pinned, **{section: saved.digest for section, saved in sections.items()}},
    )
    return identified(whole)


def _committed(root: str, whole: Manifest, sections: Sections, versions: Sequence[Version]) -> Composition:
    """Store the sections of a composition, and commit its manifest."""
    folder = f"{stage_prefix(COMPOSE, whole.fingerprint)}/data"
    manifest = replace(whole, history={name: (saved.writer.store(root, folder),) for name, saved in sections.items()})
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
