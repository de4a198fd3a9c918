"""Computes facts of the search for personal data: whether planted values were found, and how much is found at most."""

from collections.abc import Iterator
from typing import Any

from pipeline_tasks.gate.estimates import Facts, exact, mean_of, surest_largest
from pipeline_tasks.gate.facts.subject import Family, Subject, profiles_of
from pipeline_tasks.text.pii.kinds import COUNTS, TABLE

MISSED = "missed_canaries"
"""The column of the kinds of which the task that wrote a row missed a planted value."""


def summarize_findings(subject: Subject) -> Facts:
    """Return the recall of canaries of each kind that is looked for, the share of those found, and the largest mean.

    A manifest from before there were canaries has no recall. Kinds that a model finds have no canaries.
    """
    spans = subject.card.spans
    if MISSED not in subject.card.profiled or not (spans and spans.actions):
        return {}
    means = (mean_of(profiles_of(subject.manifest)[name]) for name in _counted(subject))
    facts: Facts = {"pii_mean_max": surest_largest(means), "canary_recall": None}
    profiles = list(_missed(subject))
    if profiles:
        missed = {kind for bins in profiles for kinds in bins for kind in kinds.split(",")}
        actions = spans.actions(subject.manifest.params)
        kinds = [kind for kind, entry in TABLE.items() if kind in actions and entry.canaries]
        recall = {kind: float(kind not in missed) for kind in kinds}
        facts |= {f"canary_recall.{kind}": exact(value) for kind, value in recall.items()}
        facts["canary_recall"] = exact(sum(recall.values()) / len(recall)) if recall else None
    return facts


def _counted(subject: Subject) -> Iterator[str]:
    """Yield the counts that have values."""
    profiles = profiles_of(subject.manifest)
    yield from (name for name in COUNTS if profiles.get(name, {"count": 0})["count"])


def _missed(subject: Subject) -> Iterator[Any]:
    """Yield of kept and of rejected rows the kinds whose canaries their tasks missed, with how many rows each."""
    for rows in ("kept", "rejects"):
        profiles = profiles_of(subject.manifest, rows)
        if MISSED in profiles:
            yield profiles[MISSED]["bins"]


PERSONAL = Family(
    summarize_findings,
    {
        "canary_recall": (
            "share of the kinds of personal data looked for of which every task found all values planted in fixed texts"
        ),
        "canary_recall.<kind>": "1 if every task found all planted values of this kind, else 0",
        "pii_mean_max": "mean count of personal data per kept document, of the kind that has most",
    },
)
