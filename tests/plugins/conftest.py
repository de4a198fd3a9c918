"""Airflow, embedded in this process for the tests of what is plugged into it."""

import pytest

from tests.embedded import embed_here


@pytest.fixture(scope="session", autouse=True)
def _airflow(tmp_path_factory: pytest.TempPathFactory) -> None:
    embed_here(tmp_path_factory.mktemp("airflow"))
