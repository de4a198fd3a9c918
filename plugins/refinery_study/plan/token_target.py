"""Estimates what a number of tokens asks for if every snapshot is like a published one, under chosen bounds."""

import math
from dataclasses import dataclass

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.tokens import estimated_tokens, tokens_per_document
from pipeline_tasks.inspect.whatif import JUDGE
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_study.plan import CORE_HOUR, GB_MONTH, REFINE_DAYS, TOKEN_BYTES
from refinery_study.plan.demand import Demand, Prices, Target, demand_of, with_passed
from refinery_study.plan.version_costs import token_bytes, version_basis, version_cost

MOST_TOKENS = 1e18
"""No target has more."""


@dataclass(frozen=True, slots=True)
class TargetEstimate:
    """What a target asks for: snapshots like the version's, and bytes, core-hours and dollars to refine them.

    `published` are the tokens that the newest versions of the recipe's snapshots are estimated to have, and `reached`
    those that they would have with the chosen bounds. Everything is linear, as in `refinery plan`.
    """

    tokens: float
    published: int
    reached: float
    snapshots: float
    core_hour_price: float
    demand: Demand


def parse_target(written: str) -> float:
    """Return the tokens that a person wrote; RecipeError for what is no number of tokens."""
    try:
        tokens = float(written)
    except ValueError:
        tokens = math.nan
    if not 1 <= tokens <= MOST_TOKENS:
        message = f"target_tokens={written}: write a number of tokens from 1 to {MOST_TOKENS:g}, such as 14.8e12"
        raise RecipeError(message)
    return tokens


def published_tokens(root: str, recipe: str) -> int:
    """Return the tokens that the newest versions of a recipe's snapshots are estimated to have; 0 without a build."""
    rate = tokens_per_document(root, recipe)
    return sum(estimated_tokens(version, rate) for version in version_log.latest_by_snapshot(root, recipe))


def target_estimate(root: str, version: Version, tokens: float, share: float) -> TargetEstimate:
    """Return what `tokens` ask for if `filter_quality` passed on `share` times what it did in `version`.

    `share` is above 0. RecipeError if the version has no documents, or its landed files are not known.
    """
    cost = version_cost(root, version)
    basis = with_passed(version_basis(cost), JUDGE, share)
    stored = token_bytes(root, version) or TOKEN_BYTES
    target = Target(tokens=tokens, days=0, gpus=1, token_bytes=stored, refine_days=REFINE_DAYS)
    demand = demand_of(basis, target, Prices(CORE_HOUR, GB_MONTH))
    published = published_tokens(root, version.recipe)
    return TargetEstimate(tokens, published, published * share, demand.landed / cost.landed, CORE_HOUR, demand)
