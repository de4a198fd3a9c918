"""Decides by bounds on what was measured which generated documents are kept, and why others are not."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.schema import OF_GENERATOR, OF_SOURCE

NAME = "filter_generated"


class Measure(NamedTuple):
    """A measure with the param that bounds it, the reason, and whether it rejects `above` or `below` the bound."""

    param: str
    field: str
    why: str
    rejects: str = "above"


MEASURED = (
    Measure("leaks", "leaks", "leak"),
    Measure("language", "foreign", "language"),
    Measure("grounded", "grounded", "invented", "below"),
    Measure("invented", "invented", "invented"),
    Measure("repeated", "repeated", "repeated"),
    Measure("figures", "figures", "figures"),
    Measure("dates", "dates", "dates"),
    Measure("units", "units", "units"),
    Measure("names", "names", "names"),
    Measure("negations", "negations", "negation"),
    Measure("copied", "copied", "copied"),
    Measure("shortest", "length_ratio", "length", "below"),
    Measure("longest", "length_ratio", "length"),
)
"""Measures that have a bound, in the order in which they become the reason: what a text says comes before its size."""

STOPS = {"error": "failed", "too_long": "too_long", "refused": "refusal"}
"""Reasons of texts that there are none of."""

REASONS = tuple(
    f"{NAME}:{why}"
    for why in (
        *STOPS.values(),
        "empty",
        *dict.fromkeys(measure.why for measure in MEASURED if measure.why != "length"),
        "unfinished",
        "length",
        "source",
        "generated",
    )
)

Failure = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """What of the params decides: bounds by param, and which documents go on."""

    bounds: Mapping[str, float]
    keep: str
    unfinished: str


def failures_of(measures: Mapping[str, Any] | None, decision: Decision, *, spans: bool = True) -> list[Failure]:
    """Return what a document fails, the gravest first; of a source whether sources go on.

    That a text is not whole comes behind what is wrong with what there is of it.
    """
    if measures is None:
        return [_failure("source", OF_SOURCE, decision.keep)] if decision.keep == "generated" else []
    found = _none(measures)
    if not found:
        found = sorted(
            [*_beyond(measures, decision.bounds, spans=spans), *_unfinished(measures, decision)],
            key=lambda failure: REASONS.index(failure["rule"]),
        )
    if decision.keep == "source":
        found.append(_failure("generated", OF_GENERATOR, decision.keep))
    return found


def _none(measures: Mapping[str, Any]) -> list[Failure]:
    """Return why a text is none."""
    stop = measures["stop"]
    if stop in STOPS:
        return [_failure(STOPS[stop], stop, "stop")]
    if measures["refused"]:
        return [_failure("refusal", "refused", "text")]
    return [_failure("empty", 0, 1)] if not measures["length_ratio"] else []


def _unfinished(measures: Mapping[str, Any], decision: Decision) -> list[Failure]:
    is_cut = measures["stop"] == "length" and decision.unfinished == "reject"
    return [_failure("unfinished", measures["stop"], "stop")] if is_cut else []


def _beyond(measures: Mapping[str, Any], bounds: Mapping[str, float], *, spans: bool) -> list[Failure]:
    failures = []
    for measure in MEASURED:
        own = measures.get(measure.param) if measure.why == "length" else None
        bound = bounds[measure.param] if own is None else own
        value = measures[measure.field]
        if value is None:
            continue
        if value < bound if measure.rejects == "below" else value > bound:
            failure = _failure(measure.why, value, bound)
            places = [[span["start"], span["end"]] for span in measures["spans"] if span["kind"] == measure.field]
            failures.append({**failure, "spans": places} if spans and places else failure)
    return failures


def _failure(why: str, value: object, bound: object) -> Failure:
    finite = None if isinstance(bound, float) and math.isinf(bound) else bound
    return {"rule": f"{NAME}:{why}", "value": value, "bound": finite}


def verdicts(rows: Sequence[Mapping[str, Any] | None], decision: Decision) -> tuple[pa.Array, pa.Array]:
    """Return the reason of each row and all that it fails, as canonical JSON; null for kept rows.

    Evidence has places in the generated text, and nothing of what stands there.
    """
    failed = [failures_of(row, decision) for row in rows]
    reasons = pa.array([failures[0]["rule"] if failures else None for failures in failed], pa.string())
    evidence = [
        json.dumps(failures, sort_keys=True, separators=(",", ":")) if failures else None for failures in failed
    ]
    return reasons, pa.array(evidence, pa.string())
