"""Validates batches of rows by any expectation of Great Expectations that reads a frame."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.util import find_spec
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.batch_expectations import BatchExpectation
from pipeline_tasks.gate.validating import Validation, Validator
from refinery_gates.validation import ONE_AT_A_TIME, batches, content, great_expectations, rendered

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult

SCHEMAS = "expectations/core/schemas"
"""Where Great Expectations has a JSON schema for each of its expectations, which is read without importing it."""

FRAMES = "Pandas"
"""How it names frames among the sources that an expectation can read; others ask a database."""

ABOUT_ALL = (
    *("id", "meta", "notes", "description", "severity", "metadata", "rendered_content", "windows"),
    *("batch_id", "result_format", "catch_exceptions"),
)
"""What the schemas have that is no argument of the expectation itself."""

MOST_EXAMPLES = 5
"""Ids of rows that are named."""

SHARE = "unexpected_percent"
"""What results have of expectations on each row, and of no others."""

COUNTS = (SHARE, "element_count", "unexpected_count", "missing_count", "missing_percent")
"""What is shown of a result: how many rows, and never a value of one."""


def validator() -> Validator | None:
    """Return the validator of the seam `refinery.validators`; None where Great Expectations is not installed."""
    return Validator(kinds, validated) if find_spec("great_expectations") else None


@cache
def kinds() -> Mapping[str, Mapping[str, bool]]:
    """Return the types of expectations on a frame, each with its arguments and whether it needs them."""
    spec = find_spec("great_expectations")
    assert spec is not None, "it is installed where there is a validator"
    folder = Path(str(spec.origin)).parent / SCHEMAS
    listed = json.loads((folder / "index.json").read_text("utf-8"))["expectations"]
    schemas = {
        name: json.loads((folder / of["schema_file"]).read_text("utf-8"))
        for name, of in listed.items()
        if FRAMES in of["supported_data_sources"]
    }
    return {name: _arguments(schema) for name, schema in schemas.items()}


def _arguments(schema: Mapping[str, Any]) -> dict[str, bool]:
    needed = schema.get("required", ())
    return {name: name in needed for name in schema["properties"] if name not in ABOUT_ALL}


def validated(
    gate: str, name: str, table: pa.Table, expectations: Sequence[BatchExpectation]
) -> tuple[list[Validation], str]:
    """Return what each expectation found in a batch, and the Data Docs of all, which have counts and no values.

    RecipeError for an expectation that Great Expectations does not read, or cannot evaluate.
    """
    with ONE_AT_A_TIME:
        result = _result(gate, table, expectations)
        ordered = sorted(result.results, key=lambda each: int(each.expectation_config.meta["rank"]))
        found = [_validation(*pair, table.num_rows) for pair in zip(ordered, expectations, strict=True)]
        for each in ordered:
            each.result = dict(_shown(each.result))
        page = content(rendered(result))
    return found, _section(name, table, page)


def _result(gate: str, table: pa.Table, expectations: Sequence[BatchExpectation]) -> "ExpectationSuiteValidationResult":
    gx, named = great_expectations(), {"unexpected_index_column_names": ["id"]} if "id" in table.column_names else {}
    try:
        suite = gx.ExpectationSuite(name=gate, expectations=[*map(_configured, range(len(expectations)), expectations)])
    except Exception as error:  # its own errors and those of two releases of pydantic, for an argument of a wrong type
        message = f"{expectations[0].origin}: Great Expectations does not read it: {_short(error)}; correct the suite"
        raise RecipeError(message) from error
    asked = {"result_format": "COMPLETE", "partial_unexpected_count": 0, **named}
    result: ExpectationSuiteValidationResult = (
        batches().get_batch({"dataframe": table.to_pandas()}).validate(suite, result_format=asked)
    )
    result.meta["run_id"] = gx.RunIdentifier(run_name=gate)
    return result


def _configured(rank: int, expectation: BatchExpectation) -> dict[str, Any]:
    """Return an expectation as Great Expectations reads it; `rank` identifies its result."""
    return {
        "type": expectation.type,
        "kwargs": dict(expectation.kwargs),
        "severity": expectation.severity,
        "notes": expectation.notes,
        "meta": {"rank": rank},
    }


def _validation(result: "ExpectationValidationResult", expectation: BatchExpectation, batch_rows: int) -> Validation:
    if _is_raised(result.exception_info):  # what was raised may have values of records
        message = (
            f"{expectation.origin}: {expectation.title} cannot be evaluated; look whether the column has values of the "
            "type that it reads, and correct the suite"
        )
        raise RecipeError(message)
    seen, observed = result.result, result.result.get("observed_value")
    if SHARE not in seen:
        return Validation(bool(result.success), float(observed) if isinstance(observed, Real) else None)
    named = [row for row in seen.get("unexpected_index_list") or () if isinstance(row, Mapping) and "id" in row]
    examples = tuple(dict.fromkeys(str(row["id"]) for row in named))[:MOST_EXAMPLES]
    rows, allowed = int(seen.get("element_count", batch_rows)), 1 - float(expectation.kwargs.get("mostly", 1))
    return Validation(bool(result.success), None, rows, int(seen["unexpected_count"]), allowed, examples)


def _is_raised(info: Mapping[str, Any]) -> bool:
    """Return whether something was raised: the info is that of the expectation, or of each metric that it needs."""
    inner = (each for each in info.values() if isinstance(each, Mapping))
    return bool(info.get("raised_exception")) or any(map(_is_raised, inner))


def _short(error: object) -> str:
    return " ".join(str(error).split())[:300]


def _shown(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what the page may show of a result."""
    yield from ((name, result[name]) for name in COUNTS if name in result and SHARE in result)
    if _is_number(result.get("observed_value")):
        yield "observed_value", result["observed_value"]


def _is_number(value: object) -> bool:
    """Return whether a value is a number; numpy's are, too, and bool is none."""
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _section(name: str, table: pa.Table, page: str) -> str:
    """Return the Data Docs of a batch as a part of a gate's page."""
    inner = page.partition("<body")[2].partition(">")[2].rpartition("</body>")[0]
    head = f"{name}: {counted(table.num_rows, 'row')} of {counted(table.num_columns, 'column')}"
    return f"<section><h4>{escape(head)}</h4>{inner}</section>"
