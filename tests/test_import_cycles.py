"""No module waits for itself: in a cycle of imports, whether one can be imported depends on which came first."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.embedded import PROJECT

PACKAGES = {"pipeline_tasks": PROJECT} | {each.name: each.parent for each in (PROJECT / "plugins").glob("refinery_*")}


def modules() -> dict[str, Path]:
    """The files of all packages, by the module that each is."""
    found = {}
    for package, above in PACKAGES.items():
        for file in (above / package).rglob("*.py"):
            parts = file.relative_to(above).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(tree: ast.Module, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules that are imported as soon as a module is; those in functions are imported later."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in names if node.module in known)
        elif isinstance(node, ast.Try):
            waiting += [*node.body, *node.orelse, *node.finalbody]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            waiting += [*node.body, *node.orelse]


def graph_of(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """What each module waits for: what it imports, and the packages that this is in."""
    graph = {}
    for name, file in known.items():
        direct = set(imported(ast.parse(file.read_text(encoding="utf-8")), known))
        above = {each.rpartition(".")[0] for each in direct}
        graph[name] = {
            each for each in direct | (above & known.keys()) if each != name and not name.startswith(f"{each}.")
        }
    return graph


def test_no_module_waits_for_itself() -> None:
    known = modules()
    assert len(known) > 500
    TopologicalSorter(graph_of(known)).prepare()


def test_a_cycle_is_found(tmp_path: Path) -> None:
    known = {"a": tmp_path / "a.py", "a.b": tmp_path / "b.py"}
    known["a"].write_text("from a.b import x\n")
    known["a.b"].write_text("def late():\n    from a import y\n")
    TopologicalSorter(graph_of(known)).prepare()
    known["a.c"] = tmp_path / "c.py"
    known["a.b"].write_text("if True:\n    from a.c import y\n")
    known["a.c"].write_text("import a.b\n")
    with pytest.raises(CycleError):
        TopologicalSorter(graph_of(known)).prepare()
