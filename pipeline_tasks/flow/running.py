"""Refines a snapshot, or builds a dataset, in this process, with progress on the screen.

The tasks are those of Airflow's DAGs, done by the plain loop. Where the environment asks for another runner
(`run.runners`), that does them.
"""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from pipeline_tasks.binding import shown
from pipeline_tasks.cards import copies_of, stage_names
from pipeline_tasks.constraints import SNAPSHOT_NAME
from pipeline_tasks.counted import counted
from pipeline_tasks.engines import early_start
from pipeline_tasks.errors import GateRefused, RecipeError, RefineryError
from pipeline_tasks.flow.progress import Progress, open_log, redirected_output
from pipeline_tasks.flow.summary import summary_lines
from pipeline_tasks.gate.checks import check_overrides, gate_names
from pipeline_tasks.inspect import preflight
from pipeline_tasks.inspect.preflight import PlannedRun
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import (
    Recipe,
    default_build,
    fields_of,
    load_build,
    load_recipe,
    trial_of,
)
from pipeline_tasks.run import runners
from pipeline_tasks.run.loops import ensure_compiled
from pipeline_tasks.run.machine import named
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.shipped import python_path
from pipeline_tasks.store.storage import absolute, require_root


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `refinery run`: `recipe` is a name or a path; `override` maps gates to why they may pass.

    `sample` is the share of the landed bytes that a trial reads; 1 for a run that publishes into the dataset. A whole
    run ends with a build, unless `builds` is False: by the recipe `build`, a name or a path, or "" for the default one.
    `text_field` is the name of the text in JSON lines and tables; "" for that of the recipe.
    """

    input: str
    root: str
    snapshot: str = ""
    recipe: str = "web"
    partitions: int = 0
    engine: str = ""
    override: Mapping[str, str] = field(default_factory=dict)
    sample: float = 1.0
    build: str = ""
    builds: bool = True
    text_field: str = ""

    @property
    def ends_with_build(self) -> bool:
        """Whether what is published is built from: not what a trial keeps."""
        return self.builds and self.sample == 1


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The options of `refinery build`: `recipe` is a name or a path; `override` maps gates to why they may pass."""

    root: str
    recipe: str = "corpus"
    partitions: int = 0
    engine: str = ""
    override: Mapping[str, str] = field(default_factory=dict)


def build(options: BuildOptions, *, json_summary: bool = False) -> int:
    """Build a training dataset by the tasks that Airflow runs; return the exit code of `errors`."""
    recipe = load_build(options.recipe)
    _, found = preflight.tried(preflight.RECIPE, lambda: check_overrides(options.override, gate_names(recipe)))
    _, no_root = preflight.tried(preflight.STORE, lambda: require_root(options.root))
    root, engines = absolute(options.root), _engines(options.engine)
    planned = PlannedRun(root, (recipe,), engines=engines, elsewhere=early_start.maybe_clusters())
    _say(preflight.findings(planned, [*found, *no_root]))
    facts, code = _built(recipe, options, json_summary=json_summary)
    if not code and json_summary:
        sys.stdout.write(json.dumps(facts, sort_keys=True) + "\n")
    return code


def _built(recipe: Recipe, options: BuildOptions, *, json_summary: bool) -> tuple[dict[str, Any], int]:
    """Build by a recipe that was checked, and print the summary unless it is JSON; return its facts and the code."""
    params = {
        "root": absolute(options.root),
        "partitions": options.partitions,
        "engines": _engines(options.engine),
        "override": dict(options.override),
        "approval": 0,
    }
    title = f"building dataset {recipe.name} in {options.root}"
    progress, code = _progress(recipe, options.recipe, params, title, json_summary=json_summary)
    if not code and not json_summary:
        _summarize(progress, params, recipe.name)
    return ({} if code else _facts(progress, params, recipe.name)), code


def run(options: RunOptions, *, json_summary: bool = False) -> int:
    """Refine one snapshot, and build from it, by the tasks that Airflow runs; return the exit code of `errors`.

    A trial is not built from. Ctrl-C is raised.
    """
    recipe, building, found = _recipes(options)
    planned = _planned(options, recipe, building)
    _say(preflight.findings(planned, found))
    assert recipe
    params = _dag_params(options, planned) | {"override": _overrides(options, recipe)}
    name = recipe.name if options.sample == 1 else trial_of(recipe.name)
    what = "refining" if options.sample == 1 else f"trying {options.sample:.2%} of"
    title = f"{what} {params['input']} as snapshot {params['snapshot']} by recipe {name} into {options.root}"
    progress, code = _progress(recipe, options.recipe, params, title, json_summary=json_summary)
    if code:
        return code
    facts = _facts(progress, params, name)
    if not json_summary:
        _summarize(progress, params, name)
    if building and facts["documents"]:
        how = BuildOptions(
            root=options.root,
            recipe=options.build or building.name,
            partitions=options.partitions,
            engine=options.engine,
            override=_overrides(options, building),
        )
        facts["build"], code = _built(building, how, json_summary=json_summary)
    elif options.ends_with_build and not json_summary:
        sys.stdout.write(f"  no build  {_idle(recipe) or 'the version has no documents'}\n")
    if json_summary:
        sys.stdout.write(json.dumps(facts, sort_keys=True) + "\n")
    return code


def _recipes(options: RunOptions) -> tuple[Recipe | None, Recipe | None, list[Finding]]:
    """Return the recipe of a run, that of the build that it ends with (None for none), and what is wrong with them."""
    recipe, found = preflight.tried(preflight.RECIPE, lambda: load_recipe(options.recipe))
    if recipe is None:
        return None, None, found
    building, other = preflight.tried(preflight.RECIPE, lambda: _building(recipe, options))
    names = [*gate_names(recipe), *(gate_names(building) if building else ())]
    wrong = [] if other else preflight.tried(preflight.RECIPE, lambda: check_overrides(options.override, names))[1]
    _, unnamed = preflight.tried(preflight.INPUT, lambda: _require_name(options.snapshot))
    return recipe, building, [*other, *wrong, *unnamed]


def _planned(options: RunOptions, recipe: Recipe | None, building: Recipe | None) -> PlannedRun:
    return PlannedRun(
        root=absolute(options.root),
        recipes=tuple(filter(None, (recipe, building))),
        input=absolute(options.input),
        snapshot=options.snapshot,
        fields=fields_of(recipe.fields, options.text_field) if recipe else None,
        engines=_engines(options.engine),
        elsewhere=early_start.maybe_clusters(),
        sample=options.sample,
    )


def _say(found: Sequence[Finding]) -> None:
    """Raise the error of what is wrong; print what may be."""
    preflight.refuse(found)
    for finding in found:
        sys.stderr.write(f"refinery: note: {finding.message}\n")


def _building(recipe: Recipe, options: RunOptions) -> Recipe | None:
    """Return the recipe of the build that a run ends with, None for none.

    RecipeError if one is named that cannot be made of what the run publishes.
    """
    idle = _idle(recipe)
    if not options.ends_with_build or (idle and not options.build):
        return None
    building = load_build(options.build) if options.build else default_build(recipe.name)
    if building.versions and building.versions.recipe != recipe.name:
        message = (
            f"recipe {building.name} builds from versions of {building.versions.recipe}, and the run publishes one of "
            f"{recipe.name}; name a recipe with `versions: {{recipe: {recipe.name}}}`, or none with --no-build"
        )
        raise RecipeError(message)
    if idle:
        message = f"{idle}; or end with the documents of the snapshot (--no-build)"
        raise RecipeError(message)
    return building


def _idle(recipe: Recipe) -> str:
    """Return why nothing is built from a recipe's documents, "" if it can be."""
    if any(copies_of(step.stage).equal for step in recipe.steps):
        return ""
    stages = " or ".join(name for name in stage_names() if copies_of(name).equal)
    return (
        f"recipe {recipe.name} has no {stages}, and a training dataset has each document once: put it into the recipe"
    )


def _overrides(options: RunOptions, recipe: Recipe) -> dict[str, str]:
    """Return those of the overrides that are of gates of a recipe."""
    names = gate_names(recipe)
    return {gate: reason for gate, reason in options.override.items() if gate in names}


def _progress(
    recipe: Recipe, given: str, params: Mapping[str, Any], title: str, *, json_summary: bool
) -> tuple[Progress, int]:
    """Run a recipe with progress on the screen; return what it showed, and the exit code. Ctrl-C is raised."""
    log, failure, before = open_log(), None, _newest(params["root"], recipe.name)
    with redirected_output(log, 2 if json_summary else 1) as out:
        out.write(f"{title}\n")
        out.flush()
        progress = Progress(out)
        ensure_compiled(out)
        try:
            with _shown(progress), with_variables(_paths()):
                _do(recipe, given, params)
        except Exception as error:  # noqa: BLE001 -- `_explain` says it, and its class is the exit code
            failure = error
    code = _explain(failure, Path(log.name)) if failure or not progress.published else 0
    if progress.published:
        progress.published["unchanged"] = progress.published["version"] <= before
    if isinstance(named(failure), GateRefused) and params["override"]:
        again = " ".join(f"--override {gate}={quote(reason)}" for gate, reason in params["override"].items())
        sys.stderr.write(f"refinery: this run was given {again}; give it again beside the next one\n")
    return progress, code


def _newest(root: str, recipe: str) -> int:
    """Return the number of the last version that is in a root before a run, 0 for none, or if nobody can say."""
    with contextlib.suppress(RefineryError, OSError):  # the run itself says what is wrong with the root
        return max((version.number for version in version_log.versions(root, recipe)), default=0)
    return 0


def _dag_params(options: RunOptions, planned: PlannedRun) -> dict[str, Any]:
    """Return the DAG's params."""
    snapshot = list_snapshot(planned.input, options.snapshot, planned.accept).snapshot
    _require_name(snapshot)
    return {
        "input": planned.input,
        "root": planned.root,
        "snapshot": snapshot,
        "text_field": options.text_field or None,
        "partitions": options.partitions,
        "engines": planned.engines,
        "sample": options.sample,
        "patience": 0,
        "approval": 0,
    }


def _require_name(snapshot: str) -> None:
    """Raise RecipeError for a name of a snapshot that every request would refuse; "" is the default."""
    if snapshot and not SNAPSHOT_NAME.admits(snapshot):
        message = f"--snapshot must be {SNAPSHOT_NAME}, not {shown(snapshot)}"
        raise RecipeError(message)


def _paths() -> dict[str, str]:
    """Return the variables by which processes of a run find our code and the programs of this environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {"PYTHONPATH": python_path(), "PATH": path}


@contextlib.contextmanager
def with_variables(settings: Mapping[str, str]) -> Iterator[None]:
    """Have variables of the environment, and what is on its PYTHONPATH; what else a run sets stays."""
    before = {name: os.environ[name] for name in settings if name in os.environ}
    os.environ.update(settings)
    for folder in reversed(os.environ["PYTHONPATH"].split(os.pathsep)):
        if folder and folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        yield
    finally:
        for name in settings.keys() - before.keys():
            os.environ.pop(name, None)
        os.environ.update(before)


@contextlib.contextmanager
def _shown(progress: Progress) -> Iterator[None]:
    """Show what operators log."""
    logger = logging.getLogger("refinery")
    level, propagates = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(progress)
    try:
        with progress.watching():
            yield
    finally:
        logger.removeHandler(progress)
        logger.setLevel(level)
        logger.propagate = propagates


def _do(recipe: Recipe, given: str, params: Mapping[str, Any]) -> None:
    """Do the tasks of a recipe; engines of this machine start while the rest is imported."""
    needed = early_start.engines_of(recipe, params["engines"])
    early_start.start_engines(needed - early_start.connections())
    if runner := runners.asked():
        runner.run(recipe, given, params)
    else:
        from pipeline_tasks.flow.loop import run_recipe  # with all that stages need: refusals need none of it

        run_recipe(recipe, params, early_start.addresses())


def _engines(engine: str) -> dict[str, str]:
    """Return the engines of a run by stage: one for all, or those of the recipe."""
    return {"*": engine} if engine else {}


def _explain(error: BaseException | None, log: Path) -> int:
    """Print why a run failed; return its exit code."""
    refusal = named(error)
    if refusal is not None:
        sys.stderr.write(f"refinery: {refusal}\n")
        return refusal.exit_code
    kind = type(error).__name__ if error else "the run did not finish"
    sys.stderr.write(f"refinery: {kind}: {error}; the whole log: {log}\n")
    return RefineryError.exit_code


def _facts(progress: Progress, params: Mapping[str, Any], recipe: str) -> dict[str, Any]:
    """Return what `--json` prints of a run."""
    about = {name: params[name] for name in ("snapshot", "root") if name in params}
    about |= {"recipe": recipe, "seconds": progress.seconds, "warnings": progress.warnings}
    return {**about, **progress.published, "stages": progress.stages, "s3_waits": asdict(progress.s3_waits)}


def _summarize(progress: Progress, params: Mapping[str, Any], recipe: str) -> None:
    """Print what was published, what stages removed and took, and where to look further."""
    published, waits = progress.published, progress.s3_waits
    made = [counted(published[name], name.removesuffix("s")) for name in ("documents", "tokens") if name in published]
    sys.stdout.write(f"done in {progress.seconds} s: version {published['version']}, {', '.join(made)}\n")
    if published["unchanged"]:
        again = "" if progress.ran else ", and nothing was made again"
        sys.stdout.write(f"  unchanged version {published['version']} was there already{again}\n")
    for line in summary_lines(progress.stages, progress.warnings):
        sys.stdout.write(f"  {line}\n")
    if waits.requests:
        again = counted(waits.requests, "request")
        sys.stdout.write(f"  S3 busy   {again} sent again, after {waits.seconds:.1f} s of waiting in all tasks\n")
    sys.stdout.write(f"  dataset   {params['root']}/{published.get('index', published['prefix'])}\n")
    if "index" in published:
        sys.stdout.write(f'  loader    TokenDataset("{params["root"]}/{recipe}@{published["version"]}")\n')
    if "report" in published:
        sys.stdout.write(f"  report    {params['root']}/{published['report']}\n")
        sys.stdout.write(
            f"  more      refinery look funnel {params['root']} --recipe {recipe} --snapshot {params['snapshot']}\n"
        )
