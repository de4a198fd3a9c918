"""Where the code finds what ships with it, and what another process needs to import it."""

import os
from pathlib import Path

import pytest
from refinery_airflow.embedded.airflow_home import require_plugin

from pipeline_tasks import shipped as module
from pipeline_tasks.cli import reference
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.shipped import checkout, code, python_path, shipped
from tests.embedded import PROJECT


@pytest.fixture
def site_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed wheel, of which the code now thinks that it runs from there."""
    for name in ("dags", "expectations", "sql"):
        (tmp_path / "pipeline_tasks" / name).mkdir(parents=True)
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "pipeline_tasks")
    return tmp_path


@pytest.mark.parametrize("name", ["dags", "expectations", "sql"])
def test_a_checkout_has_its_folders_beside_the_package_and_a_wheel_in_it(
    name: str, request: pytest.FixtureRequest
) -> None:
    assert shipped(name) == PROJECT / name
    site_packages: Path = request.getfixturevalue("site_packages")
    assert shipped(name) == site_packages / "pipeline_tasks" / name


def test_code_is_the_package_and_the_extensions_beside_it(request: pytest.FixtureRequest) -> None:
    assert {PROJECT / "pipeline_tasks", PROJECT / "plugins" / "refinery_ablate"} <= {*code()}
    site_packages: Path = request.getfixturevalue("site_packages")
    assert {site_packages / "pipeline_tasks", site_packages / "refinery_ablate"} <= {*code()}


def test_another_process_finds_a_checkout_and_its_plugins_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "/elsewhere", str(PROJECT)]))
    assert python_path().split(os.pathsep) == [str(PROJECT), str(PROJECT / "plugins"), "/elsewhere"]


@pytest.mark.usefixtures("site_packages")
def test_another_process_finds_a_wheel_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert python_path() == "/elsewhere"


def test_what_needs_a_checkout_refuses_a_wheel(site_packages: Path) -> None:
    for refused in (checkout, lambda: reference.main([])):
        with pytest.raises(RecipeError, match=str(site_packages)):
            refused()


@pytest.mark.usefixtures("site_packages")
def test_the_state_of_a_wheel_is_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REFINERY_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert module.state_folder() == tmp_path / ".refinery"


def metadata(folder: Path, entry: str) -> str:
    """Write the metadata of an installed package that registers a plugin of Airflow; return its folder."""
    place = folder / "refinery_tokens-0.1.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: refinery-tokens\nVersion: 0.1.0\n")
    (place / "entry_points.txt").write_text(f"[airflow.plugins]\n{entry}\n")
    return str(folder)


def test_this_environment_registers_the_plugin_once() -> None:
    require_plugin()


def test_a_plugin_that_is_registered_twice_or_not_at_all_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = "refinery = refinery_airflow.plugin:RefineryPlugin"
    once, again = metadata(tmp_path / "once", ours), metadata(tmp_path / "again", ours)
    other = metadata(tmp_path / "other", "other = other_plugin:OtherPlugin")
    monkeypatch.setattr("sys.path", [once, other])
    require_plugin()
    monkeypatch.setattr("sys.path", [once, again])
    with pytest.raises(RecipeError, match=again):
        require_plugin()
    monkeypatch.setattr("sys.path", [other])
    with pytest.raises(RecipeError, match="pip install"):
        require_plugin()
