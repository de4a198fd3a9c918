"""Handles requests: each verb's work, and the program that a cluster runs.

preflight
         find what would end a run before its first stage
land     list a landed snapshot and commit its manifest
compose  commit the manifest of the versions that a training dataset is built from
history  name the history that earlier snapshots of a recipe saved for this one
spans    cut a stage's input into partitions of about equal bytes: at most n, or as many as its bytes ask for
refine   run a stage over its input, or over one span of it
seal     concatenate a stage's partitions into its manifest
quarantine
         quarantine every row of a partition that failed every try
record   record in the ledger what a stage cost that a driver on a cluster refined
judge    check a manifest by the stage's gate
judge_snapshot
         check a snapshot from what landed to what would be published
judge_recipe
         check that ablations say of a recipe what it requires
publish  make a dataset version of a snapshot's manifests, or of a build's
export   export a version of a training dataset in formats of other trainers
index    bring the store of vectors in line with what is published
compact  merge the history of many snapshots
vacuum   list or remove what no manifest names
retention
         list or apply what a policy says of how long objects are kept
verify   re-check what is published
train_model
         train a model of the quality of texts, and store it below the root
check_model
         check a stored model; refuse one that sorts by source, or does not tell texts from nonsense
publish_model
         publish a stored model with its reports
plan_ablation
         make the arms of a comparison, write its plan, and name the runs of the first one
forecast_ablation
         say what a comparison can see and costs, and name the other runs
judge_ablation
         judge a comparison whose runs have ended, and record the verdict
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

from pipeline_tasks.alerts.spending import spending_of
from pipeline_tasks.binding import bind_fields, require_known
from pipeline_tasks.constraints import OptionalUri
from pipeline_tasks.counted import counted
from pipeline_tasks.embedded.preflight import PlannedRun, findings, is_cluster, refuse
from pipeline_tasks.engines import job
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import ContractError, RecipeError, RefineryError
from pipeline_tasks.gate import verdicts
from pipeline_tasks.gate.explaining import explain
from pipeline_tasks.gate.trials import trial_bounds
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.inspect.scorers.lines import check_lines, training_lines
from pipeline_tasks.inspect.verify.verification import Scope, report_facts, verify
from pipeline_tasks.inspect.versions.late_files import late_files, late_line
from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.landing import listing
from pipeline_tasks.manifest import Manifest, reference_of
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.building import publish_build
from pipeline_tasks.publish.choices import choices_of
from pipeline_tasks.publish.composing import compose, with_superseded
from pipeline_tasks.publish.earlier import Earlier, earlier_than, read_earlier, store_earlier
from pipeline_tasks.publish.ledger import Ledger, ledger_of
from pipeline_tasks.publish.lost_log import require_log, require_takedowns
from pipeline_tasks.publish.publishing import publish
from pipeline_tasks.publish.recipe_verdicts import Judged, standing
from pipeline_tasks.publish.takedowns import pinned_list, with_taken_down
from pipeline_tasks.publish.trainers.versions import Target, export_in_root
from pipeline_tasks.recipe import COMPOSE, EXPORTS, LAND, PUBLISH, Recipe, Step, Versions, is_trial
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.run.partitions import partitions_for, spans
from pipeline_tasks.run.plan import RefineRequest, Span
from pipeline_tasks.run.runner import Cost, Refined, quarantine, refine, seal
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service import comparing
from pipeline_tasks.service.requests import (
    CheckModelRequest,
    CompactRequest,
    ComposeRequest,
    ExportRequest,
    ForecastAblationRequest,
    HistoryRequest,
    IndexRequest,
    JudgeAblationRequest,
    JudgeRecipeRequest,
    JudgeRequest,
    JudgeSnapshotRequest,
    LandRequest,
    PlanAblationRequest,
    PreflightRequest,
    PublishModelRequest,
    PublishRequest,
    QuarantineRequest,
    RecordRequest,
    Reply,
    Request,
    RetentionRequest,
    SealRequest,
    SpansRequest,
    TrainModelRequest,
    VacuumRequest,
    VerifyRequest,
    decode,
)
from pipeline_tasks.service.tokenizing import with_pinned_tokenizer
from pipeline_tasks.stage import LANDING, WHOLE, Shard
from pipeline_tasks.store import s3_waits, storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.s3_waits import Waits
from pipeline_tasks.upkeep import vacuum
from pipeline_tasks.upkeep.compact import compact
from pipeline_tasks.upkeep.retention.command import lines, retain

LISTED = 100
"""Problems that a failed verification lists."""

MOST_URI = 4000
"""Characters of a URI; of a path, Linux takes 4,096 bytes."""


@dataclass(frozen=True, slots=True)
class _ReplyTo:
    """The field of a request file that says where its reply goes."""

    reply: OptionalUri


def handle(request: Request) -> Reply:
    """Do what a request says and return its reply; RefineryError if it cannot be done.

    A reply has `s3_waits` if S3 was too busy: the requests that were sent again, in the workers of a stage and in this
    process since its last reply, and the seconds until then. What requests that no task logs waited is in the next one.
    """
    storage.require_folder(request.root)
    reply = HANDLERS[type(request)](request)
    if isinstance(request, PreflightRequest | HistoryRequest | SpansRequest | RecordRequest):
        return reply
    waits = Waits(**reply.pop("s3_waits", {})) + s3_waits.take()
    return {**reply, "s3_waits": asdict(waits)} if waits.requests else reply


def _preflight(request: PreflightRequest) -> Reply:
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


def _land(request: LandRequest) -> Reply:
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
    return {
        "manifest": reference_of(path, manifest),
        "snapshot": landed.snapshot,
        "landing": listing.folder_of(request.input, landed),
        "files": len({shard.path for shard in manifest.shards}),
        "bytes": manifest.bytes,
        "landed": {"files": len(landed.files), "bytes": sum(size for _, size, _ in landed.files)},
        "ignored": [name for name in landed.ignored if not listing.is_about(name)],
        "skipped": [list(entry) for entry in landed.skipped],
        "missing": list(landed.missing),
    }


def _compose(request: ComposeRequest) -> Reply:
    for recipe in (request.recipe, request.versions.recipe):  # a log that was removed is no smaller selection
        require_log(request.root, recipe)
    require_takedowns(request.root, request.versions.recipe)
    path, manifest, versions = compose(request.root, request.recipe, request.versions)
    last = tuple(version.manifests for version in version_log.latest_by_snapshot(request.root, request.recipe)[-1:])
    stale = {version.version.number for version in stale_now(request.root, request.versions.recipe)}
    return {
        "manifest": reference_of(path, manifest),
        "snapshots": [version.snapshot for version in versions],
        "stale": [version.snapshot for version in versions if version.number in stale],
        "documents": manifest.rows,
        "earlier": store_earlier(request.root, Earlier(snapshots=last), reference_of(path, manifest)),
    }


def _history(request: HistoryRequest) -> Reply:
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


def _spans(request: SpansRequest) -> Reply:
    parent = read_manifest(request.root, request.parent)
    count = request.partitions or partitions_for(request.stage, parent.shards)
    cut = spans(parent.shards, count)
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


def _refine(request: RefineRequest) -> Reply:
    factory = engine(request.engine, request.address, request.resources)
    completed, pin = with_pinned_tokenizer(_completed(request), factory)
    refined = refine(completed, factory)
    if request.span is None and not job.is_apart():  # a driver's ledger would be its machine's
        _record(request, refined)
    return _refined_reply(refined) | ({"tokenizer": str(pin)} if pin else {})


def _completed(request: RefineRequest) -> RefineRequest:
    """Return a request with its history, and the params that follow from its parent: lists of what leaves."""
    if request.earlier:
        history = read_earlier(request.root, request.earlier).history.get(request.stage, ())
        request = replace(request, history=history, earlier="")
    return with_superseded(with_taken_down(request))


def _seal(request: SealRequest) -> Reply:
    path, manifest, _ = seal(_completed(request.stage), request.spans, request.poison)
    sealed = Refined(path, manifest, Cost(request.wall, request.cpu, gpu=request.gpu, states=request.states))
    _record(request.stage, sealed)
    return _refined_reply(sealed)


def _quarantine(request: QuarantineRequest) -> Reply:
    return _refined_reply(quarantine(_completed(request.stage)))


def _record_stage(request: RecordRequest) -> Reply:
    manifest = read_manifest(request.root, request.manifest)
    cost = Cost(request.wall, request.cpu, gpu=request.gpu, states=request.states)
    _record(request.stage, Refined(path_of(request.manifest), manifest, cost))
    return {"manifest": request.manifest}


def _refined_reply(refined: Refined) -> Reply:
    manifest, cost = refined.manifest, refined.cost
    return {
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


def _judge(request: JudgeRequest) -> Reply:
    stage = request.manifest.partition("/")[0]
    if request.earlier:
        known = read_earlier(request.root, request.earlier)
        own = tuple(known.trailing.get(stage, ()))
        request = replace(request, previous=known.previous.get(stage, ""), trailing=own, earlier="")
    bounds = trial_bounds(stage, request.bounds) if is_trial(request.recipe) else request.bounds
    verdict = verdicts.judge(
        request.root, request.manifest, request.previous, bounds, request.override, request.trailing
    )
    return _judged_reply(request, verdict)


def _judge_snapshot(request: JudgeSnapshotRequest) -> Reply:
    bounds = trial_bounds(PUBLISH, request.bounds) if is_trial(request.recipe) else request.bounds
    trailing = read_earlier(request.root, request.earlier).snapshots if request.earlier else request.trailing
    verdict = verdicts.judge_snapshot(request.root, request.manifests, bounds, request.override, trailing)
    return {**_judged_reply(request, verdict), "facts": dict(verdict.facts)}


def _judge_recipe(request: JudgeRecipeRequest) -> Reply:
    steps = (Step(step.stage, step.params, step.engine) for step in request.steps)
    builds = request.manifest.startswith(f"{COMPOSE}/")
    stands = standing(request.root, Judged(request.recipe, choices_of(steps), request.requires, builds))
    verdict = verdicts.judge_recipe(request.root, request.manifest, stands.facts(), request.override)
    reply = _judged_reply(request, verdict)
    return {**reply, "lines": [*reply["lines"], *stands.lines()]}


def _judged_reply(
    request: JudgeRequest | JudgeSnapshotRequest | JudgeRecipeRequest, verdict: verdicts.Verdict
) -> Reply:
    with Ledger.open(ledger_of(request.root)) as ledger:
        ledger.record_verdict(verdict, snapshot=request.snapshot, recipe=request.recipe)
        spending = spending_of(ledger, request.recipe, request.snapshot, verdict.stage)
    return {
        "outcome": verdict.outcome,
        "failures": [asdict(failure) for failure in verdict.failures],
        "lines": explain(verdict.failures, verdict.undecided),
        "verdict": verdicts.verdict_reference(verdict),
        "docs": verdict.docs,
        "spending": asdict(spending),
    }


def _publish(request: PublishRequest) -> Reply:
    require_takedowns(request.root)
    with Ledger.open(ledger_of(request.root)) as ledger:
        if COMPOSE in request.manifests:
            return publish_build(request.root, request.recipe, request.manifests, request.verdicts, ledger)
        reply = publish(
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
    return {**reply, "late": "".join(map(late_line, late.values())), "stale": after}


def _export(request: ExportRequest) -> Reply:
    require_known(request.exports, EXPORTS, "exports")
    version = chosen_version(request.root, request.recipe, str(request.version))
    shards = {
        name: len(export_in_root(request.root, version, Target(name, shard_bytes))["shards"])
        for name, shard_bytes in request.exports.items()
    }
    return {"shards": shards}


def _index(request: IndexRequest) -> Reply:
    """Return what was done to each table, and the map of the snapshot; `missing` is what is not installed here.

    Without pylance no table is touched, and without umap-learn there is no map ("").
    """
    from pipeline_tasks.upkeep.index import index, stored_recipes  # it loads the stage that embeds

    if request.recipe:
        storage.require_root(request.root)  # a root that is not there would look like one whose documents all left
    recipes = [request.recipe] if request.recipe else stored_recipes(request.root, request.store)
    is_missing = bool(recipes) and find_spec("lance") is None
    done = [] if is_missing else index(request.root, recipes, request.store)
    missing = "pylance" if is_missing else ""
    return {"tables": [asdict(each) for each in done], "missing": missing, "map": _mapped(request)}


def _mapped(request: IndexRequest) -> str:
    """Return the path of the map of the request's snapshot, which is made if there is none; "" where it cannot be."""
    from pipeline_tasks.inspect.map.projecting import is_installed, make_map, path_of

    if not (request.recipe and request.snapshot and is_installed()):
        return ""
    version = version_log.current(request.root, request.recipe, request.snapshot)
    return path_of(version) if make_map(request.root, version) else ""


def _compact(request: CompactRequest) -> Reply:
    merged = compact(request.root, engine(request.engine, request.address))
    return {"compacted": {manifest.fingerprint: list(manifest.parents) for manifest in merged}}


def _vacuum(request: VacuumRequest) -> Reply:
    orphans = vacuum.find_orphans(request.root, request.grace, request.expire)
    if request.delete:
        vacuum.remove(request.root, orphans, request.limit)
    return {**vacuum.orphan_facts(orphans), "deleted": request.delete}


def _retention(request: RetentionRequest) -> Reply:
    plan, facts = retain(request.root, request.policy, is_applied=request.apply, by=request.run_id)
    return {**facts, "lines": list(lines(plan, is_applied=request.apply))}


def _verify(request: VerifyRequest) -> Reply:
    """Return the report; ContractError that lists the problems if there are any. A new root has nothing to verify."""
    if not version_log.recipes(request.root):
        return {"problems": [], "notes": [f"{request.root}: nothing has been published"]}
    report = verify(request.root, Scope(full=request.full))
    problems = sorted(map(str, report.findings.problems))
    if problems:
        listed = "\n".join(problems[:LISTED])
        message = f"{request.root}: {counted(len(problems), 'problem')}, found by `refinery verify`:\n{listed}"
        raise ContractError(message)
    return report_facts(report)


def _train_model(request: TrainModelRequest) -> Reply:
    from pipeline_tasks.inspect.scorers import publishing as models

    sources = (request.positives, request.negatives, request.embeddings, request.against, request.texts, request.seed)
    path, training, report = models.train_below(request.root, request.name, models.Sources(*sources))
    lines = list(training_lines(asdict(report), path))
    return {"model": path, "training": training, "digest": report.model, "label": report.label, "lines": lines}


def _check_model(request: CheckModelRequest) -> Reply:
    from pipeline_tasks.inspect.scorers import publishing as models

    drawn = (request.sample, request.texts, request.seed)
    path, report = models.check_below(request.root, request.name, request.model, request.label, *drawn)
    models.require_admitted(request.root, path, report, request.accepted)
    return {"check": path, "outcome": report.outcome, "lines": list(check_lines(asdict(report)))}


def _publish_model(request: PublishModelRequest) -> Reply:
    from pipeline_tasks.inspect.scorers import publishing as models

    reports = (request.training, request.check)
    published = models.publish_below(request.root, request.name, request.model, *reports, request.accepted)
    return {**asdict(published), "lines": models.recipe_lines(request.root, published)}


HANDLERS: Mapping[type[Request], Callable[[Any], Reply]] = {
    PreflightRequest: _preflight,
    LandRequest: _land,
    ComposeRequest: _compose,
    HistoryRequest: _history,
    SpansRequest: _spans,
    RefineRequest: _refine,
    SealRequest: _seal,
    QuarantineRequest: _quarantine,
    RecordRequest: _record_stage,
    JudgeRequest: _judge,
    JudgeSnapshotRequest: _judge_snapshot,
    JudgeRecipeRequest: _judge_recipe,
    PublishRequest: _publish,
    ExportRequest: _export,
    IndexRequest: _index,
    CompactRequest: _compact,
    VacuumRequest: _vacuum,
    RetentionRequest: _retention,
    VerifyRequest: _verify,
    TrainModelRequest: _train_model,
    CheckModelRequest: _check_model,
    PublishModelRequest: _publish_model,
    PlanAblationRequest: comparing.plan,
    ForecastAblationRequest: comparing.forecast,
    JudgeAblationRequest: comparing.judge,
}


def main(arguments: Sequence[str]) -> int:
    """Handle the request in a file or URI, store the reply at its `reply`, and return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m pipeline_tasks request.json\n")
        return RecipeError.exit_code
    reply_to, code = "", 0
    try:
        raw = _read_json(arguments[0])
        reply_to = _reply_uri(raw)
        reply = handle(decode(raw))
    except RefineryError as error:
        reply, code = {"error": type(error).__name__, "message": str(error), "exit": error.exit_code}, error.exit_code
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    except BaseException as error:
        if reply_to:
            _store_reply(
                reply_to, {"error": type(error).__name__, "message": str(error), "exit": RefineryError.exit_code}
            )
        raise
    if reply_to:
        return _store_reply(reply_to, reply) or code
    sys.stdout.write(json.dumps(reply, sort_keys=True) + "\n")
    return code


def _reply_uri(raw: object) -> str:
    """Take the URI of the reply out of a request, "" if it has none."""
    if not isinstance(raw, dict) or "reply" not in raw:
        return ""
    where = raw.pop("reply")
    return bind_fields(_ReplyTo, {"reply": where}, "the request").reply


def _store_reply(uri: str, reply: Reply) -> int:
    """Store a reply; return 0, or the exit code if it cannot be stored."""
    folder, slash, name = uri.rpartition("/")
    try:
        storage.commit(storage.connect(folder or slash or "."), name, json.dumps(reply, sort_keys=True).encode())
    except (RefineryError, OSError) as error:
        code = error.exit_code if isinstance(error, RefineryError) else RecipeError.exit_code
        sys.stderr.write(f"{type(error).__name__}: the reply cannot be stored at {uri} ({error}); correct `reply`\n")
        return code
    return 0


def _read_json(uri: str) -> object:
    if len(uri) > MOST_URI:
        message = f"{uri[:100]}... is too long for a path; give the path or URI of a JSON file"
        raise RecipeError(message)
    folder, slash, name = uri.rpartition("/")
    try:
        return json.loads(storage.connect(folder or slash or ".").read(name))
    except FileNotFoundError as error:
        message = f"{uri}: no such request; give the path or URI of a JSON file"
        raise RecipeError(message) from error
    except IsADirectoryError as error:
        message = f"{uri} is a folder; give the path or URI of a JSON file"
        raise RecipeError(message) from error
    except OSError as error:
        message = f"{uri[:200]} cannot be read ({error.strerror or error}); give the path or URI of a JSON file"
        raise RecipeError(message) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, RefineryError):
            raise
        message = f"{uri} is not JSON ({error}); a request is one JSON object"
        raise RecipeError(message) from error
