"""Records what a mixture search says of the mixture that it found, beside the prior, in the root of its dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.libraries import release
from pipeline_tasks.publish.logs.ablation_log import MIXTURE, Ablation
from refinery_ablate.arms.versions import version_named
from refinery_ablate.evidence import DIGITS, MOST_GROUPS, Evidence, rounded
from refinery_ablate.held_out import halves, load_held_out
from refinery_ablate.job import HELD_OUT, read_result
from refinery_ablate.mixture.found import Found
from refinery_ablate.mixture.search import bits_of, judged_runs
from refinery_ablate.mixture.search_plan import Proxy, Search
from refinery_ablate.plots import rows_of_curves
from refinery_ablate.recording import Recorded, ablated_arm, entered, intervals
from refinery_ablate.statistics import bits_per_byte

Pair = tuple[Sequence[Proxy], Sequence[Proxy]]


def record_search(found: Found, folder: Path, root: str = "") -> list[Recorded]:
    """Record the comparison that a search ends with; return the entries, as `recording.record` does.

    `folder` is that of the search, and `root` one that is to have it besides that of the dataset. Where the fit finds
    nothing but the prior no mixtures were compared, and nothing is recorded.
    """
    if not found.differences:
        return []
    search, asked = found.search, found.search.asked
    pairs = judged_runs(search, np.array([weight.found for weight in found.weights]))
    published = version_named(asked.dataset, f"/{asked.prefix}")
    mixtures = [_weights(search, runs[0]) for runs in pairs[search.rate]]
    first, second = (ablated_arm(asked.dataset, search.pool, published, weights) for weights in mixtures)
    ablation = Ablation(
        (first, second),
        search.size,
        search.tokens,
        asked.seeds,
        search.held_out,
        intervals(found.differences),
        found.outcome,
        found.noise.detectable,
        round(sum(_seconds(folder, runs) for pair in pairs.values() for runs in pair), 1),
        release(),
        kind=MIXTURE,
        documents=found.shared["judges"],
    )
    return list(entered(ablation, _evidence(found, folder, pairs), [published.root] if published else [], root))


def _weights(search: Search, proxy: Proxy) -> dict[str, float]:
    shares = proxy.weights.round(DIGITS).tolist()
    return dict(zip((group.name for group in search.groups), shares, strict=True))


def _seconds(folder: Path, runs: Sequence[Proxy]) -> float:
    return sum(float(read_result(folder, proxy)["seconds"]) for proxy in runs)


def _evidence(found: Found, folder: Path, pairs: Mapping[float, Pair]) -> Evidence:
    """Return what the comparison rests on: both arms are trained on as many sequences of the same pool."""
    search, held_out = found.search, load_held_out(folder / HELD_OUT)
    judges = halves(held_out)[1]
    first, second = pairs[search.rate]
    arm = {"documents": None, "tokens": search.sequences * search.length, "sequences": search.sequences}
    return Evidence(
        found.differences,
        found.groups,
        [
            float(bits_per_byte(bits_of(folder, runs)[:, judges], held_out.sizes[judges]).mean())
            for runs in (first, second)
        ],
        found.noise.deviation,
        found.noise.seconds,
        {**found.shared, "in": [*found.shared["in"], *found.shared["in"]][:2]},
        {rate: [rounded(row) for row in _curves(folder, search, pair)] for rate, pair in pairs.items()},
        [arm, arm],
        search.asked.by,
        _mixture(search, first[0], second[0]),
    )


def _curves(folder: Path, search: Search, pair: Pair) -> list[dict[str, Any]]:
    results = [[read_result(folder, proxy) for proxy in runs] for runs in pair]
    losses = [[result["losses"] for result in arm] for arm in results]
    return rows_of_curves(losses, int(results[0][0]["steps"]), search.tokens)


def _mixture(search: Search, first: Proxy, second: Proxy) -> list[dict[str, Any]]:
    """Return the tokens of each group in both mixtures, most first; pools know nothing of documents."""
    counts = zip(search.groups, first.sequences, second.sequences, strict=True)
    most_first = sorted(counts, key=lambda row: -max(row[1:]))[:MOST_GROUPS]
    return [
        {"group": group.name, "documents": [None, None], "tokens": [before * search.length, after * search.length]}
        for group, before, after in most_first
    ]
