"""Finds params of a recipe that another param, or an absent one, turns off; and bounds that judge nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import stage_card
from pipeline_tasks.gate.suites import LIMITS, SEVERITIES
from pipeline_tasks.recipe import Recipe, kept_languages
from pipeline_tasks.run.recipe_faults import Finding


def canceled_params(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note for each param that the recipe writes and that has no effect there."""
    for step in recipe.steps:
        card = stage_card(step.stage)
        for param, why, remedy in card.canceled(bind(card, step.params)) if card.canceled else ():
            if param.partition(".")[0] in {**step.params, **step.params.get("limits", {})}:
                message = f"`{param}` has no effect: {why}; {remedy}, or remove it"
                yield Finding(fault=False, where=step.stage, message=message)


# --- Bounds on facts that may be absent -------------------------------------------------------------------------------

LANGUAGE_FACTS = ("language_share.", "language_retention.", "score_mean.", "language_signal_p50.")
"""Facts that exist of the languages of a snapshot alone."""


def absent_bounds(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note for each bound on a fact that a snapshot may lack: it is skipped then, and not broken."""
    kept = kept_languages(recipe)
    for gate, bounds in recipe.gates.items():
        for fact, change in bounds.items():
            if message := _absent(fact, change, kept):
                yield Finding(fault=False, where=f"gates.{gate}", message=message)


def _absent(fact: str, change: Mapping[str, Any], kept: frozenset[str]) -> str:
    """Return what a bound means where its fact is absent, "" if it never is or that does no harm."""
    kind = next((kind for kind in LANGUAGE_FACTS if fact.startswith(kind)), "")
    code = fact.rpartition(".")[2]
    if not kind or code == "*":
        return ""
    if kept and code not in kept:
        return (
            f"`{fact}` is never judged: `keep` of `filter_language` does not have {code}; add it, or remove the bound"
        )
    if kind == "language_share." and _has_minimum(change):
        return (
            f"`{fact}` is skipped where no document is in {code}: its minimum lets a snapshot without any pass; write "
            f"`{fact}: {{trailing: {{severity: critical}}}}`, which counts an absent language as a share of 0"
        )
    return ""


def _has_minimum(change: Mapping[str, Any]) -> bool:
    return any(part.get(LIMITS[0]) is not None for part in (change, *(change.get(name, {}) for name in SEVERITIES)))
