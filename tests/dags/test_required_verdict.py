"""A recipe that requires a verdict has a gate before its first stage, in its DAG and in `refinery run`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline_tasks.errors import GateRefused
from pipeline_tasks.inspect.unpublished import unpublished_runs
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import BUILDS, RECIPES
from pipeline_tasks.report.summary import read_summary
from tests.airflow_server import archive_of
from tests.commands import Refinery

REQUIRES = {"verdict": "not-worse", "beside": "web"}

RECIPE = """
name: careful
requires: {verdict: not-worse}
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  dedup_exact: {buckets: 1}
run: {partitions: 1}
"""


@pytest.mark.parametrize(
    ("shipped", "dag", "before", "behind"),
    [
        (RECIPES / "web.yaml", "refine", "land", "ingest.partition"),
        (BUILDS / "corpus.yaml", "build", "compose", "tokenize.refine"),
    ],
)
def test_the_gate_is_between_what_lands_and_the_first_stage(
    parse: Callable[..., dict[str, Any]],
    parsed: dict[str, Any],
    tmp_path: Path,
    shipped: Path,
    dag: str,
    before: str,
    behind: str,
) -> None:
    own = tmp_path / "careful.yaml"
    recipe = yaml.safe_load(shipped.read_text()) | {"name": "careful", "requires": REQUIRES}
    own.write_text(yaml.safe_dump(recipe, sort_keys=False))
    careful = parse(f"{dag}.py", REFINERY_RECIPE=str(own), REFINERY_BUILD=str(own))["dags"][f"{dag}_careful"]
    tasks = {task["id"]: task for task in careful["tasks"]}
    assert "verdict_gate" in tasks[before]["downstream"]
    assert {behind, "publish"} <= set(tasks["verdict_gate"]["downstream"])
    assert (tasks["verdict_gate"]["retries"], tasks["verdict_gate"]["policy"]) == (3, True)
    assert '"verdict"' in careful["serialized"].partition('"accept"')[2], "the form offers the gate"
    others = parsed["dags"].values()
    assert "verdict_gate" not in {task["id"] for other in others for task in other["tasks"]}


@pytest.mark.slow
def test_a_run_is_refused_before_its_first_stage_and_an_override_is_part_of_its_version(
    tmp_path: Path, refinery: Refinery
) -> None:
    """Only this walks a whole run with the gate: a refusal, a trial that is not asked, and a person's override."""
    (tmp_path / "careful.yaml").write_text(RECIPE)
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.warc.gz").write_bytes(archive_of(0, 20))
    root = str(tmp_path / "root")
    command = ["run", "--input", tmp_path / "landing", "--output", root, "--recipe", tmp_path / "careful.yaml"]
    command += ["--engine", "local", "--no-build"]
    refused = refinery(*command)
    assert refused.returncode == GateRefused.exit_code
    assert "refinery ablate" in refused.stderr
    assert not Path(root, "ingest").exists()
    assert unpublished_runs(root, "careful")["landing"].stage == "verdict"

    trial = refinery(*command, "--sample", "0.9")
    assert trial.returncode == 0, trial.stderr

    passed = refinery(*command, "--override", "verdict=Ada: the source ends")
    assert passed.returncode == 0, passed.stderr
    version = version_log.current(root, "careful")
    assert version.verdicts["verdict"].startswith("land/")
    assert read_summary(root, version).overrides == {"verdict": "Ada: the source ends"}
    with Ledger.open(ledger_of(root)) as ledger:
        (overridden,) = ledger.query("overrides")
    assert (overridden["stage"], overridden["override_reason"]) == ("verdict", "Ada: the source ends")
    assert verify(root).findings.problems == []
