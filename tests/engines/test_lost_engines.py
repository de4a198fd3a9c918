"""An engine that its cluster has stopped is started again, and the process that had it is replaced."""

import threading
from pathlib import Path

import pytest
from refinery_ray import ray as ray_engine
from refinery_spark.spark import session

from pipeline_tasks.engines.choose import engine, lives
from pipeline_tasks.recipe import engine_names
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.service.dispatch import Dispatcher
from pipeline_tasks.service.requests.wire import Wire, encode
from tests.cluster.containers import wait_until
from tests.refining import commit_parent, refined, rows
from tests.toys import table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toys")]

TABLES = [table(0, 30), table(30, 30)]


def stop_spark(address: str) -> None:
    """Stop the context as a cluster does: in the JVM, and Python is not told."""
    session(address).sparkContext._jsc.sc().stop()


def test_every_engine_says_whether_it_lives() -> None:
    assert all(lives(name) for name in engine_names())


def test_a_context_that_was_stopped_is_not_used_again(spark: str, tmp_path: Path) -> None:
    """Only this stops a context behind Python's back: 15 s, as Spark starts once more."""
    stage = "toy_group"
    here, there = tmp_path / "here", tmp_path / "there"
    _, expected = refined(here, stage, commit_parent(here, TABLES))
    stop_spark(spark)
    assert not lives("spark")
    done = refine(RefineRequest(str(there), stage, {}, commit_parent(there, TABLES)), engine("spark", spark))
    assert rows(there, done.manifest).equals(rows(here, expected))
    assert lives("spark")


def test_a_context_that_is_stopped_under_a_stage_ends_its_process(spark: str, tmp_path: Path) -> None:
    marker, dispatcher = tmp_path / "marker", Dispatcher()
    session(spark)
    params = {"how": "hang", "marker": str(marker)}
    hanging = RefineRequest(str(tmp_path), "toy_bad", params, commit_parent(tmp_path, TABLES))
    replies: list[Wire] = []

    def ask() -> None:
        replies.append(dispatcher.reply({**encode(hanging), "engine": "spark", "address": spark}, "job"))

    asking = threading.Thread(target=ask)
    asking.start()
    for _ in wait_until("the kernel hangs", 120, each=0.1):
        if marker.exists():
            break
    stop_spark(spark)
    asking.join(120)
    assert [reply["error"] for reply in replies] == ["JobLost"]
    assert dispatcher.spoiled.is_set()


@pytest.mark.nightly
def test_a_ray_that_was_left_is_connected_to_again(ray: str, tmp_path: Path) -> None:
    """Only this loses the connection of a process to Ray: 20 s, as Ray starts twice."""
    ray_engine.connect(ray)
    import ray as library

    library.shutdown()
    assert not lives("ray")
    done = refine(RefineRequest(str(tmp_path), "toy_map", {}, commit_parent(tmp_path, TABLES)), engine("ray", ray))
    assert done.manifest.rows
    assert lives("ray")
