"""Gives the text of a recipe the ingredients and steps that its page states as data, where an extractor lost them.

Pages state them for search engines (schema.org/Recipe as JSON-LD), which ask that they are what the page shows.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import accumulate
from typing import Any

STATED = '"recipeIngredient"'
"""What a page with a stated recipe contains."""

LOST = 0.5
"""Share of the stated lines below which a list is lost; some are always written another way than in the page."""

_SCRIPT = re.compile(r"(?is)<script\b[^>]{0,200}application/ld\+json[^>]{0,200}>(.*?)(?:</script|\Z)")
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
_ITEMS = 300
_LONGEST = {"ingredient": 500, "step": 5000}  # characters; a list with a longer one is none
_DEPTH = 8  # lists and sections in each other whose steps are read
_COMPARISONS = 5_000_000
"""Words of ingredients times lines, above which no list is looked for: a page with so many lines is no recipe."""

_HEADING = 40  # characters of a line above a list that is its heading


def complete(text: str, html: str) -> str:
    """Return the text with each list of the recipe that `html` states and the text has less than half of.

    Ingredients go above the first step, and steps below the last ingredient, else to the end.
    """
    recipe = _recipe(html)
    if recipe is None:
        return text
    ingredients, steps = _ingredients(recipe), _told(recipe)
    lines = text.split("\n")
    if len(lines) * sum(map(len, map(_WORD.findall, ingredients))) > _COMPARISONS:
        return text
    listed, told = _listed_in(lines, ingredients), _told_in(lines, steps)
    if _is_lost(listed, ingredients):
        below = _above_heading(lines, min(told.values(), default=len(lines)))
        block = ["", *(f"- {line}" for line in ingredients), ""]
        lines[below:below] = block
        told = {step: at + len(block) * (at >= below) for step, at in told.items()}
        listed = {0: below + len(block) - 2}
    if _is_lost(told, steps):
        below = max(listed.values(), default=len(lines) - 1) + 1
        lines[below:below] = ["", *(f"{number}. {step}" for number, step in enumerate(steps, 1)), ""]
    return "\n".join(lines)


def _is_lost(places: dict[int, int], stated: list[str]) -> bool:
    return len(places) < LOST * len(stated)


def _recipe(html: str) -> dict[str, Any] | None:
    """Return the first recipe that a page states, None if it states none or several, as a page of search results."""
    first: dict[str, Any] | None = None
    for script in _SCRIPT.finditer(html):
        if STATED in script[1]:
            try:
                for node in _nodes(json.loads(script[1], strict=False)):
                    if "recipeIngredient" in node:
                        first = node if first is None else first
                        if node != first:
                            return None
            except (ValueError, RecursionError):
                continue
    return first


def _nodes(value: object) -> Iterator[dict[str, Any]]:
    for node in value if isinstance(value, list) else [value]:
        if isinstance(node, dict):
            yield node
            yield from _nodes(node.get("@graph"))


def _ingredients(recipe: dict[str, Any]) -> list[str]:
    stated = recipe["recipeIngredient"]
    ingredients = _filled(_clean(stated), "ingredient") if isinstance(stated, list) else []
    return ingredients if len({*ingredients}) >= _FEWEST else []


def _filled(items: list[str], kind: str) -> list[str]:
    """Return the items that are no fields of a form; none of a list that is mostly such, or has one too long for it."""
    filled = [item for item in items if not _FORM.search(item)]
    return filled if 2 * len(filled) > len(items) and max(map(len, filled)) <= _LONGEST[kind] else []


def _told(recipe: dict[str, Any]) -> list[str]:
    return _filled(_steps(recipe.get("recipeInstructions")), "step")


def _steps(stated: object, depth: int = _DEPTH) -> list[str]:
    """Return the steps of a text, of a list, or of nested sections (schema.org/HowToSection), without their numbers."""
    if not depth:
        return []
    if isinstance(stated, str):
        return [
            _NUMBER.sub("", step, count=1) if _NUMBER.match(step) else step
            for step in _clean(_BREAK.split(unescape(stated)))
        ]
    if isinstance(stated, list):
        return [step for part in stated for step in _steps(part, depth - 1)][:_ITEMS]
    if isinstance(stated, dict):
        return _steps(stated.get("itemListElement") or stated.get("text") or stated.get("name"), depth - 1)
    return []


def _clean(stated: Iterable[object]) -> list[str]:
    texts = (
        " ".join(_UNWRITABLE.sub("", _TAG.sub(" ", unescape(unescape(part)))).split())
        for part in stated
        if isinstance(part, str)
    )
    return [text for text in texts if text][:_ITEMS]


def _listed_in(lines: list[str], ingredients: list[str]) -> dict[int, int]:
    """Return the line of each ingredient that has one: with two of three of its words, and not many others."""
    keys = [line.lower() for line in lines]
    places: dict[int, int] = {}
    for number, ingredient in enumerate(ingredients):
        words = [*_words(ingredient.lower())]
        for at, key in enumerate(keys):
            is_short = 0 < len(key) <= _LONG * len(ingredient)
            if is_short and 3 * sum(word in key for word in words) >= 2 * max(len(words), 1):
                places[number] = at
                break
    return places


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text without numbers and units; of other scripts, whose words may be unspaced, pairs."""
    for word in _LETTERS.findall(text):
        if not word.isascii():
            yield from (word[at : at + 2] for at in range(max(len(word) - 1, 1)))
        elif len(word) >= _LEAST:
            yield word


def _told_in(lines: list[str], steps: list[str]) -> dict[int, int]:
    """Return the line in which each step begins that the text has, in one line or several."""
    keys = [_key(line) for line in lines]
    whole, starts = "".join(keys), [0, *accumulate(map(len, keys))]
    found = {number: whole.find(_key(step)[:_STEP]) for number, step in enumerate(steps)}
    return {number: bisect_right(starts, at) - 1 for number, at in found.items() if at >= 0}


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
