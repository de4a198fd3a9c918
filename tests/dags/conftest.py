"""The DAG folder, parsed once as Airflow's DAG processor does."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.embedded import PROJECT, embed

Parse = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Parse:
    """Parses DAG files, or all, in a process whose environment has more variables; returns what came of it."""
    env = embed(tmp_path_factory.mktemp("airflow"))
    command = [sys.executable, str(Path(__file__).with_name("parse.py"))]

    def parse(*files: str, **more: str) -> dict[str, Any]:
        places = [str(PROJECT / "dags" / file) for file in files or ("",)]
        done = subprocess.run(
            [*command, *places], env=env | more, capture_output=True, text=True, check=False, cwd=PROJECT
        )
        assert done.returncode == 0, done.stderr
        parsed: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        return parsed

    return parse


@pytest.fixture(scope="session")
def parsed(parse: Parse) -> Mapping[str, Any]:
    """All DAGs of the project."""
    return parse()
