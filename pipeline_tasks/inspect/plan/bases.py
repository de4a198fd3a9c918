"""Rates to plan a crawl with: those that this project measured, and those with the retention of a published pipeline.

A rate is per landed byte, a byte of the crawl's files as they arrive. `run.unit_costs` has what stages cost.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

from pipeline_tasks.inspect.command import DEFAULT_RECIPE
from pipeline_tasks.inspect.plan.demand import Basis, StageRate, with_passed
from pipeline_tasks.recipe import DEFAULT_BUILD, load_build, load_recipe
from pipeline_tasks.run.unit_costs import MEGABYTE, UnitCost, cost_of

EXTRACT = "extract"

UNIT_COST = "unit cost"
"""The source of a stage's seconds that no run has measured: `run.unit_costs`."""

CONTENT = 4.35
"""Bytes of WARC records per landed byte: gzip of the snapshot dev-2026-45, 95.7 of 22.0 MB."""

ROWS_KEPT: Mapping[str, float] = {
    "ingest": 0.598,
    "extract": 0.996,
    "filter_url": 1.0,
    "filter_language": 0.934,
    "filter_quality": 0.735,
    "dedup_exact": 0.998,
    "cut_templates": 1.0,
    "dedup_minhash": 0.992,
    "score_quality": 1.0,
    "scrub_pii": 1.0,
    "decontaminate": 1.0,
    "tokenize": 1.0,
    "select": 1.0,
    "mix": 1.0,
    "shuffle": 1.0,
    "takedown": 1.0,
}
"""Share of rows that stages kept of the snapshot dev-2026-45 by the recipes `web` and `corpus`: 40.5 % of records."""

TOKENS_PER_SHUFFLED_BYTE = 0.671
"""Tokens per byte of `shuffle`'s shards of the same run: 2,538,603 tokens of a vocabulary of 8,192 in 3.78 MB."""

PUBLISHED_KEPT: Mapping[str, float] = {
    "extract": 0.50,
    "filter_language": 0.40,
    "filter_quality": 0.50,
    "dedup_exact": 0.50,
    "dedup_minhash": 0.50,
    "score_quality": 0.40,
    "scrub_pii": 0.95,
}
"""Share of bytes that go on, by the stage that does the same: 0.0095 in all. Filters of URLs count with heuristics."""

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
    rates = _chained((stage, cost_of(stage), ROWS_KEPT.get(stage)) for stage in _stages())
    landed_per_token = 1 / (_shuffled(rates) * TOKENS_PER_SHUFFLED_BYTE)
    return Basis("measured", MEASURED_SOURCE, landed_per_token, CONTENT, tuple(rates))


def published_basis() -> Basis:
    """Return the rates of a pipeline with published retention, at the costs per byte that this project measured.

    Raw bytes follow from the published equation: tokens * 4 / 0.0095. What the measured stages passed on is corrected
    by the share of rows that the published ones keep. `extract` makes text of pages; its share is one of bytes, and
    what it passes on and stores is what the stages behind it need to end with the tokens of that equation.
    """
    rates = _chained((stage, _as_published(stage), PUBLISHED_KEPT.get(stage)) for stage in _stages())
    landed_per_token = PUBLISHED_TOKEN_BYTES / prod(PUBLISHED_KEPT.values()) / CONTENT
    basis = Basis("published", PUBLISHED_SOURCE, landed_per_token, CONTENT, tuple(rates), shares_of="bytes")
    share = 1 / (landed_per_token * _shuffled(rates) * TOKENS_PER_SHUFFLED_BYTE)
    stages = (
        replace(rate, stores=rate.stores * share) if rate.stage == EXTRACT else rate
        for rate in with_passed(basis, EXTRACT, share).stages
    )
    return replace(basis, stages=tuple(stages))


def _shuffled(rates: Iterable[StageRate]) -> float:
    """Return the bytes of `shuffle`'s shards, per landed byte."""
    return next(rate.reads for rate in rates if rate.stage == "pack")


def _stages() -> Iterator[str]:
    recipes = (load_recipe(DEFAULT_RECIPE), load_build(DEFAULT_BUILD))
    return (step.stage for recipe in recipes for step in recipe.steps)


def _as_published(stage: str) -> UnitCost:
    """Return what a stage costs, with the bytes that it passes on if it kept as many rows as the published one."""
    cost = cost_of(stage)
    if stage == EXTRACT or stage not in PUBLISHED_KEPT:
        return cost
    kept = cost.kept * PUBLISHED_KEPT[stage] / ROWS_KEPT[stage]
    return UnitCost(cost.seconds, kept, cost.stored, cost.objects, cost.bucket)


def _chained(stages: Iterable[tuple[str, UnitCost, float | None]]) -> list[StageRate]:
    """Return the rates of stages that follow each other, per landed byte."""
    reads, rates = 1.0, []
    for stage, cost, kept in stages:
        seconds = reads * cost.seconds / MEGABYTE
        rates.append(StageRate(stage, reads, seconds, reads * cost.stored, kept, UNIT_COST))
        reads *= cost.kept
    return rates
