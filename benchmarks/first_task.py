"""Seconds of a fresh worker's first run and its second, with loops compiled ahead and with none.

    python benchmarks/first_task.py [--json]

A fresh process refines a small crawl of the demo twice, each into a root of its own. The first run pays what a
worker's first tasks pay: imports, reading compiled loops, models and words, or compiling them. `compile_s` is what
`refinery setup compile` takes in an empty NUMBA_CACHE_DIR. All are seconds of wall clock: compare those of one output.
"""

import argparse
import json
import os
import tempfile
import time
from typing import Any

import peers

from pipeline_tasks.recipe import LOCAL, load_recipe


def twice() -> dict[str, float]:
    """Return the seconds of two runs of this process."""
    import whole_run

    recipe = load_recipe("web")
    return {name: round(whole_run.warm_up(recipe, LOCAL, ""), 2) for name in ("first_s", "second_s")}


def compile_all() -> dict[str, float]:
    """Return the seconds that compiling ahead takes."""
    from pipeline_tasks.text.base.loop_calls import compile_ahead, recorded_calls

    started = time.perf_counter()
    compile_ahead(recorded_calls())
    return {"compile_s": round(time.perf_counter() - started, 1)}


def main() -> None:
    """Print the seconds; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", choices=("twice", "compile_all"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps({"twice": twice, "compile_all": compile_all}[options.measure]()))
        return
    facts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="refinery-first-") as name:
        os.environ["NUMBA_CACHE_DIR"] = f"{name}/compiled"
        facts |= peers.run("first_task.py", "--measure", "compile_all")
        facts["compiled"] = peers.run("first_task.py", "--measure", "twice")
        os.environ["NUMBA_CACHE_DIR"] = f"{name}/empty"
        facts["not_compiled"] = peers.run("first_task.py", "--measure", "twice")
    for key, value in facts.items():
        print(f"{key:<16}{value}")
    if options.json:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
