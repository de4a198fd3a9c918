"""The operators of the `refine` DAG: each sends one or two requests and returns where their output is.

What flows between tasks is a list of parts: manifests that the next stage reads, whole or span by span.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from airflow.sdk import BaseOperator, BaseOperatorLink, Context, XComArg
from airflow.sdk.exceptions import TaskDeferred

from pipeline_tasks.errors import JobLost
from pipeline_tasks.flow import work
from pipeline_tasks.flow.attempt import Attempt, Part, Run
from pipeline_tasks.flow.gates import RecipeGate, SnapshotGate, StageGate
from pipeline_tasks.flow.lines import log_error, states_of
from pipeline_tasks.recipe import engine_of, fields_of
from pipeline_tasks.run.request import RefineReply, RefineRequest
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.requests.gates import JudgeReply
from pipeline_tasks.service.requests.publication import ExportReply, IndexReply, PublishReply, RegisterReply
from pipeline_tasks.service.requests.stages import PlannedStep, PreflightRequest, RecordRequest
from refinery_airflow.alerts.alerts import FailureAlert
from refinery_airflow.alerts.metrics import count_stage
from refinery_airflow.alerts.openlineage import lineage_completed, lineage_failed, lineage_started
from refinery_airflow.alerts.openlineage_provider import Traced
from refinery_airflow.runs.credentials import adopt_credentials
from refinery_airflow.runs.run import announce, base, is_here, run_of
from refinery_airflow.tasks.approval import Reviewed
from refinery_airflow.tasks.failures import record_failure
from refinery_airflow.tasks.launch import addresses_of, release, send, submit
from refinery_airflow.tasks.quarantine import after_last_try
from refinery_airflow.tasks.session import ReplyTrigger, Waiting, collect, is_replaceable, log_place

log = logging.getLogger("refinery")


class PageLink(BaseOperatorLink):  # type: ignore[misc]  # loaded lazily: Any
    """From a task to the page of what one of its attributes names."""

    kind = field = ""

    def get_link(self, operator: BaseOperator, *, ti_key: object) -> str:  # noqa: ARG002 -- Airflow's signature
        """Return the address of the page."""
        return page(self.kind, getattr(operator, self.field, ""), getattr(operator, "recipe", ""))


class ManifestLink(PageLink):
    """From a task to the manifest it committed."""

    name, kind, field = "Manifest", "manifest", "manifest"


class DocsLink(PageLink):
    """From a gate to the Data Docs of its verdict."""

    name, kind, field = "Data Docs", "files", "docs"


def page(kind: str, path: str, recipe: str) -> str:
    """Return the address of a page of the root of a recipe; "" (no link) when there is nothing to show."""
    return f"{base(recipe)}/{kind}/{path}" if path else ""


class RequestOperator(Traced, BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Base of the operators: keeps the recipe, and sends requests of a run."""

    def __init__(self, *, recipe: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.recipe = recipe
        self.manifest = ""

    def dataset(self, run: Run) -> str:
        """Return the name of the dataset that a run publishes into: of the recipe, or of its trials."""
        return run.dataset(self.recipe)

    def at(self, context: Context, run: Run) -> Attempt:
        """Return what the task knows while it works."""
        task = context["ti"]
        return Attempt(
            run=run,
            run_id=task.run_id,
            recipe=self.recipe,
            task=self.task_id,
            send=send,
            push=lambda key, value: task.xcom_push(key=key, value=value),
            index=getattr(task, "map_index", -1),
        )

    def about(self, context: Context, run: Run) -> dict[str, Any]:
        """Return the fields of every request."""
        return self.at(context, run).about

    def preflight(
        self, context: Context, run: Run, steps: Sequence[Mapping[str, Any]], of_input: Mapping[str, Any]
    ) -> None:
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
        fields = fields_of(self.fields, run.text_field)
        of_input = {"landing": run.input, "sample": run.sample, "fields": fields, "accept": run.accept}
        self.preflight(context, run, self.steps, of_input)
        parts = work.land(self.at(context, run), fields=self.fields, next_cut=self.next_cut)
        self.manifest = path_of(parts[0]["manifest"])
        return parts


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
        self.require_mixture(run.mixture)
        self.preflight(context, run, self.steps, {})
        parts = work.compose(self.at(context, run), versions=self.versions, next_cut=self.next_cut)
        self.manifest = path_of(parts[0]["manifest"])
        return parts

    def require_mixture(self, chosen: Mapping[str, Any]) -> None:
        """Raise RecipeError, before anything runs, for params that the mixture does not take."""
        work.require_mixture(self.recipe, self.steps, chosen)


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
        landed: XComArg,
        parts_in: XComArg,
        **kwargs: Any,  # noqa: ANN401 -- BaseOperator's own
    ) -> None:
        super().__init__(**kwargs)
        self.requires, self.steps, self.landed, self.parts_in = requires, steps, landed, parts_in

    def gate(self) -> RecipeGate:
        """Return what the task judges by."""
        return RecipeGate(self.requires, self.steps, self.landed, self.parts_in)

    def pages(self, verdict: JudgeReply) -> Mapping[str, str]:
        """Return the addresses of pages that tell how to know more of the recipe."""
        return {
            "Data Docs": page("files", verdict["docs"], self.recipe),
            "Verdicts": f"{base(self.recipe)}/verdicts",
        }


class StageOperator(RequestOperator):
    """What the operators of one stage share: its name, its step of the recipe, and what landed."""

    operator_extra_links: tuple[BaseOperatorLink, ...] = (ManifestLink(),)
    template_fields: Sequence[str] = ("landed",)

    def __init__(self, *, stage: str, step: Mapping[str, Any], landed: XComArg, **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
        super().__init__(**kwargs)
        self.stage, self.step, self.landed = stage, step, landed

    def refine_request(self, context: Context, run: Run, part: Part) -> RefineRequest:
        """Return the request to refine one part by this stage."""
        return work.refine_request(self.at(context, run), self.stage, self.step, self.landed, part)


class Refine(StageOperator):
    """Refines one part: a partition of a stage when mapped, else the whole of it."""

    template_fields = ("landed", "part")

    def __init__(self, *, part: XComArg, **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
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
        part, run = self.its_part, run_of(context)
        if part["span"] is None and release(request := self.request(context)):
            send(RecordRequest(request, reply["manifest"], **work.spent(reply), states=states_of(reply)))
        if part["span"] is None:
            count_stage(context["ti"].dag_id, self.dataset(run), self.stage, reply)
        self.manifest = path_of(reply["manifest"])
        work.log_refined(self.at(context, run), self.stage, part, reply)
        return reply


class Seal(StageOperator):
    """Concatenates the partitions of a stage into its manifest."""

    template_fields = ("landed", "parts_in", "refined")

    def __init__(self, *, parts_in: XComArg, refined: XComArg, **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
        super().__init__(**kwargs)
        self.parts_in, self.refined = parts_in, refined

    def execute(self, context: Context) -> RefineReply:
        """Return the reply of `seal`."""
        run, parts = run_of(context), list(self.parts_in)
        at, replies = self.at(context, run), list(self.refined)
        request = work.seal_request(self.refine_request(context, run, work.whole_of(parts[0])), parts, replies)
        release(request.stage)
        reply = work.seal(at, request, parts, replies)
        count_stage(context["ti"].dag_id, self.dataset(run), self.stage, reply)
        self.manifest = path_of(reply["manifest"])
        return reply


class Gate(Reviewed, StageOperator):
    """Checks the manifest by the stage's expectations; passes it on to the next stage, or refuses it."""

    operator_extra_links = (ManifestLink(), DocsLink())
    template_fields = ("landed", "refined")

    def __init__(self, *, refined: XComArg, next_cut: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
        super().__init__(**kwargs)
        self.refined, self.next_cut = refined, next_cut

    def gate(self) -> StageGate:
        """Return what the task judges by."""
        self.manifest = path_of(self.refined["manifest"])
        return StageGate(self.stage, self.step, self.landed, self.refined, self.next_cut)

    def pages(self, verdict: JudgeReply) -> Mapping[str, str]:
        """Return the addresses of the pages of the manifest, and of its rows."""
        return {
            "Data Docs": page("files", verdict["docs"], self.recipe),
            "Manifest": page("manifest", self.manifest, self.recipe),
            "Rows that would pass, and rejected ones": page("sample", self.manifest, self.recipe),
        }


class PublishGate(Reviewed, RequestOperator):
    """Checks the snapshot from what landed to what would be published; no override of a stage lets it pass."""

    operator_extra_links = (DocsLink(),)
    template_fields: Sequence[str] = ("landed", "gates")

    def __init__(
        self,
        *,
        landed: XComArg,
        gates: Mapping[str, Any],
        bounds: Mapping[str, Any],
        **kwargs: Any,  # noqa: ANN401 -- BaseOperator's own
    ) -> None:
        super().__init__(**kwargs)
        self.landed, self.gates, self.bounds = landed, gates, bounds

    def gate(self) -> SnapshotGate:
        """Return what the task judges by."""
        return SnapshotGate(self.landed, self.gates, self.bounds)

    def pages(self, verdict: JudgeReply) -> Mapping[str, str]:
        """Return the addresses of the pages of the manifests of its stages."""
        manifests = {stage: path_of(parts[0]["manifest"]) for stage, parts in self.gates.items()}
        return {
            "Data Docs": page("files", verdict["docs"], self.recipe),
            **{f"Manifest of {stage}": page("manifest", path, self.recipe) for stage, path in manifests.items()},
        }

    def announce(self, context: Context, run: Run, verdict: JudgeReply) -> None:
        """Tell the DAGs that wait for the snapshot."""
        announce(context, run, {"outcome": verdict["outcome"], "verdict": verdict["verdict"]})


class Publish(RequestOperator):
    """Publishes the manifests of a snapshot or of a build as the next version of the recipe's dataset."""

    template_fields: Sequence[str] = ("landed", "gates", "judged", "required")

    def __init__(
        self,
        *,
        landed: XComArg,
        gates: Mapping[str, Any],
        judged: XComArg | str = "",
        required: XComArg | str = "",
        engine: str = "",
        **kwargs: Any,  # noqa: ANN401 -- BaseOperator's own
    ) -> None:
        super().__init__(**kwargs)
        self.landed, self.gates, self.judged, self.required, self.engine = landed, gates, judged, required, engine

    def execute(self, context: Context) -> PublishReply:
        """Return the reply of `publish`; an asset event triggers the DAGs that wait for the dataset."""
        run = run_of(context)
        reply = work.publish(
            self.at(context, run),
            landed=self.landed,
            gates=self.gates,
            judged=self.judged,
            required=self.required,
            engine=self.engine,
        )
        facts = {"version": reply["version"], **work.made_of(reply), "stale": reply.get("stale", [])}
        announce(context, run, facts)
        return reply


class Export(RequestOperator):
    """Exports the version of a training dataset that was published in the formats of other trainers."""

    template_fields: Sequence[str] = ("published",)

    def __init__(self, *, published: XComArg, exports: Mapping[str, int], engine: str, **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
        super().__init__(**kwargs)
        self.published, self.exports, self.engine = published, exports, engine

    def execute(self, context: Context) -> ExportReply:
        """Return the reply of `export`."""
        at = self.at(context, run_of(context))
        return work.export(at, published=self.published, exports=self.exports, engine=self.engine)


class Register(RequestOperator):
    """Makes the version that was published a snapshot of the tables of its recipe in a catalog."""

    template_fields: Sequence[str] = ("published",)

    def __init__(self, *, published: XComArg, catalog: str, engine: str, **kwargs: Any) -> None:  # noqa: ANN401 -- BaseOperator's own
        super().__init__(**kwargs)
        self.published, self.catalog, self.engine = published, catalog, engine

    def execute(self, context: Context) -> RegisterReply:
        """Return the reply of `register`."""
        at = self.at(context, run_of(context))
        return work.register(at, published=self.published, catalog=self.catalog, engine=self.engine)


class Index(RequestOperator):
    """Brings the store of vectors in line with what the recipe has published."""

    def execute(self, context: Context) -> IndexReply:
        """Return the reply of `index`; without pylance nothing is done, and a warning says so."""
        return work.index(self.at(context, run_of(context)))


def log_failure(context: Context) -> None:
    """Log and record why a task failed for good; `refinery run` takes its exit code from the exception."""
    log_error(context["ti"].task_id, context["ti"].try_number, context.get("exception"), final=True)
    record_failure(context)


def log_retry(context: Context) -> None:
    """Log that a task will be tried again, and why."""
    log_error(context["ti"].task_id, context["ti"].try_number, context.get("exception"), final=False)


CALLBACKS: Mapping[str, Any] = {
    "on_execute_callback": lineage_started,
    "on_success_callback": lineage_completed,
    "on_failure_callback": [FailureAlert(), lineage_failed, log_failure],  # with the last `refinery run` ends
    "on_retry_callback": log_retry,
}
"""Task arguments of what refines and builds: what is told as a task begins and ends."""
