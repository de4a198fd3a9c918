"""What models took adds up over partitions, and tells an operator what to change."""

from pathlib import Path

import pytest

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks.state_cost import NO_STATES, StateCost
from tests.refining import commit_parent
from tests.toys import table

GPU, CPU = {"edu": {"NVIDIA H200": 30}}, {"edu": {"cpu": 12, "NVIDIA H200": 3}, "clean": {"cpu": 9}}


def test_partitions_add_up() -> None:
    both = StateCost(GPU, 2, 10.0, 1.0, 6.0, 2.0, 8.0, 7.0) + StateCost(CPU, 4, 20.0, 3.0, 6.0, 0.0, 15.0, 9.0)
    rows = {"clean": {"cpu": 9}, "edu": {"NVIDIA H200": 33, "cpu": 12}}
    assert both == StateCost(rows, 4, 30.0, 4.0, 12.0, 2.0, 23.0, 16.0)
    assert both + NO_STATES == both


@pytest.mark.parametrize(
    ("cost", "advised"),
    [
        (StateCost(actors=4, held=100, idle=41, open=25, waited=2, tasks=60, model=55), ("smaller shards",)),
        (StateCost(actors=4, held=100, idle=41, open=25, waited=24, tasks=60, model=55), ("smaller shards",)),
        (StateCost(actors=4, held=100, idle=1, open=25, waited=24, tasks=99, model=90), ("more actors would",)),
        (StateCost(actors=4, held=100, idle=1, open=25, waited=2, tasks=99, model=20), ("share a GPU",)),
        (StateCost(actors=4, held=100, idle=1, open=25, waited=24, tasks=99, model=20), ("would", "share a GPU")),
        (StateCost(actors=4, held=100, idle=1, open=25, waited=24, tasks=9, model=2), ()),
        (StateCost(tasks=99, model=20), ()),
        (StateCost(actors=4, held=100, idle=1, open=25, waited=2, tasks=99, model=90), ()),
    ],
)
def test_a_line_advises_what_the_numbers_ask_for(cost: StateCost, advised: tuple[str, ...]) -> None:
    advice = ("smaller shards", "more actors would", "share a GPU")
    given = [words for words in advice if words in cost.line]
    assert len(given) == len(advised)
    assert all(words in cost.line for words in advised)
    assert f"{cost.model / cost.tasks:.0%}" in cost.line


def test_a_stage_without_models_says_nothing() -> None:
    assert NO_STATES.line == ""


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(("stage", "has_state"), [("toy_map", False), ("toy_state", True)])
def test_the_seconds_of_tasks_are_those_of_kernels_with_a_state(stage: str, has_state: bool, tmp_path: Path) -> None:
    given = {"log": str(tmp_path)} if has_state else {}
    request = RefineRequest(str(tmp_path), stage, given, commit_parent(tmp_path, [table(0, 10)]))
    states = refine(request, engine("local")).cost.states
    assert (states.tasks > 0, states.model > 0, states == NO_STATES) == (has_state, has_state, not has_state)
