"""Changes the code of rooms at random, one place at a time, and counts how many changes the rooms' tests notice.

    python -m tests.mutants --count 60 --seed 1 [--rooms run,store,...]

A change ("mutant") is small and legal: another comparison, another number, a condition turned round, a call left out.
It is made in place, and undone before the next, so the files must be committed. The tests of a room are those of its
folder, and those elsewhere that import the changed module, as far as they are not `slow`; those that name the module
run first, then the quickest, and they end at the first failure, which is printed. What no test notices is printed with its line, for a person to judge: some mutants mean the
same as the original.
"""

import argparse
import ast
import copy
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.order import UNKNOWN, measured

PROJECT = Path(__file__).parents[1]

ROOMS = ("run", "store", "landing", "publish", "gate", "training")

QUICK = "not slow and not nightly and not cluster and not compose and not fortnight"

PATIENCE = 4
"""A mutant counts as noticed if its tests take as many times as long as without it: they do not end any more."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: the bytes from `start` to `end` become `text`; `line` and `what` are for people."""

    room: str
    path: Path
    start: int
    end: int
    text: str
    line: int
    what: str


def changed(node: ast.AST) -> ast.AST | None:  # noqa: PLR0911 -- a table
    """Return a small legal change of a node, None if it has none."""
    twin = copy.deepcopy(node)
    match twin:
        case ast.Compare(ops=[first, *_]) if type(first) in COMPARISONS:
            twin.ops[0] = COMPARISONS[type(first)]()
            return twin
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_text(twin):
            twin.op = ARITHMETIC[type(op)]()
            return twin
        case ast.BoolOp(op=op):
            twin.op = ast.Or() if isinstance(op, ast.And) else ast.And()
            return twin
        case ast.UnaryOp(op=ast.Not()):
            return twin.operand
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value)):
            return ast.Constant(value + 1)
        case ast.IfExp():
            twin.body, twin.orelse = twin.orelse, twin.body
            return twin
        case ast.Expr(value=ast.Call()):
            return ast.Pass()
        case ast.Break():
            return ast.Continue()
    return None


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.JoinedStr | ast.Constant) for side in (node.left, node.right)) and not any(
        isinstance(side, ast.Constant) and isinstance(side.value, int) for side in (node.left, node.right)
    )


def places(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of functions' bodies; not annotations, decorators, or what says that a check is for types only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                yield from _within(statement)
        else:
            yield from places(node)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it.

    Nothing of an f-string: Python 3.11 does not say where its parts are. No `strict` of a zip: it asserts, and does nothing.
    """
    if not isinstance(node, ast.JoinedStr) and not (isinstance(node, ast.keyword) and node.arg == "strict"):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _within(child)


def mutants_of(room: str) -> list[Mutant]:
    """Return every mutant of a room."""
    found = []
    for path in sorted((PROJECT / "pipeline_tasks" / room).rglob("*.py")):
        source = path.read_bytes()
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for node in places(ast.parse(source)):
            twin = changed(node)
            if twin is None or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                continue
            start = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
            end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            text = ast.unparse(ast.fix_missing_locations(twin))
            text = text if isinstance(twin, ast.stmt) else f"({text})"
            what = f"{source[start:end].decode()} -> {text}"
            found.append(Mutant(room, path, start, end, text, node.lineno, " ".join(what.split())))  # type: ignore[attr-defined]
    return found


def drawn(rooms: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return `count` mutants, as many of each room as of the others, the same for the same seed and code."""
    chance = random.Random(seed)
    each, more = divmod(count, len(rooms))
    return [mutant for at, room in enumerate(rooms) for mutant in chance.sample(mutants_of(room), each + (at < more))]


def files_of(room: str, changed_file: Path | None = None) -> list[str]:
    """Return the test files of a room, and others that import a file: those that name it first, then the quickest."""

    def order(path: Path) -> tuple[bool, int]:
        is_named = changed_file and re.search(rf"\b{changed_file.stem}\b", path.read_text())
        return not is_named, seconds.get(str(path.relative_to(PROJECT)), UNKNOWN)

    seconds = measured().files
    own = (PROJECT / "tests" / room).rglob("test_*.py")
    return [str(path) for path in sorted({*own, *(_importing(changed_file) if changed_file else ())}, key=order)]


def _importing(changed_file: Path) -> Iterator[Path]:
    """Yield the test files that import a file of the package by its name."""
    *packages, module = changed_file.relative_to(PROJECT).with_suffix("").parts
    of = ".".join(packages)
    imported = re.compile(rf"\b{re.escape(of)}(?:\.{module}\b| import (?:\([^)]*|.*)\b{module}\b)")
    for path in (PROJECT / "tests").rglob("test_*.py"):
        if imported.search(path.read_text()):
            yield path


def first_failure(files: Sequence[str], limit: float | None = None) -> str | None:
    """Return what fails first of the quick tests of some files, None if all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", QUICK, *files]
    try:
        run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"no end in {limit:.0f} s"
    failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return None if run.returncode == 0 else next(iter(failures), f"pytest ends with {run.returncode}")


def noticing(mutant: Mutant, limit: float) -> str | None:
    """Return what of the tests of its room fails, or does not end, with a mutant in place; None if nothing does."""
    source = mutant.path.read_bytes()
    mutant.path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
    try:
        return first_failure(files_of(mutant.room, mutant.path), limit)
    finally:
        mutant.path.write_bytes(source)


def require_committed(rooms: Sequence[str]) -> None:
    """Refuse to change files that are not committed."""
    folders = [f"pipeline_tasks/{room}" for room in rooms]
    status = subprocess.run(
        ["git", "status", "--porcelain", *folders], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    if status.stdout:
        sys.exit(f"commit these first, they would be changed in place:\n{status.stdout}")


def main() -> None:
    """Print each mutant with its outcome, then the share that was noticed, by room."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    options = parser.parse_args()
    rooms = options.rooms.split(",")
    require_committed(rooms)
    limits = {}
    for room in rooms:
        begun = time.monotonic()
        if failure := first_failure(files_of(room)):
            sys.exit(f"{failure} fails without any change, so it would notice everything")
        limits[room] = PATIENCE * (time.monotonic() - begun)
    noticed: dict[str, list[bool]] = {room: [] for room in rooms}
    for mutant in drawn(rooms, options.count, options.seed):
        begun = time.monotonic()
        by = noticing(mutant, limits[mutant.room])
        noticed[mutant.room].append(by is not None)
        mark = "noticed" if by else "MISSED "
        place = f"{mutant.path.relative_to(PROJECT)}:{mutant.line}"
        print(f"{mark} {time.monotonic() - begun:5.0f} s  {place}  {mutant.what[:150]}  {by or ''}", flush=True)
    for room, outcomes in noticed.items():
        print(f"{room:<10}{sum(outcomes):>4} of {len(outcomes)}")
    total = [outcome for outcomes in noticed.values() for outcome in outcomes]
    print(f"{'all':<10}{sum(total):>4} of {len(total)}  {sum(total) / len(total):.0%}")


if __name__ == "__main__":
    main()
