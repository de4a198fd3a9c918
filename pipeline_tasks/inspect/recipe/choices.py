"""What a recipe chooses, as a digest of each stage: the same for a recipe that will run, and for what it has made.

What a run fills in is no choice: lists of what was taken down or is superseded, secrets, and the tokenizer, which is
the dataset's and the same for all that is compared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import known_card, stage_card, tokenizes
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.composing import CLUSTERS, SUPERSEDED
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.takedowns import PINNED
from pipeline_tasks.recipe import COMPOSE, LAND, TAKEDOWN, Step
from pipeline_tasks.run.plan import identity_of, resources_of
from pipeline_tasks.sealed import digest_of, path_of
from pipeline_tasks.stage import VARIABLE, Stage
from pipeline_tasks.store.reading import read_manifest

Choices = Mapping[str, str]
"""A digest of its version and its params for each stage of a recipe, in the order of stages."""

NO_CHOICE = (LAND, COMPOSE, TAKEDOWN)
"""What every run has alike, beside the stage with the tokenizer."""

FILLED_IN = (PINNED, SUPERSEDED, CLUSTERS, "copies")
"""Params that a run fills in; `shuffle` has `copies` where its input has them."""

SEVERAL = "several"
"""In the place of a digest: snapshots of a dataset were refined otherwise, so that it is of no one recipe."""


def choices_of(steps: Iterable[Step]) -> dict[str, str]:
    """Return what the steps of a recipe choose; files that they name are read. RecipeError where one is missing."""
    return {step.stage: _chosen(step) for step in steps if _is_choice(step.stage)}


def _is_choice(stage: str) -> bool:
    return stage not in NO_CHOICE and not tokenizes(stage)


def _chosen(step: Step) -> str:
    card = stage_card(step.stage)
    params, digests = resources_of(card, bind(card, step.params, step.stage))
    return _digest(card, card.version, identity_of(params, digests))


def choices_made(manifests: Iterable[Manifest]) -> dict[str, str]:
    """Return what the recipe chose that made manifests, given in the order of stages."""
    return {
        manifest.stage: _digest(card, manifest.version, manifest.params)
        for manifest in manifests
        if _is_choice(manifest.stage) and (card := known_card(manifest.stage))
    }


def _digest(card: Stage[Any], version: int, params: Mapping[str, Any]) -> str:
    secrets = [declared.name for declared in fields(card.params) if VARIABLE in declared.metadata]
    return digest_of([version, {name: params[name] for name in params if name not in (*FILLED_IN, *secrets)}])


def choices_behind(root: str, version: Version) -> dict[str, dict[str, str]]:
    """Return the choices of a training dataset and of its snapshots, by the names of their recipes."""
    composed = read_manifest(root, version.manifests[COMPOSE])
    refined: dict[str, dict[str, str]] = {}
    for named in composed.params["versions"]:
        own = _version_of(root, named)
        made = choices_made(_manifests(root, own)) if own else {}
        known = refined.setdefault(named["recipe"], made)
        refined[named["recipe"]] = {
            stage: known[stage] if known.get(stage) == made.get(stage) else SEVERAL for stage in {**known, **made}
        }
    return {**refined, version.recipe: choices_made(_manifests(root, version))}


def _version_of(root: str, named: Mapping[str, str]) -> Version | None:
    """Return the version that a composition names, None where its log has it no more."""
    own = [version for version in version_log.versions(root, named["recipe"]) if version.snapshot == named["snapshot"]]
    return next((version for version in reversed(own) if path_of(version.refined) == named["manifest"]), None)


def _manifests(root: str, version: Version) -> Iterator[Manifest]:
    for referred in version.manifests.values():
        yield read_manifest(root, referred)
