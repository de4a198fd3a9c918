"""Makes the arms of a comparison of recipes: both refine the same snapshots in one root, and each builds a dataset.

Stages that both recipes have are computed once. An arm is made by `refinery run`, with its gates, in a process of its
own. Both have the tokenizer that comes with Refinery, so that bits per byte follow from the documents alone.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import VERDICT, load_recipe
from pipeline_tasks.stages.tokenize.default import default_tokenizer

BUILD = """name: {dataset}
versions: {{recipe: {recipe}}}
stages:
  tokenize: {{tokenizer: {tokenizer}}}
  select: {{}}
  mix: {{by: language}}
  shuffle: {{seed: 0}}
  pack: {{method: best_fit, length: {length}}}
"""


def make_arms(
    recipes: Sequence[str], inputs: Sequence[str], folder: Path, length: int, say: Callable[[str], None]
) -> list[str]:
    """Return the datasets of recipes, made from the same landed snapshots; what is made already is found.

    RecipeError if one of the runs ends with an error, which it has printed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.exists():
        tokenizer.write_bytes(default_tokenizer().definition)
    names = [load_recipe(recipe).name for recipe in recipes]
    if len(set(names)) < len(names):
        message = f"{' and '.join(recipes)} have the same name, {names[0]}; give one of them another `name:`"
        raise RecipeError(message)
    return [
        _made(recipe, name, inputs, folder, (tokenizer, length), say)
        for recipe, name in zip(recipes, names, strict=True)
    ]


def _made(
    recipe: str, name: str, inputs: Sequence[str], folder: Path, packed: tuple[Path, int], say: Callable[[str], None]
) -> str:
    root, dataset, build = folder / "root", f"{name}_arm", folder / f"{name}_arm.yaml"
    root.mkdir(parents=True, exist_ok=True)
    build.write_text(BUILD.format(dataset=dataset, recipe=name, tokenizer=packed[0], length=packed[1]))
    for landed in inputs:
        say(f"refining {landed} by {recipe}")
        command = ("run", "--input", landed, "--output", str(root), "--recipe", recipe, "--no-build")
        _run(*command, *_overrides(recipe))
    say(f"building {root}/{dataset}")
    _run("build", "--output", str(root), "--recipe", str(build))
    return f"{root}/{dataset}@latest"


def _overrides(recipe: str) -> list[str]:
    """Return the override of a verdict that the recipe requires: it is what the arm is made for."""
    return ["--override", f"{VERDICT}=it is an arm of a comparison"] if load_recipe(recipe).gates_before else []


def _run(*command: str) -> None:
    done = subprocess.run(  # noqa: S603 -- our own command
        [sys.executable, "-m", "pipeline_tasks.cli", *command], stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        message = f"refinery {' '.join(command)} ended with {done.returncode}; mend what it has printed above"
        raise RecipeError(message)
