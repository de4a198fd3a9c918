"""Computes how the fields of landed records differ from those of earlier snapshots."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline_tasks.gate.estimates import Estimate, Facts, exact
from pipeline_tasks.gate.facts.subject import Family, Subject
from pipeline_tasks.profiles.field_types import FIELDS as COUNTED
from pipeline_tasks.profiles.field_types import SHOWN, FieldCounts, differences_from
from pipeline_tasks.schema import RECORD

NAMES = ("new_type_share", "gone_fields", "new_fields", "left_fields")


def compare_fields(subject: Subject) -> Facts:
    """Return how far the fields of landed records differ; None where there is nothing to compare, as of archives."""
    if not set(RECORD.names) <= set(subject.card.reads.names):
        return {}
    now, earlier = subject.manifest.metrics.get(COUNTED), list(_earlier(subject))
    if not now or not earlier:
        return dict.fromkeys(NAMES)
    found = differences_from(earlier, now)
    named = (found.changed, found.gone, found.new, found.left)
    values = (found.share, *map(len, named[1:]))
    return {name: _named(value, fields) for name, value, fields in zip(NAMES, values, named, strict=True)}


def _earlier(subject: Subject) -> Iterator[FieldCounts]:
    """Yield the counts of earlier snapshots whose landing has the version of this one's, that of the previous first."""
    version = subject.manifest.metrics.get(COUNTED, {}).get("version")
    for manifest in filter(None, (subject.previous, *reversed(subject.trailing))):
        counts = manifest.metrics.get(COUNTED, {})
        if counts and counts["version"] == version:
            yield counts


def _named(value: float, fields: Sequence[str]) -> Estimate | None:
    more = (f"{len(fields) - SHOWN:,} more",) if len(fields) > SHOWN else ()
    estimate = exact(value)
    return estimate and replace(estimate, examples=(*fields[:SHOWN], *more))


FIELDS = Family(
    compare_fields,
    {
        "new_type_share": "largest share of a field's values, in JSON lines and tables, that have a type which "
        "it had in none of the earlier snapshots; integers beside numbers are none, and null is no value",
        "gone_fields": "fields that become columns (`text`, `url`, `id`, `date`, `source`, `html`), which most records "
        "of the previous snapshot had and none of this one has",
        "new_fields, left_fields": "other fields, of records and of objects in them, that are there for the first "
        "time, or no more",
    },
)
