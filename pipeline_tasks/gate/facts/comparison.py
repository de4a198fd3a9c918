"""Computes facts that compare a manifest with its parent, and with the same stage of the previous snapshot."""

from collections.abc import Iterable, Mapping
from math import log
from typing import Any

import numpy as np

from pipeline_tasks.cards import has_sequences, known_card
from pipeline_tasks.gate.estimates import (
    COMPARED,
    Estimate,
    Facts,
    change,
    count,
    difference,
    distance,
    exact,
    mean_of,
    share,
    total,
)
from pipeline_tasks.gate.facts.columns import numeric_columns
from pipeline_tasks.gate.facts.rows import pages_in, rows_due
from pipeline_tasks.gate.facts.subject import EMPTY, Family, Subject, profiles_of
from pipeline_tasks.manifest import Manifest, Tally
from pipeline_tasks.profiles.merging import quantile
from pipeline_tasks.profiles.signals import PREFIX
from pipeline_tasks.profiles.sums import MOMENTS, SITE_COVERAGES
from pipeline_tasks.store.reading import read_history

TENTHS = tuple(tenth / 10 for tenth in range(1, 10))

SUPERSEDED = "superseded"
"""The param by which a build tells a stage which documents other snapshots of its selection supersede."""


def compare_with_parent(subject: Subject) -> Facts:
    """Return the tokens lost, characters per token and fill of sequences; nothing before documents have tokens."""
    if "n_tokens" not in subject.card.profiled:
        return {}
    manifest = subject.manifest
    tokens = profiles_of(manifest).get("n_tokens", EMPTY).get("sum")
    before = profiles_of(subject.parent) if subject.parent and tokens is not None else {}
    due, dropped = _tokens_due(subject), manifest.tokens_of("rejects")
    return {
        "tokens_lost": exact(None if due is None or tokens is None else due - tokens - dropped),
        "chars_per_token": exact(before["chars"]["sum"] / tokens if "chars" in before and tokens else None),
        "fill": exact(_fill(manifest, tokens)),
    }


def _tokens_due(subject: Subject) -> int | None:
    """Return the tokens that a stage accounts for: its parent's, or its plan's; None for one that rejects documents."""
    if subject.parent is None or (subject.card.reasons and subject.card.conserves != "tokens"):
        return None
    if subject.parent.history.get("plan"):
        return sum(sum(batch["taken"].to_pylist()) for batch in read_history(subject.root, subject.parent, "plan"))
    tokens: int | None = profiles_of(subject.parent).get("n_tokens", {}).get("sum")
    return tokens


def _fill(manifest: Manifest, tokens: int | None) -> float | None:
    """Return the share of positions that are no padding; what is packed by itself has to pad a sequence.

    That is the whole, or each shard. Pads of so many sequences, less a token each, do not count.
    """
    length = manifest.params.get("length")
    if not has_sequences(manifest.stage) or not length or not manifest.rows or tokens is None:
        return None
    positions = manifest.rows * int(length)
    is_whole = (manifest.params.get("method"), manifest.params.get("tail", "carry")) == ("concat", "carry")
    parts = 1 if is_whole else sum(shard.rows > 0 for shard in manifest.shards)
    return 1 - max(positions - tokens - parts * (int(length) - 1), 0) / positions


PARENT = Family(
    compare_with_parent,
    {
        "tokens_lost": "tokens of the parent, or of the plan of `mix`, that are neither kept nor rejected; none for a "
        "stage that rejects documents",
        "chars_per_token": "code points of the parent per token",
        "fill": "share of the positions of packed sequences that are no pads; of what is packed by itself (each shard, "
        "or with `tail: carry` all) up to `length - 1` pads do not count, as a sequence has to be padded; so it is "
        "above tokens / (sequences * `length`), in which all `pads` of `dataset.json` count",
    },
)


def compare_with_previous(subject: Subject) -> Facts:
    """Return the change of rows, retention and every profiled column; None without a previous manifest."""
    manifest, previous = subject.manifest, subject.previous
    now, before = _amounts(subject), _amounts(Subject(subject.root, previous)) if previous else {}
    old = profiles_of(previous) if previous else {}
    return {
        "compared_rows": exact(min(manifest.rows, previous.rows) if previous else None),
        **{f"{name}_change": change(amount, before.get(name)) for name, amount in now.items()},
        **{
            f"{name}_psi": psi(profiles_of(manifest).get(name, EMPTY), old.get(name, EMPTY))
            for name in subject.card.profiled
            if name not in MOMENTS and name not in SITE_COVERAGES and not name.startswith(PREFIX)
        },
        **{f"{name}_ks": ks(column, old.get(name, EMPTY)) for name, column in numeric_columns(subject)},
        "reasons_psi": stability(_outcomes(manifest), _outcomes(previous))
        if previous and alike(manifest, previous)
        else None,
    }


def alike(manifest: Manifest, previous: Manifest) -> bool:
    """Return whether both snapshots were compared with others, or none of them was.

    The second snapshot of a dataset is the first that can repeat an earlier one, and the first of which a build can
    leave out what another supersedes: those reasons are new to every second snapshot, and say nothing about its crawl.
    """
    return _is_compared(manifest) == _is_compared(previous)


def _is_compared(manifest: Manifest) -> bool:
    return bool(manifest.parents[1:] or manifest.params.get(SUPERSEDED))


def _amounts(subject: Subject) -> Facts:
    """Return the amounts of which the change is a fact, as samples of what could have come."""
    manifest = subject.manifest
    due = rows_due(subject)
    amounts: Facts = {
        "rows_in": count(manifest.rows_in),
        "rows": count(manifest.rows),
        "retention": None if due is None else share(manifest.rows, due, COMPARED),
        "page_retention": None if due is None else share(manifest.rows, pages_in(manifest, due), COMPARED),
    }
    for name, column in numeric_columns(subject):
        amounts |= {f"{name}_mean": mean_of(column, COMPARED), f"{name}_sum": total(column)}
    return amounts


def _outcomes(manifest: Manifest) -> Tally:
    """Return the reasons and kept rows of records that could be new pages: how many are known is no drift."""
    card = known_card(manifest.stage)
    rejected = {reason: rows for reason, rows in manifest.rejected.items() if not card or reason not in card.no_page}
    return {**rejected, "kept": manifest.rows}


PREVIOUS = Family(
    compare_with_previous,
    {
        "compared_rows": "rows of the smaller of this and the previous snapshot",
        "<fact>_change": "relative change of rows, retention, a mean or a sum against the previous snapshot",
        "<column>_psi": "population stability index of a profiled column against the previous snapshot, less what "
        "chance gives on average",
        "<column>_ks": "largest difference between the shares below any value of a profiled column of numbers, in this "
        "and the previous snapshot (the statistic of Kolmogorov and Smirnov)",
        "reasons_psi": "population stability index of reasons and kept rows against the previous snapshot, without "
        "records that bring no new page; none where just one of both was compared with other snapshots",
    },
)

# --- Population stability -----------------------------------------------------------------------------------------


def psi(now: Mapping[str, Any], before: Mapping[str, Any]) -> Estimate | None:
    """Return the population stability index of two profiles: sum of (p - q) ln(p / q) over names or tenths of `before`.

    It is less what chance gives.
    """
    if not now["count"] or not before["count"]:
        return None
    return stability(*binned((now, before), before))


def binned(columns: Iterable[Mapping[str, Any]], by: Mapping[str, Any]) -> list[Mapping[str, int]]:
    """Return the counts of profiles of one column by name, or of numbers by the tenths of the profile `by`."""
    if by["kind"] == "name":
        return [column["bins"] for column in columns]
    edges = np.unique([_edge(by, at) for at in TENTHS])
    return [_into(edges, column) for column in columns]


def _edge(column: Mapping[str, Any], at: float) -> int:
    value = quantile(column, at)
    return round(value * 100) if column["kind"] == "ratio" else int(value)


def _into(edges: "np.ndarray[Any, Any]", column: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts of a profile by the bins between `edges`."""
    counts: dict[str, int] = {}
    for key, rows in column["bins"].items():
        tenth = str(int(np.searchsorted(edges, int(key), side="left")))
        counts[tenth] = counts.get(tenth, 0) + rows
    return counts


def ks(now: Mapping[str, Any], before: Mapping[str, Any]) -> Estimate | None:
    """Return the statistic of Kolmogorov and Smirnov of two profiles of numbers, with what their rows leave open.

    Both distributions are known at the ends of bins, so it is never too large.
    """
    rows = now["count"], before["count"]
    if not all(rows):
        return None
    ends = sorted({int(key) for column in (now, before) for key in column["bins"]})
    counts = np.array([[column["bins"].get(str(end), 0) for end in ends] for column in (now, before)])
    below = counts.cumsum(axis=1) / np.array(rows)[:, None]
    return difference(float(np.abs(below[0] - below[1]).max()), rows)


def stability(now: Tally, before: Tally) -> Estimate | None:
    """Return the population stability index of two counts by name, less what chance gives; None where one has no rows.

    Half a row is added to every name, so that an empty one does not make it infinite.
    """
    names = sorted({*now, *before})
    rows = sum(now.values()), sum(before.values())
    if not all(rows):
        return None
    p, q = (_smoothed(names, counts) for counts in (now, before))
    return distance(sum((a - b) * log(a / b) for a, b in zip(p, q, strict=True)), len(names), rows)


def _smoothed(names: list[str], counts: Tally) -> list[float]:
    total = sum(counts.values()) + 0.5 * len(names)
    return [(counts.get(name, 0) + 0.5) / total for name in names]
