"""Signals are profiled by language into counts that add up exactly, and a manifest has their quantiles."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.signals import (
    ALL,
    LARGEST,
    SHARES,
    bin_end,
    quantiles_of,
    share_above,
    value_at,
    with_quantiles,
)
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.judged_root import RECIPE, judged_root

NAMES = ["signals_a", "signals_b"]
Rows = list[tuple[str | None, float | None]]


def table(rows: Rows) -> pa.Table:
    values = pa.array([value for _, value in rows], pa.float64())
    columns = {name: pa.StructArray.from_arrays([values, values], names=["x", "y"]) for name in NAMES}
    return pa.table({"language": pa.array([code for code, _ in rows], pa.string()), **columns})


def metrics(rows: Rows, *, rejected: Rows = []) -> dict[str, Any]:  # noqa: B006 -- read alone
    return with_quantiles({"kept": profile(table(rows), NAMES), "rejects": profile(table(rejected), NAMES)})


VALUES = st.one_of(st.none(), st.just(float("nan")), st.floats(0, 1), st.floats(0, 1e6))
ROWS = st.lists(st.tuples(st.sampled_from(["en", "de", None]), VALUES), max_size=60)


@given(ROWS, st.integers(0, 60))
def test_parts_add_up_to_the_whole(rows: Rows, cut: int) -> None:
    parts = [profile(table(part), NAMES) for part in (rows[:cut], rows[cut:])]
    assert merge(parts) == merge([profile(table(rows), NAMES)])


@given(ROWS)
def test_quantiles_are_those_of_the_values_but_for_their_bins(rows: Rows) -> None:
    known = sorted(value for _, value in rows if value is not None and not np.isnan(value))
    quantiles = quantiles_of(metrics(rows)).get("a.x", {})
    assert bool(quantiles) == bool(known)
    if not known:
        return
    stored = quantiles[ALL]
    assert stored[:2] == [len(known), sum(value > 0 for value in known)]
    assert share_above(stored) == stored[1] / len(known)
    for share, low in zip(SHARES, stored[2:], strict=True):
        exact = known[max(int(np.ceil(share * len(known))), 1) - 1]
        assert low - 1e-6 <= exact < bin_end(low) + 1e-6
        assert value_at(stored, share) == pytest.approx(low)
    assert all(low <= high for low, high in pairwise(stored[2:]))


def test_the_largest_languages_are_named_and_rows_without_one_count() -> None:
    rows: Rows = [(f"l{at}", 0.5) for at in range(40) for _ in range(at + 1)] + [(None, 0.1)] * 3
    quantiles = quantiles_of(metrics(rows))["a.x"]
    assert set(quantiles) == {ALL, *(f"l{at}" for at in range(40 - LARGEST, 40))}
    assert quantiles[ALL][:3] == [len(rows), len(rows), 0.1]


def test_read_rows_are_kept_and_rejected_ones() -> None:
    found = metrics([("en", 0.5)] * 3, rejected=[("en", 0.9)] * 7)
    assert [quantiles_of(found, side)["b.y"]["en"][0] for side in ("kept", "read")] == [3, 10]
    assert quantiles_of(found, "read")["b.y"]["en"][6] == 0.9
    assert set(found["kept"]) == set()


def test_metrics_without_signals_are_as_they_were() -> None:
    plain = {"kept": profile(pa.table({"chars": [1, 2]}), ["chars"]), "rejects": {}}
    assert with_quantiles(plain) == plain
    assert quantiles_of(plain) == {}


def test_a_manifest_has_the_quantiles_of_its_rows_and_stays_small(tmp_path: Path) -> None:
    root = judged_root(tmp_path)
    manifest = read_manifest(root, version_log.current(root, RECIPE).manifests["filter_quality"])
    quantiles = quantiles_of(manifest.metrics)
    rows = [row for batch in read_shards(root, manifest.shards) for row in batch.to_pylist()]
    columns = [name for name in rows[0] if name.startswith("signals_")]
    fields = {f"{name.removeprefix('signals_')}.{field}" for name in columns for field in rows[0][name]}
    assert set(quantiles) == fields
    words = sorted(row["signals_gopher_quality"]["words"] for row in rows)
    stored = quantiles["gopher_quality.words"][ALL]
    assert stored[0] == len(words)
    assert stored[2] <= words[0] < bin_end(stored[2])
    assert len(json.dumps(quantiles)) < 200 * (LARGEST + 1) * len(fields)
    assert not any("." in name for name in manifest.metrics["kept"])
