"""Rates to plan a crawl with: those that this project measured, and those with the retention of a published pipeline.

A rate is per landed byte, a byte of the crawl's files as they arrive. `run.unit_costs` has what stages cost.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from pipeline_tasks.cards import has_sequences, maker_of, makes_documents
from pipeline_tasks.facets import UnitCost
from pipeline_tasks.inspect.command import DEFAULT_RECIPE
from pipeline_tasks.recipe import DEFAULT_BUILD, load_build, load_recipe
from pipeline_tasks.run.unit_costs import MEGABYTE, cost_of
from refinery_study.plan.demand import Basis, StageRate, with_passed

UNIT_COST = "unit cost"
"""The source of a stage's seconds that no run has measured: `run.unit_costs`."""

CONTENT = 4.35
"""Bytes of WARC records per landed byte: gzip of the snapshot dev-2026-45, 95.7 of 22.0 MB."""

TOKENS_PER_SHUFFLED_BYTE = 0.671
"""Tokens per byte of `shuffle`'s shards of the same run: 2,538,603 tokens of a vocabulary of 8,192 in 3.78 MB."""

PUBLISHED_TOKEN_BYTES = 4
"""Bytes of text per token, as the same source has it."""

MEASURED_SOURCE = (
    "unit costs of one core, snapshot dev-2026-45 by recipe web (pipeline_tasks/run/unit_costs.py); its pages are "
    "chosen ones, of which a crawl has few"
)
PUBLISHED_SOURCE = (
    "retention of 'The Data Pipeline Architecture' (DeepSeek-V3 scale), 0.0095 of bytes at 4 bytes of text per token; "
    "seconds per byte as measured"
)


def measured_basis() -> Basis:
    """Return the rates of this project's measured snapshot."""
    rates = _chained((stage, cost_of(stage), cost_of(stage).rows) for stage in _stages())
    landed_per_token = 1 / (_shuffled(rates) * TOKENS_PER_SHUFFLED_BYTE)
    return Basis("measured", MEASURED_SOURCE, landed_per_token, CONTENT, tuple(rates))


def published_basis() -> Basis:
    """Return the rates of a pipeline with published retention, at the costs per byte that this project measured.

    Raw bytes follow from the published equation: tokens * 4 / 0.0095. What the measured stages passed on is corrected
    by the share of rows that the published ones keep. `extract` makes text of pages; its share is one of bytes, and
    what it passes on and stores is what the stages behind it need to end with the tokens of that equation.
    """
    rates = _chained((stage, _as_published(stage), cost_of(stage).published) for stage in _stages())
    landed_per_token = PUBLISHED_TOKEN_BYTES / published_share() / CONTENT
    basis = Basis("published", PUBLISHED_SOURCE, landed_per_token, CONTENT, tuple(rates), shares_of="bytes")
    share = 1 / (landed_per_token * _shuffled(rates) * TOKENS_PER_SHUFFLED_BYTE)
    maker = maker_of(_stages())
    stages = (
        replace(rate, stores=rate.stores * share) if rate.stage == maker else rate
        for rate in with_passed(basis, maker, share).stages
    )
    return replace(basis, stages=tuple(stages))


def published_share() -> float:
    """Return the share of bytes that the published pipeline keeps in all: .0095."""
    shares = (cost_of(stage).published for stage in _stages())
    return prod(share for share in shares if share is not None)


def _shuffled(rates: Iterable[StageRate]) -> float:
    """Return the bytes of `shuffle`'s shards, per landed byte."""
    return next(rate.reads for rate in rates if has_sequences(rate.stage))


def _stages() -> Iterator[str]:
    recipes = (load_recipe(DEFAULT_RECIPE), load_build(DEFAULT_BUILD))
    return (step.stage for recipe in recipes for step in recipe.steps)


def _as_published(stage: str) -> UnitCost:
    """Return what a stage costs, with the bytes that it passes on if it kept as many rows as the published one."""
    cost = cost_of(stage)
    if makes_documents(stage) or cost.published is None or cost.rows is None:
        return cost
    return replace(cost, kept=cost.kept * cost.published / cost.rows)


def _chained(stages: Iterable[tuple[str, UnitCost, float | None]]) -> list[StageRate]:
    """Return the rates of stages that follow each other, per landed byte."""
    reads, rates = 1.0, []
    for stage, cost, kept in stages:
        seconds = reads * cost.seconds / MEGABYTE
        rates.append(StageRate(stage, reads, seconds, reads * cost.stored, kept, UNIT_COST))
        reads *= cost.kept
    return rates
