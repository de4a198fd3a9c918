"""The plain loop does the tasks of a flow as Airflow does: order, values, parts, tries, pauses, and what is recorded."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import ClusterUnreachable, ContractError, KernelFailed, StorageBusy
from pipeline_tasks.flow import loop, poison
from pipeline_tasks.flow.attempt import Attempt, Run
from pipeline_tasks.flow.plan import Flow, Given, Output, Task, refine_flow
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.service.alone import Died
from tests.chain import command
from tests.pauses import slept

DAY = "2026-11-20"

DEFECT, DEATH = ValueError("of a kernel"), Died("signal 9")

FLOW = Flow(
    "refine",
    "web",
    (
        Task("sense", "sense"),
        Task("cut", "cut", after=("sense",)),
        Task("stage.work", "work", {"settled": 7}, {"landed": Output("cut", "landed"), "part": Output("cut")}, "part"),
        Task("stage.gather", "gather", inputs={"all": {"stage": Output("stage.work")}}),
    ),
)
"""Three tasks of which the second is mapped, behind one that waits."""

WITHOUT_AIRFLOW = """
import json, sys
from pipeline_tasks.cli.main import main
code = main(sys.argv[1:])
print("IMPORTED", json.dumps([code, sorted({"airflow"} & set(sys.modules))]))
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run("/landing", str(tmp_path / "root"), DAY, 0, {}, {}, 0, 0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that a loop would have slept."""
    return slept(monkeypatch, loop)


def given_of(monkeypatch: pytest.MonkeyPatch, run: Run, errors: Sequence[BaseException] = ()) -> list[Any]:
    """Follow the flow, whose second part raises `errors`, one for each try; return what each task was given."""
    left, given = list(errors), list[Any]()

    def cut(at: Attempt, inputs: Given) -> list[dict[str, str]]:
        at.push("landed", {"sizes": (1, 2), **inputs})
        return [{"name": name} for name in ("a", "b")]

    def work(at: Attempt, inputs: Given) -> dict[str, Any]:
        given.append((at.task, at.index, at.number, dict(inputs)))
        if inputs["part"]["name"] == "b" and left:
            raise left.pop(0)
        return {"done": inputs["part"]["name"]}

    def gather(at: Attempt, inputs: Given) -> None:
        given.append((at.task, at.index, at.number, dict(inputs)))

    monkeypatch.setattr(loop, "WORK", {"cut": cut, "work": work, "gather": gather})
    loop.follow(FLOW, run, {})
    return given


def test_code_that_ends_the_process_is_an_error_and_no_success(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    with pytest.raises(ContractError, match=r"stage.work: its code ended the process \(exit code 0\)"):
        given_of(monkeypatch, run, [SystemExit(0)])


def test_parts_are_done_in_order_and_values_have_the_form_in_which_airflow_passes_them(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    landed = {"sizes": [1, 2]}
    assert given_of(monkeypatch, run) == [
        ("stage.work", 0, 1, {"settled": 7, "landed": landed, "part": {"name": "a"}}),
        ("stage.work", 1, 1, {"settled": 7, "landed": landed, "part": {"name": "b"}}),
        ("stage.gather", -1, 1, {"all": {"stage": [{"done": "a"}, {"done": "b"}]}}),
    ]


@pytest.mark.parametrize(
    ("errors", "slept"),
    [
        ([StorageBusy("503")] * 3, [15.0, 30.0, 60.0]),
        ([RuntimeError("lost"), StorageBusy("503")], [15.0, 30.0]),
        ([ClusterUnreachable("nothing answers")] * 2, [5.0, 5.0]),
    ],
)
def test_what_may_pass_is_tried_again_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, run: Run, pauses: list[float], errors: list[Exception], slept: list[float]
) -> None:
    tries = [
        number for task, index, number, _ in given_of(monkeypatch, run, errors) if (task, index) == ("stage.work", 1)
    ]
    assert (tries, pauses) == ([*range(1, len(errors) + 2)], slept)


@pytest.mark.parametrize(
    ("error", "tries"),
    [(ContractError("a row is lost"), 1), (TypeError("a defect"), 1), (KernelFailed("x"), 1), (StorageBusy("503"), 4)],
)
def test_the_last_error_ends_the_run_is_recorded_and_said(
    monkeypatch: pytest.MonkeyPatch, run: Run, pauses: list[float], error: Exception, tries: int
) -> None:
    with pytest.raises(type(error)) as raised:
        given_of(monkeypatch, run, [error] * 4)
    assert raised.value is error
    assert len(pauses) == tries - 1
    with Ledger.open(ledger_of(run.root)) as ledger:
        [row] = ledger.query("failures", recipe="web", snapshot=DAY)
    assert (row["stage"], row["task"], row["error"]) == ("stage", "stage.work", type(error).__name__)
    [said] = Path(run.root, "alerts").iterdir()
    assert f"The task stage.work of snapshot {DAY} in refine failed" in said.read_text()


def test_a_part_that_ends_its_process_alone_too_is_quarantined_and_a_whole_stage_is_not(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    sent = []

    def handle(request: Any) -> Any:
        sent.append(request.verb)
        if request.verb == "refine":
            raise DEFECT
        counts = {"rejected": {}, "quarantined": {"partition": 4}, "ran": 0, "reused": 0}
        return {"manifest": "extract/2f/manifest.json", "rows_in": 4, "rows": 0, "wall": 0.0, **counts}

    def dies(_request: Any) -> Any:
        raise DEATH

    monkeypatch.setattr(poison, "refine_alone", dies)
    [task] = [task for task in refine_flow(load_recipe("web")).tasks if task.name == "extract.partition"]
    at = Attempt(run, "r", "web", task.name, handle, lambda _key, _value: None, index=1)
    part = {"manifest": "ingest/2f/manifest.json", "span": [1, 2], "name": "part-1", "of": 3, "verdict": ""}
    given = {**task.settings, "landed": {"earlier": "", "landing": "/landing"}}
    reply = loop.WORK["refine"](at, {**given, "part": part})
    assert (reply["poison"], sent) == ([{"name": "part-1", "error": "signal 9"}], ["refine", "quarantine"])
    for whole in ({**part, "of": 1}, {**part, "span": None}):
        with pytest.raises(ValueError, match="of a kernel"):
            loop.WORK["refine"](replace(at, index=-1), {**given, "part": whole})


@pytest.mark.slow
def test_a_run_imports_no_airflow(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    rows = [{"text": f"The ferry number {number} leaves the harbor every morning. " * 9} for number in range(9)]
    (tmp_path / "day" / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "small.yaml").write_text("name: small\nstages: {ingest: {}, extract: {}, dedup_exact: {}}\n")
    places = ["--input", str(tmp_path / "day"), "--output", str(tmp_path / "root")]
    recipe = ["--recipe", str(tmp_path / "small.yaml"), "--engine", "local"]
    done = command("-c", WITHOUT_AIRFLOW, "run", *places, *recipe)
    assert json.loads(done.stdout.partition("IMPORTED ")[2]) == [0, []], done.stderr
    assert "building dataset small_corpus" in done.stdout
