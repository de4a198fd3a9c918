"""The first task of a run looks, in the worker daemon, for all that would end it, before it lands anything."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from pipeline_tasks.errors import ClusterUnreachable, RecipeError

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the test's own, for the daemon's socket, too; the daemon is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="first-") as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", name)
        yield Path(name)
        for process in psutil.Process().children(recursive=True):
            if process.status() != psutil.STATUS_ZOMBIE and name in " ".join(process.cmdline()):
                process.kill()
                process.wait()


def land(folder: Path, steps: list[dict[str, Any]]) -> Any:
    """Run the task `land` of a run by these stages, over a small snapshot."""
    from refinery_airflow.tasks.operators import Land

    (folder / "day").mkdir(exist_ok=True)
    (folder / "day" / "a.jsonl").write_text('{"text": "hello"}\n')
    params = {"input": str(folder / "day"), "root": str(folder / "root"), "snapshot": "day", "partitions": 0}
    context: Any = {
        "params": {**params, "engines": {}, "override": {}},
        "dag_run": None,
        "ti": SimpleNamespace(id="try1", task_id="land", run_id="r", map_index=-1, xcom_push=lambda **_: None),
    }
    return Land(task_id="land", recipe="web", fields={}, steps=steps, next_cut={}).execute(context)


def test_all_that_is_wrong_is_one_error_and_nothing_has_landed(folder: Path) -> None:
    steps = [
        {"stage": "filter_url", "params": {"domains": str(folder / "none.txt")}, "engine": "local"},
        {"stage": "extract", "params": {"min_chars": 20}, "engine": "local"},
    ]
    with pytest.raises(RecipeError, match="things to mend before the first stage") as refused:
        land(folder, steps)
    for thing in ("none.txt", "put `ingest: {}` before it"):
        assert thing in str(refused.value)
    assert not (folder / "root").exists()


def test_a_cluster_that_does_not_answer_is_found_before_the_first_stage_and_is_worth_a_retry(
    folder: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_RAY_DEFAULT", f"ray://127.0.0.1:{closed_port}")
    steps = [{"stage": "ingest", "params": {}, "engine": "ray"}]
    with pytest.raises(ClusterUnreachable, match=f"127.0.0.1:{closed_port}"):
        land(folder, steps)
    assert not (folder / "root").exists()
    [part] = land(folder, [{**steps[0], "engine": "local"}])
    assert part["manifest"].startswith("land/")
