"""The plan of a run: its tasks, what each takes from those before it, and which are mapped over partitions."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pipeline_tasks.cards import adds, stage_card
from pipeline_tasks.deployment import CATALOG, catalog_opener
from pipeline_tasks.recipe import COMPOSE, LAND, LOCAL, PUBLISH, VERDICT, Recipe, Step, Versions
from pipeline_tasks.schema import EMBEDDING

DEFAULT = "web"
"""The recipe of the DAG `refine`; that of another one has the recipe's name behind it."""

BUILD_DAG = "build_"
"""What the names of the DAGs that build begin with."""

SENSE, TURN = "sense", "turn"
"""The tasks that wait until a snapshot has landed, and for runs of earlier snapshots; `refinery run` waits for none."""

LANDED = "landed"
"""What the first task leaves beside the parts: its manifest, the folder of the files, and what is earlier."""

Cut = dict[str, Any]
"""How a stage's input is cut into partitions: its name, and how many; empty for a stage that is not mapped."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a task leaves for others: what it returns, or, with a `key`, what it leaves besides.

    That of a mapped task is the list of what its parts return.
    """

    task: str
    key: str = ""


Given = Mapping[str, Any]
"""What a task is given: its settings, and its inputs, by name."""

Inputs = Mapping[str, Output | Mapping[str, Output]]
"""What a task takes from those before it, by name: the output of one, or those of several by a name of each."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task: what it `does`, what is known of it before a run, and its `inputs` from tasks before it, by name.

    `name` has its stage before a point, if it is of one. `over` names the input over whose parts the task is mapped.
    `after` are tasks that it waits for and takes nothing from. `reaches` is the state that a version has behind it.
    """

    name: str
    does: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=dict)
    over: str = ""
    after: tuple[str, ...] = ()
    reaches: str = ""

    @property
    def stage(self) -> str:
        """The stage that it is a task of, "" for a task of the whole run."""
        return self.name.rpartition(".")[0]

    @property
    def upstream(self) -> frozenset[str]:
        """The tasks that it waits for."""
        return frozenset({*self.after, *(output.task for output in _outputs(self.inputs))})


@dataclass(frozen=True, slots=True)
class Flow:
    """Tasks, each behind all that it waits for; the name of their DAG, and of their recipe, "" for those of none."""

    dag: str
    recipe: str
    tasks: tuple[Task, ...]

    def follow(self, do: Callable[[Task, Given, int], Any], left: dict[Output, Any]) -> None:
        """Do the tasks one after the other, by a task, what it is given, and the number of its part, -1 without one.

        What each returns is `left` for those behind it, beside what `do` leaves there.
        """
        for task in self.tasks:
            given = {**task.settings, **{name: _taken(source, left) for name, source in task.inputs.items()}}
            if task.over:
                parts = enumerate(given[task.over])
                left[Output(task.name)] = [do(task, {**given, task.over: part}, index) for index, part in parts]
            else:
                left[Output(task.name)] = do(task, given, -1)


def dag_of(recipe: str) -> str:
    """Return the DAG that refines snapshots by a recipe."""
    return "refine" if recipe == DEFAULT else f"refine_{recipe}"


def flow_of(recipe: Recipe) -> Flow:
    """Return the flow of a recipe: it builds from versions, or refines a snapshot."""
    return build_flow(recipe) if recipe.versions else refine_flow(recipe)


def refine_flow(recipe: Recipe) -> Flow:
    """Return sense, turn, land, (stage, gate)*, the gate of the whole snapshot, publish, and what follows it.

    That is register where there is a catalog, and index if the recipe embeds.
    """
    cuts = cuts_of(recipe)
    first = {"fields": dict(recipe.fields), "steps": steps_of(recipe), "next_cut": cuts[0]}
    stages = _of_stages(recipe, cuts, LAND)
    whole: Inputs = {LANDED: Output(LAND, LANDED), "gates": _gates(recipe)}
    judged = Task("publish_gate", "judge_snapshot", _bounds(recipe), whole, reaches="refined")
    published: Inputs = {**whole, "judged": Output(judged.name), **_required(recipe)}
    has_vectors = any(adds(EMBEDDING, step.stage) for step in recipe.steps)
    index = [Task("index", "index", after=(PUBLISH,))] if has_vectors else []
    tasks = (
        Task(SENSE, SENSE, reaches="arrivals"),
        Task(TURN, TURN, after=(SENSE,)),
        Task(LAND, LAND, first, after=(TURN,)),
        *stages,
        judged,
        Task(PUBLISH, PUBLISH, inputs=published, reaches="documents"),
        *_register(recipe),
        *index,
    )
    return Flow(dag_of(recipe.name), recipe.name, tasks)


def build_flow(recipe: Recipe) -> Flow:
    """Return compose, (stage, gate)*, publish, export if the recipe has `exports`, and register with a catalog."""
    cuts = cuts_of(recipe)
    versions = asdict(recipe.versions or Versions(""))
    first = {"versions": versions, "steps": steps_of(recipe), "next_cut": cuts[0]}
    published: Inputs = {LANDED: Output(COMPOSE, LANDED), "gates": _gates(recipe), **_required(recipe)}
    settings = {"exports": dict(recipe.exports), "engine": recipe.engines.get("export", LOCAL)}
    exported = Task("export", "export", settings, {"published": Output(PUBLISH)})
    tasks = (
        Task(COMPOSE, COMPOSE, first),
        *_of_stages(recipe, cuts, COMPOSE),
        Task(PUBLISH, PUBLISH, {"engine": recipe.engines.get(PUBLISH, LOCAL)}, published, reaches="tokens"),
        *([exported] if recipe.exports else []),
        *_register(recipe),
    )
    return Flow(f"{BUILD_DAG}{recipe.name}", recipe.name, tasks)


def cuts_of(recipe: Recipe) -> list[Cut]:
    """Return how the input of each stage is cut."""
    return [
        {"stage": step.stage, "partitions": recipe.partitions} if stage_card(step.stage).splits else {}
        for step in recipe.steps
    ]


def steps_of(recipe: Recipe) -> list[dict[str, Any]]:
    """Return what the first task of a run looks at before the first stage: each stage, its params and its engine."""
    return [{"stage": step.stage, "params": dict(step.params), "engine": step.engine} for step in recipe.steps]


def _of_stages(recipe: Recipe, cuts: Sequence[Cut], first: str) -> Iterator[Task]:
    """Yield the tasks behind the first one: the gate of a verdict that is required, and those of each stage.

    A stage is refined, mapped where it splits, and judged by its gate, which passes the parts on.
    """
    landed, parts = Output(first, LANDED), Output(first)
    if recipe.requires is not None:
        settings = {"requires": asdict(recipe.requires), "steps": steps_of(recipe)}
        required = Task(f"{VERDICT}_gate", "judge_recipe", settings, {LANDED: landed, "parts_in": parts})
        yield required
        parts = Output(required.name)
    for step, cut, next_cut in zip(recipe.steps, cuts, [*cuts[1:], {}], strict=True):
        about = {"stage": step.stage, "step": _settings(recipe, step)}
        name = f"{step.stage}.partition" if cut else f"{step.stage}.refine"
        yield Task(name, "refine", about, {LANDED: landed, "part": parts}, over="part" if cut else "")
        if cut:
            refined, name = Output(name), f"{step.stage}.seal"
            yield Task(name, "seal", about, {LANDED: landed, "parts_in": parts, "refined": refined})
        gate = f"{step.stage}.gate"
        yield Task(gate, "judge", {**about, "next_cut": next_cut}, {LANDED: landed, "refined": Output(name)})
        parts = Output(gate)


def _settings(recipe: Recipe, step: Step) -> dict[str, Any]:
    return {
        "params": dict(step.params),
        "engine": step.engine,
        "resources": asdict(step.resources),
        "model_hours": step.model_hours,
        "error_budget": asdict(recipe.error_budget),
        "bounds": dict(recipe.gates.get(step.stage, {})),
        "alerts": asdict(recipe.alerts),
    }


def _register(recipe: Recipe) -> Iterator[Task]:
    """Yield the task that makes a version a snapshot of tables, if the recipe or the deployment names a catalog."""
    if address := recipe.catalog or os.environ.get(CATALOG):
        catalog_opener(address)  # an address of none is said before the first stage runs
        settings = {"catalog": recipe.catalog, "engine": recipe.engines.get("register", LOCAL)}
        yield Task("register", "register", settings, {"published": Output(PUBLISH)})


def _bounds(recipe: Recipe) -> dict[str, Any]:
    return {"bounds": dict(recipe.gates.get(PUBLISH, {}))}


def _gates(recipe: Recipe) -> dict[str, Output]:
    """Return what the gate of each stage passes on."""
    return {step.stage: Output(f"{step.stage}.gate") for step in recipe.steps}


def _required(recipe: Recipe) -> dict[str, Output]:
    """Return the verdict that a recipe requires, nothing for one that requires none."""
    return {"required": Output(f"{VERDICT}_gate", VERDICT)} if recipe.requires else {}


def _taken(source: Output | Mapping[str, Output], left: Mapping[Output, Any]) -> Any:  # noqa: ANN401 -- what a task has left
    return left[source] if isinstance(source, Output) else {name: left[output] for name, output in source.items()}


def _outputs(inputs: Inputs) -> Iterator[Output]:
    for given in inputs.values():
        yield from [given] if isinstance(given, Output) else given.values()
