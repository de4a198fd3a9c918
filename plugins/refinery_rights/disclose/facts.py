"""Collects what a disclosure tells of a version: its sources, amounts, stages with their reasons, and takedowns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pipeline_tasks.cards import known_card
from pipeline_tasks.inspect.versions import uncounted
from pipeline_tasks.manifest import Manifest, in_order, total
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.publish.takedowns import documents_of
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.erasures import LOG as ERASURES
from pipeline_tasks.store.erasures import erased_by_path
from pipeline_tasks.store.log_chain import Log, dataset_log, read_chain
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shards.rows import layers_of
from pipeline_tasks.store.taken_down import LOG as TAKEDOWNS
from pipeline_tasks.store.taken_down import taken_down
from refinery_rights.disclose.about import About, Category
from refinery_rights.disclose.counting import Amount, Counts, Domains, ModelAmount, Period, counted_documents
from refinery_rights.disclose.origins import SourceOrigin, origin_of
from refinery_rights.disclose.page import Answer, Evidence
from refinery_rights.statements.statement import Stated, delivered, stated_versions


@dataclass(frozen=True, slots=True)
class StageTotal:
    """What a stage did in all of the versions: rows, the rejected ones by reason, and what it had nothing for (`idle`).

    `evidence` are the ids of its manifests.
    """

    stage: str
    title: str
    rows_in: int
    rows: int
    rejected: Mapping[str, int]
    quarantined: int
    idle: tuple[str, ...]
    manifests: tuple[Manifest, ...]
    evidence: tuple[str, ...]


SHOWN = 100
"""Domains that a page lists; the file beside it has all that the template asks for."""


class DomainList(NamedTuple):
    """The domains with most bytes of some snapshots."""

    snapshots: tuple[str, ...]
    domains: Domains


@dataclass(frozen=True, slots=True)
class Facts:
    """What is told of a version.

    `stated` is the version with its manifests, and behind it those of the snapshots that a training dataset was built
    from. `files` are those that it delivers. `documents` are the ids of the manifests that the documents were counted
    in. `taken_down` are what is taken down now, by kind; `erased` the rows of the delivered files that were erased
    since. `generated` is what models wrote, of all that `total` has.
    `state` says why the version does not count any more, "" for one that does; `sources_since` says it of the snapshots
    that a training dataset was built from, by their names.
    """

    root: str
    about: About
    evidence: Evidence
    stated: tuple[Stated, ...]
    files: tuple[PublishedFile, ...]
    counts: Counts
    total: Amount
    uses: Amount
    generated: tuple[ModelAmount, ...]
    periods: tuple[Period, ...]
    documents: tuple[str, ...]
    origins: tuple[SourceOrigin, ...]
    domains: Mapping[Category, DomainList]
    stages: tuple[StageTotal, ...]
    entry: str
    taken_down: Mapping[str, int]
    takedowns: int
    takedown_log: tuple[str, ...]
    erased: int
    erasure_log: tuple[str, ...]
    state: str
    sources_since: Mapping[str, str]

    @property
    def version(self) -> Version:
        """The version that is told of."""
        return self.stated[0].version

    @property
    def written(self) -> Amount:
        """What models wrote of it, all together."""
        amounts = [each.amount for each in self.generated]
        return Amount(*(sum(getattr(each, name) for each in amounts) for name in ("documents", "bytes", "tokens")))

    @property
    def is_dataset(self) -> bool:
        """Whether it is a training dataset."""
        return COMPOSE in self.version.manifests

    @property
    def name(self) -> str:
        """The version in words."""
        kind = "training dataset" if self.is_dataset else f"snapshot {self.version.snapshot} of recipe"
        return f"{kind} {self.version.recipe}, version {self.version.number}"

    @property
    def sized(self) -> tuple[str, ...]:
        """The ids of what its sizes were computed from: the entry of the log, and the manifests of the documents."""
        return (self.entry, *self.documents)

    def stage(self, is_it: Callable[[str], bool]) -> StageTotal | None:
        """Return what the first such stage did, None if the recipe has none."""
        return next((total for total in self.stages if is_it(total.stage)), None)

    def figure(self, value: int, unit: str) -> Answer:
        """Return a number that follows from the documents."""
        return Answer(value, unit, evidence=self.documents)


@contextmanager
def collected(root: str, version: Version, about: About) -> Iterator[Facts]:
    """Collect the facts of a version; the counts can be asked until the context ends.

    ContractError where the root does not have a manifest, a shard or an entry of a log as it was committed.
    """
    evidence = Evidence()
    stated = stated_versions(root, version)
    snapshots = stated[1:] if COMPOSE in version.manifests else stated
    entry = _cite_entry(root, dataset_log(version.recipe), version.number, evidence, "the version in its log")
    documents = [document_manifest(root, stated[0])]
    origins = tuple(origin_of(each, about) for each in snapshots)
    with counted_documents(root, documents) as counts:
        yield Facts(
            root=root,
            about=about,
            evidence=evidence,
            stated=tuple(stated),
            files=tuple(delivered(root, stated[0])),
            counts=counts,
            total=counts.total(),
            uses=counts.uses(),
            generated=tuple(counts.generated()),
            periods=tuple(counts.periods()),
            documents=tuple(_cite(stated[0], manifest.stage, evidence) for manifest in documents),
            origins=origins,
            domains=dict(_domain_lists(counts, origins, small=about.small_enterprise)),
            stages=tuple(_stage_totals(stated, evidence)),
            entry=entry,
            taken_down=_taken_down(root),
            takedowns=len(read_chain(root, TAKEDOWNS)),
            takedown_log=_cite_head(root, TAKEDOWNS, evidence, "the log of takedowns"),
            erased=_erased_rows(root, documents),
            erasure_log=_cite_head(root, ERASURES, evidence, "the log of erasures"),
            state="".join(state for _, state in _states(root, [version])),
            sources_since=dict(_states(root, [each.version for each in stated[1:]])),
        )


def _domain_lists(
    counts: Counts, origins: Sequence[SourceOrigin], *, small: bool
) -> Iterator[tuple[Category, DomainList]]:
    """Yield each list of sources that has documents with addresses, with the domains that have most bytes in it."""
    for category in dict.fromkeys(origin.category for origin in origins):
        snapshots = tuple(origin.version.snapshot for origin in origins if origin.category == category)
        domains = counts.domains(snapshots, SHOWN, small=small)
        if domains.total:
            yield category, DomainList(snapshots, domains)


def document_manifest(root: str, stated: Stated) -> Manifest:
    """Return the manifest of a version's documents: of the last stage that refined it, or those that a build packs."""
    if COMPOSE not in stated.manifests:
        return read_manifest(root, stated.version.refined)
    return documents_of(stated.manifests)


def cite_stage(facts: Facts, stated: Stated, stage: str) -> str:
    """Return the id of the manifest of a stage of a version."""
    return _cite(stated, stage, facts.evidence)


def _cite(stated: Stated, stage: str, evidence: Evidence) -> str:
    version = stated.version
    what = f"manifest of {stage}, {version.recipe} {version.snapshot}"
    return evidence.cite(path_of(version.manifests[stage]), stated.digests[stage], what)


def _cite_entry(root: str, log: Log, number: int, evidence: Evidence, what: str) -> str:
    entry = read_chain(root, log)[number - 1]
    return evidence.cite(log.entry_path(number), entry.digest, what)


def _cite_head(root: str, log: Log, evidence: Evidence, what: str) -> tuple[str, ...]:
    """Return the id of the last entry of a log, which names all before it; none of an empty log."""
    return tuple(
        evidence.cite(log.entry_path(last.number), last.digest, f"{what}, last entry")
        for last in read_chain(root, log)[-1:]
    )


def _stage_totals(stated: Sequence[Stated], evidence: Evidence) -> Iterator[StageTotal]:
    """Yield each stage that documents went through, in order, added up over the versions that have it."""
    by_stage: dict[str, list[tuple[Stated, Manifest]]] = {}
    order: list[str] = []
    for each in (*stated[1:], stated[0]):
        place = len(order) if COMPOSE in each.manifests else 0
        for stage, manifest in in_order(each.manifests).items():
            if stage not in (LAND, COMPOSE):
                by_stage.setdefault(stage, []).append((each, manifest))
                if stage not in order:  # behind the one before it
                    order.insert(place, stage)
                place = order.index(stage) + 1
    for stage in order:
        parts = by_stage[stage]
        manifests = tuple(manifest for _, manifest in parts)
        yield StageTotal(
            stage=stage,
            title=card.title if (card := known_card(stage)) else "",
            rows_in=sum(manifest.rows_in for manifest in manifests),
            rows=sum(manifest.rows for manifest in manifests),
            rejected=most_first(manifest.rejected for manifest in manifests),
            quarantined=sum(sum(manifest.quarantined.values()) for manifest in manifests),
            idle=tuple(dict.fromkeys(str(part) for manifest in manifests for part in idle_parts(manifest))),
            manifests=manifests,
            evidence=tuple(_cite(each, stage, evidence) for each, _ in parts),
        )


def most_first(tallies: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of tallies, the largest numbers first."""
    return dict(sorted(total(tallies).items(), key=lambda item: (-item[1], item[0])))


def _states(root: str, versions: Iterable[Version]) -> Iterator[tuple[str, str]]:
    """Yield in words each version that does not count any more, and why."""
    for line in uncounted(root, versions):
        yield f"version {line.number} of {line.recipe}, snapshot {line.snapshot},", f"{line.state} ({line.note})"


def _taken_down(root: str) -> dict[str, int]:
    return taken_down(root).held_by_kind


def _erased_rows(root: str, documents: Iterable[Manifest]) -> int:
    """Return the rows of documents' shards, and of those below them, that were erased since: each counted once."""
    gone = erased_by_path(root)
    if not gone:
        return 0
    most = 0
    for manifest in documents:
        for shard in manifest.shards:
            rows = [gone[part.path].rows for part in layers_of(root, shard) if part.path in gone]
            most += max(rows, default=0)
    return most
