"""Computes facts of generated documents: how many of them a stage kept, and how many of their sources."""

from pipeline_tasks.gate.estimates import Facts, exact, share
from pipeline_tasks.gate.facts.subject import Family, Subject, profiles_of
from pipeline_tasks.profiles.origins import generated_kept, generated_removed, sources_removed
from pipeline_tasks.schema import ORIGIN


def count_origins(subject: Subject) -> Facts:
    """Return how many generated documents a stage kept, and the retention of both kinds; None where rows tell none."""
    manifest = subject.manifest
    if ORIGIN not in {*profiles_of(manifest), *profiles_of(manifest, "rejects")}:
        return dict.fromkeys(ORIGINS.meanings)
    generated, sources = generated_kept(manifest), manifest.rows - generated_kept(manifest)
    return {
        "generated": exact(generated),
        "generated_retention": share(generated, generated + sum(generated_removed(manifest).values())),
        "source_retention": share(sources, sources + sum(sources_removed(manifest).values())),
    }


ORIGINS = Family(
    count_origins,
    {
        "generated": "generated documents kept; none where rows have no `origin`, as for the next two",
        "generated_retention": "share of the generated documents that were kept",
        "source_retention": "share of the other documents that were kept",
    },
)
