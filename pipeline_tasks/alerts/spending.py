"""Reads from the ledger what a snapshot cost up to a stage, and how long the stage took for earlier snapshots."""

from pipeline_tasks.alerts.stages import Spending
from pipeline_tasks.gate.suites import SNAPSHOTS
from pipeline_tasks.ledger import Ledger


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
