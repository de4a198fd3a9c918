"""`refinery run`, end to end: the DAG that Airflow runs, over a small crawl.

It has a process of its own where a run succeeds; what else it does is seen in this process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_tasks.errors import BudgetExceeded, GateRefused, RecipeError, SnapshotIncomplete
from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.stages.tokenize.default import default_tokenizer
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.archives import http, response, zipped
from tests.commands import Refinery
from tests.embedded import PROJECT
from tests.faulty_s3 import FaultyS3

pytestmark = pytest.mark.slow

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  filter_url: {}
  dedup_exact: {buckets: 1}
run: {partitions: 2}
"""

REPEATED = RECIPE.replace("  dedup_exact: {buckets: 1}\n", "")
"""The same, with documents that may be there twice."""


def page(number: int) -> bytes:
    text = f"<p>The ferry number {number} leaves the harbor every morning before the fog has lifted from the water.</p>"
    return http(f"<html><body><article>{text * 4}</article></body></html>".encode())


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    folder = tmp_path / "crawl" / "2026-11-19"
    folder.mkdir(parents=True)
    for rank, name in enumerate(("a", "b", "c")):
        records = [response(f"https://{name}.example.org/{number}", page(3 * rank + number)) for number in range(3)]
        (folder / f"{name}.warc.gz").write_bytes(b"".join(zipped(records)))
    return folder


def words(tmp_path: Path, crawl: Path, *options: str, recipe: str = RECIPE) -> list[str]:
    """Return the words of `refinery run` that refine a folder by a recipe."""
    (tmp_path / "small.yaml").write_text(recipe)
    places = ["--input", str(crawl), "--output", str(tmp_path / "root"), "--recipe", str(tmp_path / "small.yaml")]
    return ["run", *places, "--engine", "local", *options]


def run(tmp_path: Path, crawl: Path, *options: str, recipe: str = RECIPE) -> "subprocess.CompletedProcess[str]":
    """Refine a folder in a process of its own."""
    command = [sys.executable, "-m", "pipeline_tasks.cli", *words(tmp_path, crawl, *options, recipe=recipe)]
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    env = keep | {"PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=PROJECT)


def test_a_snapshot_is_refined_with_progress_and_found_done_again(
    tmp_path: Path, crawl: Path, refinery: Refinery
) -> None:
    done = run(tmp_path, crawl, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert {name: (stage["rows_in"], stage["rows"]) for name, stage in summary["stages"].items()} == {
        "ingest": (9, 9),
        "extract": (9, 9),
        "filter_url": (9, 9),
        "dedup_exact": (9, 9),
    }
    assert "partition 2/2" in done.stderr
    assert "Great Expectations starts" in done.stderr
    version = version_log.current(str(tmp_path / "root"), "small")
    assert (version.number, version.snapshot) == (summary["version"], "2026-11-19")
    assert read_manifest(str(tmp_path / "root"), version.manifests["filter_url"]).rows == 9
    built = summary["build"]
    assert (built["recipe"], built["version"], built["documents"]) == ("small_corpus", 1, 9)
    assert set(built["stages"]) == {"tokenize", "select", "mix", "shuffle", "takedown", "pack"}
    dataset = version_log.current(str(tmp_path / "root"), "small_corpus")
    assert (dataset.tokens, dataset.tokenizer) == (built["tokens"], default_tokenizer().sha256)
    assert "tokenize  the dataset's tokenizer is default (" in done.stderr, "nine pages train none"

    again = refinery(*words(tmp_path, crawl, "--json"))
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["version"] == summary["version"]
    assert [stage["ran"] for stage in json.loads(again.stdout)["stages"].values()] == [0, 0, 0, 0]


def test_status_names_the_dataset_that_a_run_built(tmp_path: Path, crawl: Path, refinery: Refinery) -> None:
    assert run(tmp_path, crawl).returncode == 0
    built = version_log.current(str(tmp_path / "root"), "small_corpus")
    lines = refinery("status", tmp_path / "root").stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("dataset ")]
    assert line.startswith(f"dataset small_corpus@1: 9 documents, {built.tokens:,} tokens, {built.sequences} sequence")
    assert line.endswith(f"{tmp_path}/root/{built.prefix}")


def test_a_recipe_whose_documents_may_be_there_twice_ends_with_documents(
    tmp_path: Path, crawl: Path, refinery: Refinery
) -> None:
    """The build would fail at its end: a document of a dataset has one place. So only who names one is refused."""
    command = [*words(tmp_path, crawl, recipe=REPEATED), "--build", str(tmp_path / "own.yaml")]
    stages = "{tokenize: , select: , shuffle: , pack: }"
    (tmp_path / "own.yaml").write_text(f"name: own\nversions: {{recipe: small}}\nstages: {stages}\n")
    refused = refinery(*command)
    assert refused.returncode == RecipeError.exit_code
    assert "recipe small has no dedup_exact" in refused.stderr
    assert "--no-build" in refused.stderr
    assert not (tmp_path / "root").exists()
    done = run(tmp_path, crawl, recipe=REPEATED)
    assert done.returncode == 0, done.stderr
    assert "  no build  recipe small has no dedup_exact" in done.stdout
    assert version_log.datasets(str(tmp_path / "root")) == []


def test_a_build_of_another_recipe_is_refused_before_anything_runs(
    tmp_path: Path, crawl: Path, refinery: Refinery
) -> None:
    refused = refinery(*words(tmp_path, crawl, "--build", "corpus"))
    assert refused.returncode == RecipeError.exit_code
    assert "recipe corpus builds from versions of web, and the run publishes one of small" in refused.stderr
    assert not (tmp_path / "root").exists()


def test_a_run_says_how_much_its_store_slowed_it_down(
    tmp_path: Path, crawl: Path, s3_root: str, faults: FaultyS3, refinery: Refinery
) -> None:
    faults.coming += [("PUT", (503, "SlowDown"))] * 2 + [("GET", (503, "SlowDown"))]
    done = refinery(*words(tmp_path, crawl, "--json", "--output", s3_root))
    assert done.returncode == 0, done.stderr
    assert faults.coming == []
    waits = json.loads(done.stdout)["s3_waits"]
    assert (waits["requests"], waits["seconds"] > 0) == (3, True)
    assert "(S3 was busy: " in done.stderr
    assert version_log.current(s3_root, "small").snapshot == "2026-11-19"


def test_a_refused_gate_ends_the_run_until_a_person_says_why_it_may_pass(
    tmp_path: Path, crawl: Path, refinery: Refinery
) -> None:
    bound = "{retention: {max_value: 0.5}, needs: {}}"
    strict = RECIPE + f"gates: {{extract: {bound}, filter_url: {bound}}}\n"
    refused = refinery(*words(tmp_path, crawl, recipe=strict))
    assert refused.returncode == GateRefused.exit_code
    assert "the gate of extract refuses" in refused.stderr
    assert "the recipe's bound" in refused.stderr
    assert "override" in refused.stderr
    assert "Traceback" not in refused.stderr
    funnel = refinery("look", "funnel", tmp_path / "root").stdout.splitlines()
    assert funnel[0] == "small snapshot 2026-11-19, which is not published"
    assert funnel[-1].startswith("stopped at extract (refused ")
    given = ["--override", "extract=a crawl of one site"]
    next_one = refinery(*words(tmp_path, crawl, *given, recipe=strict))
    assert "the gate of filter_url refuses" in next_one.stderr
    assert "--override extract='a crawl of one site'" in next_one.stderr, "it is needed again"
    passed = refinery(*words(tmp_path, crawl, *given, "--override", "filter_url=the same", recipe=strict))
    assert passed.returncode == 0, passed.stderr
    assert "\n  slowest   " in passed.stdout
    assert "\n  warnings  " in passed.stdout
    assert f"refinery look funnel {tmp_path}/root --recipe small --snapshot 2026-11-19" in passed.stdout
    root = str(tmp_path / "root")
    verdict = read_verdict(root, version_log.current(root, "small").verdicts["extract"])
    assert (verdict.outcome, verdict.override) == ("warn", "a crawl of one site")


def test_a_stage_that_fails_is_named_by_the_commands_that_look_at_the_root(tmp_path: Path, refinery: Refinery) -> None:
    """The callback that Airflow calls records the error; `refinery run` calls the same."""
    day = tmp_path / "2026-11-19"
    day.mkdir()
    lines = [json.dumps({"text": f"The ferry number {number} leaves the harbor. " * 5}) for number in range(9)]
    (day / "a.jsonl").write_text("\n".join([*lines, *["{no JSON"] * 9]))
    budget = RECIPE.replace("partitions: 2", "error_budget: {share: 0.01, rows: 1}")
    failed = refinery(*words(tmp_path, day, recipe=budget))
    assert failed.returncode == BudgetExceeded.exit_code, failed.stderr
    status = refinery("status", tmp_path / "root")
    assert "not published: stopped at ingest (failed " in status.stdout
    assert "BudgetExceeded: " in status.stdout
    (day / "a.jsonl").write_text("\n".join(lines))
    done = refinery(*words(tmp_path, day, recipe=budget))
    assert done.returncode == 0, done.stderr
    assert "not published" not in refinery("status", tmp_path / "root").stdout


def test_errors_are_one_paragraph_that_says_what_to_do(tmp_path: Path, crawl: Path, refinery: Refinery) -> None:
    (crawl / "snapshot.json").write_text(
        json.dumps({"snapshot": "2026-11-19", "files": [{"path": "late.warc.gz", "bytes": 9, "sha256": "0" * 64}]})
    )
    late = refinery(*words(tmp_path, crawl, "--snapshot", "2026-11-19"))
    assert late.returncode == SnapshotIncomplete.exit_code
    [paragraph] = late.stderr.splitlines()
    assert paragraph.startswith("refinery: ")
    assert "late.warc.gz" in paragraph
    assert "Traceback" not in late.stdout


def test_a_day_is_taken_back_and_the_next_one_refined_again(tmp_path: Path, crawl: Path, refinery: Refinery) -> None:
    """The second day brings one page more; without the first, all of its pages are new again."""
    later = crawl.parent / "2026-11-20"
    later.mkdir()
    for name in ("a", "b"):
        (later / f"{name}.warc.gz").write_bytes((crawl / f"{name}.warc.gz").read_bytes())
    assert refinery(*words(tmp_path, crawl)).returncode == 0
    refused = refinery(*words(tmp_path, later))
    assert refused.returncode == GateRefused.exit_code
    assert "the gate of ingest refuses" in refused.stderr, "no stage behind it would have a row"
    allowed = [word for gate in ("ingest", "publish") for word in ("--override", f"{gate}=nothing new that day")]
    assert refinery(*words(tmp_path, later, *allowed)).returncode == 0
    root = str(tmp_path / "root")
    assert [version.documents for version in version_log.latest_by_snapshot(root, "small")] == [9, 0]
    how = ["--engine", "local", "--recipe", tmp_path / "small.yaml", "--reason", "a test"]
    taken = refinery("retract", "2026-11-19", root, *how)
    assert taken.returncode == 0, taken.stderr
    assert "2026-11-20: refined again from ingest on (now version 2)" in taken.stdout
    assert "2026-11-20: version 2 -> 4" in taken.stdout
    assert [(version.snapshot, version.documents) for version in version_log.latest_by_snapshot(root, "small")] == [
        ("2026-11-20", 6)
    ]


def lines(number: int) -> bytes:
    """Return JSON lines whose text has a name of its own."""
    text = " ".join([f"The ferry number {number} leaves the harbor every morning before the fog has lifted."] * 4)
    return json.dumps({"body": text, "link": f"https://a.example.org/{number}"}).encode() + b"\n"


def test_a_text_of_another_name_is_read_where_it_is_named_and_when_the_day_is_refined_again(
    tmp_path: Path, refinery: Refinery
) -> None:
    """The name of the text is given on the command line; that of the URL is the recipe's."""
    days = [tmp_path / "crawl" / name for name in ("2026-11-19", "2026-11-20")]
    for day, numbers in zip(days, (range(3), range(1, 5)), strict=True):
        day.mkdir(parents=True)
        (day / "a.jsonl").write_bytes(b"".join(map(lines, numbers)))
    named, root = RECIPE + "fields: {url: link}\n", str(tmp_path / "root")
    refused = refinery(*words(tmp_path, days[0], recipe=named))
    assert refused.returncode == RecipeError.exit_code
    for word in ("a.jsonl", "body, link", "--text-field"):
        assert word in refused.stderr
    assert not (tmp_path / "root").exists()
    for day in days:
        done = refinery(*words(tmp_path, day, "--text-field", "body", recipe=named))
        assert done.returncode == 0, done.stderr
    assert version_log.current(root, "small").documents == 2
    manifest = read_manifest(root, version_log.current(root, "small").manifests["filter_url"])
    urls = [url for batch in read_shards(root, manifest.shards, ["url"]) for url in batch["url"].to_pylist()]
    assert sorted(urls) == ["https://a.example.org/3", "https://a.example.org/4"]
    how = ["--engine", "local", "--recipe", tmp_path / "small.yaml", "--reason", "a test"]
    taken = refinery("retract", "2026-11-19", root, *how)
    assert taken.returncode == 0, taken.stderr
    assert version_log.current(root, "small", "2026-11-20").documents == 4


def test_a_day_that_comes_late_names_the_days_that_are_stale_now(
    tmp_path: Path, crawl: Path, refinery: Refinery
) -> None:
    earlier = crawl.parent / "2026-11-18"
    earlier.mkdir()
    (earlier / "d.warc.gz").write_bytes(b"".join(zipped([response("https://d.example.org/9", page(9))])))
    first = refinery(*words(tmp_path, crawl, "--json"))
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["stale"] == []
    late = refinery(*words(tmp_path, earlier, "--json"))
    assert late.returncode == 0, late.stderr
    assert json.loads(late.stdout)["stale"] == ["2026-11-19"]
    [line] = [line for line in late.stderr.splitlines() if "stale" in line]
    assert "2026-11-19" in line
