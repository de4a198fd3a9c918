"""The import contract of `plugins/` and `dags/`, which import-linter cannot read: their files are in no package."""

import ast
from pathlib import Path

import pytest

from tests.chain import PROJECT

VOCABULARY = {"constraints", "counted", "errors", "manifest", "recipe", "sealed", "stage"}
REQUESTS = {"run.plan", "service.requests"}
READS = {"gate", "inspect", "profiles", "publish", "store", *VOCABULARY}
ALLOWED = {
    "plugins/refinery_alerts.py": {"alerts", "store.storage", *VOCABULARY},
    "plugins/refinery_answers.py": READS,
    "plugins/refinery_approval.py": {"alerts", *VOCABULARY},
    "plugins/refinery_arrivals.py": {
        "alerts",
        "inspect.late_files",
        "inspect.staleness",
        "landing",
        "publish",
        "store",
        *VOCABULARY,
    },
    "plugins/refinery_breakdown.py": READS,
    "plugins/refinery_columns.py": READS,
    "plugins/refinery_build.py": READS,
    "plugins/refinery_compare.py": READS,
    "plugins/refinery_credentials.py": {"store.credential", "store.s3_client", "store.temporary"},
    "plugins/refinery_dataset.py": READS,
    "plugins/refinery_document.py": READS | {"text.urls.takedown"},
    "plugins/refinery_evidence.py": set(),
    "plugins/refinery_failures.py": {"alerts", "publish.ledger", *VOCABULARY},
    "plugins/refinery_find.py": READS | {"text.urls.takedown"},
    "plugins/refinery_form.py": VOCABULARY,
    "plugins/refinery_intruder.py": READS,
    "plugins/refinery_landed.py": {"store", *VOCABULARY},
    "plugins/refinery_launch.py": {
        "engines.address",
        "engines.reach",
        "landing.listing",
        "service",
        *VOCABULARY,
        *REQUESTS,
    },
    "plugins/refinery_lineage.py": READS,
    "plugins/refinery_looks.py": {"store.access_log", *VOCABULARY},
    "plugins/refinery_map.py": READS,
    "plugins/refinery_metrics.py": set(),
    "plugins/refinery_models.py": REQUESTS,
    "plugins/refinery_openlineage.py": {"alerts", *VOCABULARY},
    "plugins/refinery_operators.py": {"alerts", "run.state_cost", *VOCABULARY, *REQUESTS},
    "plugins/refinery_overview.py": READS,
    "plugins/refinery_places.py": VOCABULARY,
    "plugins/refinery_plugin.py": READS,
    "plugins/refinery_purpose.py": {"store.access_log"},
    "plugins/refinery_quarantine.py": {"errors", "run.plan", "service.alone", "service.requests"},
    "plugins/refinery_read.py": READS,
    "plugins/refinery_rejects.py": READS,
    "plugins/refinery_rendering.py": READS,
    "plugins/refinery_retry.py": VOCABULARY,
    "plugins/refinery_roles.py": {"publish.version_log", "recipe"},
    "plugins/refinery_run.py": VOCABULARY,
    "plugins/refinery_search.py": READS,
    "plugins/refinery_session.py": {
        "engines.address",
        "engines.ray_jobs",
        "engines.reach",
        "service",
        "store.temporary",
        *VOCABULARY,
        *REQUESTS,
    },
    "plugins/refinery_runs.py": VOCABULARY,
    "plugins/refinery_sensor.py": {"landing.arrival", "landing.listing", *VOCABULARY},
    "plugins/refinery_similar.py": READS,
    "plugins/refinery_snapshot.py": READS,
    "plugins/refinery_sources.py": {
        "binding",
        "embedded.airflow_home",
        "landing.listing",
        "publish.taking_down",
        "sources",
        "store",
        *VOCABULARY,
    },
    "plugins/refinery_standing.py": {"sources", *READS},
    "plugins/refinery_target.py": READS,
    "plugins/refinery_turn.py": {"landing.arrival", *VOCABULARY},
    "plugins/refinery_walk.py": set(),
    "plugins/refinery_verdicts.py": READS | {"ablate"},
    "plugins/refinery_whatif.py": READS,
    "plugins/refinery_wiring.py": {"sources.recipe", *VOCABULARY},
    "dags/arrivals.py": {"recipe"},
    "dags/build.py": {"recipe"},
    "dags/maintenance.py": {"recipe", *REQUESTS},
    "dags/refine.py": {"recipe"},
    "dags/rollout.py": {"recipe"},
    "dags/sources.py": {"sources.recipe"},
    "dags/train_quality_model.py": set(),
}
"""The modules and rooms of `pipeline_tasks` that each file may import."""


def imported(source: str) -> set[str]:
    """Return the modules of `pipeline_tasks` that `source` imports, relative to it; names of modules are resolved."""
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("pipeline_tasks.") for name in modules if name.startswith("pipeline_tasks.")}


def test_every_file_has_a_contract() -> None:
    files = {str(path.relative_to(PROJECT)) for room in ("plugins", "dags") for path in (PROJECT / room).glob("*.py")}
    assert files == set(ALLOWED)


@pytest.mark.parametrize("file", ALLOWED)
def test_a_file_imports_only_what_its_contract_allows(file: str) -> None:
    names = imported(Path(PROJECT, file).read_text(encoding="utf-8"))
    outside = [name for name in names if not any(f"{name}.".startswith(f"{room}.") for room in ALLOWED[file])]
    assert outside == []


def test_an_import_outside_the_contract_is_seen() -> None:
    source = "def lazily():\n    from pipeline_tasks.engines import spark\n    import pipeline_tasks.cli.main\n"
    assert imported(source) == {"engines.spark", "cli.main"}


def test_airflow_executes_no_file_of_the_folder() -> None:
    """Where it had, a gate's refusal was of another class than the one that the failure callback knows: two messages."""
    from airflow._shared.module_loading import find_path_from_directory

    assert list(find_path_from_directory(str(PROJECT / "plugins"), ".airflowignore", "glob")) == []
