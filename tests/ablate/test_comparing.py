"""The requests of the DAG that compares recipes do what the command does, in the same folder."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refinery_ablate.commands import ablate
from refinery_ablate.comparison import VERDICT
from refinery_ablate.job import jobs_of, read_plan

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, GateRefused, RecipeError
from pipeline_tasks.publish.logs.ablation_log import ablations
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.wire import decode
from tests.ablate import planted
from tests.chain import reply


def asked(verb: str, folder: Path, root: Path, **fields: Any) -> dict[str, Any]:
    root.mkdir(exist_ok=True)
    return reply(verb, root=str(root), folder=str(folder), **fields)


@pytest.mark.parametrize("shift", [-0.05, 0.05])
def test_requests_say_what_the_command_says(
    own: tuple[str, str], sets: str, tmp_path: Path, shift: float, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, root = tmp_path / "to", tmp_path / "also"
    planned = asked("plan_ablation", folder, root, datasets=own, held_out=[sets], size="15m")
    plan = read_plan(folder)
    assert planned["runs"] == [job.name for job in jobs_of(plan) if job.arm == 0]
    planted.put_results(folder, plan, shift)
    forecast = asked("forecast_ablation", folder, root, usd_per_hour=100.0)
    assert forecast["runs"] == [job.name for job in jobs_of(plan) if job.arm == 1]
    judged = asked("judge_ablation", folder, root)
    said, verdict = [*forecast["lines"], *judged["lines"]], (folder / VERDICT).read_bytes()
    command = ["ablate", "--datasets", ",".join(own), "--held-out", sets, "--size", "15m", "--to", str(folder)]
    assert main([*command, "--usd-per-hour", "100", "--record", str(root)]) == 0
    printed = capsys.readouterr()
    assert set(said) == {*printed.out.splitlines(), *printed.err.splitlines()}
    assert (folder / VERDICT).read_bytes() == verdict
    assert [(entry.number, entry.outcome) for entry in ablations(str(root))] == [(judged["number"], judged["outcome"])]


def test_a_verdict_that_is_not_what_is_required_is_recorded_and_refused(
    own: tuple[str, str], sets: str, tmp_path: Path
) -> None:
    folder, root = tmp_path / "to", tmp_path / "also"
    required = {"require": "not-worse"}
    asked("plan_ablation", folder, root, datasets=own, held_out=[sets], size="15m", **required)
    planted.put_results(folder, read_plan(folder), 0.05)
    with pytest.raises(GateRefused, match="worse"):
        asked("judge_ablation", folder, root, **required)
    assert [entry.override for entry in ablations(str(root))] == [""]
    assert asked("judge_ablation", folder, root, **required, override="Ada: it is lawful")["number"] == 2
    assert ablations(str(root))[1].override == "Ada: it is lawful"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"recipes": ["web"]},
        {"recipes": ["web", "web"], "inputs": ["day"]},
        {"recipes": ["web", "web_en"]},
        {"recipes": ["web", "web_en"], "datasets": ["r/a@1", "r/b@1"]},
        {"recipes": ["web", "none_such"], "inputs": ["day"]},
        {"datasets": ["r/a@1", "r/b@1"], "size": "huge"},
        {"datasets": ["r/a@1", "r/b@1"], "seeds": 1},
        {"datasets": ["r/a@1", "r/b@1"], "held_out": ["none.jsonl"]},
        {"datasets": ["r/a@1", "r/b@1"], "require": "not-worse"},
        {"datasets": ["r/a@1", "r/b@1"], "override": "nobody"},
        {"datasets": ["r/a@1", "r/b@1"], "folder": "to"},
        {"datasets": ["r/a@1", "r/b@1"], "folder": "/proc/to"},
        {"datasets": ["r/a@1", "r/b@1"], "root": "/none"},
    ],
)
def test_what_makes_no_sense_is_refused_before_an_arm_is_made(
    sets: str, tmp_path: Path, fields: dict[str, Any]
) -> None:
    given = {"verb": "plan_ablation", "root": str(tmp_path), "folder": str(tmp_path / "to"), "held_out": [sets]}
    with pytest.raises(RecipeError):
        handle(decode(given | fields))
    assert not list(tmp_path.glob("to/*"))


def test_a_worker_that_has_not_the_folder_names_it(tmp_path: Path) -> None:
    for verb in ("forecast_ablation", "judge_ablation"):
        with pytest.raises(ContractError, match=f"{tmp_path}/to/"):
            asked(verb, tmp_path / "to", tmp_path)


def test_what_is_recorded_is_json(own: tuple[str, str], sets: str, tmp_path: Path) -> None:
    reply = asked("plan_ablation", tmp_path / "to", tmp_path, datasets=own, held_out=[sets])
    assert json.loads(json.dumps(reply)) == reply


def test_the_command_does_the_tasks_of_the_flow_and_trains_no_run_twice(
    own: tuple[str, str], sets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of the first arm, what they let expect, those of the second; without torch, whose results are planted."""
    folder, results = tmp_path / "to", tmp_path / "results"

    def trained(_: Path, name: str, say: Callable[[str], None]) -> None:
        if not results.exists():
            planted.put_results(shutil.copytree(folder, results), read_plan(folder), 0.05)
        shutil.copytree(results / name, folder / name)
        say(name)

    monkeypatch.setattr(ablate, "require_torch", lambda: None)
    monkeypatch.setattr(ablate, "run_job", trained)
    command = ["ablate", "--datasets", ",".join(own), "--held-out", sets, "--size", "15m", "--to", str(folder)]
    assert main(command) == 0
    first = capsys.readouterr()
    names = [job.name for job in jobs_of(read_plan(folder))]
    said = first.err.splitlines()
    assert [line for line in said if line in names] == names
    assert said[len(names) // 2].startswith("noise of seeds")
    assert main(command) == 0
    again = capsys.readouterr()
    assert (again.out, [line for line in again.err.splitlines() if line in names]) == (first.out, [])
