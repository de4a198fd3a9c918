"""Checks what a run needs before it runs: Python, Java, the engines' packages, a tokenizer, and the object store."""

import argparse
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version

from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.inspect.command import print_lines
from pipeline_tasks.store import storage

WRITERS = 16
ROUNDS = 10
"""A race of 16 writers, ten times: a sequential test passes on servers that let several racing writers win."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing checked: what was found, or what to do about it."""

    name: str
    ok: bool
    found: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root."""
    parser.add_argument("root", nargs="?", metavar="ROOT", default="", help="a folder or s3://bucket/prefix to check")


def answer(options: argparse.Namespace) -> int:
    """Print each check as it is done; return RecipeError's exit code if one fails."""
    failed = False
    for check in checks(options.root):
        failed |= not check.ok
        print_lines([f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<14}{check.found}"])
    return RecipeError.exit_code if failed else 0


def checks(root: str) -> Iterator[Check]:
    """Yield every check; those of storage only when a root is named."""
    yield Check("python", sys.version_info >= (3, 11), sys.version.split()[0])
    yield _java()
    yield _packages("spark", "pyspark", "pyspark-client")
    yield _packages("ray", "ray")
    yield _packages("airflow", "apache-airflow")
    yield _tokenizer()
    if root:
        yield _guarded("storage", lambda: _storage(root))
        yield _guarded("put-if-absent", lambda: _race(root))


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except RefineryError as error:
        return Check(name, ok=False, found=str(error))


def _java() -> Check:
    java = shutil.which("java")
    if java is None:
        return Check("java", ok=False, found="none; install openjdk-17-jre-headless for Spark")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    number = re.search(r'version "(\d+)', told)
    found = int(number.group(1)) if number else 0
    return Check("java", found >= 17, f"{found}" if found >= 17 else f"{found}; Spark needs 17 or newer")  # noqa: PLR2004


def _packages(name: str, *packages: str) -> Check:
    found = {package: version(package) for package in packages}
    same = len(set(found.values())) == 1
    told = ", ".join(f"{package} {number}" for package, number in found.items())
    return Check(name, same, told if same else f"{told}: versions must be equal; install requirements.txt again")


def _tokenizer() -> Check:
    import tokenizers

    blank = tokenizers.Tokenizer(tokenizers.models.BPE())
    return Check("tokenizers", blank.get_vocab_size() == 0, f"tokenizers {version('tokenizers')}")


def _storage(root: str) -> Check:
    store, name = storage.connect(root), f"doctor/{uuid.uuid4().hex}"
    made = store.create(name, b"refinery")
    same = store.read(name) == b"refinery"
    store.delete(name)
    gone = store.size(name) is None
    return Check("storage", made and same and gone, f"{store.root} can be written, read and deleted")


def _race(root: str) -> Check:
    store = storage.connect(root)
    worst = 1
    with ThreadPoolExecutor(WRITERS) as pool:
        for _ in range(ROUNDS):
            name = f"doctor/{uuid.uuid4().hex}"
            won = sum(pool.map(lambda rank, name=name: store.create(name, f"writer {rank}".encode()), range(WRITERS)))
            store.delete(name)
            worst = won if won != 1 else worst
    told = f"{ROUNDS} races of {WRITERS} writers, one winner each"
    if worst != 1:
        told = f"{worst} of {WRITERS} racing writers won: this server's If-None-Match is not safe; use another server"
    return Check("put-if-absent", worst == 1, told)
