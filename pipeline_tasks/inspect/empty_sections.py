"""Finds stages of a recipe whose section is empty: what that means, before a run and by lint."""

from collections.abc import Iterator

from pipeline_tasks.cards import stage_card
from pipeline_tasks.recipe import Recipe
from pipeline_tasks.run.recipe_faults import Finding


def empty_sections(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note per stage whose section is empty, which decides more than one may think."""
    for step in recipe.steps:
        empty = stage_card(step.stage).empty
        if empty and not step.params:
            yield Finding(fault=False, where=step.stage, message=f"`{step.stage}: {{}}` means {empty}")
