"""The whole command is killed at random instants: nothing of it stays, and its rerun ends as if nothing had happened."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from pipeline_tasks.embedded.airflow_home import PROJECT
from tests.archives import response, zipped
from tests.dags.test_run import page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

KILLS = int(os.environ.get("REFINERY_KILLS", "4"))
"""How many runs are killed; 40 for a release."""

SEED = 9
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ENGINES = ("local", "spark", "local", "ray")

RECIPE = """
name: small
stages:
  ingest: {{}}
  extract: {{method: resiliparse, min_chars: 20}}
  filter_url: {{}}
  dedup_exact: {{}}
  tokenize: {{tokenizer: {tokenizer}, eos: "<|end|>"}}
  shuffle: {{}}
  pack: {{length: 64}}
run: {{partitions: 2}}
"""

SECONDS = 30.0
"""Within which everything that a killed run started must be gone; it is a bound against hanging, and not a promise."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The input of all runs, their recipe, their TMPDIR, and the digests of the run that nobody disturbed."""

    crawl: Path
    recipe: Path
    place: Path
    digests: Mapping[str, str]
    seconds: Mapping[str, float]


def start(runs: Runs, root: Path, engine: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "pipeline_tasks.cli", "run", "--input", str(runs.crawl), "--output", str(root)]
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    env = keep | {"PYTHONPATH": str(PROJECT), "TMPDIR": str(runs.place)}
    return subprocess.Popen(
        [*command, "--recipe", str(runs.recipe), "--engine", engine],
        env=env,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def digests(root: Path) -> dict[str, str]:
    """SHA-256 of every manifest, verdict, version and published file but the report, which is not only data."""
    kinds = ("manifest.json", "verdict.json", "lineage.parquet", "tokens.bin", "tokens.json", "tokenizer.json")
    paths = [path for path in sorted(root.rglob("*")) if path.name in kinds or path.name.startswith("tokens.")]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def left_behind(runs: Runs) -> list[str]:
    """The processes of this input's runs, and the temporary files of all runs."""
    mine = [process for process in psutil.process_iter() if belongs(process, runs)]
    files = [path for path in runs.place.rglob("*") if path.is_file() and path.name != "runs.lock"]
    return [*map(str, mine), *map(str, files)]


def belongs(process: psutil.Process, runs: Runs) -> bool:
    try:
        words = [*process.cmdline(), process.environ().get("TMPDIR", "")]
        return process.status() != psutil.STATUS_ZOMBIE and any(str(runs.place) in word for word in words)
    except psutil.Error:
        return False


def wait_until_nothing_is_left(runs: Runs) -> None:
    deadline = time.monotonic() + SECONDS
    while (left := left_behind(runs)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def bytes_alone(folder: Path) -> Path:
    """The file of a tokenizer whose tokens are bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=257, special_tokens=["<|end|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator([], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    crawl = tmp_path_factory.mktemp("crawl") / "2026-11-19"
    crawl.mkdir()
    for name, numbers in (("a", range(20)), ("b", range(20, 40))):
        records = [response(f"https://{name}.example.org/{number}", page(number)) for number in numbers]
        (crawl / f"{name}.warc.gz").write_bytes(b"".join(zipped(records)))
    recipe = crawl.parent / "small.yaml"
    recipe.write_text(RECIPE.format(tokenizer=bytes_alone(crawl.parent)))
    quiet = Runs(crawl, recipe, tmp_path_factory.mktemp("tmp"), {}, {})
    roots, seconds = {}, {}
    for name in ("compiles", *dict.fromkeys(ENGINES[:KILLS])):  # the first run compiles kernels
        engine = name if name in ENGINES else ENGINES[0]
        begun, roots[engine] = time.monotonic(), crawl.parent / name
        process = start(quiet, roots[engine], engine)
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        wait_until_nothing_is_left(quiet)
        seconds[engine] = time.monotonic() - begun
    undisturbed = [digests(root) for root in roots.values()]
    assert all(digest == undisturbed[0] for digest in undisturbed)
    assert any("tokens" in path for path in undisturbed[0])
    return Runs(crawl, recipe, quiet.place, undisturbed[0], seconds)


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_command_killed_at_a_random_instant_leaves_nothing_and_its_rerun_is_byte_identical(
    runs: Runs, kill: int, tmp_path: Path
) -> None:
    chance = random.Random(f"{SEED}-{kill}")
    engine, sign = ENGINES[kill % len(ENGINES)], SIGNALS[kill % len(SIGNALS)]
    process = start(runs, tmp_path / "root", engine)
    moment = chance.uniform(0.05, 1.0) * runs.seconds[engine]
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(sign)
    output, errors = process.communicate()
    print(
        f"kill {kill}: {engine}, {sign.name} after {moment:.1f} s, exit {process.returncode}, {len(output.splitlines())} lines"
    )
    assert process.returncode in (0, -sign, 128 + sign), errors
    if process.returncode == 128 + sign:
        assert errors == "refinery: stopped; finished work is kept, and the same command continues from there\n"
    wait_until_nothing_is_left(runs)
    again = start(runs, tmp_path / "root", engine)
    _, errors = again.communicate()
    assert again.returncode == 0, errors
    assert digests(tmp_path / "root") == runs.digests
    wait_until_nothing_is_left(runs)
