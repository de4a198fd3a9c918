"""Computes facts of a whole snapshot, from what landed to what is published, for the gate before it is published."""

from collections.abc import Iterable, Mapping

from pipeline_tasks.gate.estimates import Facts, exact, share
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import STAGES

NO_LOSS = ("ingest:not_page", "ingest:revisit", "ingest:unchanged")
"""Reasons of records that bring no new page: they are not counted as lost."""

NO_LOSS_STAGES = ("dedup_url", "dedup_exact", "dedup_minhash", "dedup_paragraphs", "mix")
"""Stages whose removals are no loss: another document has the text, of this snapshot or an earlier one; or the recipe's
own mixture leaves it out."""

SNAPSHOT_FACTS: Mapping[str, str] = {
    "records": "landed records",
    "new_pages": "records, without those that are no page, are unchanged or repeat another document, or left by `mix`",
    "documents": "documents that would be published",
    "retention": "share of the new pages that would be published",
    "record_retention": "share of the landed records that would be published",
}


def compute_snapshot_facts(manifests: Iterable[Manifest]) -> Facts:
    """Return the facts of a snapshot's manifests, in the order of stages."""
    ordered = [manifest for manifest in manifests if manifest.stage in STAGES]
    records, documents = ordered[0].rows_in, published_documents(ordered)
    new_pages = records - sum(_no_loss(manifest) for manifest in ordered)
    return {
        "records": exact(records),
        "new_pages": exact(new_pages),
        "documents": exact(documents),
        "retention": share(documents, new_pages),
        "record_retention": share(documents, records),
    }


def published_documents(ordered: Iterable[Manifest]) -> int:
    """Return the documents that the last stage of documents kept; `pack` has sequences."""
    return [manifest.rows for manifest in ordered if manifest.stage != "pack"][-1]


def _no_loss(manifest: Manifest) -> int:
    if manifest.stage in NO_LOSS_STAGES:
        return sum(manifest.rejected.values())
    return sum(manifest.rejected.get(reason, 0) for reason in NO_LOSS)
