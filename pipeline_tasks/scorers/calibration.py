"""Applies the calibration that a scorer's check found: what a score means, by language where the check can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.report import read_report
from pipeline_tasks.scorers.scorer import Column

ALL = "*"
"""The group of all documents, and of all types of a language (`*/en`)."""

DIGITS = 6
"""Digits of a calibrated score, and of the starts and values of steps.

A step of scores, 1/1,024, has ten, and is the one score near its start.
"""


class Steps(NamedTuple):
    """A calibration: a score from `starts[i]` on, below `starts[i + 1]`, means `values[i]`; values ascend."""

    starts: tuple[float, ...]
    values: tuple[float, ...]
    documents: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Ascending steps by group: `type/language`, `*/language` where a language has several types, `*`."""

    groups: Mapping[str, Steps]

    def values(self, scores: Column, languages: Sequence[str | None]) -> Column:
        """Return what each score means in its language, else among all documents; NaN for NaN.

        Documents have no type: the steps of a language are those of all its types.
        """
        named = np.array([language or "" for language in languages], dtype=object)
        values: Column = np.full(len(scores), np.nan)
        for language in sorted(set(named.tolist())):
            rows = np.flatnonzero((named == language) & ~np.isnan(scores))
            values[rows] = np.round(values_at(self._steps_of(language), scores[rows]), DIGITS)
        return values

    def _steps_of(self, language: str) -> Steps:
        known = (group for group in (f"/{language}", f"{ALL}/{language}") if group in self.groups)
        return self.groups[next(known, ALL)]


def read_calibration(name: str, classifier: Classifier) -> Calibration:
    """Return the calibration of a classifier's report.

    RecipeError if the report has none, or one by labels outside of 0 to 1, as bounds and weights need that scale.
    """
    groups = {group: _steps(steps, classifier) for group, steps in read_report(classifier.report).calibration.items()}
    way_out = "give at least 50 texts of the sample a `label` from 0 to 1, and check again with `refinery model check`"
    if ALL not in groups:
        message = f"classifiers.{name}: calibrated: {classifier.report} has no calibration; {way_out}"
        raise RecipeError(message)
    values = [value for steps in groups.values() for value in steps.values]
    if min(values) < 0 or max(values) > 1:
        message = (
            f"classifiers.{name}: calibrated: the labels of {classifier.report} are from {min(values):g} to "
            f"{max(values):g}, and no scores from 0 to 1; {way_out}"
        )
        raise RecipeError(message)
    return Calibration(groups)


def _steps(written: Mapping[str, Any], classifier: Classifier) -> Steps:
    try:
        steps = Steps(tuple(written["starts"]), tuple(written["values"]), int(written["documents"]))
    except (KeyError, TypeError, ValueError) as error:
        message = f"{classifier.report}: its calibration is no list of steps ({error}); check the model again"
        raise ContractError(message) from error
    if not steps.starts or len(steps.starts) != len(steps.values):
        message = f"{classifier.report}: a step of its calibration has no start or no value; check the model again"
        raise ContractError(message)
    return steps


def values_at(steps: Steps, scores: Column) -> Column:
    """Return what scores mean, compared with as many digits as the starts; below the first that of the first step."""
    at = np.searchsorted(steps.starts, np.round(scores, DIGITS), "right") - 1
    return np.array(steps.values, np.float64)[np.maximum(at, 0)]
