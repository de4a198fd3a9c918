"""The operators of the `refine` DAG: each sends one or two requests and returns where their output is.

What flows between tasks is a list of parts: manifests that the next stage reads, whole or span by span.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import TaskDeferred

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.alerts.stages import Spending, partition_times, stage_alerts
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.recipe import (
    BUILD,
    COMPOSE,
    LAND,
    PUBLISH,
    VERDICT,
    AlertLimits,
    ErrorBudget,
    Requirement,
    Resources,
    Versions,
    engine_of,
    fields_of,
    plans_mixture,
    require_params,
    stage_that,
    trial_of,
)
from pipeline_tasks.run.plan import RefineRequest
from pipeline_tasks.run.request import RefineReply
from pipeline_tasks.run.tasks.state_cost import NO_STATES, StateCost
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.requests.gates import JudgeRecipeRequest, JudgeReply, JudgeRequest, JudgeSnapshotRequest
from pipeline_tasks.service.requests.publication import (
    ExportReply,
    ExportRequest,
    IndexReply,
    IndexRequest,
    PublishReply,
    PublishRequest,
)
from pipeline_tasks.service.requests.stages import (
    ComposeRequest,
    HistoryRequest,
    LandReply,
    LandRequest,
    PlannedStep,
    PreflightRequest,
    RecordRequest,
    SealRequest,
    SpansRequest,
)
from refinery_airflow.alerts.metrics import count_stage
from refinery_airflow.runs.credentials import adopt_credentials
from refinery_airflow.runs.form import mixture_of
from refinery_airflow.runs.run import Run, announce, base, is_here, run_of
from refinery_airflow.tasks.approval import Review, Reviewed, rows_of
from refinery_airflow.tasks.failures import record_failure
from refinery_airflow.tasks.launch import addresses_of, release, send, submit
from refinery_airflow.tasks.quarantine import after_last_try
from refinery_airflow.tasks.session import ReplyTrigger, Waiting, collect, is_replaceable, log_place

log = logging.getLogger("refinery")

STALE_NAMED = 10
"""Stale snapshots that a line names."""


class Part(TypedDict):
    """What one task of the next stage reads: a manifest's reference, and the span of its shards (None: all of them)."""

    manifest: str
    span: list[int] | None
    name: str
    of: int
    verdict: str


class ManifestLink(BaseOperatorLink):  # type: ignore[misc]  # loaded lazily: Any
    """From a task to the manifest it committed."""

    name = "Manifest"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 -- Airflow's signature
        """Return the address of the page that shows the manifest."""
        return page("manifest", getattr(operator, "manifest", ""), getattr(operator, "recipe", ""))


class DocsLink(BaseOperatorLink):  # type: ignore[misc]  # loaded lazily: Any
    """From a gate to the Data Docs of its verdict."""

    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 -- Airflow's signature
        """Return the address of the gate's Data Docs."""
        return page("files", getattr(operator, "docs", ""), getattr(operator, "recipe", ""))


def page(kind: str, path: str, recipe: str) -> str:
    """Return the address of a page of the root of a recipe; "" (no link) when there is nothing to show."""
    return f"{base(recipe)}/{kind}/{path}" if path else ""


def earlier_of(landed: Mapping[str, Any], **fields: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
    """Return what a request says of earlier snapshots: the address of the object that has it.

    A run whose `land` ended before an upgrade has no such object, and lists in its place, of which `fields` take some.
    """
    if "earlier" in landed:
        return {"earlier": landed["earlier"]}
    return {name: take(landed) for name, take in fields.items()}


class RequestOperator(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Base of the operators: keeps the recipe, and sends requests of a run."""

    def __init__(self, *, recipe: str, **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
        super().__init__(**kwargs)
        self.recipe = recipe
        self.manifest = ""

    def dataset(self, run: Run) -> str:
        """Return the name of the dataset that a run publishes into: of the recipe, or of its trials."""
        return trial_of(self.recipe) if run.is_trial else self.recipe

    def about(self, context: Context, run: Run) -> dict[str, Any]:
        """Return the fields of every request: root, recipe, snapshot (`BUILD` without one) and run id."""
        snapshot = run.snapshot or BUILD
        return {"root": run.root, "recipe": self.dataset(run), "snapshot": snapshot, "run_id": context["ti"].run_id}

    def data(self, run: Run) -> str:
        """Return in words what the run makes: a snapshot, or a training dataset."""
        return f"snapshot {run.snapshot} of recipe {self.dataset(run)}" if run.snapshot else f"dataset {self.recipe}"

    def preflight(self, context: Context, run: Run, steps: Sequence[Mapping[str, Any]], **of_input: Any) -> None:  # noqa: ANN401
        """Refuse a run that would end before its last stage, for all that is wrong; log what may be.

        `refinery run` has looked already, before Airflow was there.
        """
        if is_here():
            return
        planned = tuple(
            PlannedStep(step["stage"], step["params"], engine_of(step["stage"], step["engine"], run.engines))
            for step in steps
        )
        addresses = addresses_of((step.engine for step in planned), self.recipe)
        request = PreflightRequest(steps=planned, addresses=addresses, **of_input, **self.about(context, run))
        for note in send(request)["notes"]:
            log.warning("%s  %s", self.task_id, note)

    def parts(self, context: Context, run: Run, manifest: str, verdict: str, cut: Mapping[str, Any]) -> list[Part]:
        """Return what the next stage reads of a manifest: spans of it if that stage is mapped, as `cut` says."""
        whole = Part(manifest=manifest, span=None, name="", of=1, verdict=verdict)
        if not cut:
            return [whole]
        wanted = {**cut, "partitions": run.partitions or cut["partitions"]}
        reply = send(SpansRequest(parent=manifest, **wanted, **self.about(context, run)))
        of = len(reply["spans"])
        return [
            {**whole, "span": span, "name": name, "of": of}
            for span, name in zip(reply["spans"], reply["names"], strict=True)
        ]


class Land(RequestOperator):
    """Commits the landed snapshot's manifest, and names the history that earlier snapshots saved."""

    operator_extra_links = (ManifestLink(),)

    def __init__(
        self,
        *,
        fields: Mapping[str, str],
        steps: Sequence[Mapping[str, Any]],
        next_cut: Mapping[str, Any],
        **kwargs: Any,  # noqa: ANN401 -- BaseOperator's own
    ) -> None:
        super().__init__(**kwargs)
        self.fields, self.steps, self.next_cut = fields, steps, next_cut

    def execute(self, context: Context) -> list[Part]:
        """Push `landed` (its manifest, the folder of the files, what is earlier); return the first stage's parts."""
        run = run_of(context)
        about = self.about(context, run)
        fields = fields_of(self.fields, run.text_field)
        how: dict[str, Any] = {"sample": run.sample, "fields": fields, "accept": run.accept}
        self.preflight(context, run, self.steps, landing=run.input, **how)
        reply = send(LandRequest(input=run.input, **how, **about))
        self.manifest = path_of(reply["manifest"])
        # a trial reads the history of the whole runs
        history = send(HistoryRequest(**{**about, "recipe": self.recipe}, landed=reply["manifest"]))
        log_reply(context, LAND, reply, f"{amount(reply)}{sample_text(run, reply)}")
        for name in reply["ignored"]:
            log.warning("land  %s is no crawl file and was left out", name)
        for name, reason in reply["skipped"]:
            log.warning("land  %s was left out: %s", name, reason)
        for name in reply["missing"]:
            log.warning("land  %s is promised and has not landed whole: refined without it", name)
        landed = {"manifest": reply["manifest"], "landing": reply["landing"], "earlier": history["earlier"]}
        context["ti"].xcom_push(key="landed", value=landed)
        return self.parts(context, run, reply["manifest"], "", self.next_cut)


class Compose(RequestOperator):
    """Commits the manifest of the versions that a training dataset is built from."""

    operator_extra_links = (ManifestLink(),)

    def __init__(
        self,
        *,
        versions: Mapping[str, Any],
        steps: Sequence[Mapping[str, Any]],
        next_cut: Mapping[str, Any],
        **kwargs: Any,  # noqa: ANN401 -- BaseOperator's own
    ) -> None:
        super().__init__(**kwargs)
        self.versions, self.steps, self.next_cut = versions, steps, next_cut

    def execute(self, context: Context) -> list[Part]:
        """Push `landed` (the manifest, and the last version to compare with); return the first stage's parts."""
        run = run_of(context)
        self.require_mixture(mixture_of(context["params"]))
        self.preflight(context, run, self.steps)
        snapshots = context["params"].get("snapshots")
        versions = {**self.versions, **({"snapshots": tuple(snapshots)} if snapshots else {})}
        reply = send(ComposeRequest(versions=Versions(**versions), **self.about(context, run)))
        self.manifest = path_of(reply["manifest"])
        snapshots = reply["snapshots"]
        text = f"{counted(len(snapshots), 'snapshot')}  {counted(reply['documents'], 'document')}"
        log_reply(context, COMPOSE, reply, text)
        if reply["stale"]:
            log.warning("compose  %s", stale_line(reply["stale"]))
        landed = {"manifest": reply["manifest"], "landing": "", "earlier": reply["earlier"]}
        context["ti"].xcom_push(key="landed", value=landed)
        return self.parts(context, run, reply["manifest"], "", self.next_cut)

    def require_mixture(self, chosen: Mapping[str, Any]) -> None:
        """Raise RecipeError, before anything runs, for params that the mixture does not take."""
        planning = [step for step in self.steps if plans_mixture(step["stage"])]
        if chosen and not planning:
            stage = stage_that(plans_mixture)
            message = f"recipe {self.recipe} has no stage {stage}, so {', '.join(chosen)} would change nothing; add it"
            raise RecipeError(message)
        for step in planning:
            require_params(step["stage"], {**step["params"], **chosen}, f"{self.recipe}: {step['stage']}")


class VerdictGate(Reviewed, RequestOperator):
    """Checks that trained models say of the recipe what it requires, before its first stage; passes the parts on.

    A trial is not asked: what it publishes is no version of the dataset.
    """

    operator_extra_links = (DocsLink(),)
    template_fields: Sequence[str] = ("landed", "parts_in")

    def __init__(
        self,
        *,
        requires: Mapping[str, str],
        steps: Sequence[Mapping[str, Any]],
        landed: Any,  # noqa: ANN401 -- an XComArg
        parts_in: Any,  # noqa: ANN401 -- an XComArg
        **kwargs: Any,  # noqa: ANN401 -- BaseOperator's own
    ) -> None:
        super().__init__(**kwargs)
        self.requires, self.steps, self.landed, self.parts_in = requires, steps, landed, parts_in

    def judge(self, context: Context, run: Run, override: str) -> JudgeReply:
        """Return the verdict on the recipe as this run has it, under the run's override unless another is given."""
        if run.is_trial:
            log.info("%s gate  a trial needs no verdict of models", VERDICT)
            return {"outcome": "pass", "failures": [], "lines": [], "docs": "", "verdict": "", "spending": {}}
        chosen = mixture_of(context["params"])
        request = JudgeRecipeRequest(
            manifest=self.landed["manifest"],
            steps=tuple(
                PlannedStep(step["stage"], {**step["params"], **(chosen if plans_mixture(step["stage"]) else {})})
                for step in self.steps
            ),
            requires=Requirement(**self.requires),
            override=override or run.override.get(VERDICT, ""),
            **self.about(context, run),
        )
        verdict = send(request)
        self.docs = verdict["docs"]
        log_verdict(context, VERDICT, verdict)
        return verdict

    def review(self, run: Run, verdict: JudgeReply) -> Review:
        """Return what a person decides on: what is known of the recipe, and how to know more."""
        return Review(
            gate=VERDICT,
            subject=f"recipe {self.recipe}",
            data=self.data(run),
            lines=verdict["lines"],
            docs=verdict["docs"],
            pages={
                "Data Docs": page("files", verdict["docs"], self.recipe),
                "Verdicts": f"{base(self.recipe)}/verdicts",
            },
        )

    def alerts(self, verdict: JudgeReply) -> Iterable[Alert]:  # noqa: ARG002 -- nothing has run yet
        """Return none: no stage has run."""
        return ()

    def end(self, context: Context, run: Run, verdict: JudgeReply) -> list[Part]:  # noqa: ARG002 -- as all gates
        """Push the verdict for `publish`; return the parts of the first stage."""
        context["ti"].xcom_push(key=VERDICT, value=verdict["verdict"])
        return list(self.parts_in)


class StageOperator(RequestOperator):
    """What the operators of one stage share: its name, its step of the recipe, and what landed."""

    operator_extra_links: tuple[BaseOperatorLink, ...] = (ManifestLink(),)
    template_fields: Sequence[str] = ("landed",)

    def __init__(self, *, stage: str, step: Mapping[str, Any], landed: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(**kwargs)
        self.stage, self.step, self.landed = stage, step, landed

    def refine_request(self, context: Context, run: Run, part: Part) -> RefineRequest:
        """Return the request to refine one part by this stage."""
        return RefineRequest(
            stage=self.stage,
            params={**self.step["params"], **(mixture_of(context["params"]) if plans_mixture(self.stage) else {})},
            parent=part["manifest"],
            **earlier_of(self.landed, history=lambda then: tuple(then["history"].get(self.stage, ()))),
            landing=self.landed["landing"],
            span=(part["span"][0], part["span"][1]) if part["span"] else None,
            error_budget=ErrorBudget(**self.step["error_budget"]),
            engine=engine_of(self.stage, self.step["engine"], run.engines),
            resources=Resources(**self.step["resources"]),
            **self.about(context, run),
        )


class Refine(StageOperator):
    """Refines one part: a partition of a stage when mapped, else the whole of it."""

    template_fields = ("landed", "part")

    def __init__(self, *, part: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- an XComArg of a Part
        super().__init__(**kwargs)
        self.part = part

    def execute(self, context: Context) -> RefineReply:
        """Return the reply of `refine`; where a cluster does the work, wait for it in the triggerer."""
        request = self.request(context)
        try:
            answer = submit(request, str(context["ti"].id))
        except Exception as error:  # noqa: BLE001 -- it is raised again unless it is of the partition's own work
            answer = after_last_try(context, request, self.its_part, error)
        if not isinstance(answer, Waiting):
            return self.end(context, answer)
        log.info("%s  waits for driver %d of %s; %s", self.stage, answer.driver, answer.session, log_place(answer))
        raise TaskDeferred(trigger=ReplyTrigger(asdict(answer), recipe=self.recipe), method_name="resume")

    def resume(self, context: Context, event: Mapping[str, Any]) -> RefineReply:
        """Return the reply that the trigger saw; if its driver is gone, wait for the next one, or raise JobLost."""
        adopt_credentials(run_of(context).root, recipe=self.recipe)
        waiting, request = Waiting(**event["waiting"]), self.request(context)
        try:
            reply = collect(waiting, event["state"])
        except JobLost as error:
            if not is_replaceable(waiting, event["state"]):
                raise
            log.warning("%s  %s", self.stage, error)
            return self.execute(context)
        except Exception as error:  # noqa: BLE001 -- as in `execute`
            reply = after_last_try(context, request, self.its_part, error)
        return self.end(context, reply)

    def request(self, context: Context) -> RefineRequest:
        """Return the request to refine this task's part, which is named for `map_index_template`."""
        context["part_name"] = self.its_part["name"]
        return self.refine_request(context, run_of(context), self.its_part)

    @property
    def its_part(self) -> Part:
        """The part that this task refines."""
        part: Part = self.part[0] if isinstance(self.part, list) else self.part
        return part

    def end(self, context: Context, reply: RefineReply) -> RefineReply:
        """Log the reply and return it; the driver of a stage in one part may end, and has not recorded its cost."""
        part = self.its_part
        if part["span"] is None and release(request := self.request(context)):
            send(RecordRequest(request, reply["manifest"], **spent(reply), states=states_of(reply)))
        if part["span"] is None:
            count_stage(context["ti"].dag_id, self.dataset(run_of(context)), self.stage, reply)
        self.manifest = path_of(reply["manifest"])
        log_reply(context, self.stage, reply, funnel_line(reply), part)
        if part["span"] is None:
            log_idle(self.stage, reply)
        if "tokenizer" in reply:
            log.info("%s  the dataset's tokenizer is %s", self.stage, reply["tokenizer"])
        return reply


class Seal(StageOperator):
    """Concatenates the partitions of a stage into its manifest."""

    template_fields = ("landed", "parts_in", "refined")

    def __init__(self, *, parts_in: Any, refined: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- XComArgs
        super().__init__(**kwargs)
        self.parts_in, self.refined = parts_in, refined

    def execute(self, context: Context) -> RefineReply:
        """Return the reply of `seal`."""
        whole = Part(manifest=self.parts_in[0]["manifest"], span=None, name="", of=1, verdict="")
        spans = [(part["span"][0], part["span"][1]) for part in self.parts_in]
        replies = list(self.refined)
        request = SealRequest(
            stage=self.refine_request(context, run_of(context), whole),
            spans=tuple(spans),
            poison=tuple(span for span, reply in zip(spans, replies, strict=True) if "poison" in reply),
            **spent(*replies),
            states=sum(map(states_of, replies), NO_STATES),
        )
        release(request.stage)
        times = partition_times([part["name"] for part in self.parts_in], replies)
        poison = [partition for reply in replies for partition in reply.get("poison", ())]
        reply: RefineReply = {**send(request), "times": asdict(times), "poison": poison}
        count_stage(context["ti"].dag_id, self.dataset(run_of(context)), self.stage, reply)
        self.manifest = path_of(reply["manifest"])
        log_reply(context, self.stage, reply, funnel_line(reply))
        log_idle(self.stage, reply)
        return reply


class Gate(Reviewed, StageOperator):
    """Checks the manifest by the stage's expectations; passes it on to the next stage, or refuses it."""

    operator_extra_links = (ManifestLink(), DocsLink())
    template_fields = ("landed", "refined")

    def __init__(self, *, refined: Any, next_cut: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 -- an XComArg
        super().__init__(**kwargs)
        self.refined, self.next_cut = refined, next_cut

    def judge(self, context: Context, run: Run, override: str) -> JudgeReply:
        """Return the verdict on the manifest, under the run's override unless another is given."""
        self.manifest = path_of(self.refined["manifest"])
        request = JudgeRequest(
            manifest=self.refined["manifest"],
            **earlier_of(
                self.landed,
                previous=lambda then: then["previous"].get(self.stage, ""),
                trailing=lambda then: tuple(then["trailing"].get(self.stage, ())),
            ),
            bounds=self.step["bounds"],
            override=override or run.override.get(self.stage, ""),
            **self.about(context, run),
        )
        verdict = send(request)
        self.docs = verdict["docs"]
        log_verdict(context, self.stage, verdict)
        return verdict

    def review(self, run: Run, verdict: JudgeReply) -> Review:
        """Return what a person decides on: the rows that the stage kept and rejected."""
        return Review(
            gate=self.stage,
            subject=self.manifest,
            data=self.data(run),
            lines=verdict["lines"],
            docs=verdict["docs"],
            passing=rows_of(self.refined),
            pages={
                "Data Docs": page("files", verdict["docs"], self.recipe),
                "Manifest": page("manifest", self.manifest, self.recipe),
                "Rows that would pass, and rejected ones": page("sample", self.manifest, self.recipe),
            },
        )

    def alerts(self, verdict: JudgeReply) -> Iterator[Alert]:
        """Yield the alerts of the stage: its errors, its time, its cost."""
        limits, spending = AlertLimits(**self.step["alerts"]), Spending(**verdict.get("spending", {}))
        yield from stage_alerts(limits, self.stage, self.refined, spending)

    def end(self, context: Context, run: Run, verdict: JudgeReply) -> list[Part]:
        """Return the parts of the next stage."""
        return self.parts(context, run, self.refined["manifest"], verdict["verdict"], self.next_cut)


class PublishGate(Reviewed, RequestOperator):
    """Checks the snapshot from what landed to what would be published; no override of a stage lets it pass."""

    operator_extra_links = (DocsLink(),)
    template_fields: Sequence[str] = ("landed", "gates")

    def __init__(self, *, landed: Any, gates: Mapping[str, Any], bounds: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 -- XComArgs
        super().__init__(**kwargs)
        self.landed, self.gates, self.bounds = landed, gates, bounds

    def judge(self, context: Context, run: Run, override: str) -> JudgeReply:
        """Return the verdict on the snapshot, under the run's override unless another is given."""
        request = JudgeSnapshotRequest(
            manifests={stage: parts[0]["manifest"] for stage, parts in self.gates.items()},
            **earlier_of(self.landed, trailing=lambda then: tuple(then.get("snapshots", ()))),
            bounds=self.bounds,
            override=override or run.override.get(PUBLISH, ""),
            **self.about(context, run),
        )
        verdict = send(request)
        self.docs = verdict["docs"]
        log_verdict(context, PUBLISH, verdict)
        return verdict

    def review(self, run: Run, verdict: JudgeReply) -> Review:
        """Return what a person decides on: the facts of the snapshot, and the manifests of its stages."""
        manifests = {stage: path_of(parts[0]["manifest"]) for stage, parts in self.gates.items()}
        return Review(
            gate=PUBLISH,
            subject=f"snapshot {run.snapshot}",
            data=self.data(run),
            lines=verdict["lines"],
            docs=verdict["docs"],
            passing={name: f"{value:,.6g}" for name, value in verdict["facts"].items() if value is not None},
            pages={
                "Data Docs": page("files", verdict["docs"], self.recipe),
                **{f"Manifest of {stage}": page("manifest", path, self.recipe) for stage, path in manifests.items()},
            },
        )

    def alerts(self, verdict: JudgeReply) -> Iterable[Alert]:  # noqa: ARG002 -- those of the stages were sent
        """Return none: what a snapshot's stages took, their own gates have sent."""
        return ()

    def end(self, context: Context, run: Run, verdict: JudgeReply) -> str:
        """Return the path of the verdict."""
        announce(context, run, {"outcome": verdict["outcome"], "verdict": verdict["verdict"]})
        path: str = verdict["verdict"]
        return path


class Publish(RequestOperator):
    """Publishes the manifests of a snapshot or of a build as the next version of the recipe's dataset."""

    template_fields: Sequence[str] = ("landed", "gates", "judged", "required")

    def __init__(
        self,
        *,
        landed: Any,  # noqa: ANN401 -- an XComArg
        gates: Mapping[str, Any],
        judged: Any = "",  # noqa: ANN401 -- an XComArg
        required: Any = "",  # noqa: ANN401 -- an XComArg
        **kwargs: Any,  # noqa: ANN401 -- BaseOperator's own
    ) -> None:
        super().__init__(**kwargs)
        self.landed, self.gates, self.judged, self.required = landed, gates, judged, required

    def execute(self, context: Context) -> PublishReply:
        """Return the reply of `publish`; an asset event triggers the DAGs that wait for the dataset."""
        run = run_of(context)
        manifests = {stage: parts[0]["manifest"] for stage, parts in self.gates.items()}
        request = PublishRequest(
            landing=self.landed["landing"],
            manifests={LAND if run.input else COMPOSE: self.landed["manifest"], **manifests},
            verdicts={
                **({VERDICT: self.required} if self.required else {}),
                **{stage: parts[0]["verdict"] for stage, parts in self.gates.items()},
                PUBLISH: self.judged,
            },
            **self.about(context, run),
        )
        reply = send(request)
        made: dict[str, Any] = {name: reply[name] for name in ("documents", "tokens") if name in reply}
        amounts = "  ".join(counted(count, name.removesuffix("s")) for name, count in made.items())
        log_reply(context, "publish", reply, f"version {reply['version']}  {amounts}")
        if late := reply.get("late"):
            log.warning("publish  snapshot %s: %s", run.snapshot, late)
        stale = reply.get("stale", [])
        if stale:
            log.warning("publish  %s", stale_line(stale))
        announce(context, run, {"version": reply["version"], **made, "stale": stale})
        return reply


class Export(RequestOperator):
    """Exports the version of a training dataset that was published in the formats of other trainers."""

    template_fields: Sequence[str] = ("published",)

    def __init__(self, *, published: Any, exports: Mapping[str, int], **kwargs: Any) -> None:  # noqa: ANN401 -- an XComArg
        super().__init__(**kwargs)
        self.published, self.exports = published, exports

    def execute(self, context: Context) -> ExportReply:
        """Return the reply of `export`."""
        about = self.about(context, run_of(context))
        reply = send(ExportRequest(version=self.published["version"], exports=self.exports, **about))
        shards = ", ".join(f"{name} in {counted(count, 'shard')}" for name, count in reply["shards"].items())
        log_reply(context, "export", reply, shards)
        return reply


class Index(RequestOperator):
    """Brings the store of vectors in line with what the recipe has published."""

    def execute(self, context: Context) -> IndexReply:
        """Return the reply of `index`; without pylance nothing is done, and a warning says so."""
        store = os.environ.get("REFINERY_VECTORS", "")
        reply = send(IndexRequest(store=store, **self.about(context, run_of(context))))
        if reply["missing"]:
            log.warning("index  %s is not installed here, so the store of vectors stays as it is", reply["missing"])
        lines = (f"{counted(table['rows'], 'document')} by model {table['model']}" for table in reply["tables"])
        drawn = [f"a map in {reply['map']}"] if reply.get("map") else []
        log_reply(context, "index", reply, ", ".join([*lines, *drawn]) or "nothing to do")
        return reply


# --- Verdicts --------------------------------------------------------------------------------------------------


def log_verdict(context: Context, gate: str, verdict: JudgeReply) -> None:
    """Log a verdict in one line, and a warning with a line for each bound."""
    log_reply(context, f"{gate} gate", verdict, verdict["outcome"])
    if verdict["outcome"] == "warn":
        log.warning("%s gate  warns\n%s", gate, "\n".join(f"          {line}" for line in verdict["lines"]))


# --- Lines -----------------------------------------------------------------------------------------------------


def log_reply(context: Context, stage: str, reply: Mapping[str, Any], text: str, part: Part | None = None) -> None:
    """Log a finished request as one line; `refinery run` shows these lines and adds them up."""
    number = context["ti"].map_index + 1
    which = f"partition {number}/{part['of']}" if part and number else ""
    facts = {"stage": stage, "task": context["ti"].task_id, "reply": dict(reply), "which": which}
    line = f"{stage:<18} {which:<15}  {text}" if which or "rows_in" in reply else f"{stage:<18} {text}"
    log.info("%s", line + waits_text(reply), extra={"refinery": facts})


def waits_text(reply: Mapping[str, Any]) -> str:
    """Return how S3 slowed a request down, "" if it did not."""
    if "s3_waits" not in reply:
        return ""
    waits = reply["s3_waits"]
    return f"  (S3 was busy: {counted(waits['requests'], 'request')} sent again after {waits['seconds']:.1f} s)"


def amount(files: Mapping[str, Any]) -> str:
    """Return the number of files, and their bytes."""
    return f"{files['files']:,} files  {files['bytes'] / 1e6:,.1f} MB"


def sample_text(run: Run, reply: LandReply) -> str:
    """Return what a trial's files are a sample of, "" for a whole run."""
    if not run.is_trial:
        return ""
    share = reply["bytes"] / max(reply["landed"]["bytes"], 1)
    return f"  (a trial of {share:.2%} of {amount(reply['landed'])})"


def stale_line(stale: Sequence[str]) -> str:
    """Return which snapshots are stale, and how they are refined again."""
    more = f" and {len(stale) - STALE_NAMED:,} more" if len(stale) > STALE_NAMED else ""
    return (
        f"{counted(len(stale), 'snapshot is', 'snapshots are')} stale, refined without the history that there is now: "
        f"{', '.join(stale[:STALE_NAMED])}{more}. Run them again in this order (in Airflow: trigger `arrivals` with "
        "the param `stale`)"
    )


def spent(*replies: RefineReply) -> dict[str, float]:
    """Return the seconds that replies took together, by what they are seconds of."""
    return {name: sum(reply[name] for reply in replies) for name in ("wall", "cpu", "gpu")}


def states_of(reply: RefineReply) -> StateCost:
    """Return what the models of a reply took."""
    return StateCost(**reply.get("states", {}))


def funnel_line(reply: RefineReply) -> str:
    """Return where the rows of a reply went, as text."""
    counts = {"in": reply["rows_in"], "kept": reply["rows"]}
    refused = {name: sum(reply[name].values()) for name in ("rejected", "quarantined")}
    counts |= {name: rows for name, rows in refused.items() if rows}
    rows = "  ".join(f"{count:>7,} {name}" for name, count in counts.items())
    reused = "  (already done)" if reply["reused"] and not reply["ran"] else ""
    looked_up = reply.get("history_reads", {}).get("rows")
    history = f"  ({counted(looked_up, 'row')} of history read)" if looked_up else ""
    return f"{rows}  {reply['wall']:.1f} s{reused}{history}"


def log_idle(stage: str, reply: RefineReply) -> None:
    """Log what of a stage had nothing to work with, and who waited for whom where it has models."""
    for part in (*reply.get("idle", ()), states_of(reply).line):
        if part:
            log.info("%s  %s", stage, part)


def log_failure(context: Context) -> None:
    """Log and record why a task failed for good; `refinery run` takes its exit code from the exception."""
    _log_error(context, "failed", logging.ERROR)
    record_failure(context)


def log_retry(context: Context) -> None:
    """Log that a task will be tried again, and why."""
    _log_error(context, "is tried again", logging.WARNING)


def _log_error(context: Context, outcome: str, level: int) -> None:
    error, task = context.get("exception"), context["ti"].task_id
    facts = {"task": task, "try": context["ti"].try_number, "error": error, "final": level == logging.ERROR}
    log.log(level, "%s  %s: %s", task, outcome, error, extra={"refinery": facts})
