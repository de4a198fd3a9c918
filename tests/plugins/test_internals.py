"""What of Airflow's private parts is used is listed, and the Airflow of this environment has it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from refinery_airflow import internals
from refinery_airflow.internals import BEHAVIORS, INTERNALS, PROVIDERS, PUBLIC, Internal, faults

PROJECT = Path(__file__).parents[2]


def imported() -> Iterator[tuple[str, str]]:
    """Yield module and name of each import of Airflow in the project."""
    for folder in ("dags", "plugins", "pipeline_tasks"):
        for path in (PROJECT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    yield from ((node.module or "", alias.name) for alias in node.names)
                elif isinstance(node, ast.Import):
                    yield from ((alias.name, "") for alias in node.names)


def test_all_private_parts_of_airflow_that_are_imported_are_listed() -> None:
    of_airflow = {part for part in imported() if part[0].partition(".")[0] == "airflow"}
    private = {part for part in of_airflow if part[0] not in PUBLIC and not part[0].startswith(PROVIDERS)}
    assert private == {(part.module, part.name) for part in INTERNALS}


def test_the_airflow_of_this_environment_has_them() -> None:
    assert list(faults()) == []
    assert all((PROJECT / test).exists() for test in BEHAVIORS.values())


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (Internal("airflow.gone", "Gone", "w"), "airflow.gone.Gone"),
        (Internal("airflow.sdk.execution_time.hitl", "gone", "w"), "hitl.gone"),
        (Internal("airflow.sdk.execution_time.hitl", "upsert_hitl_detail", "w", ("ti_id", "gone")), "has no gone"),
        (Internal("airflow.sdk.configuration", "conf", "w", ("gone",)), "has no gone"),
    ],
)
def test_a_part_that_is_gone_is_named(part: Internal, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internals, "INTERNALS", (*INTERNALS, part))
    (fault,) = faults()
    assert named in fault
    assert fault.endswith(": w")
