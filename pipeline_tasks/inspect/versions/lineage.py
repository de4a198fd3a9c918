"""Shows what a version was made from: its manifests, and those of other versions that they read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Part, Table
from pipeline_tasks.ask.question import Question
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.command import NewestSnapshot, OnlyRecipe, version_of
from pipeline_tasks.inspect.versions import VersionLine, list_versions
from pipeline_tasks.manifest import Manifest, fingerprint_in, manifest_path
from pipeline_tasks.plots.lineage import COMPOSED, HISTORY, MADE_FROM, Edge, ManifestNode, lineage_plot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.report.summary import StageSummary, read_summary
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import parent_of

Key = tuple[str, str]
"""A stage and the fingerprint of its manifest."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The manifests of a version and of those that it read, each after its parents, and which is a parent of which."""

    version: Version
    nodes: tuple[ManifestNode, ...]
    edges: tuple[Edge, ...]

    @property
    def own(self) -> list[ManifestNode]:
        """The version's own manifests, in the order of its stages."""
        return [node for node in self.nodes if node.is_own]

    def parents(self, node: ManifestNode, *kinds: str) -> list[ManifestNode]:
        """Return the parents of a manifest that are of these kinds, oldest snapshot first; of every kind if none."""
        by_path = {each.path: each for each in self.nodes}
        edges = [edge for edge in self.edges if edge.child == node.path and (not kinds or edge.kind in kinds)]
        return [by_path[edge.parent] for edge in edges]


@dataclass(frozen=True, slots=True)
class Params:
    """Of which version."""

    root: str
    recipe: OnlyRecipe = ""
    snapshot: NewestSnapshot = ""


def answer(params: Params) -> Answer:
    """Return the manifests of a version with their rows, what they read of other versions, and a drawing of both."""
    shown = lineage(params.root, version_of(params))
    title = f"{shown.version.recipe} version {shown.version.number}, snapshot {shown.version.snapshot}"
    read = Table(READ, [*_read(shown)], "What it read of other versions", "It read nothing of other versions.")
    plot = lineage_plot(shown.nodes, shown.edges)
    parts: list[Part] = [Table(OWN, [asdict(node) for node in shown.own], title), read, *([plot] if plot else [])]
    return Answer(f"Lineage of {title}", parts, lineage_facts(shown))


def _read(shown: Lineage) -> Iterator[dict[str, object]]:
    """Yield the manifests of other versions that each stage read, the newest snapshot first."""
    for node in shown.own:
        for kind in (HISTORY, COMPOSED, MADE_FROM):
            parents = [parent for parent in shown.parents(node, kind) if not parent.is_own]
            for parent in sorted(parents, key=attrgetter("snapshot"), reverse=True):
                yield {**asdict(parent), "kind": kind, "by": node.stage, "place": parent.place}


ROWS = (
    Column("rows_in", "in", "count"),
    Column("rows", "kept", "count"),
    Column("rejected", kind="count"),
    Column("quarantined", kind="count"),
    Column("path", "manifest", "path"),
)

OWN = (Column("stage"), *ROWS)

READ = (
    Column("by", "stage"),
    Column("kind", "read as"),
    Column("place", kind="version"),
    Column("version", kind="count"),
    Column("state", kind="state"),
    *ROWS,
)

QUESTION = Question(Params, answer)


def lineage(root: str, version: Version) -> Lineage:
    """Return the lineage of a version.

    Only its own manifests are read; what others kept is in the summaries of the versions that have them.
    """
    manifests = ordered_manifests(root, version)
    own = {manifest.fingerprint: _own_node(version, stage, manifest) for stage, manifest in manifests.items()}
    known = _publications(root, _recipes(version, manifests))
    others: dict[str, ManifestNode] = {}
    edges: list[Edge] = []
    for manifest in manifests.values():
        for parent, kind in _parents(root, version, manifest, own, known):
            others |= {} if parent.is_own else {parent.path: parent}
            edges.append(Edge(parent.path, own[manifest.fingerprint].path, kind))
    stages = {node.stage for node in own.values()}
    before = [node for node in others.values() if node.stage not in stages]
    same = [node for node in others.values() if node.stage in stages]
    return Lineage(version, (*before, *own.values(), *same), tuple(edges))


def _own_node(version: Version, stage: str, manifest: Manifest) -> ManifestNode:
    counts = (manifest.rows_in, manifest.rows, sum(manifest.rejected.values()), sum(manifest.quarantined.values()))
    rows_in, rows, rejected, quarantined = (None,) * 4 if manifest.landed else counts
    return ManifestNode(
        stage=stage,
        path=path_of(version.manifests[stage]),
        recipe=version.recipe,
        snapshot=version.snapshot,
        version=version.number,
        rows_in=rows_in,
        rows=rows,
        rejected=rejected,
        quarantined=quarantined,
        is_own=True,
    )


def _parents(
    root: str,
    version: Version,
    manifest: Manifest,
    own: Mapping[str, ManifestNode],
    known: "_Publications",
) -> Iterator[tuple[ManifestNode, str]]:
    """Yield the parents of a manifest with their kinds: what it refined, then what it read of other versions."""
    if manifest.stage == COMPOSE:
        paths = [str(part["manifest"]) for part in manifest.params["versions"]]
        yield from ((known.node(root, (path.partition("/")[0], fingerprint_in(path))), COMPOSED) for path in paths)
        return
    for parent in manifest.parents[:1]:
        refined = own.get(parent) or _unpublished_parent(root, version, manifest)
        if refined is not None:
            yield refined, MADE_FROM
    yield from ((known.node(root, (manifest.stage, parent)), HISTORY) for parent in manifest.parents[1:])


def _unpublished_parent(root: str, version: Version, manifest: Manifest) -> ManifestNode | None:
    """Return what a stage refined that is in no version, as of a version without its first stages."""
    parent = parent_of(root, manifest)
    if parent is None:
        return None
    path = manifest_path(parent.stage, parent.fingerprint)
    node = _own_node(replace(version, manifests={parent.stage: path}), parent.stage, parent)
    return replace(node, recipe="", snapshot="", version=0, is_own=False)


# --- Other versions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Publications:
    """The newest version that has each manifest, with its line in the list of versions."""

    versions: Mapping[Key, tuple[Version, VersionLine]]

    def node(self, root: str, key: Key) -> ManifestNode:
        """Return the manifest of a stage and fingerprint as its version has it."""
        stage, fingerprint = key
        unknown = ManifestNode(stage, manifest_path(stage, fingerprint))
        if key not in self.versions:
            return unknown
        version, line = self.versions[key]
        named = replace(unknown, recipe=version.recipe, snapshot=version.snapshot, version=version.number)
        named = replace(named, state=line.state, path=path_of(version.manifests[stage]))
        return _counted(named, next(each for each in read_summary(root, version).stages if each.stage == stage))


def _counted(node: ManifestNode, summary: StageSummary) -> ManifestNode:
    return replace(
        node,
        rows_in=summary.rows_in,
        rows=summary.rows,
        rejected=summary.rejected,
        quarantined=summary.quarantined,
    )


def _recipes(version: Version, manifests: Mapping[str, Manifest]) -> list[str]:
    """Return the recipes whose versions a version can have read."""
    composed = manifests[COMPOSE].params["versions"] if COMPOSE in manifests else ()
    return sorted({version.recipe, *(str(part["recipe"]) for part in composed)})


def _publications(root: str, recipes: Iterable[str]) -> _Publications:
    versions: dict[Key, tuple[Version, VersionLine]] = {}
    for recipe in recipes:
        lines = {line.number: line for line in list_versions(root, recipe)}
        for version in version_log.versions(root, recipe):
            for stage, referred in version.manifests.items():
                versions[stage, fingerprint_in(path_of(referred))] = version, lines[version.number]
    return _Publications(versions)


def lineage_facts(shown: Lineage) -> dict[str, object]:
    """Return a lineage as plain JSON values."""
    version = {name: getattr(shown.version, name) for name in ("recipe", "number", "snapshot")}
    return {
        **version,
        "manifests": [asdict(node) for node in shown.nodes],
        "edges": [asdict(edge) for edge in shown.edges],
    }
