"""Checks what a person writes for gates, before anything runs: bounds of a recipe, and overrides."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline_tasks.cards import is_own, known_card, stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.facts.snapshots import SNAPSHOT_FACTS
from pipeline_tasks.gate.suites import EVERY, Bounds, Expectation, apply_bounds, load_suite, suite_at
from pipeline_tasks.manifest import Manifest, schema_pairs
from pipeline_tasks.recipe import PUBLISH, VERDICT, Recipe, gates_of


def suites_of(gate: str) -> list[Expectation]:
    """Return the expectations of a stage's gate, or of one of those before the first stage and before publication."""
    if gate in (VERDICT, PUBLISH):
        return load_suite(gate)
    brought = None if is_own(gate) else known_card(gate)
    if brought is None:
        return load_suite(EVERY) + load_suite(gate)
    return load_suite(EVERY) + (suite_at(Path(brought.suite)) if brought.suite else [])


def gate_names(recipe: Recipe) -> tuple[str, ...]:
    """Return the names of a recipe's gates: `verdict` if it requires one, its stages, and `publish` of a snapshot."""
    return (*recipe.gates_before, *gates_of((step.stage for step in recipe.steps), recipe.versions))


def check_bounds(recipe: Recipe) -> None:
    """Refuse bounds of a recipe that are no limits, or of a fact that its gate does not have."""
    for gate, bounds in recipe.gates.items():
        try:
            bounded(gate, bounds, _names(gate))
        except RecipeError as error:
            message = f"recipe {recipe.name}: gates: {gate}: {str(error).removeprefix('gates: ')}"
            raise RecipeError(message) from error


def _names(gate: str) -> Facts:
    """Return the names of the facts of a gate, without values."""
    if gate == PUBLISH:
        return dict.fromkeys(SNAPSHOT_FACTS)
    card = stage_card(gate)
    empty = Manifest(
        stage=gate,
        version=card.version,
        fingerprint="",
        params={},
        parents=(),
        covers=(),
        schema=schema_pairs(card.writes),
        shards=(),
        history={},
        rejects=(),
        quarantine=(),
        rows_in=0,
        bytes_in=0,
        rejected={},
        quarantined={},
    )
    return dict.fromkeys(compute_facts("", empty))


def bounded(gate: str, bounds: Bounds, facts: Facts) -> list[Expectation]:
    """Return the expectations of a gate with a recipe's bounds; RecipeError for bounds that make no sense."""
    expectations = apply_bounds(suites_of(gate), bounds, facts)
    if gate == PUBLISH and not any(_refuses_empty(expectation) for expectation in expectations):
        message = "gates: documents: min_value must be 1 or more; a person overrides the gate to publish no document"
        raise RecipeError(message)
    return expectations


def _refuses_empty(expectation: Expectation) -> bool:
    limits = expectation["kwargs"]
    least = limits.get("min_value")
    critical = expectation["severity"] == "critical" and not expectation["needs"]
    return bool(critical and limits["column"] == "documents" and least is not None and least >= 1)


def check_overrides(overrides: Mapping[str, str], gates: Iterable[str]) -> None:
    """Refuse an override of a gate that the recipe does not have, or without a reason."""
    names = tuple(gates)
    for gate, why in overrides.items():
        if gate not in names:
            message = f"override {gate!r}: there is no such gate; the gates are {', '.join(names)}"
            raise RecipeError(message)
        check_reason(gate, why)


def check_reason(gate: str, why: str) -> None:
    """Refuse an override without a reason."""
    if not why.strip():
        message = f"override of {gate}: the reason is empty; write why the data may pass, it is kept in the verdict"
        raise RecipeError(message)
