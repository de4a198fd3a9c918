"""The core asks the cards of stages what it wants to know of them, and names fewer of them with every change."""

import ast
from collections.abc import Iterator
from pathlib import Path

from pipeline_tasks.stages import NAMES

PROJECT = Path(__file__).parents[1]
ASIDE = ("stages", "demo")
"""Rooms of `pipeline_tasks` that may name stages: their own, and the demo, which tells of some."""

MOST = 168
"""Constants that are the name of a stage; a name that is no stage there (`mix` of a dataset) is one, too. It goes down."""


def named() -> Iterator[str]:
    """Yield each place outside of `ASIDE` where a stage is named."""
    core = [
        path for path in (PROJECT / "pipeline_tasks").rglob("*.py") if path.parts[len(PROJECT.parts) + 1] not in ASIDE
    ]
    for path in sorted([*core, *(PROJECT / "plugins").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in NAMES:
                yield f"{path.relative_to(PROJECT)}:{node.lineno}: {node.value}"


def test_no_more_places_name_a_stage() -> None:
    places = list(named())
    assert len(places) <= MOST, "\n".join(places)
