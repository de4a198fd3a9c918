"""Publishes a version of a snapshot, with its report, or of a training dataset, with its exported shards."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pipeline_tasks.cards import has_sequences, one_that, repeats, stage_that, tokenizes
from pipeline_tasks.engines.each import On, Work
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.gate.facts.snapshots import require_documents
from pipeline_tasks.gate.verdicts import read_verdict, verdict_reference
from pipeline_tasks.inspect.versions.late_files import late_files, late_line
from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.lost_log import require_takedowns
from pipeline_tasks.libraries import release
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.datasets.building import (
    Entry,
    export_shard,
    exported_shards,
    index_digests,
    index_of,
    is_whole,
    publish_small_files,
)
from pipeline_tasks.publish.datasets.origin import INDEX
from pipeline_tasks.publish.datasets.tokenizer_pin import require_pinned
from pipeline_tasks.publish.exports.shards import PackedShard
from pipeline_tasks.publish.exports.tokenizer import tokenizer_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.superseded import near_manifests, publish_superseded, superseded_by
from pipeline_tasks.publish.takedowns import taken_down_of
from pipeline_tasks.publish.version_facts import is_partial, prefix_of, saved_history, sizes_of
from pipeline_tasks.recipe import BUILD, COMPOSE, PUBLISH
from pipeline_tasks.report.contents import Contents
from pipeline_tasks.report.summary import store_summary
from pipeline_tasks.report.writing import write_report
from pipeline_tasks.sealed import digest_of, path_of, reference
from pipeline_tasks.service.requests.publication import (
    PublishReply,
    PublishRequest,
)
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erasures, newest
from pipeline_tasks.store.log_chain import dataset_log
from pipeline_tasks.store.reading import read_committed

WORKERS = Workers(4)
"""Shards that this machine exports at a time: each is in memory, and the interpreter's lock is free for most of it."""

PATIENCE = 43_200.0
"""Seconds for which it counts that files of a shard were stored: no vacuum removes such young ones."""


def publish(request: PublishRequest) -> PublishReply:
    """Publish a version of a snapshot or of a build; what is published already is found."""
    require_takedowns(request.root)
    with Ledger.open(ledger_of(request.root)) as ledger:
        if COMPOSE in request.manifests:
            on = On(request.engine, request.address, WORKERS)
            return _build_reply(
                publish_build(request.root, request.recipe, request.manifests, request.verdicts, ledger, on)
            )
        version = publish_snapshot(
            request.root,
            recipe=request.recipe,
            snapshot=request.snapshot,
            landing=request.landing,
            manifests=request.manifests,
            verdicts=request.verdicts,
            ledger=ledger,
        )
    stale = [version.version.snapshot for version in stale_now(request.root, request.recipe)]
    latest = version_log.latest_by_snapshot(request.root, request.recipe)
    late = late_files(request.root, [version for version in latest if version.snapshot == request.snapshot])
    after = [snapshot for snapshot in stale if snapshot >= request.snapshot]
    return {
        "version": version.number,
        "dataset": version_log.version_path(version.recipe, version.number),
        "prefix": version.prefix,
        "documents": version.documents,
        "superseded": version.superseded,
        "report": version.report,
        "late": "".join(map(late_line, late.values())),
        "stale": after,
    }


def _build_reply(version: version_log.Version) -> PublishReply:
    return {
        "version": version.number,
        "dataset": version_log.version_path(version.recipe, version.number),
        "index": f"{version.prefix}/{INDEX}",
        "prefix": version.prefix,
        "documents": version.documents,
        "tokens": version.tokens,
        "sequences": version.sequences,
    }


# --- A snapshot --------------------------------------------------------------------------------------------------


def publish_snapshot(
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
    rows = superseded_by(root, near_manifests(by_stage))
    superseded = publish_superseded(root, prefix, snapshot, rows, promised)
    fields = {
        "recipe": recipe,
        "snapshot": snapshot,
        "landing": landing,
        "manifests": {stage: reference(path_of(manifests[stage]), digest) for stage, (_, digest) in committed.items()},
        "verdicts": {stage: _verdict(root, referred) for stage, referred in verdicts.items()},
        "prefix": prefix,
        "files": superseded.files,
        "saved": saved_history(by_stage),
        "partial": is_partial(by_stage),
        "stages": tuple(in_order(by_stage)),
        **sizes_of(by_stage),
        **superseded.facts,
    }
    version = version_log.unchanged(root, fields) or _with_report(root, fields, ledger, erased)
    ledger.record_version(version)
    ledger.record_log(root, dataset_log(version.recipe))
    store_summary(root, version)
    return version


def _verdict(root: str, referred: str) -> str:
    """Return the reference of a verdict after reading it."""
    return verdict_reference(read_verdict(root, referred)) if referred else ""


def _with_report(root: str, fields: dict[str, Any], ledger: Ledger, since: int) -> version_log.Version:
    """Write the report of a new version, and append the version.

    JobLost if documents were erased after entry `since`: the report may show texts that it read before.
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
    if any(entry.objects and entry.takedown for entry in erasures(root)[since:]):
        storage.connect(root).delete(report.path)
        message = f"{root}/{report.path}: documents were erased while this report was written; publish again"
        raise JobLost(message)
    files = sorted((*fields["files"], report), key=lambda file: file.path)
    return version_log.append(root, fields | {"files": tuple(files)})


def _earlier_retractions(root: str, recipe: str, snapshot: str) -> tuple[version_log.Retraction, ...]:
    retractions = version_log.retractions(root, recipe).values()
    return tuple(retraction for retraction in retractions if retraction.snapshot < snapshot)


# --- A training dataset -----------------------------------------------------------------------------------------


def export_by(work: Work, shards: Sequence[PackedShard]) -> list[Entry]:
    """Write and store the files of packed shards where the work runs; return their entries."""
    entries = work.each(
        "shards",
        export_shard,
        shards,
        key=lambda shard: [shard.identity, shard.dtype],
        weight=lambda shard: shard.packed.bytes,
    )
    return [dict(entry) for entry in entries]


def publish_build(
    root: str, name: str, manifests: Mapping[str, str], verdicts: Mapping[str, str], ledger: Ledger, on: On
) -> Version:
    """Append a version of the dataset `name`; the same manifests again return the existing version.

    `manifests` are references by stage, `compose`'s included, and `on` is where shards are exported, but those that an
    earlier version has. RecipeError if a document was taken down while the dataset was built. That is checked before
    the version is in the log, and after: a takedown that is recorded meanwhile may have read the log before.
    """
    committed = {stage: read_committed(root, referred) for stage, referred in manifests.items()}
    by_stage = {stage: manifest for stage, (manifest, _) in committed.items()}
    _require_stages(name, by_stage)
    tokenized = one_that(tokenizes, by_stage)
    require_pinned(root, name, tokenized)
    tokenizer = tokenizer_of(root, tokenized)
    prefix = prefix_of(name, by_stage)
    folder = f"requests/{PUBLISH}-{digest_of([release(), prefix, newest(root)])}"
    work = Work(PUBLISH, root, folder, on, PATIENCE)
    entries = exported_shards(root, name, by_stage, tokenizer, partial(export_by, work))
    index = index_of(name, by_stage, tokenizer, entries)
    if same := _same(root, name, manifests[COMPOSE], index):
        _require_allowed(root, f"version {same.number} of {name}", by_stage)
        work.forget()
        return same
    files = publish_small_files(root, name, by_stage, tokenizer, index)
    fields = {
        "recipe": name,
        "snapshot": BUILD,
        "landing": "",
        "manifests": {stage: reference(path_of(manifests[stage]), digest) for stage, (_, digest) in committed.items()},
        "verdicts": {stage: verdict_reference(read_verdict(root, path)) for stage, path in verdicts.items() if path},
        "prefix": prefix,
        "tokenizer": tokenizer.digest,
        "files": tuple(sorted(files, key=lambda file: file.path)),
        "stages": tuple(in_order(by_stage)),
        **sizes_of(by_stage),
    }
    _require_allowed(root, f"{name}, which is not published,", by_stage)
    version = version_log.unchanged(root, fields) or version_log.append(root, fields)
    ledger.record_version(version)
    ledger.record_log(root, dataset_log(version.recipe))
    store_summary(root, version)
    _require_allowed(root, f"version {version.number} of {name}", by_stage)
    work.forget()
    return version


def _same(root: str, name: str, composed: str, index: Mapping[str, Any]) -> Version | None:
    """Return the dataset's newest version if it is of the same composition and shards, and all its files are there.

    Takedowns of what a dataset does not have change its manifests, and none of its shards.
    """
    digests = index_digests(index)
    for version in version_log.latest_by_snapshot(root, name):
        named = {file.path: file for file in version.files}.get(f"{version.prefix}/{INDEX}")
        is_same = path_of(version.manifests[COMPOSE]) == path_of(composed) and named and named.digest in digests
        own = [file for file in version.files if file.path.startswith(f"{version.prefix}/")]
        return version if is_same and all(is_whole(root, file) for file in own) else None
    return None


def _require_stages(name: str, by_stage: Mapping[str, Manifest]) -> None:
    needed = (tokenizes, repeats, has_sequences)
    missing = [] if COMPOSE in by_stage else [COMPOSE]
    missing += [stage_that(asked) for asked in needed if not stage_that(asked, by_stage)]
    if missing:
        message = f"recipe {name} builds a training dataset without {' and '.join(missing)}; add them to its stages"
        raise RecipeError(message)
    if not one_that(has_sequences, by_stage).rows:
        message = f"dataset {name} would be empty: `refinery build --dry-run` shows what its recipe selects and mixes"
        raise RecipeError(message)


def _require_allowed(root: str, dataset: str, by_stage: Mapping[str, Manifest]) -> None:
    """Raise RecipeError if a document was taken down after the stage `takedown` ran."""
    proof = taken_down_of(root, by_stage)
    if proof:
        message = (
            f"{root}: {dataset} has documents that were taken down while it was built ({proof}). Run the build again: "
            "it takes them out, and only their shards are packed again"
        )
        raise RecipeError(message)
