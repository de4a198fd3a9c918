"""A recipe has the ingredients and steps that its page states, each once."""

import json
from typing import Any

import pytest

from pipeline_tasks.text.page.main_text import main_text
from pipeline_tasks.text.page.recipes import complete

INGREDIENTS = ["200 g flour", "3 eggs", "1 pinch of <b>salt</b>", "500 ml milk &amp; water"]
CLEAN = ["- 200 g flour", "- 3 eggs", "- 1 pinch of salt", "- 500 ml milk & water"]
STEPS = [
    "Whisk the eggs with the flour and the milk until no lump is left.",
    "Fry thin cakes in a hot pan on both sides.",
]
TOLD = "Pancakes\n\nFor a slow morning.\n\nMethod\n\n" + "\n".join(STEPS) + "\n\nServe at once."


def page(*recipes: Any, body: str = "") -> str:
    scripts = "".join(f'<script type="application/ld+json">{json.dumps(recipe)}</script>' for recipe in recipes)
    return f"<html><head>{scripts}</head><body>{body}</body></html>"


def recipe(ingredients: object = INGREDIENTS, steps: object = None) -> dict[str, Any]:
    return {"@type": "Recipe", "recipeIngredient": ingredients, "recipeInstructions": steps}


def test_lost_ingredients_are_put_above_the_heading_of_the_steps() -> None:
    lines = [line for line in complete(TOLD, page(recipe(steps=STEPS))).split("\n") if line]
    assert lines == ["Pancakes", "For a slow morning.", *CLEAN, "Method", *STEPS, "Serve at once."]


def test_lost_steps_are_put_below_the_ingredients() -> None:
    text = "Pancakes\n\n- 200 g flour\n- 3 eggs\n- salt, a pinch\n- 500 ml milk & water\n\nServe at once."
    lines = [line for line in complete(text, page(recipe(steps=STEPS))).split("\n") if line]
    assert lines[-3:] == [f"1. {STEPS[0]}", f"2. {STEPS[1]}", "Serve at once."]
    assert len(lines) == 8


@pytest.mark.parametrize(
    "steps",
    [
        STEPS,
        "<p>1. " + "</p><p>2) ".join(STEPS) + "</p>",
        [{"@type": "HowToStep", "text": step} for step in STEPS],
        {
            "@type": "ItemList",
            "itemListElement": [{"@type": "HowToSection", "itemListElement": [{"text": step}]} for step in STEPS],
        },
    ],
)
def test_all_forms_of_steps_are_read(steps: object) -> None:
    lines = [line for line in complete("Pancakes", page({"@graph": [recipe(steps=steps)]})).split("\n") if line]
    assert lines == ["Pancakes", *CLEAN, f"1. {STEPS[0]}", f"2. {STEPS[1]}"]


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Pancakes\n200 g\nFlour\n3\nEggs\nA pinch of salt\nMilk, water\n" + "\n".join(STEPS), [recipe(steps=STEPS)]),
        ("鸡胸肉\t150克\n胡萝卜\t半根\n土豆\t一个", [recipe(["150克鸡胸肉", "半根胡萝卜", "一个土豆"])]),
        (TOLD.replace("eggs with", "eggs\nwith"), [recipe(["pancakes"], STEPS)]),
        (TOLD, [recipe(["pancakes"], ["First, w" + STEPS[0][1:-1].replace("until", "till") + " in it.", STEPS[1]])]),
        (TOLD, [recipe(), recipe(["rice", "beans", "corn"])]),
        (TOLD, [recipe(None)]),
        (TOLD, [{"@type": "Article"}]),
    ],
    ids=[
        "whole, over lines",
        "whole, other order",
        "a name of what it is of",
        "other words",
        "two recipes",
        "none",
        "no recipe",
    ],
)
def test_a_text_that_lacks_nothing_stays_as_it_is(text: str, stated: list[Any]) -> None:
    assert complete(text, page(*stated)) == text


@pytest.mark.parametrize(
    "script", ["{", "[" * 10_000, '{"recipeIngredient": 1}', '{"recipeIngredient": [[1]], "@graph": 3}']
)
def test_data_that_is_no_recipe_is_left(script: str) -> None:
    html = f'<script type="application/ld+json">{script} "recipeIngredient"</script>'
    assert complete(TOLD, html) == TOLD
    assert complete(TOLD, html.replace(' "recipeIngredient"', "")) == TOLD


def test_the_page_is_extracted_with_its_ingredients() -> None:
    prose = "".join(f"<p>{step} It takes a while, and patience makes the better cake of it.</p>" for step in STEPS)
    html = page(
        recipe(steps=STEPS), body=f"<main><h1>Pancakes</h1><div class=related>{INGREDIENTS[0]}</div>{prose}</main>"
    )
    assert main_text(html, "blocks").text.count("- 200 g flour") == 1
    assert "recipe" not in main_text(html, "resiliparse").text


def deep(levels: int) -> str:
    steps = "[" * levels + '"Stir."' + "]" * levels
    return f'{{"recipeIngredient": ["200 g flour", "3 eggs", "salt"], "recipeInstructions": {steps}}}'


@pytest.mark.parametrize("levels", [600, 900])
def test_instructions_that_are_nested_hundreds_of_times_are_left(levels: int) -> None:
    script = f'<script type="application/ld+json">{deep(levels)}</script>'
    assert "Stir" not in complete("Pancakes", script)
    assert "Stir" not in complete("Pancakes", script * 2)


def test_what_utf_8_cannot_write_is_left_out() -> None:
    stated = recipe(["200 g flour\ud800", "3 eggs\0", "\udfffsalt"], ["Stir \ud83d for long."])
    assert complete("Pancakes", page(stated)).encode().split()[-4:] == [b"1.", b"Stir", b"for", b"long."]


@pytest.mark.parametrize(
    "ingredients",
    [
        ["{{ item.name }}", "{{ item.unit }}", "{{ x }}"],
        ["undefined flour"] * 3,
        ["salt"] * 9,
        ["a", "b", "long " * 200],
    ],
    ids=["fields of a form", "not filled in", "one thing", "an article"],
)
def test_what_is_no_list_of_ingredients_is_not_put_into_the_text(ingredients: list[str]) -> None:
    assert complete(TOLD, page(recipe(ingredients))) == TOLD


@pytest.mark.parametrize(
    "stated",
    [
        recipe(["<" * 400_000, "3 eggs", "salt"]),
        recipe(steps="<br " * 200_000),
        recipe([" ".join(f"w{chr(97 + at % 26)}{chr(97 + at // 26)}q" for at in range(80))] * 300),
    ],
    ids=["beginnings of tags", "beginnings of breaks", "words times lines"],
)
def test_stated_data_of_any_form_takes_linear_time(stated: dict[str, Any]) -> None:
    text = "A line of a text that has many lines, and none of the words.\n" * 20_000
    complete(text, page(stated))
