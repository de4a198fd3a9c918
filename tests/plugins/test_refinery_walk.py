"""Tasks are walked as Airflow runs them: order, values, parts, tries, pauses and callbacks; no database is asked."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError, StorageBusy
from tests.pauses import slept

Event = tuple[str, str, int, int]
"""A callback's name, the task, its part (-1: none) and the try."""


def recorder(events: list[Event], name: str) -> Callable[[Any], None]:
    def record(context: Any) -> None:
        task = context["ti"]
        events.append((name, task.task_id, task.map_index, task.try_number))

    return record


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that a walk would have slept."""
    from refinery_airflow.tasks import walk as refinery_walk

    return slept(monkeypatch, refinery_walk)


def wired(events: list[Event], errors: Sequence[BaseException] = ()) -> tuple[Any, list[Any]]:
    """A DAG of three tasks of which the second is mapped, and what each part was given.

    Part 1 raises `errors`, one for each try.
    """
    from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, XComArg
    from refinery_airflow.tasks.retry import RETRIES

    left, given = list(errors), []

    class Cut(BaseOperator):  # type: ignore[misc]
        def execute(self, context: Any) -> list[dict[str, Any]]:
            context["ti"].xcom_push(key="landed", value={"root": context["params"]["root"], "sizes": (1, 2)})
            return [{"name": name} for name in ("a", "b")]

    class Work(BaseOperator):  # type: ignore[misc]
        template_fields = ("landed", "part")

        def __init__(self, *, landed: Any, part: Any, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.landed, self.part = landed, part

        def execute(self, context: Any) -> dict[str, Any]:
            given.append((self.landed, self.part, context["ti"].map_index))
            if self.part["name"] == "b" and left:
                raise left.pop(0)
            return {"done": self.part["name"]}

    class Gather(BaseOperator):  # type: ignore[misc]
        template_fields = ("refined",)

        def __init__(self, *, refined: Any, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.refined = refined

        def execute(self, context: Any) -> None:  # noqa: ARG002 -- as Airflow calls it
            given.append(list(self.refined["work"]))

    names = ("on_execute_callback", "on_success_callback", "on_retry_callback", "on_failure_callback")
    callbacks = {name: [recorder(events, name.removesuffix("_callback"))] for name in names}
    with DAG("walked", schedule=None, params={"root": Param("r")}, default_args={**RETRIES, **callbacks}) as dag:
        cut = Cut(task_id="cut")
        with TaskGroup("stage"):
            landed = XComArg(cut, key="landed")
            work = Work.partial(task_id="partition", landed=landed).expand(part=cut.output)
            Gather(task_id="gather", refined={"work": work.output})
    return dag, given


def walk(dag: Any, **conf: Any) -> None:
    from refinery_airflow.tasks import walk as refinery_walk

    refinery_walk.walk(dag, conf)


def test_tasks_run_in_order_with_what_those_before_them_gave(events: list[Event]) -> None:
    dag, given = wired(events)
    walk(dag, root="s3://refined/web")
    landed = {"root": "s3://refined/web", "sizes": (1, 2)}
    assert given == [
        (landed, {"name": "a"}, 0),
        (landed, {"name": "b"}, 1),
        [{"done": "a"}, {"done": "b"}],
    ]
    order = [("cut", -1), ("stage.partition", 0), ("stage.partition", 1), ("stage.gather", -1)]
    assert events == [(name, task, part, 1) for task, part in order for name in ("on_execute", "on_success")]


def test_a_busy_store_is_tried_again_after_pauses_that_double(events: list[Event], pauses: list[float]) -> None:
    dag, given = wired(events, [StorageBusy("s3://refined is busy")] * 3)
    walk(dag)
    assert pauses == [15.0, 30.0, 60.0]
    assert [part for _, _, part in given[:-1]] == [0, 1, 1, 1, 1]
    retries = [event for event in events if event[0] == "on_retry"]
    assert retries == [("on_retry", "stage.partition", 1, number) for number in (1, 2, 3)]
    assert given[-1] == [{"done": "a"}, {"done": "b"}]


def test_the_last_error_ends_the_walk(events: list[Event], pauses: list[float]) -> None:
    last = StorageBusy("s3://refined is busy")
    dag, given = wired(events, [StorageBusy("s3://refined is busy")] * 3 + [last])
    with pytest.raises(StorageBusy) as raised:
        walk(dag)
    assert raised.value is last
    assert len(pauses) == 3
    assert events[-1] == ("on_failure", "stage.partition", 1, 4)
    assert len(given) == 5, "nothing behind it has run"


def test_a_refusal_is_not_tried_again(events: list[Event], pauses: list[float]) -> None:
    dag, _ = wired(events, [ContractError("a.warc.gz is damaged")])
    with pytest.raises(ContractError):
        walk(dag)
    assert (events[-1], pauses) == (("on_failure", "stage.partition", 1, 1), [])


def test_control_c_is_no_failure_of_a_task(events: list[Event]) -> None:
    dag, _ = wired(events, [KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        walk(dag)
    assert {name for name, *_ in events} == {"on_execute", "on_success"}


def test_params_are_checked_before_any_task(events: list[Event]) -> None:
    from airflow.sdk import Param
    from airflow.sdk.exceptions import ParamValidationError

    dag, given = wired(events)
    dag.params["share"] = Param(1, type="number", maximum=1)
    with pytest.raises(ParamValidationError):
        walk(dag, share=2)
    assert given == []


def test_pauses_have_the_bound_of_the_table(events: list[Event]) -> None:
    from refinery_airflow.tasks import walk as refinery_walk

    dag, _ = wired(events)
    task = dag.get_task("cut").prepare_for_execution()
    task.retry_delay, task.max_retry_delay = timedelta(minutes=4), timedelta(minutes=10)
    tried = refinery_walk.WalkedTask("walked", "run", "cut", -1, 3, 3, dag.start_date, "id")
    assert refinery_walk._pause(task, tried, StorageBusy("busy")) == timedelta(minutes=10)


def test_a_value_of_another_run_is_unknown() -> None:
    from airflow.sdk.execution_time.comms import ErrorResponse, GetConnection, GetXCom
    from refinery_airflow.tasks import walk as refinery_walk

    values = refinery_walk.Values()
    place = {"dag_id": "walked", "run_id": "run", "task_id": "cut"}
    assert values.send(GetXCom(key="landed", **place)).value is None
    assert isinstance(values.send(GetConnection(conn_id="aws_default")), ErrorResponse)
