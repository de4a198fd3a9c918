"""Models are trained to the byte, also after kills, and tell a planted fault."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from refinery_ablate.attribution import attribute
from refinery_ablate.comparison import Wanted, prepare
from refinery_ablate.job import RESULT, Plan, jobs_of, unfinished
from refinery_ablate.running import run_jobs

from pipeline_tasks.cli.main import main
from tests.ablate import planted

torch = pytest.importorskip("torch", reason="needs torch: make models-test")

RUN = """
import os, signal, sys
from pathlib import Path
import torch
from refinery_ablate import training_run
from refinery_ablate.running import run_jobs

left, keep = int(sys.argv[2]), training_run._keep

def kept(*of):
    global left
    left -= 1
    if left == 0 and sys.argv[3] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    keep(*of)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

training_run.KEPT_AFTER, training_run._keep = 0.0, kept
run_jobs(Path(sys.argv[1]), 0, 1, print)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arms of 700 texts: whole, and with each planted fault."""
    folder = tmp_path_factory.mktemp("arms")
    for fault in (planted.whole, planted.shuffled, planted.boilerplate, planted.repeated):
        planted.arm(folder, fault.__name__, fault(planted.texts(700, 1), random.Random(5)))
    planted.held_out(folder, 100)
    return folder


def arm_of(folder: Path, name: str) -> str:
    return f"{folder}/{name}/root/corpus@1"


def prepared(folder: Path, to: Path, seeds: int = 2) -> Plan:
    arms = (arm_of(folder, "whole"), arm_of(folder, "shuffled"))
    sets = (str(folder / "held-out.jsonl"),)
    return prepare(Wanted(arms, sets, tokens=40_000, seeds=seeds, rates=(4e-3,), threads=1), to)


def models_in(to: Path, plan: Plan) -> dict[str, str]:
    return {job.name: json.loads((to / job.name / RESULT).read_bytes())["model"] for job in jobs_of(plan)}


def started(to: Path, states: int = 0, when: str = "after") -> "subprocess.Popen[bytes]":
    """Start the runs of a plan; the process is killed before or after it keeps that many states, and never for 0."""
    return subprocess.Popen([sys.executable, "-c", RUN, str(to), str(states), when], stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_runs_that_are_killed_end_with_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    """Only this kills a training run: states, the place in the data and results have to survive it."""
    plan = prepared(folder, tmp_path / "calm")
    assert started(tmp_path / "calm").wait() == 0
    calm = models_in(tmp_path / "calm", plan)
    assert len(set(calm.values())) == 4
    prepared(folder, tmp_path / "killed")
    draws, kills = random.Random(3), 0
    while unfinished(tmp_path / "killed", plan):
        halt = draws.randrange(1, plan.steps) if kills < 4 else 0
        run = started(tmp_path / "killed", halt, ("before", "after")[kills % 2])
        kills += run.wait() == -signal.SIGKILL
    assert kills == 4
    assert models_in(tmp_path / "killed", plan) == calm
    results = [
        [json.loads((tmp_path / name / job.name / RESULT).read_bytes())["bits"] for job in jobs_of(plan)]
        for name in ("calm", "killed")
    ]
    assert results[0] == results[1]


@pytest.mark.slow
def test_stages_are_compared_with_the_same_runs_of_the_whole_recipe(folder: Path, tmp_path: Path) -> None:
    """Only this trains more than two arms: an arm for each stage, named by its letter, after those of the recipe."""
    arms = tuple(arm_of(folder, name) for name in ("whole", "shuffled", "boilerplate"))
    sets = (str(folder / "held-out.jsonl"),)
    plan = prepare(Wanted(arms, sets, tokens=8_000, seeds=2, rates=(4e-3,), threads=1), tmp_path)
    said: list[str] = []
    run_jobs(tmp_path, 0, 1, said.append)
    assert [line[0] for line in said] == ["a", "a", "b", "b", "c", "c"]
    found = attribute(tmp_path, ["one", "two"])
    assert [each.stage for each in found.stages] == ["one", "two"]
    assert len(set(models_in(tmp_path, plan).values())) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    ["shuffled", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("boilerplate", "repeated"))],
)
def test_a_planted_fault_is_found(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str) -> None:
    """Only this goes from two datasets to a verdict by training: the command as a person gives it."""
    command = [
        "ablate",
        "--datasets",
        f"{arm_of(folder, 'whole')},{arm_of(folder, fault)}",
        "--seeds",
        "3",
        "--threads",
        "1",
    ]
    command += [
        "--held-out",
        str(folder / "held-out.jsonl"),
        "--to",
        str(tmp_path / "to"),
        "--rates",
        "0.004",
        "--json",
    ]
    command += ["--tokens", "120000"]
    assert main(command) == 0
    printed = capsys.readouterr()
    verdict = json.loads(printed.out)
    assert verdict["outcome"] == "worse"
    (found,) = verdict["differences"].values()
    assert found["low"] > 0
    assert "seeds show differences from" in printed.err
