"""`refinery up` shows what `refinery demo` made where nothing else is there, and says so."""

import json
from pathlib import Path

import pytest
from refinery_airflow.embedded.airflow_home import environment
from refinery_airflow.embedded.up import welcome


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an Airflow beside which the demo has run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFINERY_HOME", str(tmp_path / ".refinery"))
    monkeypatch.delenv("REFINERY_ROOT", raising=False)
    (tmp_path / ".refinery" / "demo" / "root").mkdir(parents=True)
    home = tmp_path / ".refinery" / "airflow"
    home.mkdir()
    (home / "simple_auth_manager_passwords.json.generated").write_text(json.dumps({"admin": "secret"}))
    return home


def test_up_looks_where_the_demo_has_written(home: Path) -> None:
    env = environment(home)
    assert env["REFINERY_ROOT"] == str(home.parent / "demo" / "root")
    assert f"{home.parent}/demo/root (the demo's" in welcome(home, env)


@pytest.mark.parametrize("named", [False, True])
def test_a_root_of_ones_own_goes_before_that_of_the_demo(
    home: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    own = home.parent / "root"
    if named:
        monkeypatch.setenv("REFINERY_ROOT", str(own))
    else:
        own.mkdir()
    env = environment(home)
    assert env["REFINERY_ROOT"] == str(own)
    assert "the demo's" not in welcome(home, env)


def test_without_a_demo_the_root_is_the_usual_one(home: Path) -> None:
    (home.parent / "demo" / "root").rmdir()
    assert environment(home)["REFINERY_ROOT"] == str(home.parent / "root")


def test_up_offers_what_has_landed_and_no_demo_for_a_root_of_ones_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The day of the demo was offered for a root of one's own, before whose first day it is."""
    crawl = home.parent / "demo" / "crawl" / "2026-11-19"
    crawl.mkdir(parents=True)
    (crawl / "snapshot.json").write_text("{}")
    assert "2026-11-19 as Snapshot and" in welcome(home, environment(home))
    (home.parent / "own").mkdir()
    monkeypatch.setenv("REFINERY_ROOT", str(home.parent / "own"))
    assert "2026-11-19" not in welcome(home, environment(home))
    for day in ("2026-12-01", "2026-12-02"):
        (home.parent / "landed" / day).mkdir(parents=True)
    monkeypatch.setenv("REFINERY_LANDING", str(home.parent / "landed"))
    said = welcome(home, environment(home))
    assert "enter 2026-12-02 as Snapshot\n" in said
    assert "2026-11-19" not in said
