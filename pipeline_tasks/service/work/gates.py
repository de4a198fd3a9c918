"""Judges a stage, a snapshot or a recipe, and records the verdict in the ledger."""

from dataclasses import asdict, replace

from pipeline_tasks.alerts.spending import spending_of, spent_up_to
from pipeline_tasks.gate import verdicts
from pipeline_tasks.gate.checks import bounds_spending
from pipeline_tasks.gate.explaining import explain
from pipeline_tasks.gate.trials import trial_bounds
from pipeline_tasks.inspect.recipe.choices import choices_of
from pipeline_tasks.inspect.recipe.recipe_verdicts import Judged, standing
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.recipe import COMPOSE, PUBLISH, Step, is_trial
from pipeline_tasks.service.requests.gates import JudgeRecipeRequest, JudgeReply, JudgeRequest, JudgeSnapshotRequest
from pipeline_tasks.service.work.earlier import read_earlier


def judge(request: JudgeRequest) -> JudgeReply:
    """Check a manifest by the stage's gate."""
    stage = request.manifest.partition("/")[0]
    if request.earlier:
        known = read_earlier(request.root, request.earlier)
        own = tuple(known.trailing.get(stage, ()))
        request = replace(request, previous=known.previous.get(stage, ""), trailing=own, earlier="")
    bounds = trial_bounds(stage, request.bounds) if is_trial(request.recipe) else request.bounds
    spent = {}
    if bounds_spending(stage, bounds):
        with Ledger.open(ledger_of(request.root)) as ledger:
            spent = spent_up_to(ledger, request.recipe, request.snapshot, stage)
    verdict = verdicts.judge(
        request.root, request.manifest, request.previous, bounds, request.override, request.trailing, spent
    )
    return _judged_reply(request, verdict)


def judge_snapshot(request: JudgeSnapshotRequest) -> JudgeReply:
    """Check a snapshot from what landed to what would be published."""
    bounds = trial_bounds(PUBLISH, request.bounds) if is_trial(request.recipe) else request.bounds
    trailing = read_earlier(request.root, request.earlier).snapshots if request.earlier else request.trailing
    verdict = verdicts.judge_snapshot(request.root, request.manifests, bounds, request.override, trailing)
    return {**_judged_reply(request, verdict), "facts": dict(verdict.facts)}


def judge_recipe(request: JudgeRecipeRequest) -> JudgeReply:
    """Check that ablations say of a recipe what it requires."""
    steps = (Step(step.stage, step.params, step.engine) for step in request.steps)
    builds = request.manifest.startswith(f"{COMPOSE}/")
    stands = standing(request.root, Judged(request.recipe, choices_of(steps), request.requires, builds))
    verdict = verdicts.judge_recipe(request.root, request.manifest, stands.facts(), request.override)
    reply = _judged_reply(request, verdict)
    return {**reply, "lines": [*reply["lines"], *stands.lines()]}


def _judged_reply(
    request: JudgeRequest | JudgeSnapshotRequest | JudgeRecipeRequest, verdict: verdicts.Verdict
) -> JudgeReply:
    with Ledger.open(ledger_of(request.root)) as ledger:
        ledger.record_verdict(verdict, snapshot=request.snapshot, recipe=request.recipe)
        spending = spending_of(ledger, request.recipe, request.snapshot, verdict.stage)
    return {
        "outcome": verdict.outcome,
        "failures": [asdict(failure) for failure in verdict.failures],
        "lines": explain(verdict.failures, verdict.undecided, verdict.notes),
        "verdict": verdicts.verdict_reference(verdict),
        "docs": verdict.page,
        "spending": asdict(spending),
    }
