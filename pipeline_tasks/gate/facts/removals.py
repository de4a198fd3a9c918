"""Computes facts of deduplication: what sources and sites lost, cluster sizes, and removals without proof."""

from pipeline_tasks.cards import copies_of
from pipeline_tasks.gate.estimates import (
    ALONE,
    Estimate,
    Facts,
    exact,
    largest_share,
    quantile_of,
    share,
    surest_largest,
)
from pipeline_tasks.gate.facts.subject import EMPTY, Family, Subject, profiles_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import arrivals, bins_of, losses
from pipeline_tasks.store.reading import parent_of


def count_losses(subject: Subject) -> Facts:
    """Return the largest loss of a source and a site, which count from 1,000 documents up, and that of a language."""
    if "origins" not in subject.card.profiled:
        return {}
    facts: Facts = {}
    for kind in ("source", "site"):
        for own, name in ((False, f"{kind}_loss_max"), (True, f"{kind}_own_loss_max")):
            facts[name] = exact(max(losses(subject.manifest.metrics, kind, own=own).values(), default=None))
    if "languages" in subject.card.profiled:
        for own, name in ((False, "language_loss_max"), (True, "language_own_loss_max")):
            facts[name] = _language_loss(subject.manifest, own=own)
    return facts


def _language_loss(manifest: Manifest, *, own: bool) -> Estimate | None:
    """Return the loss of the language that surely lost the largest share, however few documents it has."""
    lost, rows_in = bins_of(manifest.metrics, "rejects", "languages"), arrivals(manifest.metrics, "languages")
    precision = ALONE.narrowed(max(len(rows_in), 1))
    prefix = "own " if own else ""
    return surest_largest(share(lost.get(prefix + name, 0), count, precision) for name, count in rows_in.items())


LOSSES = Family(
    count_losses,
    {
        "source_loss_max, site_loss_max": (
            "largest share of the documents of a source or site that deduplication removed"
        ),
        "source_own_loss_max, site_own_loss_max": "the same, removed in favor of documents of the same snapshot",
        "language_loss_max, language_own_loss_max": (
            "the same of languages of any size, for `dedup_semantic`: of the one that surely lost the largest share"
        ),
    },
)


def measure_clusters(subject: Subject) -> Facts:
    """Return the share of rows that are in the largest cluster."""
    if "clusters" not in subject.card.profiled:
        return {}
    largest = max(bins_of(subject.manifest.metrics, "rejects", "clusters").values(), default=0)
    shared = largest_share([min(largest + 1, subject.manifest.rows_in)], subject.manifest.rows_in) if largest else None
    return {"cluster_share_max": shared or exact(0)}


CLUSTERS = Family(measure_clusters, {"cluster_share_max": "share of the rows that are in the largest cluster"})


def verify_similarity(subject: Subject) -> Facts:
    """Return the removed rows without a similarity of at least the threshold, and quantiles of the similarity.

    Similarities are counted by hundredths, so a threshold between two of them is rounded down. Only those of documents
    with a band in common are counted, and with a threshold of 0, by which a shared band decides, any of them is proof.
    """
    if "similarity" not in subject.card.profiled:
        return {}
    manifest = subject.manifest
    column = profiles_of(manifest, "rejects").get("similarity", EMPTY)
    threshold = float(manifest.params.get("threshold", 0))
    lowest_bin = int(threshold * 100 + 1e-9)
    proven = sum(count for key, count in column["bins"].items() if int(key) >= lowest_bin)
    facts: Facts = {"unverified_edges": exact(sum(manifest.rejected.values()) - proven)}
    for at in (0.05, 0.5):
        facts[f"similarity_p{round(at * 100):02d}"] = quantile_of(column, at)
    return facts


SIMILARITY = Family(
    verify_similarity,
    {
        "unverified_edges": (
            "removed rows without a measured similarity of at least the threshold to a document with a band in common"
        ),
        "similarity_p05, similarity_p50": "quantiles of the similarity of removed rows",
    },
)


def count_unsigned(subject: Subject) -> Facts:
    """Return the documents too short to be signed, and those that no stage compared as whole texts."""
    if "similarity" not in subject.card.profiled:
        return {}
    names = [name for name in ("shingles", "embedding_numbers") if name in subject.card.profiled]
    columns = [profiles_of(subject.manifest, rows).get(name) for rows in ("kept", "rejects") for name in names]
    if not any(columns):
        return {"unsigned": None, "bypassed": None}
    unsigned = sum(column["bins"].get("0", 0) for column in columns if column)
    compared = not unsigned or _were_compared(subject.root, subject.manifest)
    return {"unsigned": exact(unsigned), "bypassed": exact(0 if compared else unsigned)}


def _were_compared(root: str, manifest: Manifest) -> bool:
    """Return whether a stage before compared whole texts."""
    parent = parent_of(root, manifest)
    return parent is not None and (copies_of(parent.stage).equal or _were_compared(root, parent))


UNSIGNED = Family(
    count_unsigned,
    {
        "unsigned": "documents too short to be signed, or without a vector",
        "bypassed": "those of them that `dedup_exact` did not compare either",
    },
)
