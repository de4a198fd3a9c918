"""Seconds until `refinery run` answers, as a newcomer meets it: refusals, one document, and the demo's first day.

    python benchmarks/first_contact.py [--times 3] [--only NAME] [--json]

Each command is a process of its own, into a root that is not there yet. `cold` is after the files of Python, of the
installed packages and of Refinery were dropped from the page cache (`posix_fadvise`; what another process has mapped
stays); `warm` is the same command once more. `first_stage_s` is until the line of `land`, behind which the first stage
runs. `cpu_s` is processor time of the process and of those that it waited for. Loops are compiled before, as by the
installation; with `--compile` one document also runs with none. Medians of `--times`; the load says how quiet it was.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.demo.show import SNAPSHOTS, recipe_of
from pipeline_tasks.shipped import PACKAGE, numba_folder

TEXT = """The ferry left the harbor at six, before the fog had lifted from the water. Nobody on the pier waited for it.

An old man who sold newspapers said that he had seen every crossing since the war, and that the boat had been late only
twice: once when the captain slept, and once when a whale lay in the channel. Children did not believe him, but they
asked for the story whenever it rained.

Behind the warehouses the town wakes later. Bakers carry trays over the street, a dog follows them as far as the bridge,
and the first tram rings its bell although the rails are empty. By eight the square is full. People who have lived here
for a long time know which stall has the best apples, and they never tell a stranger.
"""

STARTED = " land "
"""What the line of the last task before the first stage has."""


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the words of each command behind `refinery run`; what they read is written to a folder."""
    (folder / "one").mkdir()
    (folder / "one" / "a.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    write_crawl(folder / "crawl", SNAPSHOTS)
    day = str(folder / "crawl" / next(iter(SNAPSHOTS)))
    one, local = ["--input", str(folder / "one")], ["--engine", "local"]
    return {
        "wrong path": ["--input", str(folder / "nowhere")],
        "wrong recipe": [*one, "--recipe", "wbe"],
        "wrong field": [*one, "--text-field", "bdoy"],
        "one document": [*one, *local, "--no-build"],
        "demo day": ["--input", day, "--recipe", recipe_of(folder), *local],
    }


def drop_caches() -> None:
    """Drop the files of Python, of the installed packages and of Refinery from the page cache, as far as may be."""
    for place in {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), str(PACKAGE.parent), numba_folder()}:
        for file in Path(place).rglob("*"):
            if file.is_file() and not file.is_symlink():
                handle = os.open(file, os.O_RDONLY)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(handle)


def timed(words: Sequence[str], home: Path, compiled: str) -> dict[str, float]:
    """Run a command in a home and root of its own; return its seconds, those to the first stage, and its exit code."""
    env = {**os.environ, "REFINERY_HOME": str(home / "home"), "NUMBA_CACHE_DIR": compiled}
    command = [sys.executable, "-m", "pipeline_tasks.cli", "run", *words, "--output", str(home / "root")]
    before, began, first = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic(), 0.0
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for line in process.stdout or ():
            first = first or (time.monotonic() - began if STARTED in line else 0.0)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "first_stage_s": first, "cpu_s": cpu, "code": process.returncode}


def measured(words: Sequence[str], times: int, compiled: str = "", *, cold: bool) -> dict[str, float]:
    """Return the medians of a command's runs."""
    runs = []
    for _ in range(times):
        if cold:
            drop_caches()
        with tempfile.TemporaryDirectory(prefix="refinery-contact-") as home:
            runs.append(timed(words, Path(home), compiled or numba_folder()))
    return {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}


def facts_of(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return what was measured, by command, cold and warm."""
    facts: dict[str, Any] = {"load": os.getloadavg()[0], "cores": os.cpu_count()}
    for name, words in commands(folder).items():
        if options.only in ("", name):
            measured(words, 1, cold=False)  # bytecode and models are written once, at installation
            facts[name] = {
                "cold": measured(words, options.times, cold=True),
                "warm": measured(words, options.times, cold=False),
            }
    if options.compile:
        one = ["--input", str(folder / "one"), "--engine", "local", "--no-build"]
        facts["one document, no loop compiled"] = {"cold": measured(one, 1, str(folder / "empty"), cold=True)}
    return {**facts, "load_after": os.getloadavg()[0]}


def main() -> None:
    """Print a row per command; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="refinery-contact-"))
    try:
        facts = facts_of(options, folder)
    finally:
        shutil.rmtree(folder)
    for name, rows in facts.items():
        for state, row in rows.items() if isinstance(rows, dict) else [("", rows)]:
            print(f"{name:<32}{state:<6}{row}")
    if options.json:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
