"""Refines a snapshot from landing to published version in one process, and measures every step.

    python benchmarks/whole_run.py --input SNAPSHOT --root ROOT [--engine local|spark|ray] [--cores 2] [--recipe web]

The requests are those that the DAG sends, gates and publication included, without Airflow between them. The whole
process has `cores` processors and no more. Before, a small crawl is refined in the same way: kernels are then compiled,
imports done and the engine started, as they are in the worker daemon. A tokenizer is trained on whatever there is, and
gates that refuse are overridden. The last line is one JSON object: for each step its seconds of wall clock and of
processor time (of the engine's tasks, and of all processes), and its rows and bytes. On `local`, whose tasks run in
this process, also how often it asked the store for something (each is a request where the store is S3), and how many
bytes it shuffled. `trained` is the bytes of text that the tokenizer was trained on.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any

import processes

from pipeline_tasks.engines import choose
from pipeline_tasks.publish.datasets.tokenizer_pin import read_pin
from pipeline_tasks.recipe import LAND, LOCAL, PUBLISH, Recipe, engine_names, load_recipe
from pipeline_tasks.run.request import RefineRequest, Request
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.wire import Wire
from pipeline_tasks.stages.tokenize import STAGE as TOKENIZE
from pipeline_tasks.store.local_store import LocalStore
from tests.course import Course

STEPS = {"land": LAND, "history": LAND, "judge": "gates", "judge_snapshot": "gates", "publish": PUBLISH}
"""The step that a request belongs to which refines nothing, by its verb."""

ASKING = ("open", "create", "put_file", "put_scratch", "size", "stamp", "list", "delete_many")
"""Methods of a store that are a request each where it is S3; others call them, and long lists and files have more."""


class Asked:
    """Counts what this process asks local stores for, and the bytes of pieces that are shuffled."""

    def __init__(self) -> None:
        self.requests = self.shuffled = 0
        for name in ASKING:
            setattr(LocalStore, name, self._counting(getattr(LocalStore, name)))

    def _counting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def counted(store: LocalStore, path: str, *rest: Any, **named: Any) -> Any:  # noqa: ANN401 -- as the method
            self.requests += 1
            if method.__name__ == "put_scratch":
                self.shuffled += rest[0].stat().st_size
            return method(store, path, *rest, **named)

        return counted


@dataclass(frozen=True, slots=True)
class Step:
    """What one step took: `tasks` is the processor time of the engine's tasks, `cpu` that of all processes."""

    name: str
    wall: float
    cpu: float
    tasks: float = 0.0
    rows_in: int = 0
    rows: int = 0
    bytes: int = 0
    requests: int = 0
    shuffled: int = 0


@dataclass(slots=True)
class Run:
    """A run of a recipe over one snapshot: where it runs, and what its steps took."""

    root: str
    snapshot: str
    recipe: Recipe
    engine: str
    address: str = ""
    steps: list[Step] = field(default_factory=list)
    asked: Asked | None = None

    def send(self, request: Request[Any]) -> Wire:
        """Handle a request, and measure it; return the reply."""
        wall, cpu, asked = time.perf_counter(), processes.processor_seconds(), self._asked()
        reply: Wire = handle(request)
        seconds = time.perf_counter() - wall
        cost = {"tasks": reply["cpu"]} if "cpu" in reply else {}
        rows = {key: int(reply[key]) for key in ("rows_in", "rows", "bytes") if key in reply}
        store = {name: count - asked[name] for name, count in self._asked().items()}
        self.steps.append(Step(step_of(request), seconds, processes.processor_seconds() - cpu, **cost, **rows, **store))
        return reply

    def _asked(self) -> dict[str, int]:
        if self.asked is None or self.engine != LOCAL:
            return {}
        return {"requests": self.asked.requests, "shuffled": self.asked.shuffled}

    def refine(self, uri: str, until: str = "") -> None:
        """Land the snapshot at `uri`, refine it, judge every stage, and publish a version (not if `until` a stage)."""
        names = [step.stage for step in self.recipe.steps]
        steps = self.recipe.steps[: names.index(until) + 1 if until else None]
        recipe = replace(
            self.recipe, steps=tuple(replace(step, params=params_of(step.stage, step.params)) for step in steps)
        )
        why = dict.fromkeys([*names, PUBLISH], "a benchmark")
        course = Course(self.root, recipe, self.send, self.engine, self.address, override=why)
        begun = course.landed(uri, self.snapshot)
        made = course.stages(begun)
        if not until:
            course.publish(begun, made)

    def facts(self) -> dict[str, Any]:
        """Return the steps by name, those of one name added up, and their total."""
        names = list(dict.fromkeys(step.name for step in self.steps))
        return {"steps": {name: added(name, self.steps) for name in names}, "total": added("total", self.steps)}


def step_of(request: Request[Any]) -> str:
    """Return the step that a request belongs to."""
    return request.stage if isinstance(request, RefineRequest) else STEPS[request.verb]


def added(name: str, steps: list[Step]) -> dict[str, float]:
    """Return the sum of the steps of a name; `total` is all of them."""
    chosen = [asdict(step) for step in steps if name in (step.name, "total")]
    return {key: round(sum(step[key] for step in chosen), 3) for key in chosen[0] if key != "name"}


def params_of(stage: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stage's params; a tokenizer is trained on however little text there is."""
    if stage == TOKENIZE.name and "train" in params:
        return {**params, "train": {**params["train"], "min_bytes": 0}}
    return dict(params)


def warm_up(recipe: Recipe, engine: str, address: str) -> float:
    """Refine a small crawl of the demo; return the seconds."""
    from pipeline_tasks.demo.crawl import write_crawl

    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="refinery-bench-") as name:
        write_crawl(Path(name, "crawl"), scale=0.1)
        Run(f"{name}/root", "2026-11-19", recipe, engine, address).refine(f"{name}/crawl/2026-11-19")
    return time.perf_counter() - started


def main() -> None:
    """Run, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--engine", default=LOCAL, choices=engine_names())
    parser.add_argument("--cores", default=1, type=int)
    parser.add_argument("--first", default=0, type=int, help="the first of its processors")
    parser.add_argument("--recipe", default="web")
    parser.add_argument("--until", default="", help="the last stage; nothing is published then")
    options = parser.parse_args()
    os.sched_setaffinity(0, range(options.first, options.first + options.cores))
    address = f"local[{options.cores}]" if options.engine == "spark" else ""  # the others take what the process may use
    recipe = load_recipe(options.recipe)
    with redirect_stdout(sys.stderr):
        run = Run(options.root, Path(options.input).name, recipe, options.engine, address, asked=Asked())
        start_up = warm_up(recipe, options.engine, address)
        load, waited = os.getloadavg()[0], processes.pressure()
        run.refine(str(Path(options.input).absolute()), options.until)
    pin = read_pin(options.root, recipe.name)
    facts = run.facts() | {"trained": pin.bytes if pin else 0, "start_up": round(start_up, 1)}
    facts |= {"load": [load, os.getloadavg()[0]]}
    choose.stop_all()
    print(json.dumps(facts | {"waited": round(processes.pressure() - waited, 1)}))


if __name__ == "__main__":
    main()
