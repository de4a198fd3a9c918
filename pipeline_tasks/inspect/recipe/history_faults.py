"""Finds, before a run, settings that its published history was not made by: documents of both cannot be compared."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import adds, copies_of, stage_card
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import Recipe, Step
from pipeline_tasks.run.recipe_faults import Finding, maker_of_vectors, vectors_of
from pipeline_tasks.schema import EMBEDDING, EMBEDDING_LANGUAGES, EMBEDDING_MODEL
from pipeline_tasks.scorers.model_card import listed
from pipeline_tasks.store.reading import read_manifest

Settings = dict[str, Any]
"""What must stay the same as long as there is history, by the name of the setting; None: unknown."""

LANGUAGE = "language"


def history_faults(root: str, recipe: Recipe, dataset: str, snapshot: str) -> Iterator[Finding]:
    """Yield a fault per stage with other settings than those by which an earlier snapshot of a dataset was refined.

    Snapshots are those that the run would have as history. A stage that is not in the recipe is not looked at, nor is
    the model of one: it may be on a cluster.
    """
    near = [step for step in recipe.steps if copies_of(step.stage).over_snapshots]
    earlier = version_log.earlier(root, dataset, snapshot) if near else []
    for step in near:
        known = next((version for version in reversed(earlier) if step.stage in version.manifests), None)
        if known is None:
            continue
        before = _settings_before(root, step.stage, known.manifests)
        now = _settings_now(recipe, step)
        changed = [name for name in before if name in now and now[name] != before[name]]
        if changed:
            named = ", ".join(f"{name} was {_said(before[name])} and is {_said(now[name])}" for name in changed)
            message = (
                f"documents of snapshot {known.snapshot} cannot be compared with those of this run: {named}; set it as "
                "it was, or start a dataset without history under another recipe name"
            )
            yield Finding(fault=True, where=step.stage, message=message, error=ContractError)


def _said(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple | list) else str(value)


def _settings_before(root: str, stage: str, manifests: Mapping[str, str]) -> Settings:
    """Return the settings by which a snapshot was refined, as far as its manifests say them."""
    manifest = read_manifest(root, manifests[stage])
    try:
        settings = _deciding(stage, bind(stage_card(stage), manifest.params))
    except RecipeError:  # of another release, or of a package that is not installed here
        return {}
    if _compares_vectors(stage) and manifest.rows_in:
        settings |= _languages_before(manifest)
        for maker in (name for name in manifests if adds(EMBEDDING, name)):
            made = _names(read_manifest(root, manifests[maker]), EMBEDDING_MODEL)
            settings |= {_model_of(maker): made[0]} if len(made) == 1 else {}
    return settings


def _compares_vectors(stage: str) -> bool:
    return EMBEDDING in stage_card(stage).reads.names


def _model_of(maker: str) -> str:
    """Return the name of the setting that is the model of vectors."""
    return f"the model of {maker}"


def _languages_before(manifest: Manifest) -> Settings:
    """Return the languages that were compared, none for all."""
    if LANGUAGE not in dict(manifest.schema):
        return {"languages": ()}
    named = manifest.params.get("languages") or [
        code for codes in _names(manifest, EMBEDDING_LANGUAGES) for code in codes.split(",")
    ]
    return {"languages": listed(named)}


def _names(manifest: Manifest, column: str) -> list[str]:
    """Return the values of a column of names among the rows that were kept."""
    return list(manifest.metrics.get("kept", {}).get(column, {}).get("bins", {}))


def _settings_now(recipe: Recipe, step: Step) -> Settings:
    params = bind(stage_card(step.stage), step.params)
    settings = _deciding(step.stage, params)
    maker = maker_of_vectors(recipe)
    if _compares_vectors(step.stage) and maker:
        model = vectors_of(maker)
        has_language = any(LANGUAGE in stage_card(each.stage).writes.names for each in recipe.steps)
        known = params.languages or (model.languages if has_language else ())
        settings |= {_model_of(maker.stage): model.name, "languages": listed(known)}
    return settings


def _deciding(stage: str, params: object) -> Settings:
    return {name: getattr(params, name) for name in copies_of(stage).deciding}
