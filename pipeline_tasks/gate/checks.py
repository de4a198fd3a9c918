"""Checks what a person writes for gates, before anything runs: bounds of a recipe, and overrides."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from pipeline_tasks.cards import is_own, known_card, stage_card, stage_names
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.batch_expectations import (
    BatchExpectation,
    batch_expectations_at,
    check_columns,
    gate_of,
    own_suites,
)
from pipeline_tasks.gate.batches import ROWS, histogram_columns, row_columns
from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.facts.snapshots import SNAPSHOT_FACTS, VERDICT_FACTS
from pipeline_tasks.gate.facts.spent import SPENT
from pipeline_tasks.gate.suites import (
    EXPECTATIONS,
    FACTS,
    Bounds,
    Expectation,
    apply_bounds,
    check_bound,
    is_open,
    suite_at,
)
from pipeline_tasks.gate.validating import require_validator
from pipeline_tasks.manifest import Manifest, schema_pairs
from pipeline_tasks.nearest import nearest
from pipeline_tasks.recipe import EVERY, PUBLISH, VERDICT, Recipe, gates_of


def suites_of(gate: str) -> list[Expectation]:
    """Return the bounds of a stage's gate, or of one of those before the first stage and before publication."""
    return [bound for path, _ in (*_shipped(gate), *_own(gate)) for bound in suite_at(path)]


def over_batches(gate: str) -> list[BatchExpectation]:
    """Return the expectations of a gate that are over a batch as it is."""
    return [each for path, name in (*_shipped(gate), *_own(gate)) for each in batch_expectations_at(path, name)]


def _names_of(gate: str) -> tuple[str, ...]:
    """Return the names of the suites that a gate has."""
    return (gate,) if gate in (EVERY, VERDICT, PUBLISH) else (EVERY, gate)


def _shipped(gate: str) -> Iterator[tuple[Path, str]]:
    """Yield the suites that come with a gate: `every_stage`, and that of its name, with the names."""
    for name in _names_of(gate):
        card = None if name in (EVERY, VERDICT, PUBLISH) or is_own(name) else known_card(name)
        if card is None or card.suite:
            yield (Path(card.suite) if card else EXPECTATIONS / f"{name}.json"), name


def _own(gate: str) -> Iterator[tuple[Path, str]]:
    """Yield the suites that a team brings for a gate, with the names."""
    yield from ((path, name) for path in own_suites() if (name := gate_of(path)) in _names_of(gate))


def check_suites(recipe: Recipe) -> None:
    """Refuse suites that a team brings with a type, argument, batch, column or fact that there is not."""
    own = [(path, gate_of(path)) for path in own_suites()]
    over = [each for path, gate in own for each in batch_expectations_at(path, gate)]
    if over:
        require_validator(over)
    for path, gate in own:
        _check_bounds(path, gate, [name for each in _gates(gate, recipe) for name in _names(each)])
    for each in over:
        check_columns(each, sorted(_columns(each, recipe)))


def _check_bounds(path: Path, gate: str, facts: Iterable[str]) -> None:
    """Raise RecipeError for a bound of a suite without limits, or of a fact that there is not."""
    shipped = (bound["kwargs"]["column"] for suite, _ in _shipped(gate) for bound in suite_at(suite))
    known: Facts = dict.fromkeys((*facts, *shipped))
    for bound in suite_at(path):
        try:
            check_bound(bound, known)
        except RecipeError as error:
            message = f"{bound['origin']}: {str(error).removeprefix('gates: ')}"
            raise RecipeError(message) from error


def _gates(gate: str, recipe: Recipe) -> list[str]:
    """Return the gates that a suite is for: `every_stage` is for all stages of a recipe."""
    return [step.stage for step in recipe.steps] if gate == EVERY else [gate]


def _columns(expectation: BatchExpectation, recipe: Recipe) -> Collection[str]:
    """Return the columns that a batch of a recipe's gate may have: rows have those of the stages before, too."""
    stages, gate = [step.stage for step in recipe.steps], expectation.gate
    last = stages[-1] if gate == PUBLISH else gate
    if expectation.batch == ROWS:
        is_whole = recipe.versions or last not in stages
        return row_columns(stage_names() if is_whole else stages[: stages.index(last) + 1])
    if expectation.batch == FACTS:
        return {name for each in _gates(gate, recipe) for name in _names(each)}
    return {name for each in _gates(last, recipe) for name in histogram_columns(each)}


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
    if gate in (PUBLISH, VERDICT):
        return dict.fromkeys(SNAPSHOT_FACTS if gate == PUBLISH else VERDICT_FACTS)
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
    """Return the expectations of a gate with a recipe's bounds; RecipeError for bounds that make no sense.

    A suite's bound that waits for limits (`is_open`) is left out where the recipe gives none.
    """
    for path, _ in (suite for suite in _own(gate) if suite[1] == gate):
        _check_bounds(path, gate, facts)
    applied = apply_bounds(suites_of(gate), bounds, facts)
    expectations = [expectation for expectation in applied if not is_open(expectation)]
    if gate == PUBLISH and not any(_refuses_empty(expectation) for expectation in expectations):
        message = "gates: documents: min_value must be 1 or more; a person overrides the gate to publish no document"
        raise RecipeError(message)
    return expectations


def bounds_spending(gate: str, bounds: Bounds) -> bool:
    """Return whether a stage's gate judges what the snapshot has cost: by the recipe, or by a suite."""
    bounded_facts = {expectation["kwargs"]["column"] for expectation in bounded(gate, bounds, _names(gate))}
    read = {column for each in over_batches(gate) if each.batch == FACTS for column in each.columns}
    return not SPENT.meanings.keys().isdisjoint(bounded_facts | read)


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
            meant = nearest(gate, names)
            message = f"override {gate!r}: there is no such gate{meant}; the gates are {', '.join(names)}"
            raise RecipeError(message)
        check_reason(gate, why)


def check_reason(gate: str, why: str) -> None:
    """Refuse an override without a reason."""
    if not why.strip():
        message = f"override of {gate}: the reason is empty; write why the data may pass, it is kept in the verdict"
        raise RecipeError(message)
