"""Makes the arms of a comparison of recipes: both refine the same snapshots in one root, and each builds a dataset.

Stages that both recipes have are computed once. An arm is made by `refinery run`, with its gates, in a process of its
own. Both have the tokenizer that comes with Refinery, so that bits per byte follow from the documents alone.
"""

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline_tasks.errors import RecipeError, error_of
from pipeline_tasks.recipe import VERDICT, load_recipe
from pipeline_tasks.stages.tokenize.default import default_tokenizer

LENGTH = 512
"""Tokens of a sequence of arms that are made here: a small model learns little from what is farther away."""

BUILD = """name: {dataset}
versions: {{recipe: {recipe}}}
stages:
  tokenize: {{tokenizer: {tokenizer}}}
  select: {{}}
  mix: {{by: language}}
  shuffle: {{seed: 0}}
  pack: {{method: best_fit, length: {length}}}
"""


LAST_LINES = 20
"""Most lines of the error of a run that are repeated."""

Say = Callable[[str], None]


def arms_of(
    datasets: Sequence[str], recipes: Sequence[str], inputs: Sequence[str], folder: Path, say: Say
) -> tuple[str, ...]:
    """Return the two arms of a comparison: the datasets, or those that are made by the recipes of landed snapshots.

    RecipeError for another number of them, for one twice, and as `make_arms` does.
    """
    if bool(datasets) == bool(recipes):
        message = "name two recipes, or two datasets as ROOT/NAME@VERSION, and not both"
        raise RecipeError(message)
    named = tuple(name.strip() for name in datasets or recipes)
    if len(named) != 2 or len(set(named)) != 2 or not all(named):  # noqa: PLR2004 -- arms
        message = f"{', '.join(named)}: name two that differ"
        raise RecipeError(message)
    return tuple(make_arms(named, inputs, folder, say)) if recipes else named


def make_arms(recipes: Sequence[str], inputs: Sequence[str], folder: Path, say: Say) -> list[str]:
    """Return the datasets of recipes, made from the same landed snapshots; what is made already is found.

    RecipeError without snapshots, and for two recipes with one name; what a run ends with, which it has printed.
    """
    if not inputs:
        message = "recipes refine landed snapshots; name one or more as input"
        raise RecipeError(message)
    names = [load_recipe(recipe).name for recipe in recipes]
    if len(set(names)) < len(names):
        message = f"{' and '.join(recipes)} have the same name, {names[0]}; give one of them another `name:`"
        raise RecipeError(message)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.exists():
        tokenizer.write_bytes(default_tokenizer().definition)
    return [_made(recipe, name, inputs, folder, say) for recipe, name in zip(recipes, names, strict=True)]


def _made(recipe: str, name: str, inputs: Sequence[str], folder: Path, say: Say) -> str:
    root, dataset, build = folder / "root", f"{name}_arm", folder / f"{name}_arm.yaml"
    root.mkdir(parents=True, exist_ok=True)
    build.write_text(BUILD.format(dataset=dataset, recipe=name, tokenizer=folder / "tokenizer.json", length=LENGTH))
    for landed in inputs:
        say(f"refining {landed} by {recipe}")
        command = ("run", str(root), "--input", landed, "--recipe", recipe, "--no-build")
        _run(*command, *_overrides(recipe))
    say(f"building {root}/{dataset}")
    _run("build", str(root), "--recipe", str(build))
    return f"{root}/{dataset}@latest"


def _overrides(recipe: str) -> list[str]:
    """Return the override of a verdict that the recipe requires: it is what the arm is made for."""
    return ["--override", f"{VERDICT}=it is an arm of a comparison"] if load_recipe(recipe).gates_before else []


def _run(*command: str) -> None:
    """Run a command of ours, whose errors are printed as they come; raise what it ended with, as it said it."""
    said: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(  # noqa: S603 -- our own command
        [sys.executable, "-m", "pipeline_tasks.cli", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)
            said.append(line.strip())
    if process.returncode:
        begins = max((at for at, line in enumerate(said) if line.startswith("refinery: ")), default=0)
        error = " ".join(list(said)[begins:]) or "it has printed nothing"
        message = f"refinery {' '.join(command)} ended with {process.returncode}; mend what it has printed: {error}"
        raise error_of(process.returncode)(message)
