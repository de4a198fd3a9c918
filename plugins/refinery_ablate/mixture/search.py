"""Goes on with a mixture search by the results of its proxies, and judges what it has found."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline_tasks.errors import RecipeError
from refinery_ablate.comparison import SHARED, differences_by_group
from refinery_ablate.held_out import HeldOut, halves, load_held_out
from refinery_ablate.job import HELD_OUT, read_result
from refinery_ablate.mixture.found import Found, Weight, recipe_text
from refinery_ablate.mixture.planning import prior_sequences, with_found, with_round
from refinery_ablate.mixture.predictor import Predictor, checked, fitted
from refinery_ablate.mixture.search_page import write_page
from refinery_ablate.mixture.search_plan import (
    FOUND,
    PRIOR,
    SAMPLED,
    WITHOUT,
    Counts,
    Proxy,
    Search,
    untrained,
    write_search,
)
from refinery_ablate.mixture.swarm import Shares, apportioned
from refinery_ablate.statistics import (
    SAME,
    Difference,
    Floats,
    bits_per_byte,
    detectable,
    difference,
    outcome,
    pooled_deviation,
)
from refinery_ablate.verdict import Noise

RESULT, RECIPE = "mixture.json", "mixture.yaml"

RESAMPLES = 300
"""Fits to resampled proxies and documents, of which the interval of each weight is."""

INTERVAL = (2.5, 97.5)
"""Percentiles of the interval."""


def next_round(folder: Path, search: Search) -> Search | None:
    """Return, and store, a search whose planned proxies have all ended with those that come next; None at its end."""
    _require_trained(folder, search)
    best = _fit(folder, search).best(search.most / search.sequences, search.prior)
    if max(proxy.round for proxy in search.proxies) < search.asked.rounds:
        grown = with_round(search, best)
    else:
        mixture = apportioned(best, search.sequences, search.most)
        if np.array_equal(mixture, prior_sequences(search)) or _judging(search, mixture):
            return None
        grown = with_found(search, mixture)
    write_search(folder, grown)
    return grown


def _judging(search: Search, mixture: Counts) -> list[Proxy]:
    """Return the runs that judge a mixture."""
    return [proxy for proxy in search.of_kind(FOUND) if proxy.sequences == tuple(mixture.tolist())]


def _require_trained(folder: Path, search: Search) -> None:
    left = untrained(folder, search)
    if left:
        message = (
            f"{folder}: {len(left)} of {len(search.proxies)} proxies have no result, first {left[0].name}; run them"
        )
        raise RecipeError(message)


# --- Fitting ------------------------------------------------------------------------------------------------------


def _swarm(search: Search) -> list[Proxy]:
    """Return the proxies that choose a mixture: none of those that judge it."""
    return [proxy for proxy in search.of_kind(PRIOR, WITHOUT, SAMPLED) if proxy.rate == search.rate]


def _shares(proxies: list[Proxy]) -> Shares:
    return np.array([proxy.weights for proxy in proxies])


def bits_of(folder: Path, proxies: Sequence[Proxy]) -> Floats:
    """Return the bits of each held-out document (proxies x documents)."""
    return np.array([read_result(folder, proxy)["bits"] for proxy in proxies], np.float64)


def _fit(folder: Path, search: Search) -> Predictor:
    proxies, held_out = _swarm(search), load_held_out(folder / HELD_OUT)
    chose, _ = halves(held_out)
    return fitted(_shares(proxies), bits_per_byte(bits_of(folder, proxies)[:, chose], held_out.sizes[chose]))


def _intervals(search: Search, shares: Shares, bits: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return the bounds of each group's share in the best mixture, of fits to resampled proxies and documents."""
    rng = np.random.default_rng(0)
    most = search.most / search.sequences
    bests = np.empty((RESAMPLES, len(search.groups)))
    for number in range(RESAMPLES):
        rows = rng.integers(len(shares), size=len(shares))
        documents = rng.integers(len(sizes), size=len(sizes))
        values = bits_per_byte(bits[np.ix_(rows, documents)], sizes[documents])
        bests[number] = fitted(shares[rows], values).best(most, search.prior)
    low, high = np.percentile(bests, INTERVAL, axis=0)
    return low, high


# --- Judging ------------------------------------------------------------------------------------------------------


def noise_of(folder: Path, search: Search) -> Noise:
    """Return what the runs of the prior say of the whole search."""
    proxies = [proxy for proxy in search.of_kind(PRIOR) if proxy.rate == search.rate]
    held_out = load_held_out(folder / HELD_OUT)
    _, judges = halves(held_out)
    deviation = pooled_deviation([bits_per_byte(bits_of(folder, proxies)[:, judges], held_out.sizes[judges])])
    seconds = float(np.mean([read_result(folder, proxy)["seconds"] for proxy in proxies]))
    return Noise(deviation, detectable(deviation, len(proxies), len(search.asked.rates)), seconds)


def judge(folder: Path, search: Search) -> Found:
    """Judge a search that has ended; store what it has found, the mixture for a recipe, and the page.

    RecipeError while proxies are missing.
    """
    _require_trained(folder, search)
    proxies, held_out = _swarm(search), load_held_out(folder / HELD_OUT)
    chose, judges = halves(held_out)
    shares, bits = _shares(proxies), bits_of(folder, proxies)[:, chose]
    values = bits_per_byte(bits, held_out.sizes[chose])
    predictor = fitted(shares, values)
    best = predictor.best(search.most / search.sequences, search.prior)
    mixture = apportioned(best, search.sequences, search.most)
    differences, by_group = _differences(folder, search, mixture, held_out)
    low, high = _intervals(search, shares, bits, held_out.sizes[chose])
    weights = tuple(
        Weight(group.name, group.prior, float(best[at]), float(low[at]), float(high[at]))
        for at, group in enumerate(search.groups)
    )
    found = Found(
        outcome(differences) if differences else SAME,
        differences,
        by_group,
        weights,
        checked(shares, values),
        float(predictor(best) - predictor(search.prior)),
        predictor.floor,
        noise_of(folder, search),
        sum(read_result(folder, proxy)["seconds"] for proxy in search.proxies),
        search,
        json.loads((folder / SHARED).read_bytes()) | {"judges": int(judges.sum())},
    )
    (folder / RESULT).write_text(json.dumps(found.facts(), indent=1, sort_keys=True) + "\n")
    (folder / RECIPE).write_text(recipe_text(found))
    write_page(folder, found, held_out.taken(judges))
    return found


def judged_runs(search: Search, shares: Shares) -> dict[float, tuple[list[Proxy], list[Proxy]]]:
    """Return by rate the runs of the prior, and those that judged the mixture of some shares, if there are any."""
    return _judged(search, apportioned(shares, search.sequences, search.most))


def _judged(search: Search, mixture: Counts) -> dict[float, tuple[list[Proxy], list[Proxy]]]:
    judging, priors = _judging(search, mixture), search.of_kind(PRIOR)
    rates = search.asked.rates if judging else ()
    return {rate: (_at(priors, rate), _at(judging, rate)) for rate in rates}


def _at(proxies: list[Proxy], rate: float) -> list[Proxy]:
    return [proxy for proxy in proxies if proxy.rate == rate]


def _differences(
    folder: Path, search: Search, mixture: Counts, held_out: HeldOut
) -> tuple[dict[float, Difference], dict[str, Difference]]:
    """Return how the found mixture differs from the prior at each rate, and by group of held-out documents.

    Neither documents nor runs that judge the found mixture chose it: the runs of the prior are in the fit, with the
    other documents.
    """
    runs = _judged(search, mixture)
    if not runs:
        return {}, {}
    judges = halves(held_out)[1]
    scored = held_out.taken(judges)
    pairs = {rate: [bits_of(folder, part)[:, judges] for part in pair] for rate, pair in runs.items()}
    tests = len(pairs)
    differences = {
        rate: difference(first, second, scored.sizes, tests=tests) for rate, (first, second) in pairs.items()
    }
    return differences, dict(differences_by_group(pairs[search.rate], scored))
