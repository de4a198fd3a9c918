"""Gathers what the page of a training dataset shows: what it has, what it was made of, its health, and what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.cards import choosing_stages, plans_mixture, stage_that
from pipeline_tasks.inspect.report.plotted import Published
from pipeline_tasks.inspect.versions.outlived import retracted_manifests
from pipeline_tasks.publish.datasets.building import CARD, plan_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest
from refinery_airflow.pages.answers import Balance, Health, balance_of, health_of

SOURCES_SHOWN = 7
"""Snapshots, and groups of the mixture, that a card lists; the rest is folded."""

OPEN = frozenset({"language", "source", "snapshot"})
"""Columns whose values are shown to all; groups by another may be named by a site."""


@dataclass(frozen=True, slots=True)
class Source:
    """A snapshot that the dataset was made of, with its documents; no version of a snapshot that is not in its log.

    `is_retracted` says that it was retracted since: the next build leaves it out. Texts are searched of one that
    `is_live`, as no later version is retracted.
    """

    recipe: str
    snapshot: str
    version: Version | None
    is_retracted: bool
    is_live: bool


@dataclass(frozen=True, slots=True)
class Dataset:
    """The page: a version of a training dataset, the one before it, its sources and groups, and its answers."""

    version: Version
    before: Version | None
    newest: Version
    sources: Sequence[Source]
    by: str
    groups: Sequence[Mapping[str, Any]]
    balance: Balance
    health: Health

    @property
    def is_open(self) -> bool:
        """Return whether the names of its groups are for all."""
        return set(self.by.split("+")) <= OPEN

    @property
    def searched(self) -> Source | None:
        """The newest snapshot whose texts can be searched; None if all are retracted."""
        return next((source for source in self.sources if source.is_live), None)

    @property
    def available(self) -> int:
        """The tokens of all groups."""
        return sum(group["available"] for group in self.groups)


def is_dataset(version: Version) -> bool:
    """Return whether a version is of a training dataset, and not of a snapshot."""
    return COMPOSE in version.manifests


def dataset_of(published: Published) -> Dataset:
    """Return the page of a version of a training dataset."""
    root, version = published.root, published.version
    manifests = {stage: read_manifest(root, referred) for stage, referred in version.manifests.items()}
    versions = version_log.versions(root, version.recipe)
    choosing = choosing_stages(step["stage"] for step in published.steps)
    mixed = manifests.get(stage_that(plans_mixture, manifests))
    groups = sorted(plan_of(root, manifests), key=lambda group: (-group["taken"], group["group"]))
    return Dataset(
        version=version,
        before=next((each for each in reversed(versions) if each.number < version.number), None),
        newest=versions[-1],
        sources=_sources(root, manifests[COMPOSE].params["versions"]),
        by=str(mixed.params.get("by", "")) if mixed else "",
        groups=groups,
        balance=balance_of(published.steps[: len(choosing)]),
        health=health_of(version.recipe, published.verdicts),
    )


def _sources(root: str, composed: Sequence[Mapping[str, str]]) -> list[Source]:
    """Return the composed snapshots, the newest first, with the versions that had the composed documents."""
    recipes = {entry["recipe"] for entry in composed}
    known = {
        (version.recipe, version.snapshot, path_of(version.refined)): version
        for recipe in recipes
        for version in version_log.versions(root, recipe)
    }
    live = {(recipe, each.snapshot) for recipe in recipes for each in version_log.latest_by_snapshot(root, recipe)}
    retracted = {path for recipe in recipes for path in retracted_manifests(root, recipe)}
    sources = [(entry["recipe"], entry["snapshot"], entry["manifest"]) for entry in composed]
    return [
        Source(recipe, snapshot, known.get((recipe, snapshot, path)), path in retracted, (recipe, snapshot) in live)
        for recipe, snapshot, path in sources[::-1]
    ]


def card_of(root: str, version: Version) -> str:
    """Return the card of a version, in Markdown as the hub shows it, without what only the hub reads."""
    card = read_published_file(root, version.file(CARD), version.way_out).decode()
    return card.split("---\n", 2)[-1].strip() if card.startswith("---\n") else card
