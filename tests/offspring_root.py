"""A small root with generated documents: a day of pages, each of which brings up to three texts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import load_recipe
from tests.chain import Chain, How, refined
from tests.course import Course
from tests.offspring import UNFOLDER, WRITER

NAME = "generating"

DAY, FILES, ROWS = "2026-11-20", 3, 12

RECIPE = f"""
stages:
  ingest: {{}}
  extract: {{min_chars: 20}}
  {WRITER}: {{}}
  {UNFOLDER}: {{}}
  scrub_pii: {{}}
"""

STAGES = ("ingest", "extract", WRITER, UNFOLDER, "scrub_pii")

LANDED = FILES * ROWS


def land(folder: Path) -> Path:
    """Write a day of pages below a folder, and the recipe; return the folder."""
    (folder / DAY).mkdir()
    for file in range(FILES):
        days = range(file * ROWS, (file + 1) * ROWS)
        texts = [
            f"The river by the mill was wide on day {day} of that year, and nobody crossed it. " * 3 for day in days
        ]
        lines = [{"url": f"https://example.org/{file}/{row}", "text": text} for row, text in enumerate(texts)]
        (folder / DAY / f"part-{file}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (folder / f"{NAME}.yaml").write_text(RECIPE)
    return folder


def judged(landing: Path, root: Path) -> Chain:
    """Refine, judge by every gate, and publish the day."""
    recipe = replace(load_recipe(str(landing / f"{NAME}.yaml")), name=NAME)
    course = Course(str(root), recipe)
    begun = course.landed(str(landing / DAY))
    course.publish(begun, course.stages(begun))
    return Chain(str(root), version_log.current(str(root), NAME, begun.snapshot))


def chain_of(landing: Path, root: Path, **params: Any) -> Chain:
    """Refine and publish the day by partitions, with params of the stage that makes documents."""
    how = How(recipe=str(landing / f"{NAME}.yaml"), partitions=FILES, changes={UNFOLDER: params})
    return refined(str(root), str(landing / DAY), how)
