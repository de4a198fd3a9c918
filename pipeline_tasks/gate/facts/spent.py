"""Computes facts of what a snapshot's stages have cost, from what the ledger had when the gate was asked."""

from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.facts.subject import Family, Subject


def count_spent(subject: Subject) -> Facts:
    """Return what the snapshot's stages cost up to this one; None where nothing bounds it, or the ledger has none.

    It is a fact of a run and not of the rows, so a verdict has it only where somebody wants it judged.
    """
    return {name: exact(subject.spent.get(name)) for name in SPENT.meanings}


_UP_TO = "of the snapshot's stages up to this one, by the ledger"

SPENT = Family(
    count_spent,
    {
        "spent_usd": f"US dollars {_UP_TO} and its prices; this one and the next are there where something bounds them",
        "spent_hours": f"hours of wall clock {_UP_TO}: partitions that ran side by side add up",
        "spent_cpu_hours": f"hours of a core {_UP_TO}",
        "spent_gpu_hours": f"hours of a GPU {_UP_TO}",
    },
)
