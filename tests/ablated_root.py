"""A root with two training datasets of recipes that differ, and verdicts on them; models were not trained for it."""

import json
from pathlib import Path

from refinery_ablate.comparison import Wanted, judge, prepare
from refinery_ablate.job import read_plan
from refinery_ablate.recording import record

from pipeline_tasks.recipe import Recipe, parse_recipe
from tests.ablate import planted
from tests.chain import How, built, refined

RECIPE = """
name: {name}
{requires}
stages:
  ingest: {{}}
  extract: {{min_chars: {least}}}
  dedup_exact: {{buckets: 1}}
"""

NAMES = ("base", "mine")
"""Recipes of both arms; their datasets have `_set` behind it."""


def recipe_file(folder: Path, name: str, least: int, requires: str = "") -> str:
    """Write a recipe that keeps texts of at least so many characters; return its path."""
    path = folder / f"{name}.yaml"
    path.write_text(RECIPE.format(name=name, least=least, requires=requires))
    return str(path)


def build_of(name: str, versions: str, folder: Path, by: str = "source") -> Recipe:
    """Return a recipe that builds a dataset; `folder` has its tokenizer."""
    stages = {
        "tokenize": {"tokenizer": str(folder / "tokenizer.json")},
        "select": {},
        "mix": {"by": by},
        "shuffle": {"buckets": 2},
        "pack": {"length": planted.LENGTH},
    }
    return parse_recipe({"name": name, "versions": {"recipe": versions}, "stages": stages}, f"{name}.yaml")


def made(folder: Path, by: str = "source") -> tuple[str, str]:
    """Refine and build both arms in `folder/root`; return them as ROOT/NAME@VERSION."""
    landing, root = folder / "landing", str(folder / "root")
    landing.mkdir()
    records = (
        {"text": " ".join(words), "url": f"https://{at % 5}.example/{at}"}
        for at, words in enumerate(planted.texts(40, 1))
    )
    (landing / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    planted.write_tokenizer(folder / "tokenizer.json")
    for least, name in enumerate(NAMES, 1):
        refined(root, str(landing), How(recipe=recipe_file(folder, name, least)))
        built(root, build_of(f"{name}_set", name, folder, by))
    first, second = (f"{root}/{name}_set@1" for name in NAMES)
    return first, second


def given_verdict(folder: Path, arms: tuple[str, str], shift: float, size: str = "15m") -> None:
    """Record what models would say whose bits per byte differ by `shift`."""
    to = folder / f"to-{shift:g}-{size}"
    prepare(Wanted(arms, (planted.held_out(folder, 50),), size), to)
    planted.put_results(to, read_plan(to), shift)
    record(judge(to), to)
