"""Computes facts that compare a manifest with its parent, and with the same stage of the previous snapshot."""

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np

from pipeline_tasks.gate.columns import summarize_columns
from pipeline_tasks.gate.rows import count_rows
from pipeline_tasks.gate.subject import EMPTY, Facts, Family, Subject, profiles_of, share
from pipeline_tasks.manifest import Manifest, Tally
from pipeline_tasks.profiles.columns import quantile

TENTHS = tuple(tenth / 10 for tenth in range(1, 10))


def compare_with_parent(subject: Subject) -> Facts:
    """Return the tokens lost, characters per token and fill of sequences; nothing before documents have tokens."""
    manifest = subject.manifest
    tokens = profiles_of(manifest).get("n_tokens", {}).get("sum")
    if tokens is None:
        return {}
    before = profiles_of(subject.parent) if subject.parent else {}
    length = manifest.params.get("length")
    keeps_all = not subject.card.reasons  # a stage that rejects no row keeps every token
    return {
        "tokens_lost": before["n_tokens"]["sum"] - tokens if keeps_all and "n_tokens" in before else None,
        "chars_per_token": share(before["chars"]["sum"], tokens) if "chars" in before else None,
        "fill": share(tokens, manifest.rows * length) if manifest.stage == "pack" and length else None,
    }


PARENT = Family(
    compare_with_parent,
    {
        "tokens_lost": "tokens of the parent that are missing, for stages that reject no row",
        "chars_per_token": "code points of the parent per token",
        "fill": "share of the positions of packed sequences that hold a token",
    },
)


def compare_with_previous(subject: Subject) -> Facts:
    """Return the change of rows, retention and every profiled column; None without a previous manifest."""
    manifest, previous = subject.manifest, subject.previous
    now, before = _sizes(subject), _sizes(Subject(subject.root, previous)) if previous else {}
    old = profiles_of(previous) if previous else {}
    return {
        "compared_rows": min(manifest.rows, previous.rows) if previous else None,
        **{f"{name}_change": _change(value, before.get(name)) for name, value in now.items()},
        **{
            f"{name}_psi": psi(profiles_of(manifest).get(name, EMPTY), old.get(name, EMPTY))
            for name in subject.card.profiled
        },
        "reasons_psi": _psi(_outcomes(manifest), _outcomes(previous)) if previous else None,
    }


def _sizes(subject: Subject) -> Facts:
    """Return the facts of which the change is a fact."""
    rows, columns = count_rows(subject), summarize_columns(subject)
    sizes = {name: value for name, value in columns.items() if name.endswith(("_mean", "_sum"))}
    return {name: rows[name] for name in ("rows_in", "rows", "retention", "page_retention")} | sizes


def _outcomes(manifest: Manifest) -> Tally:
    return {**manifest.rejected, "kept": manifest.rows}


def _change(now: float | None, before: float | None) -> float | None:
    return now / before - 1 if now is not None and before else None


PREVIOUS = Family(
    compare_with_previous,
    {
        "compared_rows": "rows of the smaller of this and the previous snapshot",
        "<fact>_change": "relative change of rows, retention, a mean or a sum against the previous snapshot",
        "<column>_psi": "population stability index of a profiled column against the previous snapshot",
        "reasons_psi": "population stability index of reasons and kept rows against the previous snapshot",
    },
)

# --- Population stability -----------------------------------------------------------------------------------------


def psi(now: Mapping[str, Any], before: Mapping[str, Any]) -> float | None:
    """Return the population stability index of two profiles: sum of (p - q) ln(p / q) over names or tenths of `before`.

    Half a row is added to every bin, so that an empty bin does not make it infinite.
    """
    if not now["count"] or not before["count"]:
        return None
    if now["kind"] == "name":
        return _psi(now["bins"], before["bins"])
    edges = np.unique([_edge(before, at) for at in TENTHS])
    return _psi(_into(edges, now), _into(edges, before))


def _edge(column: Mapping[str, Any], at: float) -> int:
    value = quantile(column, at)
    return round(value * 100) if column["kind"] == "ratio" else int(value)


def _into(edges: "np.ndarray[Any, Any]", column: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts of a profile by the bins between `edges`."""
    counts: dict[str, int] = {}
    for key, count in column["bins"].items():
        tenth = str(int(np.searchsorted(edges, int(key), side="left")))
        counts[tenth] = counts.get(tenth, 0) + count
    return counts


def _psi(now: Tally, before: Tally) -> float:
    names = sorted({*now, *before})
    p, q = (_smoothed(names, counts) for counts in (now, before))
    return sum((a - b) * log(a / b) for a, b in zip(p, q, strict=True))


def _smoothed(names: list[str], counts: Tally) -> list[float]:
    total = sum(counts.values()) + 0.5 * len(names)
    return [(counts.get(name, 0) + 0.5) / total for name in names]
