"""The order of stages is that of a version's own manifests: no module takes the table of known stages for history."""

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]

TABLES = {"stage_names", "NAMES"}

IN_ITS_ORDER = {
    "pipeline_tasks/cards.py": "the table itself",
    "pipeline_tasks/run/recipe_faults.py": "the same: columns and the stages that write them",
    "pipeline_tasks/publish/datasets/cluster_sizes.py": "which stage to add for clusters",
    "pipeline_tasks/flow/running.py": "which stage to add for a build",
    "plugins/refinery_vectors/similar.py": "which stage to add for vectors",
    "pipeline_tasks/cli/commands/new.py": "which names are taken",
    "pipeline_tasks/cli/reference/stages.py": "the docs list stages in it",
    "pipeline_tasks/cli/reference/engines.py": "the docs list stages in it",
    "pipeline_tasks/ledger/__init__.py": "rows of tables over many recipes are sorted by it, to be read",
    "pipeline_tasks/publish/logs/version_log.py": "which stage was the last in entries of releases that did not say",
    "pipeline_tasks/upkeep/vacuum.py": "all folders of stages",
    "pipeline_tasks/gate/batch_expectations.py": "which names of gates a misspelt one is near to",
    "pipeline_tasks/gate/checks.py": "which columns rows may have behind some stages of a recipe, or behind all",
}
"""Modules that go through the table, and what for; all others may ask only whether it has a stage (`is_stage`)."""


def takes_table(module: ast.Module) -> bool:
    """Return whether a module imports the table of stages, or reads it of a module."""
    return any(
        (
            isinstance(node, ast.ImportFrom)
            and node.module in ("pipeline_tasks.cards", "pipeline_tasks.stages")
            and not TABLES.isdisjoint(alias.name for alias in node.names)
        )
        or (isinstance(node, ast.Attribute) and node.attr in TABLES)
        for node in ast.walk(module)
    )


def test_no_module_takes_the_table_of_stages_for_what_came_before_what() -> None:
    modules = [path for folder in ("pipeline_tasks", "plugins", "dags") for path in (PROJECT / folder).rglob("*.py")]
    assert len(modules) > 500
    found = {path.relative_to(PROJECT).as_posix() for path in modules if takes_table(ast.parse(path.read_text()))}
    assert sorted(found) == sorted(IN_ITS_ORDER)


@pytest.mark.parametrize(
    "use",
    ["from pipeline_tasks.cards import stage_names", "x = cards.stage_names()", "x = stages.NAMES.index('pack')"],
)
def test_each_use_as_an_order_is_found(use: str) -> None:
    assert takes_table(ast.parse(use))
    assert not takes_table(ast.parse("from pipeline_tasks.cards import is_stage"))
