"""Finds that a recipe requires a verdict of trained models which its root does not have."""

from collections.abc import Iterator

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.recipe.choices import choices_of
from pipeline_tasks.inspect.recipe.recipe_verdicts import Judged, standing
from pipeline_tasks.recipe import Recipe
from pipeline_tasks.run.recipe_faults import Finding

REQUIRES = "requires"


def required_verdict(recipe: Recipe, root: str) -> Iterator[Finding]:
    """Yield a note with the command that compares the recipe, unless the newest verdict in `root` is not worse.

    Nothing for a recipe that requires none. Without a root ("") the note says what is needed.
    """
    if recipe.requires is None:
        return
    if not root:
        beside = f" beside {recipe.requires.beside}" if recipe.requires.beside else ""
        message = (
            f"its first gate asks for a verdict of models{beside} that is {recipe.requires.verdict}; --root ROOT says "
            "whether there is one"
        )
        yield Finding(fault=False, where=REQUIRES, message=message)
        return
    try:
        choices = choices_of(recipe.steps)
    except RecipeError:  # a file is missing, which is a fault of its stage
        return
    stands = standing(root, Judged(recipe.name, choices, recipe.requires, builds=recipe.versions is not None))
    if not stands.passes:
        yield Finding(fault=False, where=REQUIRES, message="\n  ".join(stands.lines()))
