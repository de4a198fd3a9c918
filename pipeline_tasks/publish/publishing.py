"""Publishes a snapshot: stores superseded documents, writes the report, appends the version."""

from collections.abc import Mapping
from typing import Any

from pipeline_tasks.cards import has_sequences
from pipeline_tasks.errors import JobLost
from pipeline_tasks.gate.facts.snapshots import published_documents, require_documents
from pipeline_tasks.gate.verdicts import read_verdict, verdict_reference
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.earlier import is_partial, saved_history
from pipeline_tasks.publish.ledger import Ledger
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.report.contents import Contents
from pipeline_tasks.publish.report.writing import write_report
from pipeline_tasks.publish.summary import store_summary
from pipeline_tasks.publish.superseded import near_manifests, store_superseded, superseded_by, superseded_facts
from pipeline_tasks.sealed import digest_of, path_of, reference
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erasures, newest
from pipeline_tasks.store.reading import read_committed


def publish(
    root: str,
    *,
    recipe: str,
    snapshot: str,
    landing: str,
    manifests: Mapping[str, str],
    verdicts: Mapping[str, str],
    ledger: Ledger,
) -> version_log.Version:
    """Append a dataset version of the manifests; publishing the same manifests again returns the existing version.

    `manifests` and `verdicts` are paths or references by stage. Files of the version that are missing or damaged are
    written again.
    """
    require_documents(manifests)
    erased = newest(root)
    committed = {stage: read_committed(root, referred) for stage, referred in manifests.items()}
    by_stage = {stage: manifest for stage, (manifest, _) in committed.items()}
    prefix = prefix_of(recipe, by_stage)
    promised = version_log.promised_files(root, recipe, prefix)
    superseded = superseded_by(root, near_manifests(by_stage))
    files = store_superseded(root, prefix, superseded, promised)
    fields = {
        "recipe": recipe,
        "snapshot": snapshot,
        "landing": landing,
        "manifests": {stage: reference(path_of(manifests[stage]), digest) for stage, (_, digest) in committed.items()},
        "verdicts": {stage: _verdict(root, referred) for stage, referred in verdicts.items()},
        "prefix": prefix,
        "files": tuple(files),
        "saved": saved_history(by_stage),
        "partial": is_partial(by_stage),
        "stages": tuple(in_order(by_stage)),
        **sizes_of(by_stage),
        **superseded_facts(prefix, snapshot, superseded),
    }
    version = version_log.unchanged(root, fields) or _with_report(root, fields, ledger, erased)
    ledger.record_version(version)
    store_summary(root, version)
    return version


def _verdict(root: str, referred: str) -> str:
    """Return the reference of a verdict after reading it."""
    return verdict_reference(read_verdict(root, referred)) if referred else ""


def _with_report(root: str, fields: dict[str, Any], ledger: Ledger, erased: int) -> version_log.Version:
    """Write the report of a new version, and append the version.

    JobLost if documents were erased after entry `erased`: the report may show texts that it read before.
    """
    recipe, snapshot = fields["recipe"], fields["snapshot"]
    report = write_report(
        Contents(
            root=root,
            recipe=recipe,
            snapshot=snapshot,
            paths=fields["manifests"],
            verdict_paths={stage: referred for stage, referred in fields["verdicts"].items() if referred},
            out=fields["prefix"],
            costs=ledger.query("cost", recipe=recipe, snapshot=snapshot),
            retractions=_earlier_retractions(root, recipe, snapshot),
            hardware=ledger.query("hardware", recipe=recipe, snapshot=snapshot),
            models=ledger.query("models", recipe=recipe, snapshot=snapshot),
        )
    )
    if any(entry.objects and entry.takedown for entry in erasures(root)[erased:]):
        storage.connect(root).delete(report.path)
        message = f"{root}/{report.path}: documents were erased while this report was written; publish again"
        raise JobLost(message)
    files = sorted((*fields["files"], report), key=lambda file: file.path)
    return version_log.append(root, fields | {"files": tuple(files)})


def prefix_of(recipe: str, by_stage: Mapping[str, Manifest]) -> str:
    """Return the prefix of the published files of manifests."""
    fingerprints = {stage: manifest.fingerprint for stage, manifest in by_stage.items()}
    return f"publish/{digest_of(fingerprints | {'recipe': recipe})}"


def _earlier_retractions(root: str, recipe: str, snapshot: str) -> tuple[version_log.Retraction, ...]:
    retractions = version_log.retractions(root, recipe).values()
    return tuple(retraction for retraction in retractions if retraction.snapshot < snapshot)


def sizes_of(by_stage: Mapping[str, Manifest]) -> dict[str, int]:
    """Return the documents, tokens and sequences of a version."""
    documents = published_documents(in_order(by_stage).values())
    packed = next((manifest for stage, manifest in by_stage.items() if has_sequences(stage)), None)
    if packed is None:
        return {"documents": documents, "tokens": 0, "sequences": 0}
    return {"documents": documents, "tokens": packed.tokens, "sequences": packed.rows}
