"""What the tasks of a run do: each sends one or two requests and returns where their output is.

What flows between tasks is a list of parts: manifests that the next stage reads, whole or span by span.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipeline_tasks.alerts.stages import partition_times
from pipeline_tasks.cards import plans_mixture, stage_that
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.attempt import Attempt, Part
from pipeline_tasks.flow.lines import amount, funnel_line, log, log_idle, log_reply, sample_text, stale_line, states_of
from pipeline_tasks.flow.plan import LANDED
from pipeline_tasks.landing.listing import left_out_lines
from pipeline_tasks.recipe import (
    COMPOSE,
    LAND,
    LOCAL,
    PUBLISH,
    VERDICT,
    ErrorBudget,
    Resources,
    Versions,
    engine_of,
    fields_of,
    require_params,
)
from pipeline_tasks.run.request import RefineReply, RefineRequest
from pipeline_tasks.run.tasks.state_cost import NO_STATES
from pipeline_tasks.service.requests.publication import (
    ExportReply,
    ExportRequest,
    IndexReply,
    IndexRequest,
    PublishReply,
    PublishRequest,
    RegisterReply,
    RegisterRequest,
)
from pipeline_tasks.service.requests.stages import (
    ComposeRequest,
    HistoryRequest,
    LandRequest,
    SealRequest,
    SpansRequest,
)


def land(at: Attempt, *, fields: Mapping[str, str], next_cut: Mapping[str, Any]) -> list[Part]:
    """Commit the landed snapshot's manifest, and name the history that earlier snapshots saved.

    Push `LANDED`; return the first stage's parts.
    """
    run, about = at.run, at.about
    how: dict[str, Any] = {"sample": run.sample, "fields": fields_of(fields, run.text_field), "accept": run.accept}
    reply = at.send(LandRequest(input=run.input, **how, **about))
    # a trial reads the history of the whole runs
    history = at.send(HistoryRequest(**{**about, "recipe": at.recipe}, landed=reply["manifest"]))
    log_reply(at, LAND, reply, f"{amount(reply)}{sample_text(run, reply)}")
    for name in reply["ignored"]:
        log.warning("land  %s is no crawl file and was left out", name)
    for line in left_out_lines(reply["skipped"]):
        log.warning("land  %s", line)
    for name in reply["missing"]:
        log.warning("land  %s is promised and has not landed whole: refined without it", name)
    if reply["replaces"]:
        log.warning("land  %s", reply["replaces"])
    at.push(LANDED, {"manifest": reply["manifest"], "landing": reply["landing"], "earlier": history["earlier"]})
    return parts_of(at, reply["manifest"], "", next_cut)


def compose(at: Attempt, *, versions: Mapping[str, Any], next_cut: Mapping[str, Any]) -> list[Part]:
    """Commit the manifest of the versions that a training dataset is built from.

    Push `LANDED`, with the last version to compare with; return the first stage's parts.
    """
    chosen = {**versions, **({"snapshots": at.run.snapshots} if at.run.snapshots else {})}
    reply = at.send(ComposeRequest(versions=Versions(**chosen), **at.about))
    snapshots = reply["snapshots"]
    text = f"{counted(len(snapshots), 'snapshot')}  {counted(reply['documents'], 'document')}"
    log_reply(at, COMPOSE, reply, text)
    if reply["stale"]:
        log.warning("compose  %s", stale_line(reply["stale"]))
    at.push(LANDED, {"manifest": reply["manifest"], "landing": "", "earlier": reply["earlier"]})
    return parts_of(at, reply["manifest"], "", next_cut)


def require_mixture(recipe: str, steps: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> None:
    """Raise RecipeError for params of a run that the mixture of a recipe does not take."""
    planning = [step for step in steps if plans_mixture(step["stage"])]
    if chosen and not planning:
        stage = stage_that(plans_mixture)
        message = f"recipe {recipe} has no stage {stage}, so {', '.join(chosen)} would change nothing; add it"
        raise RecipeError(message)
    for step in planning:
        require_params(step["stage"], {**step["params"], **chosen}, f"{recipe}: {step['stage']}")


def parts_of(at: Attempt, manifest: str, verdict: str, cut: Mapping[str, Any]) -> list[Part]:
    """Return what the next stage reads of a manifest: spans of it if that stage is mapped, as `cut` says."""
    whole = Part(manifest=manifest, span=None, name="", of=1, verdict=verdict)
    if not cut:
        return [whole]
    wanted = {**cut, "partitions": at.run.partitions or cut["partitions"]}
    reply = at.send(SpansRequest(parent=manifest, **wanted, **at.about))
    of = len(reply["spans"])
    return [
        {**whole, "span": span, "name": name, "of": of}
        for span, name in zip(reply["spans"], reply["names"], strict=True)
    ]


def whole_of(part: Part) -> Part:
    """Return the whole of what a part is of."""
    return Part(manifest=part["manifest"], span=None, name="", of=1, verdict="")


def earlier_of(landed: Mapping[str, Any], **fields: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
    """Return what a request says of earlier snapshots: the address of the object that has it.

    A run whose `land` ended before an upgrade has no such object, and lists in its place, of which `fields` take some.
    """
    if "earlier" in landed:
        return {"earlier": landed["earlier"]}
    return {name: take(landed) for name, take in fields.items()}


def refine_request(
    at: Attempt, stage: str, step: Mapping[str, Any], landed: Mapping[str, Any], part: Part
) -> RefineRequest:
    """Return the request to refine one part by a stage."""
    return RefineRequest(
        stage=stage,
        params={**step["params"], **(at.run.mixture if plans_mixture(stage) else {})},
        parent=part["manifest"],
        **earlier_of(landed, history=lambda then: tuple(then["history"].get(stage, ()))),
        landing=landed["landing"],
        span=(part["span"][0], part["span"][1]) if part["span"] else None,
        error_budget=ErrorBudget(**step["error_budget"]),
        engine=engine_of(stage, step["engine"], at.run.engines),
        resources=Resources(**step["resources"]),
        model_hours=step.get("model_hours", 0.0),
        **at.about,
    )


def log_refined(at: Attempt, stage: str, part: Part, reply: RefineReply) -> None:
    """Log what became of one part of a stage."""
    log_reply(at, stage, reply, funnel_line(reply), part)
    if part["span"] is None:
        log_idle(stage, reply)
    if "tokenizer" in reply:
        log.info("%s  the dataset's tokenizer is %s", stage, reply["tokenizer"])


def seal_request(whole: RefineRequest, parts: Sequence[Part], replies: Sequence[RefineReply]) -> SealRequest:
    """Return the request to concatenate the partitions of a stage, which were refined, into its manifest."""
    spans = [(part["span"][0], part["span"][1]) for part in parts if part["span"]]
    return SealRequest(
        stage=whole,
        spans=tuple(spans),
        poison=tuple(span for span, reply in zip(spans, replies, strict=True) if "poison" in reply),
        **spent(*replies),
        states=sum(map(states_of, replies), NO_STATES),
    )


def seal(at: Attempt, request: SealRequest, parts: Sequence[Part], replies: Sequence[RefineReply]) -> RefineReply:
    """Concatenate the partitions of a stage into its manifest; return where its rows went, and the times."""
    times = partition_times([part["name"] for part in parts], replies)
    poison = [partition for reply in replies for partition in reply.get("poison", ())]
    sealed: RefineReply = {**at.send(request), "times": asdict(times), "poison": poison}
    log_reply(at, request.stage.stage, sealed, funnel_line(sealed))
    log_idle(request.stage.stage, sealed)
    return sealed


def publish(
    at: Attempt,
    *,
    landed: Mapping[str, Any],
    gates: Mapping[str, Sequence[Part]],
    judged: str = "",
    required: str = "",
    engine: str = "",
) -> PublishReply:
    """Publish the manifests of a snapshot or of a build, by an engine, as the next version of the recipe's dataset."""
    manifests = {stage: parts[0]["manifest"] for stage, parts in gates.items()}
    request = PublishRequest(
        landing=landed["landing"],
        manifests={LAND if at.run.input else COMPOSE: landed["manifest"], **manifests},
        verdicts={
            **({VERDICT: required} if required else {}),
            **{stage: parts[0]["verdict"] for stage, parts in gates.items()},
            PUBLISH: judged,
        },
        engine=engine_of(PUBLISH, engine, at.run.engines) if engine else LOCAL,
        **at.about,
    )
    reply = at.send(request)
    amounts = "  ".join(counted(count, name.removesuffix("s")) for name, count in made_of(reply).items())
    log_reply(at, PUBLISH, reply, f"version {reply['version']}  {amounts}")
    if late := reply.get("late"):
        log.warning("publish  snapshot %s: %s", at.run.snapshot, late)
    if stale := reply.get("stale", []):
        log.warning("publish  %s", stale_line(stale))
    return reply


def made_of(reply: Mapping[str, Any]) -> dict[str, int]:
    """Return how many documents and tokens a version has, as far as its reply says."""
    return {name: reply[name] for name in ("documents", "tokens") if name in reply}


def export(at: Attempt, *, published: PublishReply, exports: Mapping[str, int], engine: str) -> ExportReply:
    """Export the version of a training dataset that was published in the formats of other trainers."""
    where = engine_of("export", engine, at.run.engines)
    reply = at.send(ExportRequest(version=published["version"], exports=exports, engine=where, **at.about))
    shards = ", ".join(f"{name} in {counted(count, 'shard')}" for name, count in reply["shards"].items())
    log_reply(at, "export", reply, shards)
    return reply


def register(at: Attempt, *, published: PublishReply, catalog: str, engine: str) -> RegisterReply:
    """Make the version that was published a snapshot of the tables of its recipe in a catalog."""
    where = engine_of("register", engine, at.run.engines)
    reply = at.send(RegisterRequest(version=published["version"], catalog=catalog, engine=where, **at.about))
    tables = [f"{table['name']} {counted(table['rows'], 'row')}" for table in reply["tables"]]
    log_reply(at, "register", reply, f"{', '.join(tables) or 'a newer version counts'} in {reply['catalog']}")
    return reply


def index(at: Attempt) -> IndexReply:
    """Bring the store of vectors in line with what the recipe has published.

    Without pylance nothing is done, and a warning says so.
    """
    reply = at.send(IndexRequest(store=os.environ.get("REFINERY_VECTORS", ""), **at.about))
    if reply["missing"]:
        log.warning("index  %s is not installed here, so the store of vectors stays as it is", reply["missing"])
    lines = (f"{counted(table['rows'], 'document')} by model {table['model']}" for table in reply["tables"])
    drawn = [f"a map in {reply['map']}"] if reply.get("map") else []
    log_reply(at, "index", reply, ", ".join([*lines, *drawn]) or "nothing to do")
    return reply


def spent(*replies: RefineReply) -> dict[str, float]:
    """Return the seconds that replies took together, by what they are seconds of."""
    return {name: sum(reply[name] for reply in replies) for name in ("wall", "cpu", "gpu")}
