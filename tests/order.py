"""Which tests share a worker of pytest-xdist, and which start first.

The tests of a file are on one worker, so its fixtures are made once. The slowest files start first, so that no worker
ends alone with one of them.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = (
    ("tests/server/",),  # one Airflow
    (
        "tests/dags/test_build.py",
        "tests/dags/test_refine.py",
        "tests/dags/test_required_verdict.py",
    ),  # DAGs, parsed once
)
"""Files and folders that share a slow fixture. `--dist loadgroup` groups nothing under pytest 9.2 (pytest-xdist #1386)."""

BY_FILE = Path(__file__).with_name("durations.json")
"""Seconds of each file; `python -m tests.durations --refresh` writes it."""

UNKNOWN = 600
"""Seconds of a file that was never measured: it starts early, in case it is slow."""


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests of a worker; `--no-loadscope-reorder` keeps that order."""
    if hasattr(config, "workerinput"):
        files = [file_of(item.nodeid) for item in items]
        places = {group: place for place, group in enumerate(slowest_first(dict.fromkeys(files), measured()))}
        ranks = [places[group_of(file)] for file in files]
        items[:] = [items[at] for at in sorted(range(len(items)), key=ranks.__getitem__)]


def measured() -> dict[str, int]:
    """Return the seconds of the files that were measured."""
    return json.loads(BY_FILE.read_text()) if BY_FILE.exists() else {}
