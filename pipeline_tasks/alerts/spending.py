"""Reads from the ledger what a snapshot cost up to a stage, and how long the stage took for earlier snapshots."""

from pipeline_tasks.alerts.stages import Spending
from pipeline_tasks.gate.suites import SNAPSHOTS
from pipeline_tasks.ledger import Ledger

SECONDS = 3600
"""Those of an hour."""


def spent_up_to(ledger: Ledger, recipe: str, snapshot: str, stage: str) -> dict[str, float]:
    """Return what a snapshot's stages took up to one, by the facts of a gate; nothing for one that is not recorded."""
    rows = ledger.query("cost", recipe=recipe, snapshot=snapshot) if recipe and snapshot else []
    stages = [str(row["stage"]) for row in rows]  # in the order in which they run
    taken = rows[: stages.index(stage) + 1] if stage in stages else []
    if not taken:
        return {}
    sums = {name: sum(float(row[name]) for row in taken) for name in ("cost_usd", "cpu_hours", "gpu_hours")}
    hours = sum(float(row["wall_seconds"]) for row in taken) / SECONDS
    named = {"spent_usd": sums["cost_usd"], "spent_hours": hours}
    named |= {f"spent_{name}": sums[name] for name in ("cpu_hours", "gpu_hours")}
    return {name: round(value, 6) for name, value in named.items()}


def spending_of(ledger: Ledger, recipe: str, snapshot: str, stage: str) -> Spending:
    """Return what a snapshot cost up to a stage; nothing for a manifest that is of no recipe and snapshot."""
    if not recipe or not snapshot:
        return Spending()
    costs = {
        str(row["stage"]): float(row["cost_usd"]) for row in ledger.query("cost", recipe=recipe, snapshot=snapshot)
    }
    if stage not in costs:
        return Spending()
    stages = list(costs)  # in the order in which they run
    before = sum(costs[earlier] for earlier in stages[: stages.index(stage)])
    paces = {
        str(row["snapshot"]): float(row["seconds_per_row"]) for row in ledger.query("pace", recipe=recipe, stage=stage)
    }
    earlier = [pace for name, pace in sorted(paces.items()) if name < snapshot]
    return Spending(before + costs[stage], before, tuple(earlier[-SNAPSHOTS:]))
