"""Computes facts of rows: how many were read, kept and rejected, for which reasons, and with which columns."""

from collections.abc import Iterable

from pipeline_tasks.cards import known_card
from pipeline_tasks.gate.estimates import Facts, exact, largest_share, share
from pipeline_tasks.gate.facts.subject import Family, Subject, profiles_of
from pipeline_tasks.manifest import PARTITION, Manifest, Tally
from pipeline_tasks.stage import Shard


def count_rows(subject: Subject) -> Facts:
    """Return how many rows a stage read, kept, rejected and quarantined, and whether all are accounted for."""
    manifest = subject.manifest
    rejected, quarantined = sum(manifest.rejected.values()), sum(manifest.quarantined.values())
    partial, due = manifest.quarantined.get(PARTITION, 0), rows_due(subject)
    unaccounted = (due or 0) - manifest.rows - rejected - quarantined
    unstored = rejected + quarantined - _rows(manifest.rejects) - _rows(manifest.quarantine)
    return {
        "rows_in": exact(manifest.rows_in),
        "rows": exact(manifest.rows),
        "bytes": exact(manifest.bytes),
        "bytes_per_row": exact(manifest.bytes / manifest.rows if manifest.rows else None),
        "rejected": exact(rejected),
        "rejected_share": share(rejected, manifest.rows_due),
        "quarantined": exact(quarantined),
        "quarantined_share": share(quarantined - partial, manifest.rows_due),
        "partial_share": share(partial, manifest.rows_due),
        "retention": None if due is None else share(manifest.rows, due),
        "page_retention": None if due is None else share(manifest.rows, pages_in(manifest, due)),
        "rows_unaccounted": exact(None if due is None else unaccounted),
        "rejects_unstored": exact(unstored),
    }


def rows_due(subject: Subject) -> int | None:
    """Return the rows that have to come out of a stage: its input's, or their copies; None if it counts tokens.

    Those of generated texts are among them.
    """
    if subject.card.conserves == "copies" and subject.parent and "copies" in profiles_of(subject.parent):
        return subject.parent.uses
    return None if subject.card.conserves == "tokens" else subject.manifest.rows_due


def pages_in(manifest: Manifest, rows: int) -> int:
    """Return those of a stage's `rows` that are neither records that were never pages, nor left out by choice."""
    return rows - no_pages(manifest) - chosen(manifest)


def chosen(manifest: Manifest) -> int:
    """Return how many rows a stage left out as its params ask for sources or generated texts alone."""
    card = known_card(manifest.stage)
    return sum(manifest.rejected.get(reason, 0) for reason in card.replaces) if card else 0


def no_pages(manifest: Manifest) -> int:
    """Return how many records a stage rejected as they bring no new page to refine: they are not lost."""
    card = known_card(manifest.stage)
    return sum(manifest.rejected.get(reason, 0) for reason in card.no_page) if card else 0


def _rows(shards: Iterable[Shard]) -> int:
    return sum(shard.rows for shard in shards)


ROWS = Family(
    count_rows,
    {
        "rows_in": "rows of the parent (of `ingest`: landed records)",
        "rows": "rows kept",
        "bytes": "bytes of the kept shards",
        "bytes_per_row": "bytes per kept row",
        "rejected": "rows rejected",
        "rejected_share": "share of the input rows; as in all shares, generated texts that they brought count as such",
        "quarantined": "rows quarantined",
        "quarantined_share": "share of the input rows, without those of `partial_share`",
        "partial_share": "share of the input rows that were quarantined with partitions that failed every try",
        "retention": "share of the rows that were kept; none for stages that conserve tokens",
        "page_retention": "as `retention`, without records that were never pages, and what params leave out by origin",
        "rows_unaccounted": "rows that are neither kept, rejected nor quarantined",
        "rejects_unstored": "rejected and quarantined rows that are in no shard",
    },
)


def count_reasons(subject: Subject) -> Facts:
    """Return the share of every reason that the stage declares or gave, and how many enabled reasons it never gave."""
    manifest = subject.manifest
    tally: Tally = {**manifest.rejected, **manifest.quarantined}
    reasons = (*subject.card.reasons, *tally)
    facts: Facts = {f"reason_share.{reason}": share(tally.get(reason, 0), manifest.rows_due) for reason in reasons}
    silent = [reason for reason in subject.card.reasons if _is_enabled(reason, manifest) and not tally.get(reason)]
    largest = largest_share(tally.values(), manifest.rows_due)
    return facts | {"reason_share_max": largest or exact(0), "silent_reasons": exact(len(silent))}


def _is_enabled(reason: str, manifest: Manifest) -> bool:
    """Return whether a reason's rule is enabled: a stage of several filters names them in its `profiles`."""
    rule = reason.partition(":")[0]
    return rule in (manifest.stage, *manifest.params.get("profiles", (rule,)))


REASONS = Family(
    count_reasons,
    {
        "reason_share.<reason>": "share of the rows that were rejected for this reason",
        "reason_share_max": "the largest of them",
        "silent_reasons": "reasons of enabled rules that rejected no row",
    },
)


def compare_schema(subject: Subject) -> Facts:
    """Return how many declared columns are missing, and how far the manifest's version is behind."""
    written = dict(subject.manifest.schema)
    missing = [field.name for field in subject.card.writes if written and written.get(field.name) != str(field.type)]
    gap = subject.card.version - subject.manifest.version
    return {"columns_missing": exact(len(missing)), "version_gap": exact(gap)}


SCHEMA = Family(
    compare_schema,
    {
        "columns_missing": "columns that the stage promises and did not write",
        "version_gap": "version of the stage now - version that wrote the manifest",
    },
)
