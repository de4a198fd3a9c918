"""Estimates the plan of a build before anything runs: tokens by group from manifests, mixed as `mix` would."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import plans_mixture, stage_that, tokenizes
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.facts.subject import profiles_of
from pipeline_tasks.inspect.chosen import document_manifest, ordered_manifests
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.composing import selected
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, Recipe, Versions
from pipeline_tasks.stages.mix import STAGE
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.shares import shares, wanted_tokens
from pipeline_tasks.store.reading import read_manifest

CHARACTERS = 4.0
"""Characters of a token where nothing was built yet: about what byte-level BPE has in English."""

COUNTED = ("language", "source")
"""Columns whose documents manifests count."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of the mixture: its documents, and the tokens that it has, that are wanted and that are taken."""

    name: str
    documents: int
    available: int
    wanted: int
    taken: int

    @property
    def epochs(self) -> float | None:
        """How often its tokens are used; None of a group without any."""
        return self.taken / self.available if self.available else None


@dataclass(frozen=True, slots=True)
class Band:
    """A band of quality of every group: its number, from 1 up, its factor, and the tokens that are taken of it."""

    number: int
    factor: float
    taken: int


@dataclass(frozen=True, slots=True)
class BuildEstimate:
    """The plan of a build, estimated: its versions, the groups of its mixture, and what the estimate rests on.

    `absent` are groups that the params name and no document has. `bands` are those of `quality`, none without it.
    """

    versions: Sequence[Version]
    by: str
    groups: Sequence[Group]
    basis: str
    absent: Sequence[str]
    bands: Sequence[Band] = ()

    @property
    def total(self) -> Group:
        """All groups together."""
        names = ("documents", "available", "wanted", "taken")
        return Group("all", *(sum(getattr(group, name) for group in self.groups) for name in names))


def mixture_of(recipe: Recipe, changes: Mapping[str, Any]) -> Params:
    """Return the params of a recipe's mixture with changes; RecipeError if they are not possible together."""
    written = next((dict(step.params) for step in recipe.steps if plans_mixture(step.stage)), {})
    mixture: Params = bind(STAGE, {**written, **changes}, f"{recipe.name}: {STAGE.name}")
    return mixture


def build_estimate(root: str, recipe: Recipe, snapshots: Sequence[str], changes: Mapping[str, Any]) -> BuildEstimate:
    """Return the estimated plan of a build of these snapshots, all that the recipe selects if none is named.

    `changes` are params of `mix` in place of the recipe's. Only manifests are read. Documents that `select` leaves out
    and `factors` are not known before a build, and are not taken off. Bands of quality are: they are equal parts of
    each group, whose documents are taken to have the number, and to be small beside a band. RecipeError if no snapshot
    is selected, or the groups are of a column that manifests do not count.
    """
    params = mixture_of(recipe, changes)
    if params.by not in COUNTED:
        message = (
            f"documents are counted by {' and '.join(COUNTED)}, and not by {params.by}, before they are tokenized; "
            "the command below counts them"
        )
        raise RecipeError(message)
    selection = recipe.versions or Versions("")
    chosen = selected(root, replace(selection, snapshots=tuple(snapshots)) if snapshots else selection)
    documents = Counter[str]()
    characters = Counter[str]()
    for version in chosen:
        _count(root, version, params.by, documents, characters)
    rates, whole, basis = _rates(root, selection.recipe, params.by)
    available = {
        name: Fraction(round(documents[name] * rates.get(name, whole) if whole else characters[name] / CHARACTERS))
        for name in sorted(documents)
    }
    if params.quality:
        factors = params.quality.band_factors
        available = {name: tokens * sum(factors) / len(factors) for name, tokens in available.items()}
    return _mixed(chosen, params, documents, available, basis)


def _mixed(
    chosen: Sequence[Version],
    params: Params,
    documents: Mapping[str, int],
    available: Mapping[str, Fraction],
    basis: str,
) -> BuildEstimate:
    wanted, kept = wanted_tokens(available, params), shares(available, params)
    groups = [
        Group(
            name,
            documents[name],
            int(tokens),
            int(wanted.get(name, 0)),
            int(kept.get(name, Fraction(0)) * tokens),
        )
        for name, tokens in available.items()
    ]
    named = {*params.weights, *params.tokens, *params.epochs}
    groups.sort(key=lambda group: (-group.taken, -group.available, group.name))
    bands = _bands(params, sum(group.taken for group in groups))
    return BuildEstimate(chosen, params.by, groups, basis, sorted(named - documents.keys()), bands)


def _bands(params: Params, taken: int) -> list[Band]:
    """Return the bands of quality, each with its part of the tokens that are taken."""
    factors = params.quality.band_factors if params.quality else ()
    whole = sum(factors) or 1
    return [Band(number, float(factor), int(taken * factor / whole)) for number, factor in enumerate(factors, start=1)]


def _count(root: str, version: Version, by: str, documents: Counter[str], characters: Counter[str]) -> None:
    """Add a version's documents and their characters by group.

    The last manifest that counts the column has all documents but the few that later stages rejected: shares are its.
    """
    manifests = ordered_manifests(root, version)
    last = document_manifest(manifests)
    counting = _last_with(manifests, by)
    if last is None or counting is None or not counting.rows:
        documents[""] += version.documents
        return
    measured = _last_with(manifests, "chars")
    length = _mean(measured, "chars") if measured else 0.0
    for name, rows in profiles_of(counting)[by]["bins"].items():
        share = round(rows * last.rows / counting.rows)
        documents[name] += share
        characters[name] += round(share * length)


def _last_with(manifests: Mapping[str, Manifest], column: str) -> Manifest | None:
    having = [manifest for manifest in manifests.values() if profiles_of(manifest).get(column, {}).get("count")]
    return having[-1] if having else None


def _mean(manifest: Manifest, column: str) -> float:
    profile = profiles_of(manifest)[column]
    mean: float = profile["sum"] / profile["count"]
    return mean


def _rates(root: str, recipe: str, by: str) -> tuple[Mapping[str, float], float, str]:
    """Return tokens per document, by group and of all, by the newest build of the recipe's versions; and its name.

    Without a build they are none and 0.
    """
    for build in version_log.built_versions(root):
        composed = read_manifest(root, build.manifests[COMPOSE]).params["versions"]
        stage = stage_that(tokenizes, build.manifests)
        if recipe in {part["recipe"] for part in composed} and stage:
            profiles = profiles_of(read_manifest(root, build.manifests[stage]))
            tokens = profiles.get(f"{by}_tokens", {}).get("bins", {})
            rows = profiles.get(by, {}).get("bins", {})
            known = {name: tokens[name] / rows[name] for name in rows if rows[name] and name in tokens}
            whole = profiles["n_tokens"]["sum"] / max(profiles["n_tokens"]["count"], 1)
            return known, whole, f"tokens per document of {build.recipe} version {build.number}"
    return {}, 0.0, f"{CHARACTERS:g} characters per token, as nothing was built of {recipe} yet"
