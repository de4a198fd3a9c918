"""What a comparison says: the outcome with all that it follows from, and the lines that a person reads."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from refinery_ablate.job import ARMS, Plan
from refinery_ablate.sizes import SMOKE
from refinery_ablate.statistics import Difference, Outcome, seeds_for


@dataclass(frozen=True, slots=True)
class Noise:
    """What the runs of one arm say: the deviation between seeds, the smallest difference seen, and seconds of a run."""

    deviation: float
    detectable: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison says of the second arm beside the first, with all that it follows from.

    `groups` and `means` (bits per byte by arm) are of the rate that trains well. `deviation` is that of seeds there, in
    bits per byte, and `detectable` the smallest difference that it lets these seeds show. `seconds` are those of a run
    on average. `shared` counts held-out documents: all, those left, and those that each arm has.
    """

    outcome: Outcome
    differences: Mapping[float, Difference]
    groups: Mapping[str, Difference]
    means: tuple[float, ...]
    deviation: float
    detectable: float
    seconds: float
    plan: Plan
    shared: Mapping[str, Any]

    @property
    def decisive(self) -> Difference:
        """The difference at the larger rate."""
        return self.differences[max(self.differences)]

    def facts(self) -> dict[str, Any]:
        """Return the verdict as JSON."""
        raw = asdict(self)
        raw["differences"] = {f"{rate:g}": asdict(compared) for rate, compared in self.differences.items()}
        return raw


def lines_of(verdict: Verdict) -> Iterator[str]:
    """Yield a verdict for a person."""
    plan = verdict.plan
    names = [arm.name for arm in plan.arms]
    shared = verdict.shared
    yield f"{names[1]} beside {names[0]}: {verdict.outcome}"
    yield f"bits per byte: {verdict.means[0]:.4f} (a), {verdict.means[1]:.4f} (b); below is better"
    for rate, compared in sorted(verdict.differences.items(), reverse=True):
        yield (
            f"  b - a at rate {rate:g}: {compared.value:+.4f}, 95 % {compared.low:+.4f} to {compared.high:+.4f} "
            f"(seeds {compared.seeds:.4f}, documents {compared.documents:.4f})"
        )
    yield f"smallest difference that {len(plan.seeds)} seeds show: {verdict.detectable:.4f}"
    yield (
        f"held out: {shared['left']:,} of {shared['documents']:,} documents; {shared['in'][0]:,} are in a, "
        f"{shared['in'][1]:,} in b, and left out"
    )
    for name, compared in verdict.groups.items():
        mark = "*" if compared.excludes_zero else " "
        yield f"  {mark} {name:<28} {compared.value:+.4f}  {compared.low:+.4f} to {compared.high:+.4f}"
    if plan.size == SMOKE:
        yield "a model of this size shows that the comparison works; its verdict says nothing of larger ones"


def price_lines(noise: Noise, plan: Plan, wanted: float, usd_per_hour: float) -> Iterator[str]:
    """Yield what a comparison can see by the noise of the first arm, and what it would cost to see less."""
    runs = len(plan.seeds) * len(plan.rates) * len(ARMS)
    yield (
        f"noise of seeds: {noise.deviation:.4f} bits per byte; {len(plan.seeds)} seeds show differences from "
        f"{noise.detectable:.4f} on, in {hours_of(noise.seconds * runs, usd_per_hour)}"
    )
    goal = wanted or noise.detectable / 2
    seeds = seeds_for(noise.deviation, goal, len(plan.rates))
    time = noise.seconds * seeds * len(plan.rates) * len(ARMS)
    yield f"a difference of {goal:.4f} needs {seeds} seeds: {hours_of(time, usd_per_hour)}"


def hours_of(seconds: float, usd_per_hour: float) -> str:
    """Return so much time of one device as text, with its price if an hour has one."""
    price = f", {usd_per_hour * seconds / 3600:,.2f} US dollars" if usd_per_hour else ""
    return f"{seconds / 3600:,.2f} hours of one device{price}"
