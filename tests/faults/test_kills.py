"""The whole command is killed at random moments: nothing of it stays, and its rerun ends as if nothing had happened.

A moment is what is in the root when the signal is sent, and no time: on a busy machine, too, the run is at work.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.archives import response, zipped
from tests.dags.test_run import page
from tests.embedded import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

SHORT = 1
"""How many runs are killed in the short form."""

KILLS = int(os.environ.get("REFINERY_KILLS", "40"))
"""How many runs are killed in the long form."""

SEED = 9
SIGNALS = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
ENGINES = ("local", "spark", "local", "ray")
LAST = 0.8
"""The latest moment of a kill, as the share of a run's objects that are in the root: what is left takes seconds."""

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
  filter_url: {}
  dedup_exact: {}
run: {partitions: 2}
"""

BUILD = """
name: small_corpus
versions: {{recipe: small}}
stages:
  tokenize: {{tokenizer: {tokenizer}, eos: "<|end|>"}}
  select: {{}}
  shuffle: {{}}
  pack: {{length: 64}}
"""

SECONDS = 30.0
"""Within which everything that a killed run started must be gone; it is a bound against hanging, and not a promise."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The input of all runs, their recipes, their TMPDIR, and of the run that nobody disturbed its digests and objects."""

    crawl: Path
    recipe: Path
    build: Path
    place: Path
    digests: Mapping[str, str]
    objects: int


def start(runs: Runs, root: Path, engine: str, output: Path) -> "subprocess.Popen[str]":
    """Start a run; what it prints goes to a file, where it can be read while it runs."""
    command = [sys.executable, "-m", "pipeline_tasks.cli", "run", "--input", str(runs.crawl), "--output", str(root)]
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    env = keep | {"PYTHONPATH": str(PROJECT), "TMPDIR": str(runs.place)}
    with output.open("w") as printed:
        return subprocess.Popen(
            [*command, "--recipe", str(runs.recipe), "--build", str(runs.build), "--engine", engine],
            env=env,
            cwd=PROJECT,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
        )


def objects(root: Path) -> int:
    """How many shards, manifests and verdicts are in a root; they are the same on every engine."""
    folders = ("data", "rejects", "quarantine", "partitions", "history")
    names = ("manifest.json", "verdict.json")
    found = [(Path(folder).name, file) for folder, _, files in os.walk(root) for file in files]
    return len([file for folder, file in found if folder in folders or file in names])


def wait_for(process: "subprocess.Popen[str]", root: Path, output: Path, share: float, runs: Runs) -> str:
    """Wait until a share of a run's objects is in its root, below 0 until it has printed a line; return what was seen."""
    least = int(share * runs.objects)
    while process.poll() is None:
        seen, printed = objects(root), output.stat().st_size
        if seen >= least and printed:
            return f"{seen} of {runs.objects} objects"
        time.sleep(0.01)
    return "the end"


def digests(root: Path) -> dict[str, str]:
    """SHA-256 of every manifest, verdict, version and published file but the report, which is not only data."""
    kinds = ("manifest.json", "verdict.json", "dataset.json", "build.json", "tokenizer.json")
    paths = [path for path in sorted(root.rglob("*")) if path.name in kinds or path.parent.name == "shards"]
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
    recipe, build = crawl.parent / "small.yaml", crawl.parent / "small_corpus.yaml"
    recipe.write_text(RECIPE)
    build.write_text(BUILD.format(tokenizer=bytes_alone(crawl.parent)))
    quiet = Runs(crawl, recipe, build, tmp_path_factory.mktemp("tmp"), {}, 0)
    root = crawl.parent / "quiet"
    process = start(quiet, root, ENGINES[0], crawl.parent / "printed")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    wait_until_nothing_is_left(quiet)
    undisturbed = digests(root)
    assert any(path.endswith(".bin") for path in undisturbed)
    return replace(quiet, digests=undisturbed, objects=objects(root))


EVERY_KILL = [pytest.param(kill, marks=pytest.mark.nightly if kill >= SHORT else ()) for kill in range(KILLS)]


@pytest.mark.parametrize("kill", EVERY_KILL)
def test_a_command_killed_at_a_random_moment_leaves_nothing_and_its_rerun_is_byte_identical(
    runs: Runs, kill: int, tmp_path: Path
) -> None:
    chance = random.Random(f"{SEED}-{kill}")
    engine, sign = ENGINES[kill % len(ENGINES)], SIGNALS[kill % len(SIGNALS)]
    root, output = tmp_path / "root", tmp_path / "printed"
    process = start(runs, root, engine, output)
    earliest, latest = ((-0.2, LAST / 2), (LAST / 2, LAST))[kill % 2]
    seen = wait_for(process, root, output, chance.uniform(earliest, latest), runs)
    process.send_signal(sign)
    _, errors = process.communicate()
    print(f"kill {kill}: {engine}, {sign.name} at {seen}, exit {process.returncode}")
    assert process.returncode in (-sign, 128 + sign), f"{seen}: {errors}"
    if process.returncode == 128 + sign:
        assert errors == "refinery: stopped; finished work is kept, and the same command continues from there\n"
    assert not (root / "datasets" / "small_corpus").exists(), "it was killed before it published its dataset"
    wait_until_nothing_is_left(runs)
    again = start(runs, root, engine, output)
    _, errors = again.communicate()
    assert again.returncode == 0, errors
    assert digests(root) == runs.digests
    wait_until_nothing_is_left(runs)
