"""Runs the `refine` DAG in this process, with progress on the screen."""

import atexit
import importlib
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from pipeline_tasks.binding import shown
from pipeline_tasks.constraints import SnapshotName
from pipeline_tasks.embedded import airflow_home
from pipeline_tasks.embedded.machine import named
from pipeline_tasks.embedded.progress import Progress, Stopped, open_log, redirected_output
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.gate.checks import check_bounds, check_overrides, gate_names
from pipeline_tasks.landing.folder import refuse_overlap
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.recipe_faults import check_recipe
from pipeline_tasks.store.storage import require_folder, require_usable


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `refinery run`: `recipe` is a name or a path; `override` maps gates to why they may pass."""

    input: str
    root: str
    snapshot: str = ""
    recipe: str = "web"
    partitions: int = 0
    engine: str = ""
    override: Mapping[str, str] = field(default_factory=dict)


def run(options: RunOptions, *, json_summary: bool = False) -> int:
    """Refine one snapshot by the same DAG that Airflow runs; return the exit code of `errors`. Ctrl-C is raised."""
    recipe = load_recipe(options.recipe)
    check_bounds(recipe)
    check_recipe(recipe)
    check_overrides(options.override, gate_names(recipe))
    name = recipe.name
    require_folder(options.root)
    require_usable(absolute(options.root))
    params = _dag_params(options)
    log = open_log()
    with redirected_output(log, 2 if json_summary else 1) as out:
        out.write(f"refining {params['input']} as snapshot {params['snapshot']} by recipe {name} into {options.root}\n")
        out.flush()
        progress = Progress(out)
        try:
            failed = _run_dag(options.recipe, params, progress)
        except KeyboardInterrupt as error:
            failed, progress.error = True, error
    if isinstance(progress.error, KeyboardInterrupt):
        raise progress.error
    if failed or not progress.published:
        return _explain(progress.error, Path(log.name))
    _summarize(progress, params, recipe=name, as_json=json_summary)
    return 0


def _dag_params(options: RunOptions) -> dict[str, Any]:
    """Return the DAG's params. An incomplete snapshot is refused here, and not after Airflow's retries."""
    landing, root = absolute(options.input), absolute(options.root)
    refuse_overlap(root, landing)
    _require_name(options.snapshot)
    snapshot = list_snapshot(landing, options.snapshot).snapshot
    _require_name(snapshot)
    return {
        "input": landing,
        "root": root,
        "snapshot": snapshot,
        "partitions": options.partitions,
        "engines": {"*": options.engine} if options.engine else {},
        "override": dict(options.override),
        "patience": 0,
    }


def _require_name(snapshot: str) -> None:
    """Raise RecipeError for a name of a snapshot that every request would refuse; "" is the default."""
    _, word = get_args(SnapshotName)
    if snapshot and not word.admits(snapshot):
        message = f"--snapshot must be {word}, not {shown(snapshot)}"
        raise RecipeError(message)


def absolute(uri: str) -> str:
    """Return a URI without a trailing slash, or a local path made absolute."""
    return uri.rstrip("/") if "://" in uri else str(Path(uri).absolute())


@lru_cache(maxsize=1)
def _enter_airflow_home() -> None:
    """Give this process an Airflow home of its own, which is removed at exit."""
    home = Path(tempfile.mkdtemp(prefix="refinery-airflow-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    settings = {
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "REFINERY_LAUNCH_HERE": "1",
    }
    os.environ.update(airflow_home.fresh(home) | settings)
    for folder in reversed(os.environ["PYTHONPATH"].split(os.pathsep)):
        if folder not in sys.path:
            sys.path.insert(0, folder)


def _run_dag(recipe: str, params: Mapping[str, Any], progress: Progress) -> bool:
    """Run the DAG of a recipe with `dag.test()`; return whether it failed."""
    os.environ["REFINERY_RECIPE"] = str(Path(recipe).absolute()) if recipe.endswith((".yaml", ".yml")) else recipe
    _enter_airflow_home()
    sys.path.insert(0, str(airflow_home.PROJECT / "dags"))
    try:
        refine = importlib.reload(importlib.import_module("refine"))
    finally:
        sys.path.pop(0)
    dag = refine.wire(load_recipe(recipe))
    logger = logging.getLogger("refinery")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(progress)
    try:
        return str(dag.test(run_conf=dict(params)).state) != "success"
    except Stopped:
        return True
    finally:
        logger.removeHandler(progress)


def _explain(error: BaseException | None, log: Path) -> int:
    """Print why a run failed; return its exit code."""
    refusal = named(error)
    if refusal is not None:
        sys.stderr.write(f"refinery: {refusal}\n")
        return refusal.exit_code
    kind = type(error).__name__ if error else "the run did not finish"
    sys.stderr.write(f"refinery: {kind}: {error}; the whole log: {log}\n")
    return RefineryError.exit_code


def _summarize(progress: Progress, params: Mapping[str, Any], *, recipe: str, as_json: bool) -> None:
    seconds = round(time.monotonic() - progress.started, 1)
    published = progress.published
    if as_json:
        about = {"recipe": recipe, "snapshot": params["snapshot"], "root": params["root"], "seconds": seconds}
        sys.stdout.write(json.dumps({**about, **published, "stages": progress.stages}, sort_keys=True) + "\n")
        return
    sys.stdout.write(
        f"done in {seconds} s: version {published['version']}, {published['documents']:,} documents, "
        f"{published['tokens']:,} tokens\n"
        f"  dataset {params['root']}/{published['prefix']}\n  report  {params['root']}/{published['report']}\n"
    )
