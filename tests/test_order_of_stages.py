"""The order of stages is that of a version's own manifests: no module takes the table of known stages for history."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]

TABLES = {"STAGES", "REFINING", "BUILDING"}

IN_ITS_ORDER = {
    "pipeline_tasks/recipe.py": "the table itself, and which stage to add for a missing column",
    "pipeline_tasks/run/recipe_faults.py": "the same: columns and the stages that write them",
    "pipeline_tasks/cli/reference/stages.py": "the docs list stages in it",
    "pipeline_tasks/cli/reference/engines.py": "the docs list stages in it",
    "pipeline_tasks/publish/ledger/__init__.py": "rows of tables over many recipes are sorted by it, to be read",
    "pipeline_tasks/publish/logs/version_log.py": "which stage was the last in entries of releases that did not say",
    "pipeline_tasks/store/reading.py": "where a fingerprint is looked for",
    "pipeline_tasks/upkeep/retention/plan.py": "all folders of stages",
    "pipeline_tasks/upkeep/vacuum.py": "all folders of stages",
    "pipeline_tasks/upkeep/upgrade.py": "all libraries of stages, sorted",
    "pipeline_tasks/inspect/verify/manifests.py": "all stages that are known",
    "pipeline_tasks/inspect/redactions.py": "which stages an argument may name, before a version is known",
}
"""Modules that go through the table, and what for; all others may ask only whether a stage is in it."""


def uses(module: ast.Module) -> Iterator[int]:
    """Yield the lines on which a table of `recipe` is used for more than to ask whether a name is in it."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == "pipeline_tasks.recipe"
        for alias in node.names
        if alias.name in TABLES
    }
    asked = {
        id(operand)
        for node in ast.walk(module)
        if isinstance(node, ast.Compare)
        for sign, operand in zip(node.ops, node.comparators, strict=True)
        if isinstance(sign, ast.In | ast.NotIn)
        for operand in ast.walk(operand)
    }
    for node in ast.walk(module):
        is_table = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        is_attribute = isinstance(node, ast.Attribute) and node.attr in TABLES and ast.unparse(node.value) == "recipe"
        if (is_table or is_attribute) and id(node) not in asked:
            yield node.lineno


def test_no_module_takes_the_table_of_stages_for_what_came_before_what() -> None:
    modules = [path for folder in ("pipeline_tasks", "plugins", "dags") for path in (PROJECT / folder).rglob("*.py")]
    assert len(modules) > 500
    found = {
        path.relative_to(PROJECT).as_posix(): lines
        for path in modules
        if (lines := [*uses(ast.parse(path.read_text()))])
    }
    assert {name: lines for name, lines in found.items() if name not in IN_ITS_ORDER} == {}
    assert sorted({*IN_ITS_ORDER} - {*found} - {"pipeline_tasks/recipe.py"}) == [], "no longer needed"


@pytest.mark.parametrize(
    "use",
    ["STAGES.index('pack')", "STAGES[:3]", "[each for each in STAGES]", "sorted(known, key=STAGES.index)", "*STAGES,"],
)
def test_each_use_as_an_order_is_found(use: str) -> None:
    module = ast.parse(f"from pipeline_tasks.recipe import STAGES\nis_known = name in STAGES\nx = {use}")
    assert [*uses(module)] == [3]
