"""A partition that fails every try, in `refinery run`: gates judge what is left, and a repaired run makes it whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_tasks.errors import GateRefused
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.inspect.versions.overview import overview_of
from pipeline_tasks.manifest import PARTITION
from pipeline_tasks.publish.logs import version_log
from tests.commands import Refinery
from tests.embedded import PROJECT
from tests.poison import POISON, poisoned

pytestmark = pytest.mark.slow

RECIPE = "name: part\nstages:\n  ingest: {}\n  extract: {min_chars: 20}\n  dedup_exact: {buckets: 1}\n"
FILES, PAGES, DAY = 3, 30, "2026-11-20"


def words(folder: Path, *options: str) -> list[str]:
    """Return the words of `refinery run` that refine the day."""
    places = ["--input", str(folder / DAY), "--output", str(folder / "root"), "--recipe", str(folder / "part.yaml")]
    return ["run", *places, "--engine", "local", "--partitions", str(FILES), "--no-build", *options]


def run_poisoned(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Refine the day in a process whose stage `extract` raises at one page, as do those that it starts."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    poison = poisoned(folder / "site", "raise")
    env = keep | poison | {"PYTHONPATH": os.pathsep.join([poison["PYTHONPATH"], str(PROJECT)])}
    command = [sys.executable, "-m", "pipeline_tasks.cli", *words(folder, *options)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=PROJECT)


@pytest.mark.nightly
def test_a_poison_partition_is_quarantined_and_the_gates_judge_what_is_left(tmp_path: Path, refinery: Refinery) -> None:
    (tmp_path / "part.yaml").write_text(RECIPE)
    (tmp_path / DAY).mkdir()
    for file in range(FILES):
        hosts = [POISON if (file, page) == (1, 0) else f"site-{page}.example" for page in range(PAGES)]
        pages = [{"url": f"https://{host}/{file}", "text": f"A page of {host} in file {file}. " * 9} for host in hosts]
        (tmp_path / DAY / f"{file}.jsonl").write_text("\n".join(map(json.dumps, pages)) + "\n")

    refused = run_poisoned(tmp_path)
    assert refused.returncode == GateRefused.exit_code, refused.stderr
    assert "partial_share" in refused.stderr
    assert "failed every try and is quarantined" in refused.stdout

    reason = "the file is lost"
    overrides = [word for gate in ("extract", "publish") for word in ("--override", f"{gate}={reason}")]
    partial = run_poisoned(tmp_path, "--json", *overrides)
    assert partial.returncode == 0, partial.stderr
    extract = json.loads(partial.stdout)["stages"]["extract"]
    lost = extract["quarantined"][PARTITION]
    assert lost > 0
    assert extract["rows_in"] == extract["rows"] + lost
    [state] = overview_of(str(tmp_path / "root"), "part").snapshots
    assert state.state == "partial"
    assert f"{lost} rows of extract failed with their partitions" in state.next_step

    whole = refinery(*words(tmp_path, "--json"))
    assert whole.returncode == 0, whole.stderr
    facts = json.loads(whole.stdout)
    assert facts["version"] == 2
    assert facts["documents"] == FILES * PAGES
    assert PARTITION not in facts["stages"]["extract"]["quarantined"]
    assert facts["stages"]["ingest"]["ran"] == 0, "what was done is found done"
    root = str(tmp_path / "root")
    assert overview_of(root, "part").snapshots[0].state == "published"
    assert not verify(root, Scope(full=True)).findings.problems
    assert len(version_log.versions(root, "part")) == 2
