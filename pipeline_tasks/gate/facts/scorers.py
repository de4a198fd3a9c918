"""Computes facts of the models that score documents: whether each was checked, and whether its check refuses it."""

from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.facts.subject import Family, Subject


def count_scorers(subject: Subject) -> Facts:
    """Return how many classifiers decide without a check, and how many although a person had to accept them."""
    classifiers = subject.manifest.params.get("classifiers")
    if not classifiers:
        return {}
    accepted = sum(bool(params.get("accepted")) for params in classifiers.values())
    unchecked = sum(not params.get("report") and not params.get("accepted") for params in classifiers.values())
    return {"scorers_unchecked": exact(unchecked), "scorers_accepted": exact(accepted)}


SCORERS = Family(
    count_scorers,
    {
        "scorers_unchecked": "models that score documents and name no report of `refinery model check`",
        "scorers_accepted": "models that a person accepted (`accepted` in the params has the reason)",
    },
)
