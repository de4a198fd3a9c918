"""`refinery run --sample`: a trial reads part of a snapshot, passes the gates, and leaves the dataset as it is."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.inspect.versions.staleness import stale_now
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from tests.airflow_server import archive_of
from tests.commands import Refinery

pytestmark = pytest.mark.slow

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  dedup_exact: {buckets: 1}
run: {partitions: 1}
"""
FILES, PAGES = 24, 9
USAGE = 2
"""The exit code of argparse."""

FIRST, SECOND = "2026-11-19", "2026-11-20"


def run(refinery: Refinery, folder: Path, day: str, *options: str) -> dict[str, Any]:
    """Refine a day; return the summary of the run, and what it has shown as `log`."""
    places = ["--input", folder / "landing" / day, "--output", folder / "root", "--recipe", folder / "small.yaml"]
    done = refinery("run", *places, "--engine", "local", "--json", *options)
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return {**summary, "log": done.stderr}


def land(folder: Path, day: str, first: int) -> None:
    landing = folder / "landing" / day
    landing.mkdir(parents=True)
    for number in range(FILES):
        (landing / f"{number}.warc.gz").write_bytes(archive_of(first + number * PAGES, PAGES))


def test_a_trial_is_judged_like_a_run_and_no_run_reads_it(tmp_path: Path, refinery: Refinery) -> None:
    """The second day repeats half of the first, so a trial of it shows what history takes away."""
    (tmp_path / "small.yaml").write_text(RECIPE)
    root = str(tmp_path / "root")
    land(tmp_path, FIRST, 0)
    land(tmp_path, SECOND, FILES * PAGES // 2)

    alone = run(refinery, tmp_path, FIRST, "--sample", "0.04")
    assert (alone["recipe"], alone["version"]) == ("small.trial", 1)
    assert alone["stages"]["ingest"]["rows_in"] == PAGES  # one file
    assert f"of {FILES} files" in alone["log"]
    assert "build" not in alone, "nothing is built of a trial"

    whole = run(refinery, tmp_path, FIRST)
    assert (whole["recipe"], whole["version"], whole["documents"]) == ("small", 1, FILES * PAGES)
    trial = run(refinery, tmp_path, SECOND, "--sample", "0.5")
    ingest = trial["stages"]["ingest"]
    assert ingest["rows_in"] == PAGES * FILES // 2
    assert 0 < ingest["rejected"]["ingest:unchanged"] < ingest["rows_in"]
    little = run(
        refinery,
        tmp_path,
        SECOND,
        "--sample",
        "0.01",
        *chain.from_iterable(("--override", f"{gate}=one file") for gate in ("ingest", "publish")),
    )
    assert little["stages"]["ingest"]["rows_in"] == PAGES  # 4 % of the day before, which refuses a whole run
    assert "rows_in" not in " ".join(little["warnings"])

    again = run(refinery, tmp_path, SECOND)
    version = version_log.current(root, "small", SECOND)
    assert version.number == again["version"] == 2
    first = version_log.current(root, "small", FIRST)
    for stage in ("ingest", "dedup_exact"):
        history = read_manifest(root, version.manifests[stage]).parents[1:]
        assert history == (read_manifest(root, first.manifests[stage]).fingerprint,)
    assert [stale_now(root, name) for name in ("small", "small.trial")] == [[], []]
    for recipe in ("", "small", "small.trial"):
        assert verify(root, Scope(recipe=recipe)).findings.problems == []
    status = refinery("status", root)
    assert "small.trial" not in status.stdout
    assert refinery("keep", "compact", root).returncode == 0
    retracted = refinery("retract", FIRST, root, "--recipe", tmp_path / "small.yaml", "--reason", "a test")
    assert retracted.returncode == 0, retracted.stderr
    vacuumed = refinery("keep", "vacuum", root, "--delete", "--grace", "0", "--limit", "1")
    assert vacuumed.returncode == 0, vacuumed.stderr
    assert verify(root).findings.problems == []


@pytest.mark.parametrize("sample", ["0", "-1", "1.01", "nan", "a"])
def test_a_sample_is_a_share_of_the_bytes(sample: str, tmp_path: Path, refinery: Refinery) -> None:
    refused = refinery("run", "--input", tmp_path, "--output", tmp_path / "root", f"--sample={sample}")
    assert refused.returncode == USAGE
    assert f"argument --sample: {sample!r}" in refused.stderr
    assert not (tmp_path / "root").exists()


def test_no_recipe_has_the_name_of_trials(tmp_path: Path, refinery: Refinery) -> None:
    recipe = tmp_path / "small.yaml"
    recipe.write_text(RECIPE)
    assert refinery("lint", recipe).returncode == 0
    recipe.write_text(RECIPE.replace("name: small", "name: small.trial"))
    refused = refinery("lint", recipe)
    assert refused.returncode == RecipeError.exit_code
    [fault] = [line for line in refused.stdout.splitlines() if line.startswith("FAULT")]
    assert f"{recipe}: " in fault
    assert ".trial" in fault.removeprefix(f"FAULT  {recipe}")
