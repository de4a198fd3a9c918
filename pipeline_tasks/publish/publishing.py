"""Publishes a snapshot: exports its tokens, stores superseded documents, writes the report, appends the version."""

from collections.abc import Mapping
from typing import Any

from pipeline_tasks.manifest import Manifest, digest_of
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.exports.formats import export
from pipeline_tasks.publish.exports.source import source_of
from pipeline_tasks.publish.ledger import Ledger
from pipeline_tasks.publish.report.contents import Contents
from pipeline_tasks.publish.report.writing import write_report
from pipeline_tasks.publish.superseded import store_superseded
from pipeline_tasks.recipe import STAGES
from pipeline_tasks.store.reading import read_manifest


def publish(
    root: str,
    *,
    recipe: str,
    snapshot: str,
    landing: str,
    manifests: Mapping[str, str],
    verdicts: Mapping[str, str],
    ledger: Ledger,
) -> dict[str, Any]:
    """Append a dataset version of the manifests; publishing the same manifests again returns the existing version."""
    by_stage = {stage: read_manifest(root, path) for stage, path in manifests.items()}
    prefix = _prefix(recipe, by_stage)
    if "pack" in by_stage:
        export(source_of(root, by_stage), prefix)
    superseded = store_superseded(root, prefix, snapshot, by_stage.get("dedup_minhash"))
    report = write_report(
        Contents(
            root=root,
            recipe=recipe,
            snapshot=snapshot,
            paths=manifests,
            verdict_paths=verdicts,
            out=f"{prefix}/report.html",
            costs=ledger.query("cost", recipe=recipe, snapshot=snapshot),
            retractions=_earlier_retractions(root, recipe, snapshot),
        )
    )
    version = version_log.append(
        root,
        {
            "recipe": recipe,
            "snapshot": snapshot,
            "landing": landing,
            "manifests": dict(manifests),
            "verdicts": dict(verdicts),
            "prefix": prefix,
            **_sizes(by_stage),
            **superseded,
        },
    )
    ledger.record_version(version)
    shown = ("prefix", "documents", "tokens", "sequences", "superseded")
    return {
        "version": version.number,
        "dataset": version_log.version_path(recipe, version.number),
        "report": report,
        **{name: getattr(version, name) for name in shown},
    }


def _prefix(recipe: str, by_stage: Mapping[str, Manifest]) -> str:
    fingerprints = {stage: manifest.fingerprint for stage, manifest in by_stage.items()}
    return f"publish/{digest_of(fingerprints | {'recipe': recipe})}"


def _earlier_retractions(root: str, recipe: str, snapshot: str) -> tuple[version_log.Retraction, ...]:
    retractions = version_log.retractions(root, recipe).values()
    return tuple(retraction for retraction in retractions if retraction.snapshot < snapshot)


def _sizes(by_stage: Mapping[str, Manifest]) -> dict[str, int]:
    """Return the documents, tokens and sequences of a version."""
    documents = [by_stage[stage].rows for stage in STAGES if stage in by_stage and stage != "pack"][-1]
    pack = by_stage.get("pack")
    if pack is None:
        return {"documents": documents, "tokens": 0, "sequences": 0}
    tokens = pack.metrics["kept"].get("n_tokens", {}).get("sum", 0)
    return {"documents": documents, "tokens": tokens, "sequences": pack.rows}
