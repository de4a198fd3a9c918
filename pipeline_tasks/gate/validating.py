"""Lets Great Expectations validate batches of a manifest by the expectations that suites have over them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

import pyarrow as pa

from pipeline_tasks import seams
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.batch_expectations import BatchExpectation, check_columns, check_kinds, named_batches
from pipeline_tasks.gate.batches import ROWS, SIGNALS, batch
from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.gate.judging import FINDINGS, Failure, Finding
from pipeline_tasks.gate.suites import FACTS, LIMITS, unmet_needs
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import EVERY

SEAM = "refinery.validators"
"""The seam of validators: each is a function that returns a `Validator`, None where its library is not installed."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What was found of one expectation: that it is met or not, and the number that was observed, if it is about one.

    An expectation on each row says how many of how many `rows` do not meet it (`broken`), which share of them may, and
    which these are, by `id`.
    """

    met: bool
    observed: float | None = None
    rows: int = 0
    broken: int | None = None
    allowed: float = 0.0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Validator:
    """Says which types of expectations there are, with their arguments and whether each is needed; and validates.

    `validate` takes a gate, a batch with its name, and expectations over it. It returns what was found of each, and
    HTML of it, which has no value of a record.
    """

    kinds: Callable[[], Mapping[str, Mapping[str, bool]]]
    validate: Callable[[str, str, pa.Table, Sequence[BatchExpectation]], tuple[list[Validation], str]]


@dataclass(frozen=True, slots=True)
class Validated:
    """What was found of all expectations of a gate over batches; `html` is for its page."""

    found: Mapping[Finding, tuple[Failure, ...]] = field(default_factory=lambda: dict.fromkeys(FINDINGS, ()))
    skipped: tuple[str, ...] = ()
    html: str = ""


def validator_here() -> Validator | None:
    """Return the validator that is installed: one of another package, else of an extension; None without any."""
    for part in sorted(seams.all_parts(SEAM).values(), key=lambda part: not part.distribution):
        brought: Callable[[], Validator | None] = part.load()
        if validator := brought():
            return validator
    return None


def require_validator(expectations: Sequence[BatchExpectation]) -> Validator:
    """Return the validator that is installed; RecipeError if there is none, or no type or argument of that name."""
    validator = validator_here()
    if validator is None:
        named = ", ".join(sorted({each.origin for each in expectations}))
        message = f"{named}: Great Expectations judges batches, and is not installed; install the extra `gates`"
        raise RecipeError(message)
    check_kinds(expectations, validator.kinds())
    return validator


def validate(root: str, manifest: Manifest, facts: Facts, expectations: Sequence[BatchExpectation]) -> Validated:
    """Validate each batch of a manifest that expectations name."""
    if not expectations:
        return Validated()
    validator = require_validator(expectations)
    found: dict[Finding, tuple[Failure, ...]] = dict.fromkeys(FINDINGS, ())
    skipped, html = list[str](), ""
    for name, over in named_batches(expectations):
        table = batch(name, root, manifest, facts)
        reasons = [_absence(each, table, facts) for each in over]
        skipped += [f"{each.title}: {reason}" for each, reason in zip(over, reasons, strict=True) if reason]
        asked = [each for each, reason in zip(over, reasons, strict=True) if not reason]
        if not asked:
            continue
        validations, shown = validator.validate(over[0].gate, name, table, asked)
        html += shown
        for each, validation in zip(asked, validations, strict=True):
            found["met" if validation.met else "violated"] += (_failure(each, validation),)
    return Validated(found, tuple(skipped), html)


def _absence(expectation: BatchExpectation, table: pa.Table, facts: Facts) -> str:
    """Return why an expectation cannot be judged, "" if it can; RecipeError if its batch never has such a column."""
    if unmet := unmet_needs(expectation.needs, facts):
        return unmet
    if not table.num_rows:
        return "there are no rows with an id" if expectation.batch != SIGNALS else "there are no histograms"
    missing = [column for column in expectation.columns if column not in table.column_names]
    if missing and (expectation.gate == EVERY or expectation.batch != ROWS):
        return f"it has no {', '.join(missing)}"
    check_columns(expectation, table.column_names)
    empty = [name for name in expectation.columns if expectation.batch == FACTS and table.column(name).null_count]
    return f"nothing to compute {', '.join(empty)} from" if empty else ""


def _failure(expectation: BatchExpectation, validation: Validation) -> Failure:
    """Return an expectation with what was found of it, as verdicts store it."""
    observed, bound = validation.observed, _limits(expectation)
    if validation.broken is not None:
        observed, bound = validation.broken / max(validation.rows, 1), {"max_value": round(validation.allowed, 6)}
    return Failure(
        expectation=expectation.type,
        column=expectation.title,
        observed=round(observed, 6) if observed is not None and isfinite(observed) else None,
        bound=bound if observed is not None else {},
        severity=expectation.severity,
        why=expectation.notes,
        rows=validation.rows,
        origin=expectation.origin,
        remedy=expectation.remedy,
        batch=expectation.batch,
        examples=validation.examples,
    )


def _limits(expectation: BatchExpectation) -> dict[str, float]:
    given = {name: expectation.kwargs.get(name) for name in LIMITS}
    return {name: value for name, value in given.items() if isinstance(value, int | float)}
