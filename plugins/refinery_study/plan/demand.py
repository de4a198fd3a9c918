"""Computes what a training run asks for: bytes to crawl, processor time, storage, money, and the rate of the loader.

Everything is linear in the tokens. Bytes are those of files as they land and as stages store them, never of characters,
so that no rate is applied to another kind of byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

DAY = 86_400
HOUR = 3600
MONTH = 30.44 * DAY
"""Seconds of a month, on average."""

GIGABYTE = 10**9


@dataclass(frozen=True, slots=True)
class StageRate:
    """What one stage asks for per landed byte: bytes that it reads and stores, and seconds of one core.

    `kept` is the share of its rows that it keeps, None for a stage that has other rows than it reads. `source` says
    where the seconds come from.
    """

    stage: str
    reads: float
    seconds: float
    stores: float
    kept: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Basis:
    """Rates to plan with, and where they come from: landed bytes per token, and the stages in order.

    `content` is the bytes of pages per landed byte, which are compressed; 0 where nobody counted them. `shares_of` is
    what the shares of the stages are of: rows, or bytes.
    """

    name: str
    source: str
    landed_per_token: float
    content: float
    stages: tuple[StageRate, ...]
    shares_of: str = "rows"


@dataclass(frozen=True, slots=True)
class Target:
    """The training run: tokens that it reads once, in so many days, on so many GPUs; bytes per token as stored.

    `refine_days` is the time in which the crawl is to be refined before.
    """

    tokens: float
    days: float
    gpus: int
    token_bytes: float
    refine_days: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars of a core for an hour, and of a gigabyte for a month."""

    core_hour: float
    gb_month: float


@dataclass(frozen=True, slots=True)
class StageDemand:
    """What one stage asks for."""

    stage: str
    kept: float | None
    reads: float
    core_hours: float
    stores: float
    source: str


@dataclass(frozen=True, slots=True)
class Demand:
    """What the refinery asks for: bytes, hours of one core, cores that work all of `refine_days`, and dollars.

    The crawl and what the stages store are kept from the first day of refining to the last day of training.
    """

    basis: str
    source: str
    tokens: float
    landed: float
    content: float
    core_hours: float
    cores: int
    stored: float
    core_money: float
    storage_money: float
    stages: tuple[StageDemand, ...]
    shares_of: str


@dataclass(frozen=True, slots=True)
class LoaderRate:
    """What the loader has to deliver: all bytes, and tokens and bytes per second, over all GPUs and for each."""

    bytes: float
    tokens_s: float
    bytes_s: float
    tokens_s_per_gpu: float
    bytes_s_per_gpu: float


def demand_of(basis: Basis, target: Target, prices: Prices) -> Demand:
    """Return what the refinery asks for to make the target's tokens."""
    landed = target.tokens * basis.landed_per_token
    stages = tuple(_stage_demand(rate, landed) for rate in basis.stages)
    core_hours = sum(stage.core_hours for stage in stages)
    stored = landed + sum(stage.stores for stage in stages) + target.tokens * target.token_bytes
    months = (target.refine_days + target.days) * DAY / MONTH
    return Demand(
        basis=basis.name,
        source=basis.source,
        tokens=target.tokens,
        landed=landed,
        content=landed * basis.content,
        core_hours=core_hours,
        cores=ceil(core_hours * HOUR / (target.refine_days * DAY)),
        stored=stored,
        core_money=core_hours * prices.core_hour,
        storage_money=stored / GIGABYTE * months * prices.gb_month,
        stages=stages,
        shares_of=basis.shares_of,
    )


def _stage_demand(rate: StageRate, landed: float) -> StageDemand:
    core_hours = landed * rate.seconds / HOUR
    return StageDemand(rate.stage, rate.kept, landed * rate.reads, core_hours, landed * rate.stores, rate.source)


def with_passed(basis: Basis, stage: str, share: float) -> Basis:
    """Return the rates if `stage` passed on `share` times its bytes: the stages after it and the tokens follow.

    `share` is above 0. ValueError if the basis has no such stage.
    """
    after = [rate.stage for rate in basis.stages].index(stage) + 1
    later = (
        replace(rate, reads=rate.reads * share, seconds=rate.seconds * share, stores=rate.stores * share)
        for rate in basis.stages[after:]
    )
    stages = (*basis.stages[:after], *later)
    return replace(basis, landed_per_token=basis.landed_per_token / share, stages=stages)


def loader_rate(target: Target) -> LoaderRate:
    """Return the rate at which tokens have to come: tokens / time, times the bytes of a token.

    14.8e12 tokens in 54 days are 3.17 million tokens per second; at 4 bytes that is 12.7 megabytes per second, of 59.2
    terabytes in all. (Seed S3 prints GB/s and 60 PB for them.)
    """
    tokens_s = target.tokens / (target.days * DAY)
    bytes_s = tokens_s * target.token_bytes
    return LoaderRate(
        bytes=target.tokens * target.token_bytes,
        tokens_s=tokens_s,
        bytes_s=bytes_s,
        tokens_s_per_gpu=tokens_s / target.gpus,
        bytes_s_per_gpu=bytes_s / target.gpus,
    )


def total_kept(stages: Sequence[StageDemand | StageRate]) -> float:
    """Return the share of rows that all stages keep together."""
    kept = 1.0
    for stage in stages:
        kept *= 1.0 if stage.kept is None else stage.kept
    return kept
