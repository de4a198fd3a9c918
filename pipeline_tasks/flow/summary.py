"""Sums up a finished run: what stage after stage removed, which stages took longest, and what was warned of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.counted import counted

SHOWN = 3
"""Stages that a line names."""


def summary_lines(stages: Mapping[str, Mapping[str, Any]], warnings: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a run from the replies of its stages, in order."""
    if removed := _removed(stages):
        yield f"removed   {_most(removed, '{:,}')}"
    for stage, reply in stages.items():
        for part in reply.get("idle", ()):
            yield f"{stage} {part}"
    if stages:
        yield f"slowest   {_most({stage: reply['wall'] for stage, reply in stages.items()}, '{:.1f} s')}"
    if warnings:
        yield f"warnings  {counted(len(warnings), 'line')} above with !: {'; '.join(dict.fromkeys(warnings))}"


def _removed(stages: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return how many rows each reason took, of the stages whose rows are documents."""
    tally: dict[str, int] = {}
    for stage, reply in stages.items():
        for reason, rows in (*reply["rejected"].items(), *reply["quarantined"].items()):
            name = reason if not reason.startswith("error:") else f"{stage} {reason}"
            tally[name] = tally.get(name, 0) + rows
    return tally


def _most(amounts: Mapping[str, float], form: str) -> str:
    """Return the largest amounts by name, and the sum of the others."""
    ordered = sorted(amounts.items(), key=lambda pair: (-pair[1], pair[0]))
    words = [f"{name} {form.format(amount)}" for name, amount in ordered[:SHOWN]]
    rest = ordered[SHOWN:]
    others = [f"{counted(len(rest), 'other')} {form.format(sum(amount for _, amount in rest))}"] if rest else []
    return ", ".join([*words, *others])
