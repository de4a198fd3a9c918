"""Proxies are trained, find planted weights, and a search that is killed ends as one that is not."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from refinery_ablate.job import RESULT

from pipeline_tasks.cli.main import main
from tests.ablate import planted_domains as domains

torch = pytest.importorskip("torch", reason="needs torch: make models-test")

RUN = """
import sys
from refinery_ablate import training_run
from pipeline_tasks.cli.main import main

training_run.KEPT_AFTER = 0.0
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("domains")
    domains.dataset(folder)
    domains.held_out(folder)
    return folder


def command(folder: Path, to: Path, **options: object) -> list[str]:
    given = {"dataset": f"{folder}/root/corpus@1", "held-out": folder / "held-out.jsonl", "to": to}
    given |= {"prior": domains.GIVEN, "rates": "0.002", "threads": 1} | options
    return ["model", "mixture", *(part for name, value in given.items() for part in (f"--{name}", str(value)))]


@pytest.mark.slow
@pytest.mark.nightly
def test_planted_weights_are_found(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only this trains proxies to weights: half of each domain that is worth something, and nothing of the noise."""
    assert main([*command(folder, tmp_path / "to", tokens=60_000, mixtures=10), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outcome"] == "better"
    for weight in found["weights"]:
        assert abs(weight["found"] - domains.BEST[weight["name"]]) < 0.1, found["weights"]
    assert found["check"]["correlation"] > 0.5
    assert found["check"]["regret"] < 0.2


def answer_of(to: Path) -> dict[str, Any]:
    """Return what a search has found, without times."""
    found = json.loads((to / "mixture.json").read_bytes())
    models = [
        json.loads((to / f"proxy-{at:04d}" / RESULT).read_bytes()) for at in range(len(found["search"]["proxies"]))
    ]
    found["models"] = [(model["model"], model["bits"]) for model in models]
    del found["seconds"], found["noise"]["seconds"]
    return dict(found)


@pytest.mark.slow
def test_a_search_that_is_killed_finds_the_same(folder: Path, tmp_path: Path) -> None:
    """Only this kills a search, in each round: plan, states and results have to survive it."""
    changes = {"tokens": 8_192, "mixtures": 4, "seeds": 2}
    calm, killed = (command(folder, tmp_path / name, **changes) for name in ("calm", "killed"))
    assert subprocess.run([sys.executable, "-c", RUN, *calm], capture_output=True, check=False).returncode == 0
    for ended in (0, 9):
        run = subprocess.Popen([sys.executable, "-c", RUN, *killed], stderr=subprocess.DEVNULL)
        while run.poll() is None and not _is_between(tmp_path / "killed", ended):
            time.sleep(0.02)
        assert run.poll() is None, "the search ended before it was killed"
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    assert subprocess.run([sys.executable, "-c", RUN, *killed], capture_output=True, check=False).returncode == 0
    assert answer_of(tmp_path / "killed") == answer_of(tmp_path / "calm")


def _is_between(to: Path, ended: int) -> bool:
    """Say whether so many proxies have ended, and the next one has begun and kept a state."""
    begun, results = (len(list(to.glob(f"proxy-*/{name}"))) for name in ("state.safetensors", RESULT))
    return results >= ended and begun > 0
