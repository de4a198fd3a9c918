"""Computes facts of generated documents: how many of them a stage kept, why not all, and how many of their sources."""

from pipeline_tasks.gate.estimates import Facts, exact, share
from pipeline_tasks.gate.facts.subject import Family, Subject, profiles_of
from pipeline_tasks.profiles.origins import generated_kept, generated_removed, sources_removed
from pipeline_tasks.schema import ORIGIN


def count_origins(subject: Subject) -> Facts:
    """Return how many generated documents a stage kept, the retention of both kinds, and what each reason took.

    They are None where rows tell no origin; reasons are those of the stage's card, and those that it gave.
    """
    manifest = subject.manifest
    if ORIGIN not in {*profiles_of(manifest), *profiles_of(manifest, "rejects")}:
        return dict.fromkeys(name for name in ORIGINS.meanings if "<" not in name)
    by_choice = subject.card.replaces
    generated, sources = generated_kept(manifest), manifest.rows - generated_kept(manifest)
    removed = {reason: rows for reason, rows in generated_removed(manifest).items() if reason not in by_choice}
    lost = {reason: rows for reason, rows in sources_removed(manifest).items() if reason not in by_choice}
    due = generated + sum(removed.values())
    reasons = dict.fromkeys((*subject.card.reasons, *removed))
    return {
        **{f"generated_loss.{reason}": share(removed.get(reason, 0), due) for reason in reasons},
        "generated": exact(generated),
        "generated_retention": share(generated, due),
        "source_retention": share(sources, sources + sum(lost.values())),
    }


ORIGINS = Family(
    count_origins,
    {
        "generated": "generated documents kept; none where rows have no `origin`, as for the next two",
        "generated_retention": "share of the generated documents that were kept, but for those that params leave out",
        "source_retention": "share of the other documents that were kept",
        "generated_loss.<reason>": "share of the generated documents that were rejected for this reason",
    },
)
