"""Does what a run asks for from its pre-flight to the last stage."""

from dataclasses import asdict, replace

from pipeline_tasks.counted import counted
from pipeline_tasks.engines import job
from pipeline_tasks.engines.address import is_cluster
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.inspect.preflight import PlannedRun, findings, refuse
from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.landing import listing
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.lost_log import require_log, require_takedowns
from pipeline_tasks.manifest import Manifest, reference_of
from pipeline_tasks.publish.datasets import composing
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import pinned_list, require_current, with_taken_down
from pipeline_tasks.recipe import LAND, Recipe, Step, Versions
from pipeline_tasks.run import partitions, runner
from pipeline_tasks.run.history import History
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.run.request import RefineReply, RefineRequest, Span
from pipeline_tasks.run.runner import Cost, EngineFactory, Refined, RunningEngine
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.requests.stages import (
    ComposeReply,
    ComposeRequest,
    HistoryReply,
    HistoryRequest,
    LandReply,
    LandRequest,
    PreflightReply,
    PreflightRequest,
    QuarantineRequest,
    RecordReply,
    RecordRequest,
    SealRequest,
    SpansReply,
    SpansRequest,
)
from pipeline_tasks.service.work.earlier import Earlier, earlier_than, read_earlier, store_earlier
from pipeline_tasks.service.work.tokenizing import with_pinned_tokenizer
from pipeline_tasks.stage import LANDING, WHOLE, Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest


def preflight(request: PreflightRequest) -> PreflightReply:
    """Find what would end a run before its first stage; raise all faults together, and return notes."""
    steps = tuple(Step(step.stage, step.params, step.engine) for step in request.steps)
    versions = None if request.landing else Versions("")
    recipe = Recipe(request.recipe, "", steps, versions=versions, accept_partial=request.accept)
    planned = PlannedRun(
        root=request.root,
        recipes=(recipe,),
        input=request.landing,
        snapshot=request.snapshot,
        fields=request.fields,
        elsewhere=frozenset(engine for engine, address in request.addresses.items() if is_cluster(address)),
        addresses=request.addresses,
        sample=request.sample,
        has_secrets=False,  # a connection of Airflow may have them, and each task takes its own
    )
    found = findings(planned)
    refuse(found)
    return {"notes": [finding.message for finding in found]}


def land(request: LandRequest) -> LandReply:
    """List a landed snapshot, and commit its manifest; RecipeError for one that was retracted."""
    if request.recipe:
        require_log(request.root, request.recipe)
        version_log.require_kind(request.root, request.recipe, builds=False)
    require_takedowns(request.root, request.recipe)
    pinned = pinned_list(request.root)
    path, manifest, landed = listing.land(
        request.root, request.input, request.snapshot, pinned, request.sample, request.fields, request.accept
    )
    if request.recipe:  # without a recipe, the snapshot is of no dataset that could have retracted it
        version_log.refuse_retracted(
            request.root, request.recipe, landed.snapshot, {LAND: reference_of(path, manifest)}
        )
    if landed.missing:
        with Ledger.open(ledger_of(request.root)) as ledger:
            ledger.record_landing(path, manifest)
    folder = listing.folder_of(request.input, landed)
    return {
        "manifest": reference_of(path, manifest),
        "snapshot": landed.snapshot,
        "landing": folder,
        "files": len({shard.path for shard in manifest.shards}),
        "bytes": manifest.bytes,
        "landed": {"files": len(landed.files), "bytes": sum(size for _, size, _ in landed.files)},
        "ignored": [name for name in landed.ignored if not listing.is_about(name)],
        "skipped": [list(entry) for entry in landed.skipped],
        "missing": list(landed.missing),
        "replaces": _replaced(request, landed.snapshot, folder, reference_of(path, manifest)),
    }


def _replaced(request: LandRequest, snapshot: str, folder: str, landed: str) -> str:
    """Return in words which published version of a snapshot's name came from another folder with other files."""
    published = version_log.latest_by_snapshot(request.root, request.recipe) if request.recipe else []
    before = next((version for version in published if version.snapshot == snapshot), None)
    if before is None or before.landing in ("", folder) or before.manifests.get(LAND) == landed:
        return ""
    return (
        f"snapshot {snapshot} came from {before.landing} before (version {before.number}, "
        f"{counted(before.documents, 'document')}), and comes from {folder} now: what this run publishes takes the "
        "place of that version. To keep both, end this run, and give this folder a name of its own: "
        "`--snapshot NAME`, or `snapshot` of a run of the DAG"
    )


def compose(request: ComposeRequest) -> ComposeReply:
    """Commit the manifest of the versions that a training dataset is built from."""
    for recipe in (request.recipe, request.versions.recipe):  # a log that was removed is no smaller selection
        require_log(request.root, recipe)
    require_takedowns(request.root, request.versions.recipe)
    path, manifest, versions = composing.compose(request.root, request.recipe, request.versions)
    last = tuple(version.manifests for version in version_log.latest_by_snapshot(request.root, request.recipe)[-1:])
    stale = {version.version.number for version in stale_now(request.root, request.versions.recipe)}
    return {
        "manifest": reference_of(path, manifest),
        "snapshots": [version.snapshot for version in versions],
        "stale": [version.snapshot for version in versions if version.number in stale],
        "documents": manifest.rows,
        "earlier": store_earlier(request.root, Earlier(snapshots=last), reference_of(path, manifest)),
    }


def history(request: HistoryRequest) -> HistoryReply:
    """Name what earlier snapshots of a recipe left for this one."""
    storage.require_root(request.root)  # a root that is not there would look like the first day
    require_log(request.root, request.recipe)  # and so would a log that was removed
    earlier = earlier_than(request.root, request.recipe, request.snapshot)
    return {
        "earlier": store_earlier(request.root, earlier, request.landed) if request.landed else "",
        "history": {stage: list(manifests) for stage, manifests in earlier.history.items()},
        "previous": earlier.previous,
        "trailing": earlier.trailing,
        "snapshots": [dict(manifests) for manifests in earlier.snapshots],
    }


def spans(request: SpansRequest) -> SpansReply:
    """Cut a stage's input into spans of about equal bytes."""
    parent = read_manifest(request.root, request.parent)
    count = request.partitions or partitions.partitions_for(request.stage, parent.shards)
    cut = partitions.spans(parent.shards, count)
    return {"spans": [list(span) for span in cut], "names": [_span_name(parent, span) for span in cut]}


def _span_name(parent: Manifest, span: Span) -> str:
    if not parent.landed:
        return f"shards {span[0] + 1}-{span[1]} of {len(parent.shards)}"
    ends = (parent.shards[span[0]], parent.shards[span[1] - 1])
    names = [_file_name(shard) for shard in ends]
    return names[0] if ends[0] == ends[1] else f"{names[0]} .. {names[1]}"


def _file_name(shard: Shard) -> str:
    name = shard.path.removeprefix(LANDING).rpartition("/")[2]
    return name if shard.start == WHOLE else f"{name} from byte {shard.start:,}"


def refine(request: RefineRequest) -> RefineReply:
    """Run a stage over its input, or over one span of it."""
    factory = engine(request.engine, request.address, request.resources)
    completed, pin = with_pinned_tokenizer(_completed(request), factory)
    refined = runner.refine(completed, _current_only(completed, factory))
    if request.span is None and not job.is_apart():  # a driver's ledger would be its machine's
        _record(request, refined)
    reply = _refined_reply(refined)
    if pin:
        reply["tokenizer"] = str(pin)
    return reply


def _current_only(request: RefineRequest, factory: EngineFactory) -> EngineFactory:
    """Return a factory that makes no engine for a run which an erasure has fenced off.

    The plan has noted the last erasure by then: of a later one, the tasks find the entry.
    """

    def make(tracker: Tracker, history: History) -> RunningEngine:
        require_current(request)
        return factory(tracker, history)

    return make


def _completed(request: RefineRequest) -> RefineRequest:
    """Return a request with its history, and the params that follow from its parent: lists of what leaves."""
    if request.earlier:
        history = read_earlier(request.root, request.earlier).history.get(request.stage, ())
        request = replace(request, history=history, earlier="")
    return composing.with_superseded(with_taken_down(request))


def seal(request: SealRequest) -> RefineReply:
    """Concatenate a stage's partitions into its manifest."""
    path, manifest, _ = runner.seal(_completed(request.stage), request.spans, request.poison)
    sealed = Refined(path, manifest, Cost(request.wall, request.cpu, gpu=request.gpu, states=request.states))
    _record(request.stage, sealed)
    return _refined_reply(sealed)


def quarantine(request: QuarantineRequest) -> RefineReply:
    """Quarantine every row of a partition that failed every try."""
    return _refined_reply(runner.quarantine(_completed(request.stage)))


def record(request: RecordRequest) -> RecordReply:
    """Record in the ledger what a stage cost that a driver on a cluster refined."""
    manifest = read_manifest(request.root, request.manifest)
    cost = Cost(request.wall, request.cpu, gpu=request.gpu, states=request.states)
    _record(request.stage, Refined(path_of(request.manifest), manifest, cost))
    return {"manifest": request.manifest}


def _refined_reply(refined: Refined) -> RefineReply:
    manifest, cost = refined.manifest, refined.cost
    reply: RefineReply = {
        "manifest": reference_of(refined.path, manifest),
        "rows_in": manifest.rows_in,
        "rows": manifest.rows,
        "rejected": dict(manifest.rejected),
        "quarantined": dict(manifest.quarantined),
        "bytes": manifest.bytes,
        "tokens": manifest.tokens,
        "ran": cost.ran,
        "reused": cost.reused,
        "history_reads": dict(cost.history_reads),
        "s3_waits": asdict(cost.s3_waits),
        "wall": round(cost.wall, 3),
        "cpu": round(cost.cpu, 3),
        "gpu": round(cost.gpu, 3),
        "states": asdict(cost.states),
        "idle": [str(part) for part in idle_parts(manifest)],
    }
    if manifest.offspring_in:
        reply["offspring_in"] = manifest.offspring_in
    return reply


def _record(request: RefineRequest, refined: Refined) -> None:
    with Ledger.open(ledger_of(request.root)) as ledger:
        ledger.record_stage(
            refined.path,
            refined.manifest,
            wall=refined.cost.wall,
            cpu=refined.cost.cpu,
            gpu=refined.cost.gpu,
            states=refined.cost.states,
            snapshot=request.snapshot,
            recipe=request.recipe,
            engine=request.engine,
        )
