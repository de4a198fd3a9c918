"""Whoever asks rows for what is taken down reads every column by which a document is known."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.schema import KNOWN_BY
from tests.embedded import PROJECT

ASKING = {
    "pipeline_tasks.text.urls.takedown": "evidence",
    "pipeline_tasks.publish.datasets.vectors": "Left",
    "refinery_rights.erasing.documents": "Documents",
}
"""What compares rows with a list of what is taken down or superseded, by its module."""


SHOWN = {
    "pipeline_tasks/inspect/why/standing.py": "groups places of datasets that `find` has found",
    "plugins/refinery_vectors/nearest.py": "shows what is left of rows",
}
"""Modules that name columns of rows that were asked before."""


def modules() -> list[Path]:
    """Return the modules that ask."""
    every = (path for room in ("pipeline_tasks", "plugins", "benchmarks") for path in (PROJECT / room).rglob("*.py"))
    asking = {path for path in every if any(_asks(node) for node in ast.walk(ast.parse(path.read_text())))}
    return sorted(asking - {PROJECT / path for path in SHOWN})


def _asks(node: ast.AST) -> bool:
    if not isinstance(node, ast.ImportFrom):
        return False
    return any(name.name == ASKING.get(node.module or "") for name in node.names)


def names_in_part(module: Path) -> Iterator[int]:
    """Yield the lines of lists of names that have an id and an address, and not the other columns."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            named = {each.value for each in node.elts if isinstance(each, ast.Constant)}
            spread = {each.value.id for each in node.elts if _is_spread(each)}
            if {"id", "url"} <= named and not {*KNOWN_BY} <= named and "KNOWN_BY" not in spread:
                yield node.lineno


def _is_spread(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred) and isinstance(node.value, ast.Name)


def test_there_are_modules_that_ask() -> None:
    assert len(modules()) > 15


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_reader_names_the_columns_itself(module: Path) -> None:
    assert [*names_in_part(module)] == [], "read KNOWN_BY of pipeline_tasks.schema: offspring are known by their parent"
