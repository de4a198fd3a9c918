"""Nothing compiles while a recipe runs: `loop_calls.json` has every call of a loop from Python."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.embedded import PROJECT


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1800)  # a cold cache, on a busy machine
def test_no_stage_compiles_a_loop(tmp_path: Path) -> None:
    env = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "pipeline_tasks.demo.loop_calls", "--check"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("refinery-")] == []
