"""Foretells the requests of a run to its store, and what it costs by public prices.

Requests are counted and not timed: `benchmarks/growth.py` counts those of a stage for each shard of its input, and for
each bucket where it has some. Every `CHUNK` of a file that is read is one more. With a history every stage that looks
up asks for more; how much depends on what is known.
"""

from dataclasses import dataclass
from functools import reduce

from pipeline_tasks.facets import NONE, Requests
from pipeline_tasks.run.sizes import Sizes, StageSize
from pipeline_tasks.run.unit_costs import cost_of
from pipeline_tasks.store.protocol import CHUNK

OF_RUN = Requests(60, 40)
"""Of landing, publication and the log, whatever the size."""

OF_GATE = Requests(2.3, 0)
"""Of a gate for each shard of which it reads a sample, `SAMPLED` bytes of a stage at most."""

SAMPLED = 64_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars of a core hour, a thousand requests that read, a thousand that write, and a GB stored for a month.

    Requests and bytes are those of S3 Standard in us-east-1 in 2026; a core hour is about that of a general machine on
    demand there. Traffic within a region costs nothing.
    """

    core_hour: float = 0.05
    reads: float = 0.0004
    writes: float = 0.005
    gigabyte_month: float = 0.023


@dataclass(frozen=True, slots=True)
class Bill:
    """What a run asks and costs: requests, and dollars once and each month."""

    reads: int
    writes: int
    core_hours: float
    dollars: float
    dollars_a_month: float


def bill_of(sizes: Sizes, prices: Prices) -> Bill:
    """Return what a run of these sizes asks and costs."""
    requests = reduce(Requests.plus, map(requests_of, sizes.stages), OF_RUN)
    hours = sizes.seconds / 3600
    dollars = hours * prices.core_hour + (requests.reads * prices.reads + requests.writes * prices.writes) / 1000
    monthly = sum(size.stored for size in sizes.stages) / 1e9 * prices.gigabyte_month
    return Bill(round(requests.reads), round(requests.writes), round(hours, 3), round(dollars, 4), round(monthly, 4))


def requests_of(size: StageSize) -> Requests:
    """Return the requests of a stage and of its gate."""
    cost = cost_of(size.stage)
    shards_out = size.buckets or size.shards
    sampled = min(shards_out, SAMPLED * shards_out // max(size.read, 1) + 1)
    chunks = Requests(size.read // CHUNK, 0)
    pieces = Requests(size.pieces - size.buckets, 0)  # of the first scatter task they are in the slopes
    of_shards, of_buckets = cost.requests.times(size.shards), cost.bucket_requests.times(size.buckets)
    parts = (of_shards, of_buckets, OF_GATE.times(sampled), chunks, pieces)
    return reduce(Requests.plus, parts, NONE)


def bill_lines(bill: Bill, prices: Prices) -> list[str]:
    """Return what a run asks and costs as lines for a person."""
    once = f"${bill.dollars:,.2f} at ${prices.core_hour:g} a core hour"
    return [
        f"{bill.reads:,} requests that read and {bill.writes:,} that write; {bill.core_hours:,.2f} core hours",
        f"{once}, and ${bill.dollars_a_month:,.2f} a month for what is stored (prices of S3 in us-east-1)",
    ]
