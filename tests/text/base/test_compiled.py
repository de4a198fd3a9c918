"""Compiled functions, and no others, go without annotations; the cache of compiled code follows every file of `text`."""

import ast
import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

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


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("compiled_copy", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_change_in_any_room_changes_the_cache_folder(tmp_path: Path) -> None:
    loop = tmp_path / "words" / "loop.py"
    for file in (loop, tmp_path / "base" / "compiled.py"):
        file.parent.mkdir()
        shutil.copy(compiled.__file__, file)
    copy = load(tmp_path / "base" / "compiled.py")
    before = copy.cache_folder("place")
    copy.cache_folder.cache_clear()
    assert copy.cache_folder("place") == before
    loop.write_text("STEP = 1\n")
    copy.cache_folder.cache_clear()
    assert copy.cache_folder("place") != before
    assert Path(before).parent == Path("place")


def test_a_loop_is_compiled_and_the_cache_setting_is_left_as_it_was() -> None:
    place = compiled.numba.config.CACHE_DIR
    double = compiled.compiled(lambda number: 2 * number)
    assert double(21) == 42
    assert place == compiled.numba.config.CACHE_DIR
