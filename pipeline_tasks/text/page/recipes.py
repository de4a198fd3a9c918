"""Gives the text of a recipe the ingredients and steps that its page states as data, where an extractor lost them.

Pages state them for search engines (schema.org/Recipe as JSON-LD), which ask that they are what the page shows.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import accumulate
from typing import Any

from pipeline_tasks.text.page.linked_data import linked_objects

INGREDIENTS = "recipeIngredient"
"""The list of a recipe by which it is known."""

LOST = 0.5
"""Share of the stated lines below which a list is lost; some are always written another way than in the page."""

_TAG = re.compile(r"<[^<>]*>")
_BREAK = re.compile(r"(?i)\n|<br\b[^<>]*>|</(?:p|li|div)>")
_UNWRITABLE = re.compile(r"[\0-\x08\x0e-\x1b\x7f\ud800-\udfff]")
"""Controls, and halves of characters, which JSON can write and UTF-8 cannot."""

_FORM = re.compile(r"\{\{|\$\{|\bundefined\b")
"""What a page's script has not filled in."""

_NUMBER = re.compile(r"\d+\s*[.):-]\s*")
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_FEWEST = 3  # ingredients of a recipe; fewer name what it is of
_LEAST = 3  # letters of a word of an ingredient that is compared: fewer are units and numbers, which stand apart
_LONG = 3  # times the characters of an ingredient from which on a line is a step that names it
_STEP = 40  # letters and digits of a step that are compared
_TOLD = 6  # different words of a step from which on a line with two of three of them tells it
_ITEMS = 300
_LONGEST = {"ingredient": 500, "step": 5000}  # characters; a list with a longer one is none
_DEPTH = 8  # lists and sections in each other whose steps are read
_COMPARISONS = 5_000_000
"""Words of ingredients and steps times lines, above which nothing is looked for: so long a page is no recipe."""

_HEADING = 40  # characters of a line above a list that is its heading


def complete(text: str, html: str) -> str:
    """Return the text with each list of the recipe that `html` states and the text has less than half of.

    Ingredients go above the first step, and steps below the last ingredient, else to the end.
    """
    recipe = _recipe(html)
    if recipe is None:
        return text
    ingredients, steps = _ingredients(recipe), _steps(recipe)
    lines = text.split("\n")
    if len(lines) * sum(map(len, map(_WORD.findall, (*ingredients, *steps)))) > _COMPARISONS:
        return text
    ingredient_lines, step_lines = _lines_of_ingredients(lines, ingredients), _lines_of_steps(lines, steps)
    if _is_lost(ingredient_lines, ingredients):
        below = _above_heading(lines, min(step_lines, default=len(lines)))
        block = ["", *(f"- {line}" for line in ingredients), ""]
        lines[below:below] = block
        ingredient_lines = [below + len(block) - 2]
    if _is_lost(step_lines, steps):
        below = max(ingredient_lines, default=len(lines) - 1) + 1
        lines[below:below] = ["", *(f"{number}. {step}" for number, step in enumerate(steps, 1)), ""]
    return "\n".join(lines)


def _is_lost(lines: list[int], items: list[str]) -> bool:
    return len(lines) < LOST * len(items)


def _recipe(html: str) -> dict[str, Any] | None:
    """Return the recipe that a page states, None if it states none or several, as a page of search results."""
    recipes = [node for node in linked_objects(html, INGREDIENTS, strict=False) if INGREDIENTS in node]
    try:
        return recipes[0] if recipes and all(recipe == recipes[0] for recipe in recipes) else None
    except RecursionError:  # they are nested too deep to be compared
        return None


def _ingredients(recipe: dict[str, Any]) -> list[str]:
    items = recipe[INGREDIENTS]
    ingredients = _filled(_clean(items), "ingredient") if isinstance(items, list) else []
    return ingredients if len({*ingredients}) >= _FEWEST else []


def _filled(items: list[str], kind: str) -> list[str]:
    """Return the items that are no fields of a form; none of a list that is mostly such, or has one too long for it."""
    filled = [item for item in items if not _FORM.search(item)]
    return filled if 2 * len(filled) > len(items) and max(map(len, filled)) <= _LONGEST[kind] else []


def _steps(recipe: dict[str, Any]) -> list[str]:
    return _filled(_flat_steps(recipe.get("recipeInstructions")), "step")


def _flat_steps(stated: object, depth: int = _DEPTH) -> list[str]:
    """Return the steps of a text, of a list, or of nested sections (schema.org/HowToSection), without their numbers."""
    if not depth:
        return []
    if isinstance(stated, str):
        return [
            _NUMBER.sub("", step, count=1) if _NUMBER.match(step) else step
            for step in _clean(_BREAK.split(unescape(stated)))
        ]
    if isinstance(stated, list):
        return [step for part in stated for step in _flat_steps(part, depth - 1)][:_ITEMS]
    if isinstance(stated, dict):
        return _flat_steps(stated.get("itemListElement") or stated.get("text") or stated.get("name"), depth - 1)
    return []


def _clean(stated: Iterable[object]) -> list[str]:
    texts = (
        " ".join(_UNWRITABLE.sub("", _TAG.sub(" ", unescape(unescape(part)))).split())
        for part in stated
        if isinstance(part, str)
    )
    return [text for text in texts if text][:_ITEMS]


def _lines_of_ingredients(lines: list[str], ingredients: list[str]) -> list[int]:
    """Return the line of each ingredient that has one: with two of three of its words, and not many others."""
    keys = [line.lower() for line in lines]
    numbers = list[int]()
    for ingredient in ingredients:
        words = [*_words(ingredient.lower())]
        for number, key in enumerate(keys):
            is_short = 0 < len(key) <= _LONG * len(ingredient)
            if is_short and 3 * sum(word in key for word in words) >= 2 * max(len(words), 1):
                numbers.append(number)
                break
    return numbers


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text without numbers and units; of other scripts, whose words may be unspaced, pairs."""
    for word in _LETTERS.findall(text):
        if not word.isascii():
            yield from (word[at : at + 2] for at in range(max(len(word) - 1, 1)))
        elif len(word) >= _LEAST:
            yield word


def _lines_of_steps(lines: list[str], steps: list[str]) -> list[int]:
    """Return the line in which each step begins that the text has, in one line or several, or in other words."""
    keys = [_key(line) for line in lines]
    whole, starts = "".join(keys), [0, *accumulate(map(len, keys))]
    told = [{*_words(line.lower())} for line in lines]
    numbers = list[int]()
    for step in steps:
        place = whole.find(_key(step)[:_STEP])
        words = {*_words(step.lower())}
        if place >= 0:
            numbers.append(bisect_right(starts, place) - 1)
        elif len(words) >= _TOLD:
            lines_of_step = (
                number
                for number, said in enumerate(told)
                if len(said) <= _LONG * len(words) and 3 * len(words & said) >= 2 * len(words)
            )
            numbers += [number for number in lines_of_step if number not in numbers][:1]
    return numbers


def _key(text: str) -> str:
    return "".join(_WORD.findall(text)).lower()


def _above_heading(lines: list[str], at: int) -> int:
    """Return the place above the heading of a line, where the one before it is short."""
    if at >= len(lines):
        return at
    before = at - 1
    while before >= 0 and not lines[before].strip():
        before -= 1
    return before if before >= 0 and len(lines[before]) <= _HEADING else at
