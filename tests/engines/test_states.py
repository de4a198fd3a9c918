"""A kernel's state is loaded once per worker and serves the next shards and partitions; a worker may die of it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from refinery_ray import ray_actors
from refinery_ray.ray import connect

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import KernelFailed, MachineFailed, NoMemory, RecipeError
from pipeline_tasks.recipe import Resources
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from tests.cluster.containers import wait_until
from tests.refining import commit_parent, rows
from tests.toys import table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toys")]

TABLES = [table(start, 10) for start in range(0, 80, 10)]


@pytest.fixture(params=["local", "spark", "ray"])
def any_engine(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Every engine, and its address."""
    return request.param, "" if request.param == "local" else request.getfixturevalue(request.param)


def run(root: Path, on: tuple[str, str], params: dict[str, str], resources: Resources | None = None, **how: Any) -> Any:
    request = RefineRequest(str(root), "toy_state", params, commit_parent(root, TABLES), **how)
    return refine(request, engine(*on, *([resources] if resources else [])))


def notes(log: Path) -> tuple[Counter[str], Counter[str]]:
    """Return how often each process loaded the state, and how many rows it read."""
    loads, read = Counter[str](), Counter[str]()
    for line in (log / "notes").read_text().splitlines():
        what, process, *count = line.split()
        if what == "load":
            loads[process] += 1
        else:
            read[process] += int(count[0])
    return loads, read


def names_of_actors() -> set[str]:
    """Return the names of all actors that Ray knows, those that it starts again included."""
    from ray.util import list_named_actors

    return {entry["name"] for entry in list_named_actors(all_namespaces=True)}


def logged(tmp_path: Path, name: str) -> dict[str, str]:
    """Return params with a folder of notes of their own, by which the state has a name of its own."""
    (tmp_path / name).mkdir()
    return {"log": str(tmp_path / name)}


def test_a_worker_loads_a_state_once_for_all_shards_and_partitions(any_engine: tuple[str, str], tmp_path: Path) -> None:
    params = logged(tmp_path, "notes-of-loads")
    for span in ((0, 4), (4, 8)):
        run(tmp_path / "root", any_engine, params, span=span)
    loads, read = notes(tmp_path / "notes-of-loads")
    assert sum(read.values()) == 80
    assert set(loads.values()) == {1}
    assert set(read) <= set(loads)


def test_actors_are_at_most_as_many_as_asked_for(ray: str, tmp_path: Path) -> None:
    params = logged(tmp_path, "one")
    run(tmp_path / "root", ("ray", ray), params, Resources(actors=1))
    loads, read = notes(tmp_path / "one")
    assert (len(loads), sum(read.values())) == (1, 80)


def test_every_actor_has_a_task_before_one_has_two(ray: str, tmp_path: Path) -> None:
    """Actors start one after another; the first must not take what the others could begin with."""
    cost = run(tmp_path / "root", ("ray", ray), {**logged(tmp_path, "all"), "together": 3}, actors(3), span=(0, 3)).cost
    _, read = notes(tmp_path / "all")
    assert sorted(read.values()) == [10, 10, 10]
    assert (cost.states.actors, cost.states.waited) == (3, 0.0)


def test_who_waits_for_whom_is_counted(ray: str, tmp_path: Path) -> None:
    """Eight shards wait for one actor; of two actors one has no more to do while the other reads what is left."""
    one = run(tmp_path / "one", ("ray", ray), logged(tmp_path, "few"), actors(1)).cost.states
    two = run(tmp_path / "two", ("ray", ray), {**logged(tmp_path, "more"), "together": 2}, actors(2), span=(0, 3)).cost
    local = run(tmp_path / "local", ("local", ""), logged(tmp_path, "here")).cost.states
    assert 0 < one.waited <= one.open
    assert 0 < two.states.idle < two.states.held
    for cost in (one, two.states):
        assert cost.model <= cost.tasks <= cost.held - cost.idle + 0.001
    assert (local.actors, local.held, local.waited) == (0, 0.0, 0.0)
    assert 0 < local.model < local.tasks


def actors(most: int) -> Resources:
    return Resources(actors=most)


@pytest.mark.parametrize("fault", ["die", "CUDA error: an illegal memory access was encountered"])
def test_an_actor_that_dies_or_loses_its_gpu_changes_no_row(ray: str, fault: str, tmp_path: Path) -> None:
    expected = run(tmp_path / "calm", ("local", ""), logged(tmp_path, "calm-notes"))
    manifest = run(tmp_path / "root", ("ray", ray), {**logged(tmp_path, "killed"), "fault": fault}).manifest
    assert rows(tmp_path / "root", manifest) == rows(tmp_path / "calm", expected.manifest)
    loads, _ = notes(tmp_path / "killed")
    assert sum(loads.values()) >= 2  # whoever died has loaded, and so has its successor


@pytest.mark.parametrize(
    ("fault", "error"),
    [("CUDA error: device lost", MachineFailed), ("CUDA out of memory. Tried to allocate 2 GiB", NoMemory)],
)
def test_what_a_gpu_does_to_a_kernel_is_the_machines_fault(fault: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        run(tmp_path / "root", ("local", ""), {**logged(tmp_path, "notes"), "fault": fault})
    run(tmp_path / "root", ("local", ""), {"log": str(tmp_path / "notes"), "fault": fault})


def test_an_actor_that_nobody_calls_ends_for_good(ray: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that only exits its process is started again, for ever."""
    monkeypatch.setattr(ray_actors, "IDLE", 8.0)  # a busy machine looks for them later than 2 s
    connect(ray)
    before = names_of_actors()
    run(tmp_path / "root", ("ray", ray), logged(tmp_path, "idle"), Resources(actors=2))
    own = names_of_actors() - before
    assert len(own) == 2
    for _ in wait_until("the end of idle actors", 60):
        if not own & names_of_actors():
            break
    run(tmp_path / "other", ("ray", ray), {"log": str(tmp_path / "idle")}, Resources(actors=2))
    assert sum(notes(tmp_path / "idle")[1].values()) == 160


def test_a_defect_of_a_kernel_is_not_tried_again(ray: str, tmp_path: Path) -> None:
    params = {**logged(tmp_path, "defect"), "fault": "a defect"}
    with pytest.raises(KernelFailed):
        run(tmp_path / "root", ("ray", ray), params, Resources(actors=1))


def test_a_gpu_that_no_machine_has_is_refused_at_once(ray: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="GPU"):
        run(tmp_path / "root", ("ray", ray), logged(tmp_path, "none"), Resources(gpus=1))
