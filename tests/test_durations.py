"""What tests take is written by test and kind, whichever worker ran them; the slowest files start first."""

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.durations import KINDS, Traces, durations, kind_of, tables
from tests.order import TOGETHER, UNKNOWN, Durations, group_of, slowest_first

PROJECT = Path(__file__).parents[1]

NUMBERED = ("test_a.py", "test_b.py")
SHARED = ("tests/dags/test_build.py", "tests/dags/test_refine.py")

CONFTEST = """
import os, pathlib, pytest, tests.order
pytest_plugins = ["tests.order", "tests.durations"]
tests.order.DURATIONS = pathlib.Path("known.json")

@pytest.fixture
def s3_root():
    return "s3://bucket"

@pytest.fixture(autouse=True)
def worker(request):
    with open("workers", "a") as file:
        print(request.node.nodeid.partition("::")[0], os.environ["PYTEST_XDIST_WORKER"], file=file)
"""

ONE = """
import pytest
@pytest.mark.parametrize("number", range(4))
def test_it(number): pass
"""

OTHER = """
import pytest, subprocess, sys
def test_store(request): request.getfixturevalue("s3_root")
def test_refused(): subprocess.run([sys.executable, "-c", "", "refinery", "run"])
@pytest.mark.parametrize("name", ["a@b"])
def test_fails(name): assert name == "a"
def test_long(): pass
"""

KNOWN = Durations({}, {f"{SHARED[0]}::test_long": 0.5, f"{SHARED[1]}::test_long": 0.4})
"""What was measured before: one test takes what `--under 0.5` leaves out."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[list[str]], str]:
    """What two workers have recorded, which of them ran which test, and what was printed."""
    folder = tmp_path_factory.mktemp("suite")
    for name, text in {"conftest.py": CONFTEST, **dict.fromkeys(NUMBERED, ONE), **dict.fromkeys(SHARED, OTHER)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "known.json").write_text(json.dumps(asdict(KNOWN)))
    command = "-m pytest --under 0.5 -n 2 --dist loadfile --no-loadscope-reorder -p no:cacheprovider --record-durations=took.json"
    (folder / "took.json").touch()  # of the run before: apart from its option, pytest would take it for a test file
    environ = os.environ | {"PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, *command.split()], cwd=folder, env=environ, check=False, capture_output=True, text=True
    )
    rows = json.loads((folder / "took.json").read_text())
    return rows, [line.split() for line in (folder / "workers").read_text().splitlines()], done.stdout


def test_make_names_the_file_in_one_word_with_its_option() -> None:
    options = re.findall(r"--record-durations\S*", (PROJECT / "Makefile").read_text(encoding="utf-8"))
    assert options
    assert [option for option in options if "=" not in option] == []


def test_a_test_that_took_longer_is_left_out_on_every_worker(recorded: Any) -> None:
    assert [row["test"] for row in recorded[0] if "long" in row["test"]] == [f"{SHARED[1]}::test_long"]


def test_every_test_is_recorded_by_the_name_that_a_command_line_takes(recorded: Any) -> None:
    rows, _, printed = recorded
    ours = [f"{file}::test_it[{number}]" for file in NUMBERED for number in range(4)]
    others = [f"{file}::test_{name}" for file in SHARED for name in ("store", "refused", "fails[a@b]")]
    assert sorted(row["test"] for row in rows if "long" not in row["test"]) == sorted(ours + others)
    assert any(row["seconds"] > 0 for row in rows)
    assert f"FAILED {SHARED[0]}::test_fails[a@b] - " in printed


def test_a_test_is_of_the_kind_of_what_it_used(recorded: Any) -> None:
    kinds = {row["test"]: row["kind"] for row in recorded[0]}
    assert kinds[f"{SHARED[0]}::test_store"] == "S3 server"
    assert kinds[f"{SHARED[1]}::test_refused"] == "whole `refinery run`"
    assert kinds[f"{NUMBERED[0]}::test_it[0]"] == kinds[f"{SHARED[1]}::test_fails[a@b]"] == "the rest"


def test_a_file_and_a_group_of_files_are_on_one_worker(recorded: Any) -> None:
    workers: dict[str, set[str]] = {}
    for file, worker in recorded[1]:
        workers.setdefault(group_of(file), set()).add(worker)
    assert {group: len(names) for group, names in workers.items()} == dict.fromkeys([*NUMBERED, SHARED[0]], 1)


def test_the_slowest_group_starts_first_and_an_unknown_file_is_slow() -> None:
    seconds = {"fast": 0, SHARED[0]: 30, SHARED[1]: 40, "slow": 60}
    assert slowest_first([*seconds, "new"], seconds) == ["new", SHARED[0], "slow", "fast"]
    assert UNKNOWN > 70


def test_every_place_that_is_kept_together_exists() -> None:
    assert [place for places in TOGETHER for place in places if not (PROJECT / place).exists()] == []


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (Traces("tests/server/test_up.py", {"refinery"}), "Airflow server"),
        (Traces("tests/dags/test_run.py", set(), ["/bin/python /bin/refinery run --input x"]), "whole `refinery run`"),
        (Traces("tests/dags/test_run.py", set(), ["python -m pipeline_tasks.cli build x"]), "whole `refinery run`"),
        (Traces("tests/engines/test_x.py", {"spark", "s3_root"}), "Spark"),
        (Traces("tests/engines/test_x.py", {"ray"}), "Ray"),
        (Traces("tests/filters/test_x.py", {"hypothesis"}), "Hypothesis"),
        (Traces("tests/filters/test_x.py", set()), "kernels"),
        (Traces("tests/cli/test_x.py", set(), ["refinery inspect x"]), "other processes"),
        (Traces("tests/cli/test_x.py", {"s3"}), "S3 server"),
    ],
)
def test_the_first_kind_that_fits_is_taken(seen: Traces, kind: str) -> None:
    assert kind_of(seen) == kind


def test_the_cases_above_are_of_every_kind() -> None:
    (cases,) = [mark for mark in test_the_first_kind_that_fits_is_taken.pytestmark if mark.name == "parametrize"]
    assert {kind for _, kind in cases.args[1]} == KINDS.keys()


def test_the_file_of_durations_has_each_file_and_the_long_tests() -> None:
    rows = [
        {"test": f"tests/{file}.py::{name}", "seconds": s} for file, name, s in (("a", "b", 0.46), ("a", "c", 1.26))
    ]
    assert durations(rows) == Durations({"tests/a.py": 2}, {"tests/a.py::c": 1.3})


def test_the_tables_sum_minutes_by_folder_and_kind() -> None:
    rows = [
        {"test": "tests/text/words/test_x.py::test_a", "seconds": 90.0, "kind": "kernels"},
        {"test": "tests/text/test_y.py::test_b", "seconds": 60.0, "kind": "Hypothesis"},
        {"test": "tests/test_z.py::test_c[1|2]", "seconds": 30.0, "kind": "kernels"},
    ]
    lines = tables(rows).splitlines()
    assert lines[0] == "3 tests, 3.0 minutes over all processes"
    assert lines[3:6] == ["|---|---:|---:|", "| tests/text | 2.5 | 2 |", "| tests | 0.5 | 1 |"]
    assert "| kernels | 2.0 | 2 |" in lines
    assert lines[-3:] == [
        "| `tests/text/words/test_x.py::test_a` | 90 |",
        "| `tests/text/test_y.py::test_b` | 60 |",
        "| `tests/test_z.py::test_c[1&#124;2]` | 30 |",
    ]
