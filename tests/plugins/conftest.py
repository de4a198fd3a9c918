"""Airflow, embedded in this process; the pages of a root, and who visits them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import small_build
from tests.small_root import SmallRoot


@pytest.fixture(scope="session", autouse=True)
def _airflow(airflow_here: None) -> None:
    """Embed Airflow before a test of this folder imports a plugin."""


@pytest.fixture(scope="session")
def small_root(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    """A copy for the pages: a page that shows texts writes a look into its root."""
    return small_build.copied(small_root, tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def mixed_root(mixed_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for the pages."""
    return Path(shutil.copytree(mixed_root, tmp_path_factory.mktemp("pages") / "root"))


@pytest.fixture
def app(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The pages of the root that a test module has as its fixture `root`."""
    monkeypatch.setenv("REFINERY_ROOT", str(root))
    from refinery_airflow import plugin as refinery_plugin

    return refinery_plugin.app


@pytest.fixture(scope="session")
def auth_manager(_airflow: None) -> None:
    """Airflow's auth manager, of which a process has one: to make its whole web server takes seconds."""
    from airflow.api_fastapi.app import init_auth_manager

    init_auth_manager()


@pytest.fixture
def stranger(app: Any, auth_manager: None) -> Any:
    """A visitor who is not logged in."""
    from fastapi.testclient import TestClient

    return TestClient(app)


@pytest.fixture
def visitor(stranger: Any, app: Any) -> Iterator[Any]:
    """A visitor who may see everything: a steward."""
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import get_user

    app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="ada", role="OP")
    yield stranger
    app.dependency_overrides.clear()
