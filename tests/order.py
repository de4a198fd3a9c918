"""Which tests share a worker of pytest-xdist, which start first, and which are left out for their time.

The tests of a file are on one worker, so its fixtures are made once. The slowest files start first, so that no worker
ends alone with one of them. `--under SECONDS` leaves out the tests that took longer when they were measured.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = (
    ("tests/server/",),  # one Airflow
    (
        "tests/dags/test_build.py",
        "tests/dags/test_flows.py",
        "tests/dags/test_refine.py",
        "tests/dags/test_required_verdict.py",
    ),  # DAGs, parsed once
)
"""Files and folders that share a slow fixture. `--dist loadgroup` groups nothing under pytest 9.2 (pytest-xdist #1386)."""

DURATIONS = Path(__file__).with_name("durations.json")
"""What was measured; `python -m tests.durations --refresh` writes it."""

LONG = 0.5
"""Seconds from which on a test is named in `DURATIONS`."""

UNKNOWN = 600
"""Seconds of a file that was never measured: it starts early, in case it is slow."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Seconds of each file, and of each test of `LONG` or more."""

    files: Mapping[str, int]
    tests: Mapping[str, float]


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def group_of(file: str) -> str:
    """Return the file or folder that names all that is on one worker with a file."""
    return next((places[0] for places in TOGETHER if file.startswith(places)), file)


def slowest_first(files: Iterable[str], seconds: Mapping[str, int]) -> list[str]:
    """Return the groups of files in the order in which they start."""
    costs: dict[str, int] = {}
    for file in files:
        costs[group_of(file)] = costs.get(group_of(file), 0) + seconds.get(file, UNKNOWN)
    return sorted(costs, key=lambda group: (-costs[group], group))


class GroupScheduling(LoadScopeScheduling):
    """Gives a worker one group after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(file_of(nodeid))


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupScheduling | None:
    """Take the place of `--dist loadfile`."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the time that a test may have."""
    parser.addoption("--under", metavar="SECONDS", type=float, help="leave out tests that took longer when measured")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes longer than `--under`; sort the tests of a worker: `--no-loadscope-reorder` keeps that."""
    durations = measured()
    if (most := config.getoption("under")) is not None:
        left = {name for name, seconds in durations.tests.items() if seconds >= most}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
        items[:] = [item for item in items if item.nodeid not in left]
    if hasattr(config, "workerinput"):
        files = [file_of(item.nodeid) for item in items]
        places = {group: place for place, group in enumerate(slowest_first(dict.fromkeys(files), durations.files))}
        ranks = [places[group_of(file)] for file in files]
        items[:] = [items[at] for at in sorted(range(len(items)), key=ranks.__getitem__)]


def measured() -> Durations:
    """Return what was measured."""
    return Durations(**json.loads(DURATIONS.read_text())) if DURATIONS.exists() else Durations({}, {})
