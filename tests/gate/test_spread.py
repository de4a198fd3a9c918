"""The gate of a shuffle: an honest order passes at any size, and each planted one is refused."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.verdicts import judge
from pipeline_tasks.profiles.spread import LARGEST, SpreadCounter, joined
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.text.base.sampling import uniform_draws
from tests.gate.samples import healthy, judged, spread_over
from tests.refining import commit_parent, refined

ROWS, SHARDS = 4000, 4


def honest(seed: int, rows: int = ROWS) -> list[int]:
    """Return rows in the order of the draws that a shuffle sorts by."""
    order: list[int] = np.argsort(uniform_draws(pa.array([f"{row:032x}" for row in range(rows)]), seed)).tolist()
    return order


def alternating() -> list[int]:
    """Return an order in which every shard is sorted, every other one backwards: tenths add up to what they should."""
    shards = [list(range(shard, ROWS, SHARDS)) for shard in range(SHARDS)]
    return [row for number, shard in enumerate(shards) for row in (shard if number % 2 else shard[::-1])]


def half_a_shard() -> list[int]:
    """Return an honest order, but that half of the first shard is of the first snapshot only."""
    order = honest(0)
    first = [row for row in order if row < ROWS // 2][-(ROWS // SHARDS // 2) :]
    return first + [row for row in order if row not in set(first)]


def sampled_and_sorted_by_one_draw() -> list[int]:
    """Return the order that `shuffle` gave until it had draws of its own: `mix` had kept a third of the first half."""
    draws = uniform_draws(pa.array([f"{row:032x}" for row in range(ROWS)]), 0)
    ranked = np.argsort(np.where(np.arange(ROWS) < ROWS // 2, draws // 3, draws))
    return [int(row) for shard in range(SHARDS) for row in ranked[shard::SHARDS]]


PLANTED: dict[str, tuple[Callable[[], list[int]], str]] = {
    "sorted": (lambda: list(range(ROWS)), "shard"),
    "one snapshot first": (
        lambda: [*honest(1, ROWS // 2), *(ROWS // 2 + row for row in honest(2, ROWS // 2))],
        "shard",
    ),
    "part of a shard": (half_a_shard, "shard"),
    "each shard sorted": (lambda: [row for shard in range(SHARDS) for row in range(shard, ROWS, SHARDS)], "position"),
    "sampled and sorted by one draw": (sampled_and_sorted_by_one_draw, "position"),
    "each shard sorted, alternating": (alternating, "position"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_order_is_refused_in_every_column(name: str, tmp_path: Path) -> None:
    order, where = PLANTED[name]
    assert sorted(order()) == list(range(ROWS))
    verdict = judged(tmp_path, spread_over(healthy("shuffle"), order()))
    assert verdict.outcome == "refuse"
    drifts = {failure.column for failure in verdict.failures if failure.severity == "critical"}
    assert {f"{name}_{where}_drift" for name in ("snapshot", "source", "language", "n_tokens", "score")} <= drifts


@given(seed=st.integers(0, 2**62), rows=st.integers(2, 6000), shards=st.integers(1, 40))
def test_an_honest_order_of_any_size_has_no_drift(seed: int, rows: int, shards: int) -> None:
    facts = compute_facts("", spread_over(healthy("shuffle"), honest(seed, rows), rows, shards))
    drifts = {name: fact.value for name, fact in facts.items() if name.endswith("_drift") and fact}
    assert len(drifts) == 10
    assert set(drifts.values()) == {0}


def documents(rows: int) -> pa.Table:
    """Return documents in the order of snapshots, of which later ones are longer and better."""
    columns = dict.fromkeys(LOCATOR.names, ["x"] * rows)
    columns |= {"snapshot": [f"2026-11-{1 + row * 20 // rows:02}" for row in range(rows)]}
    columns |= {name: pa.array(range(rows), pa.int64()) for name in ("offset", "length")}
    columns |= {"id": [f"{row:032x}" for row in range(rows)], "n_tokens": pa.array(range(1, rows + 1), pa.int64())}
    return pa.table({**columns, "score": [row / rows for row in range(rows)]})


@pytest.mark.parametrize("batch_rows", [7, 4096])
def test_a_real_shuffle_of_a_sorted_parent_passes(batch_rows: int, tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [documents(3000).slice(0, 1000), documents(3000).slice(1000)])
    path, manifest = refined(tmp_path, "shuffle", parent, batch_rows=batch_rows)
    verdict = judge(str(tmp_path), path)
    assert verdict.outcome == "pass"
    facts = {name: value for name, value in verdict.facts.items() if name.startswith(("snapshot_", "score_"))}
    assert {name for name, value in facts.items() if value} == {name for name in facts if name.endswith("_gap")}
    assert verdict.facts["language_shard_drift"] is None
    spread = manifest.metrics["spread"]
    assert sum(map(sum, spread["snapshot"]["shards"])) == sum(map(sum, spread["snapshot"]["tenths"])) == 3000
    assert len(spread["snapshot"]["groups"]) == LARGEST
    assert [sum(row) for row in spread["n_tokens"]["shards"]] == [shard.rows for shard in manifest.shards]


@given(cuts=st.lists(st.integers(0, 200), max_size=5))
def test_counts_do_not_depend_on_batches(cuts: list[int]) -> None:
    batch = documents(200).combine_chunks().to_batches()[0]
    whole, cut = SpreadCounter(("snapshot", "n_tokens", "none")), SpreadCounter(("snapshot", "n_tokens", "none"))
    whole.add(batch)
    edges = [0, *sorted(cuts), 200]
    for start, stop in pairwise(edges):
        cut.add(batch.slice(start, stop - start))
    assert whole.counts() == cut.counts()
    assert whole.counts()["n_tokens"]["128"] == [0] * 6 + [13, 20, 20, 20]
    assert joined([whole.counts(), SpreadCounter(("snapshot",)).counts()])["snapshot"]["shards"][1] == [0] * 16
