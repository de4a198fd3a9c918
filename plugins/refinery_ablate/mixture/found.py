"""What a mixture search has found: weights with intervals, how the fit did on mixtures left out, and the outcome."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import yaml

from pipeline_tasks.cards import plans_mixture, stage_that
from refinery_ablate.mixture.predictor import Check
from refinery_ablate.mixture.search_plan import Group, Search
from refinery_ablate.mixture.swarm import apportioned
from refinery_ablate.sizes import SMOKE
from refinery_ablate.statistics import BETTER, SAME, Difference, Outcome
from refinery_ablate.verdict import Noise, hours_of

UNITS = 10_000
"""Weights are written in whole numbers of these: so no rounding takes a group above its passes."""

POOR = 0.5
"""Rank correlation below which a fit orders mixtures little better than chance would."""


FEW_SEQUENCES = 100
"""Sequences of a proxy below which steps of its shares are coarse."""


@dataclass(frozen=True, slots=True)
class Weight:
    """The share of a group in the prior and in the found mixture, and the bounds of the latter (95 %)."""

    name: str
    prior: float
    found: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found, beside the prior.

    `differences` are by learning rate (found minus prior, below 0 is better) and `groups` by group of held-out
    documents, both of runs that did not choose the mixture; none if the fit finds nothing but the prior. `expected` is
    what the fit said that difference would be, and `floor` the share from which on it counts a group. `seconds` are
    those of all proxies, and `shared` counts held-out documents.
    """

    outcome: Outcome
    differences: Mapping[float, Difference]
    groups: Mapping[str, Difference]
    weights: tuple[Weight, ...]
    check: Check
    expected: float
    floor: float
    noise: Noise
    seconds: float
    search: Search
    shared: Mapping[str, Any]

    @property
    def is_better(self) -> bool:
        """Whether a mixture was seen to be better than the prior."""
        return self.outcome == BETTER

    def facts(self) -> dict[str, Any]:
        """Return it as JSON."""
        raw = asdict(self)
        raw["differences"] = {f"{rate:g}": asdict(compared) for rate, compared in self.differences.items()}
        raw["recipe"] = mix_of(self)
        return raw


# --- The recipe ---------------------------------------------------------------------------------------------------


def mix_of(found: Found) -> dict[str, Any]:
    """Return the params of `mix`: what was found where it is better, else the prior.

    With these weights, rounded to ten-thousandths, no group is used more often than was asked for.
    """
    search, asked = found.search, found.search.asked
    shares = np.array([weight.found if found.is_better else weight.prior for weight in found.weights])
    most = [int(Fraction(asked.max_epochs) * group.tokens * UNITS / asked.budget) for group in search.groups]
    units = apportioned(shares, UNITS, np.minimum(np.array(most, np.int64), UNITS))
    weights: dict[str, float] = {}
    for group, count in zip(search.groups, units.tolist(), strict=True):
        weights |= dict(_members(group, count / UNITS))
    bands = {"bands": {asked.by: list(asked.bands)}} if asked.bands else {}
    return {
        "by": asked.by,
        **bands,
        "weights": dict(sorted(weights.items())),
        "max_epochs": asked.max_epochs,
        "budget_tokens": asked.budget,
    }


def _members(group: Group, share: float) -> Iterator[tuple[str, float]]:
    """Yield the weight of each group of `mix`: members of a joined one by their tokens."""
    for name, tokens in group.members.items():
        yield name, share if len(group.members) == 1 else round(share * tokens / group.tokens, 6)


def recipe_text(found: Found) -> str:
    """Return the mixture as a part of a recipe, with what is known of it."""
    step = {stage_that(plans_mixture): mix_of(found)}
    body = yaml.safe_dump(step, sort_keys=False, allow_unicode=True)
    lines = [*lines_of_outcome(found), *_weight_lines(found)]
    return "".join(f"# {line}\n" for line in lines) + body


# --- Lines --------------------------------------------------------------------------------------------------------


def lines_of(found: Found) -> Iterator[str]:
    """Yield what was found for a person."""
    search, check = found.search, found.check
    yield from lines_of_outcome(found)
    yield from _weight_lines(found)
    yield (
        f"the fit, on mixtures left out: rank correlation {check.correlation:.2f}, regret at 1 {check.regret:.4f}, "
        f"optimism {check.optimism:+.4f} bits per byte"
    )
    yield f"noise of seeds: {found.noise.deviation:.4f}; {len(search.proxies)} proxies in {hours_of(found.seconds, 0)}"
    yield from warnings(found)


def lines_of_outcome(found: Found) -> Iterator[str]:
    """Yield whether a mixture is better than the prior."""
    if not found.differences:
        yield "no mixture is seen to be better than the prior: the fit finds nothing else"
        return
    if found.is_better:
        yield "the found mixture is better than the prior"
    elif found.outcome == SAME:
        yield "no mixture is seen to be better than the prior: no difference seen"
    else:
        yield f"no mixture is seen to be better than the prior: the found one is {found.outcome}"
    for rate, compared in sorted(found.differences.items(), reverse=True):
        yield (
            f"  found - prior at rate {rate:g}: {compared.value:+.4f} bits per byte, 95 % {compared.low:+.4f} to "
            f"{compared.high:+.4f}" + (f"; expected {found.expected:+.4f}" if rate == found.search.rate else "")
        )


def _weight_lines(found: Found) -> Iterator[str]:
    names = [weight.name or "(none)" for weight in found.weights]
    width = max(map(len, names))
    yield f"{'':<{width}}   prior   found   95 % of fits to resampled proxies"
    for name, weight in zip(names, found.weights, strict=True):
        yield f"{name:<{width}}  {weight.prior:6.1%}  {weight.found:6.1%}  {weight.low:6.1%} to {weight.high:.1%}"


def warnings(found: Found) -> Iterator[str]:
    """Yield what weakens a search, for a person."""
    search, check = found.search, found.check
    if check.correlation < POOR:
        yield "the fit orders mixtures badly: its weights say little; more --mixtures, or more --tokens, may help"
    limited = [
        weight.name
        for weight, group in zip(found.weights, search.groups, strict=True)
        if group.most < search.sequences and weight.found >= group.most / search.sequences - 1 / UNITS
    ]
    if limited:
        yield f"at the limit of {search.asked.max_epochs:g} passes: {', '.join(limited)}"
    if search.sequences < FEW_SEQUENCES:
        yield f"a proxy has {search.sequences} sequences, and so shares in steps of {1 / search.sequences:.1%}"
    if search.left_out:
        yield f"too few tokens for a proxy, and so not in the mixture: {', '.join(search.left_out)}"
    if search.size == SMOKE:
        yield "models of this size show that the search works; its weights say nothing of larger ones"
