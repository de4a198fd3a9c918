"""Resolve the wishes of a mixture into shares of each group, exactly."""

from collections.abc import Mapping
from fractions import Fraction

from pipeline_tasks.stages.mix.params import Params

Available = Mapping[str, int] | Mapping[str, Fraction]
"""The tokens of each group."""


def wanted_tokens(tokens: Available, params: Params) -> dict[str, Fraction]:
    """Return the tokens that are wanted of each group, before `max_epochs` and `budget_tokens` limit them."""
    if params.temperature:
        return _by_temperature(tokens, params, capped=False)
    wanted = {group: share * tokens[group] for group, share in _weighted_shares(tokens, params).items()}
    return wanted | _absolute(tokens, params) | _kept_whole(tokens, params)


def shares(tokens: Available, params: Params) -> dict[str, Fraction]:
    """Return how often each group's tokens are used, exactly: 1 is the whole group once; dropped groups are absent."""
    most = Fraction(params.max_epochs)
    if params.temperature:
        taken = _by_temperature(tokens, params, capped=True)
        return {group: taken[group] / tokens[group] for group in taken if tokens[group]}
    kept = _weighted_shares(tokens, params)
    for group, wanted in _absolute(tokens, params).items():
        named = group in params.epochs
        kept[group] = wanted / tokens[group] if named else min(most, wanted / tokens[group])
    kept |= dict.fromkeys(_kept_whole(tokens, params), Fraction(1))
    total = sum((share * tokens[group] for group, share in kept.items()), Fraction(0))
    if 0 < params.budget_tokens < total:
        kept = {group: share * params.budget_tokens / total for group, share in kept.items()}
    return kept


def _absolute(tokens: Available, params: Params) -> dict[str, Fraction]:
    """Return the tokens that `tokens` and `epochs` ask for, of the groups that have any."""
    wanted = {group: Fraction(count) for group, count in params.tokens.items()}
    wanted |= {group: Fraction(epochs) * tokens.get(group, 0) for group, epochs in params.epochs.items()}
    return {group: count for group, count in wanted.items() if tokens.get(group)}


def _kept_whole(tokens: Available, params: Params) -> dict[str, Fraction]:
    named = {*params.weights, *params.tokens, *params.epochs}
    is_kept = params.unlisted == "keep" or not (params.weights or params.tokens)
    return {group: Fraction(count) for group, count in tokens.items() if is_kept and group not in named}


def _weighted_shares(tokens: Available, params: Params) -> dict[str, Fraction]:
    """Return the share of each weighted group for the largest total that no group limits."""
    parts = {group: Fraction(weight) for group, weight in params.weights.items() if tokens.get(group)}
    whole, most = sum(parts.values()), Fraction(params.max_epochs)
    total = min((most * tokens[group] * whole / part for group, part in parts.items() if part), default=Fraction(0))
    return {group: total * part / whole / tokens[group] if whole else Fraction(0) for group, part in parts.items()}


def _by_temperature(tokens: Available, params: Params, *, capped: bool) -> dict[str, Fraction]:
    """Return the tokens of each group by temperature; with `capped`, the excess of full groups goes to the others.

    A group's part is tokens ** (1/T) (arXiv 1907.05019), rounded to a millionth so that every machine has the same.
    """
    named = {group: epochs * tokens[group] for group, epochs in _fractions(params.epochs).items() if tokens.get(group)}
    parts = {
        group: Fraction(round(count ** (1 / params.temperature) * 1_000_000), 1_000_000)
        for group, count in tokens.items()
        if count and group not in named
    }
    budget, named_tokens = Fraction(params.budget_tokens), sum(named.values(), Fraction(0))
    if capped and 0 < budget < named_tokens:
        named = {group: count * budget / named_tokens for group, count in named.items()}
    rest = budget - named_tokens if budget else Fraction(sum(tokens[group] for group in parts))
    taken, most = dict(named), Fraction(params.max_epochs)
    while (whole := sum(parts.values())) and rest > 0:  # parts that factors left next to nothing of round to 0
        full = {group for group, part in parts.items() if capped and rest * part / whole >= most * tokens[group]}
        if not full:
            return taken | {group: rest * part / whole for group, part in parts.items()}
        for group in full:
            taken[group] = most * tokens[group]
            rest -= taken[group]
            del parts[group]
    return taken | dict.fromkeys(parts, Fraction(0))


def _fractions(values: Mapping[str, float]) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in values.items()}
