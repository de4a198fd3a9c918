"""Does the tasks of a flow in this process, one after the other, as `refinery run` and `refinery build` do.

They are the tasks that Airflow's scheduler runs: the same requests, retries, alerts and lines. What only Airflow has is
not here: a form that asks a person about a gate, connections, metrics, lineage events, runs that wait for each other.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeVar

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.alerts.message import Message, Origin
from pipeline_tasks.alerts.sent import harmless, log_message, note_message, runbook
from pipeline_tasks.alerts.verdicts import gate_refused, task_failed
from pipeline_tasks.errors import ContractError
from pipeline_tasks.flow import work
from pipeline_tasks.flow.attempt import Attempt, Run
from pipeline_tasks.flow.failures import record_failure
from pipeline_tasks.flow.gates import Gate, RecipeGate, Refusal, SnapshotGate, StageGate, refusal_text, warnings_of
from pipeline_tasks.flow.lines import log_error
from pipeline_tasks.flow.plan import SENSE, TURN, Flow, Given, Output, Task, flow_of
from pipeline_tasks.flow.poison import is_one_of_many, without_poison
from pipeline_tasks.flow.tries import MORE, pause_after
from pipeline_tasks.recipe import PUBLISH, Recipe
from pipeline_tasks.run.request import OnEngine, RefineReply, ReplyT, Request
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.publication import PublishReply

RequestT = TypeVar("RequestT", bound=Request[Any])


def run_recipe(recipe: Recipe, params: Mapping[str, Any], addresses: Mapping[str, str]) -> PublishReply:
    """Do every task of a recipe, whose params are those of its DAG; return what was published.

    `addresses` are those of engines. Raise the error of the first task that fails for good.
    """
    run = Run(
        input=params.get("input", ""),
        root=params["root"],
        snapshot=params.get("snapshot", ""),
        partitions=params["partitions"],
        engines=params["engines"],
        override=params["override"],
        patience=0,
        approval=0,
        sample=params.get("sample", 1.0),
        text_field=params.get("text_field") or "",
        accept=recipe.accept_partial,
    )
    published: PublishReply = follow(flow_of(recipe), run, addresses)[Output(PUBLISH)]
    return published


def follow(flow: Flow, run: Run, addresses: Mapping[str, str]) -> Mapping[Output, Any]:
    """Do every task of a flow for a run; return what they have left."""
    loop = _Loop(flow, run, addresses)
    flow.follow(loop.do, loop.left)
    return loop.left


@dataclass(slots=True)
class _Loop:
    """One run of a flow, and what its tasks have left for others."""

    flow: Flow
    run: Run
    addresses: Mapping[str, str]
    run_id: str = field(default_factory=lambda: f"manual__{datetime.now(UTC).isoformat()}")
    left: dict[Output, Any] = field(default_factory=dict)

    def do(self, task: Task, given: Given, index: int) -> object:
        """Return what a task returns, or one part of a mapped task, in the form in which Airflow passes it on."""
        if task.does in (SENSE, TURN):
            return None
        at = Attempt(
            run=self.run,
            run_id=self.run_id,
            recipe=self.flow.recipe,
            task=task.name,
            send=self._send,
            push=lambda key, value: self.left.update({Output(task.name, key): _as_stored(value)}),
            index=index,
        )
        while True:
            try:
                return _as_stored(self._done(task, at, given))
            except SystemExit as exit_:
                message = f"{task.name}: its code ended the process (exit code {exit_.code!r}); repair that code"
                error: Exception = ContractError(message)
                self._failed(at, error)
                raise error from exit_
            except Exception as error:
                pause = pause_after(error, at.number)
                if pause is None:
                    self._failed(at, error)
                    raise
                log_error(task.name, at.number, error, final=False)
            time.sleep(pause)
            at = replace(at, number=at.number + 1)

    def _done(self, task: Task, at: Attempt, given: Given) -> object:
        if task.does in GATES:
            return self._passed(at, GATES[task.does](given))
        return WORK[task.does](at, given)

    def _passed(self, at: Attempt, gate: Gate) -> object:
        """Return what a gate passes on; Refusal if it refuses: nobody is asked."""
        verdict = gate.judge(at)
        review = gate.review(at, verdict)
        if verdict["outcome"] == "refuse":
            self._say(at, chain([gate_refused(review.gate, review.data, review.lines)], gate.alerts(verdict)))
            raise Refusal(refusal_text(review))
        passed = gate.end(at, verdict)
        self._say(at, chain(warnings_of(review, verdict), gate.alerts(verdict)))
        return passed

    def _send(self, request: Request[ReplyT]) -> ReplyT:
        return handle(self._placed(request))

    def _placed(self, request: RequestT) -> RequestT:
        """Return a request with the address of its engine."""
        if isinstance(request, OnEngine):
            return replace(request, address=self.addresses.get(request.engine, ""))
        return request

    def _failed(self, at: Attempt, error: Exception) -> None:
        if not isinstance(error, Refusal):
            data = f"snapshot {self.run.snapshot} in {self.flow.dag}" if self.run.snapshot else self.flow.dag
            self._say(at, [task_failed(at.task, data, error)])
        log_error(at.task, at.number, error, final=True)
        with harmless("ledger", "why the run ended was not recorded"):
            record_failure(self.run, at.dataset, at.task, error)

    def _say(self, at: Attempt, alerts: Iterable[Alert]) -> None:
        """Log alerts of one moment, unless the run has said them; never raise."""
        with harmless("alert", "it could not be sent"):
            message = Message(Origin(self.flow.dag, at.run_id, at.task, clears=MORE), tuple(alerts), runbook())
            if message.alerts and note_message(self.run.root, message):
                log_message(message)


def _refine(at: Attempt, given: Given) -> RefineReply:
    """Refine a part, or the whole of what a stage reads; a part that ends its process is refined alone."""
    part = given["part"][0] if isinstance(given["part"], list) else given["part"]
    request = work.refine_request(at, given["stage"], given["step"], given["landed"], part)
    try:
        reply = at.send(request)
    except Exception as error:
        if not is_one_of_many(part) or pause_after(error, at.number) is not None:
            raise
        reply = without_poison(request, part, error, at.send)
    work.log_refined(at, given["stage"], part, reply)
    return reply


def _seal(at: Attempt, given: Given) -> RefineReply:
    parts, refined = given["parts_in"], given["refined"]
    request = work.refine_request(at, given["stage"], given["step"], given["landed"], work.whole_of(parts[0]))
    return work.seal(at, work.seal_request(request, parts, refined), parts, refined)


def _as_stored(value: object) -> object:
    """Return a value as Airflow passes it from task to task: through JSON."""
    return json.loads(json.dumps(value))


WORK: Mapping[str, Callable[[Attempt, Given], Any]] = {
    "land": lambda at, given: work.land(at, fields=given["fields"], next_cut=given["next_cut"]),
    "compose": lambda at, given: work.compose(at, versions=given["versions"], next_cut=given["next_cut"]),
    "refine": _refine,
    "seal": _seal,
    "publish": lambda at, given: work.publish(at, **given),
    "export": lambda at, given: work.export(at, **given),
    "register": lambda at, given: work.register(at, **given),
    "index": lambda at, given: work.index(at, **given),
}
"""What the tasks do that are no gates."""

GATES: Mapping[str, Callable[[Given], Gate]] = {
    "judge": lambda given: StageGate(**given),
    "judge_snapshot": lambda given: SnapshotGate(**given),
    "judge_recipe": lambda given: RecipeGate(**given),
}
