"""Compiled functions, and no others, go without annotations; compiled code follows what is in the files it is made of."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numba
import pytest

from pipeline_tasks import text
from pipeline_tasks.text.base import compiled

ROOMS = Path(text.__file__).parent
DECORATORS = {"compiled", "inlined", "instruction", "compiled_as"}
BUILDERS = {"build", "_place"}
"""What builds an instruction gets numba's own objects."""


def decorators(function: ast.FunctionDef) -> set[str]:
    calls = (mark.func if isinstance(mark, ast.Call) else mark for mark in function.decorator_list)
    return {mark.id for mark in calls if isinstance(mark, ast.Name)}


@pytest.mark.parametrize("path", sorted(ROOMS.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOMS)))
def test_a_function_that_is_not_compiled_is_annotated(path: Path) -> None:
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    untyped = {
        function.name for function in functions if function.returns is None and not decorators(function) & DECORATORS
    }
    assert not untyped - BUILDERS


def module_of(path: Path) -> str:
    module = ".".join(("pipeline_tasks", "text", *path.relative_to(ROOMS).with_suffix("").parts))
    return module.removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(ROOMS.rglob("*.py"))}


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of each name that a file of `text` imports; the module alone where no name is asked for."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield from ((module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", MODULES.values(), ids=lambda path: str(path.relative_to(ROOMS)))
def test_every_import_of_a_module_of_text_is_found(path: Path) -> None:
    asked = {MODULES.get(f"{module}.{name}") or MODULES.get(module) for module, name in imports(path)} - {None}
    assert asked <= compiled.contents(path)[1]


@pytest.mark.parametrize("path", MODULES.values(), ids=lambda path: str(path.relative_to(ROOMS)))
def test_loops_and_constants_are_made_of_what_is_in_text(path: Path) -> None:
    """Numba writes constants into the code: an edit of a module elsewhere would be seen by no stamp."""
    elsewhere = {
        name or module
        for module, name in imports(path)
        if module.startswith("pipeline_tasks") and module not in MODULES and f"{module}.{name}" not in MODULES
    }
    made = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) or (isinstance(node, ast.FunctionDef) and decorators(node) & DECORATORS)
    ]
    names = {node.id for part in made for node in ast.walk(part) if isinstance(node, ast.Name)}
    assert not names & elsewhere


LOOPS = {
    "step": "STEP = 1\n",
    "taken": """
from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.words.step import STEP

@inlined
def taken(number):
    return number + STEP
""",
    "walked": """
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.words.taken import taken

@compiled
def walked(number):
    return 10 * taken(number)
""",
    "doubled": """
import numba

from pipeline_tasks.text.base.compiled import compiled_as

@compiled_as(numba.int64(numba.int64))
def doubled(number):
    return 2 * number
""",
}

CALL = """
import json
from pipeline_tasks.text.words.doubled import doubled
from pipeline_tasks.text.words.walked import walked
values = [walked(1), doubled(1)]
print(json.dumps([values, [sum(loop.stats.cache_misses.values()) for loop in (walked, doubled)]]))
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A package with three loops, and the folder in which they are kept."""

    folder: Path
    cache: Path

    def call(self) -> tuple[list[int], list[int]]:
        """Return what `walked` and `doubled` return for 1 in a process of their own, and how often each was compiled."""
        env = os.environ | {"PYTHONPATH": str(self.folder), "NUMBA_CACHE_DIR": str(self.cache)}
        done = subprocess.run(
            [sys.executable, "-B", "-c", CALL], cwd=self.folder, env=env, capture_output=True, check=True
        )
        values, compilations = json.loads(done.stdout)
        return values, compilations

    def copy(self, to: Path) -> "Checkout":
        shutil.copytree(self.cache, to / "cache")
        return Checkout(Path(shutil.copytree(self.folder, to / "checkout")), to / "cache")

    def edit(self, module: str, text: str, by: str) -> None:
        """Replace a text of a module; neither its size nor its time changes."""
        path = self.folder / "pipeline_tasks" / "text" / "words" / f"{module}.py"
        status = path.stat()
        assert text in path.read_text()
        path.write_text(path.read_text().replace(text, by))
        assert path.stat().st_size == status.st_size
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    checkout = Checkout(tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("kept") / "cache")
    files = [
        "__init__.py",
        "errors.py",
        "owned.py",
        "text/__init__.py",
        "text/base/__init__.py",
        "text/base/compiled.py",
    ]
    for name in files:
        path = checkout.folder / "pipeline_tasks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOMS.parent / name, path)
    words = checkout.folder / "pipeline_tasks" / "text" / "words"
    words.mkdir()
    for name, content in LOOPS.items():
        (words / f"{name}.py").write_text(content)
    assert checkout.call() == ([20, 2], [1, 1])
    return checkout


def test_another_checkout_with_other_times_compiles_nothing(before: Checkout, tmp_path: Path) -> None:
    checkout = before.copy(tmp_path)
    for path in checkout.folder.rglob("*.py"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert checkout.call() == ([20, 2], [0, 0])


@pytest.mark.parametrize(("module", "text", "by"), [("taken", "number +", "number -"), ("step", "= 1", "= 9")])
def test_an_edit_is_seen_by_loops_that_call_what_was_edited_and_by_no_other(
    before: Checkout, tmp_path: Path, module: str, text: str, by: str
) -> None:
    checkout = before.copy(tmp_path)
    checkout.edit(module, text, by)
    expected = {"taken": 0, "step": 100}
    assert checkout.call() == ([expected[module], 2], [1, 0])


def test_where_loops_are_kept_is_no_setting_of_other_libraries() -> None:
    place = numba.config.CACHE_DIR
    double = compiled.compiled(lambda number: 2 * number)
    assert double(21) == 42
    assert place == numba.config.CACHE_DIR
