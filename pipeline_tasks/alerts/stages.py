"""Alerts of a finished stage: its errors, its time, and what the snapshot costs so far."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.counted import counted
from pipeline_tasks.gate.suites import ENOUGH
from pipeline_tasks.manifest import PARTITION
from pipeline_tasks.recipe import AlertLimits
from pipeline_tasks.run.request import rows_due

ERROR = "error:"
"""What reasons of records that could not be processed begin with."""

MOST_REASONS = 5
"""Reasons that a message names, the most frequent."""

MOST_PARTITIONS = 5
"""Quarantined partitions that a message names."""

SLOWEST = 5
"""Slow partitions that a message names."""

LEAST_SECONDS = 60.0
"""Seconds below which no partition and no stage is called slow."""


@dataclass(frozen=True, slots=True)
class Spending:
    """US dollars of a snapshot up to a stage and before it, and the stage's seconds per row in earlier snapshots."""

    usd: float = 0.0
    before: float = 0.0
    paces: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionTimes:
    """The seconds of a stage's partitions that were refined, and not found done: p99 and median.

    `slowest` are number, name and seconds of the slowest ones, the slowest first.
    """

    partitions: int
    median: float
    p99: float
    slowest: tuple[tuple[int, str, float], ...]


def partition_times(names: Sequence[str], replies: Sequence[Mapping[str, Any]]) -> PartitionTimes:
    """Return the times of partitions, given their names and the replies of their tasks, in order."""
    ran = [
        (number, name, float(reply["wall"]))
        for number, (name, reply) in enumerate(zip(names, replies, strict=True), 1)
        if reply["ran"]
    ]
    if not ran:
        return PartitionTimes(0, 0.0, 0.0, ())
    seconds = sorted(wall for _, _, wall in ran)
    rank = -(-99 * len(seconds) // 100)  # the nearest rank: the slowest, of fewer than 100
    slowest = sorted(ran, key=lambda partition: (-partition[2], partition[0]))[:SLOWEST]
    return PartitionTimes(len(ran), median(seconds), seconds[rank - 1], tuple(slowest))


def stage_alerts(limits: AlertLimits, stage: str, refined: Mapping[str, Any], spending: Spending) -> Iterator[Alert]:
    """Yield the alerts of a stage, given the reply of its refinement and what the ledger says of it."""
    yield from _partial(stage, refined)
    yield from _errors(limits, stage, refined)
    times = refined.get("times")
    yield from _slow_partitions(limits, stage, PartitionTimes(**times)) if times else ()
    yield from _slow_stage(limits, stage, refined, spending)
    yield from _budget(limits, stage, spending)


def _partial(stage: str, refined: Mapping[str, Any]) -> Iterator[Alert]:
    """Yield an alert if partitions of a stage failed every try, and were quarantined whole."""
    poison = refined.get("poison", ())
    if not poison:
        return
    rows = refined["quarantined"].get(PARTITION, 0)
    named = [f"{partition['name']}: {partition['error']}" for partition in poison[:MOST_PARTITIONS]]
    more = [f"and {len(poison) - MOST_PARTITIONS:,} more"] if len(poison) > MOST_PARTITIONS else []
    yield Alert(
        "partial",
        f"{counted(len(poison), 'partition')} of {stage} failed every try: the snapshot is partial",
        (f"{rows:,} of {counted(rows_due(refined), 'row')} are quarantined with them", *named, *more),
        "The run goes on without them. Mend what their errors name, then clear their tasks: they are refined, and the "
        "snapshot is published anew.",
    )


def _errors(limits: AlertLimits, stage: str, refined: Mapping[str, Any]) -> Iterator[Alert]:
    """Yield an alert if the share of rows that could not be processed is above its limit."""
    reasons = {reason: rows for reason, rows in refined["quarantined"].items() if reason != PARTITION}
    reasons |= {reason: rows for reason, rows in refined["rejected"].items() if reason.startswith(ERROR)}
    rows_in, errors = rows_due(refined), sum(reasons.values())
    if not rows_in or errors / rows_in <= limits.error_rate:
        return
    frequent = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_REASONS]
    yield Alert(
        "error_rate",
        f"{errors / rows_in:.1%} of the rows of {stage} could not be processed",
        (
            f"{errors:,} of {counted(rows_in, 'row')}; the limit is {limits.error_rate:.4g} of all",
            *(f"{reason}: {rows:,}" for reason, rows in frequent),
        ),
        "Look at the quarantined rows. One file's rows: it is damaged, land it again. Rows of all files: a format or a "
        "release has changed.",
    )


def _slow_partitions(limits: AlertLimits, stage: str, times: PartitionTimes) -> Iterator[Alert]:
    """Yield an alert if the 99th percentile of partition times is many times their median."""
    if not limits.slow or times.p99 < max(limits.slow * times.median, LEAST_SECONDS):
        return
    middle = f"p99 {times.p99:,.0f} s, median {times.median:,.0f} s, of {counted(times.partitions, 'partition')}"
    slowest = [f"partition {number} ({name}): {seconds:,.0f} s" for number, name, seconds in times.slowest]
    yield Alert(
        "slow_partitions",
        f"The slowest partitions of {stage} took {_times(times.p99, times.median)} their median",
        (
            f"{middle}; the limit is {limits.slow:g} times",
            *slowest,
        ),
        "The same partition each day: its file is large or hard, use more partitions. Another one each day: a machine "
        "is slow.",
    )


def _slow_stage(limits: AlertLimits, stage: str, refined: Mapping[str, Any], spending: Spending) -> Iterator[Alert]:
    """Yield an alert if a stage took many times as long per row as it took for the trailing snapshots."""
    has_run = refined["ran"] or refined.get("times", {}).get("partitions", 0)
    seconds, rows = refined["wall"], refined["rows_in"]
    if not limits.slow or not has_run or not rows or len(spending.paces) < ENOUGH or seconds < LEAST_SECONDS:
        return
    pace, usual = seconds / rows, median(spending.paces)
    if pace < limits.slow * usual:
        return
    yield Alert(
        "slow_stage",
        f"{stage} took {_times(pace, usual)} its usual time per row",
        (
            f"{seconds:,.0f} s for {counted(rows, 'row')}; the limit is {limits.slow:g} times the usual",
            f"usual, by the median of the last {len(spending.paces)} snapshots: {usual * rows:,.0f} s",
        ),
        "Compare the stage's partitions and its engine with the day before: fewer or busier machines, a slower store, "
        "or longer documents.",
    )


def _times(value: float, usual: float) -> str:
    return f"{value / usual:,.1f} times" if usual else "many times"


def _budget(limits: AlertLimits, stage: str, spending: Spending) -> Iterator[Alert]:
    """Yield an alert at the stage with which the cost of a snapshot goes over its limit."""
    if not limits.budget or not spending.before <= limits.budget < spending.usd:
        return
    yield Alert(
        "budget",
        f"The run has cost {_usd(spending.usd)} and is over its budget of {_usd(limits.budget)}",
        (f"{_usd(spending.usd - spending.before)} of it for {stage}, at the ledger's prices",),
        "The run goes on. Mark it as failed to stop it: finished work is kept. Raise `alerts: budget:` if this is what "
        "a snapshot costs now.",
    )


def _usd(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.2g}"
