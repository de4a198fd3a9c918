"""Turns a manifest into one row of facts that a gate can bound: shares, quantiles, drift; never a value of a record."""

from collections.abc import Mapping

from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.gate.facts.columns import COLUMNS, LANGUAGES, NAMES, RIGHTS, SCORES, TRUNCATED
from pipeline_tasks.gate.facts.comparison import PARENT, PREVIOUS
from pipeline_tasks.gate.facts.drift import OWN
from pipeline_tasks.gate.facts.fields import FIELDS
from pipeline_tasks.gate.facts.identity import IDENTITY
from pipeline_tasks.gate.facts.origins import ORIGINS
from pipeline_tasks.gate.facts.personal import PERSONAL
from pipeline_tasks.gate.facts.removals import CLUSTERS, LOSSES, SIMILARITY, UNSIGNED
from pipeline_tasks.gate.facts.rows import REASONS, ROWS, SCHEMA
from pipeline_tasks.gate.facts.scorers import SCORERS
from pipeline_tasks.gate.facts.signals import SIGNALS
from pipeline_tasks.gate.facts.sites import COVERAGES, SITES
from pipeline_tasks.gate.facts.spent import SPENT
from pipeline_tasks.gate.facts.spread import SPREAD
from pipeline_tasks.gate.facts.subject import Family, Subject
from pipeline_tasks.gate.facts.tokens import TOKENS
from pipeline_tasks.manifest import Manifest

FAMILIES: tuple[Family, ...] = (
    ROWS,
    REASONS,
    SCHEMA,
    ORIGINS,
    FIELDS,
    COLUMNS,
    LANGUAGES,
    NAMES,
    TRUNCATED,
    RIGHTS,
    SCORES,
    SIGNALS,
    SCORERS,
    PERSONAL,
    LOSSES,
    CLUSTERS,
    SIMILARITY,
    UNSIGNED,
    SITES,
    COVERAGES,
    IDENTITY,
    TOKENS,
    SPREAD,
    SPENT,
    PARENT,
    PREVIOUS,
    OWN,
)
"""A new fact is computed in its family's function and has its meaning there; a new family is also a line here."""

FACTS: Mapping[str, str] = {name: meaning for family in FAMILIES for name, meaning in family.meanings.items()}
"""What each fact means; `<...>` is a placeholder for a name. `docs/reference/gates.md` is generated from it."""


def compute_facts(root: str, manifest: Manifest, previous: Manifest | None = None) -> Facts:
    """Return the facts of a committed manifest, compared with the same stage's `previous` manifest if there is one."""
    return facts_of(Subject(root, manifest, previous))


def facts_of(subject: Subject) -> Facts:
    """Return the facts of a subject, compared with its earlier manifests if there are any.

    Shares are 0-1 of the input rows, changes are relative to the previous value, and `*_psi` are population
    stability indices (below 0.1 steady, above 0.25 moved). `FACTS` names them all.
    """
    return {name: value for family in FAMILIES for name, value in family.compute(subject).items()}
