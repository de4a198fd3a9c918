"""The import contract of Airflow's side and of `dags/`, file by file, which import-linter has no way to say."""

import ast
from pathlib import Path

import pytest

from tests.chain import PROJECT

VOCABULARY = {
    "cards",
    "constraints",
    "counted",
    "deployment",
    "errors",
    "manifest",
    "recipe",
    "schema",
    "sealed",
    "stage",
}
REQUESTS = {"run.plan", "run.request", "service.requests"}
READS = {"ask", "gate", "inspect", "ledger", "plots", "profiles", "publish", "report", "store", *VOCABULARY}
ALLOWED = {
    "plugins/refinery_airflow/alerts/alerts.py": {"alerts", "flow.gates", *VOCABULARY},
    "plugins/refinery_airflow/pages/answers.py": READS,
    "plugins/refinery_airflow/tasks/ablation.py": {"service", *VOCABULARY, *REQUESTS},
    "plugins/refinery_airflow/tasks/approval.py": {"alerts", "flow", "service.requests.gates", *VOCABULARY},
    "plugins/refinery_airflow/tasks/arrivals.py": {
        "alerts",
        "inspect.versions.late_files",
        "inspect.versions.staleness",
        "landing",
        "publish",
        "report.summary",
        "store",
        *VOCABULARY,
    },
    "plugins/refinery_airflow/pages/ask.py": READS,
    "plugins/refinery_airflow/pages/errors.py": VOCABULARY,
    "plugins/refinery_airflow/pages/fields.py": set(),
    "plugins/refinery_airflow/pages/files.py": READS,
    "plugins/refinery_airflow/pages/purpose.py": {"store.access_log"},
    "plugins/refinery_airflow/texts/sample.py": READS,
    "plugins/refinery_airflow/texts/trace.py": READS,
    "plugins/refinery_airflow/texts/columns.py": READS,
    "plugins/refinery_airflow/pages/build.py": READS,
    "plugins/refinery_airflow/pages/compare.py": READS,
    "plugins/refinery_airflow/runs/clouds.py": VOCABULARY,
    "plugins/refinery_airflow/runs/credentials.py": {
        "ledger",
        "store.credential",
        "store.named_store",
        "store.places",
        "store.s3.client",
        "store.store_settings",
        "store.temporary",
        *VOCABULARY,
    },
    "plugins/refinery_airflow/pages/dataset.py": READS,
    "plugins/refinery_airflow/texts/document.py": READS | {"text.urls.takedown"},
    "plugins/refinery_airflow/embedded/airflow.py": {"shipped"},
    "plugins/refinery_airflow/embedded/airflow_home.py": {
        "demo.FOLDER",
        "engines.card",
        "engines.early_start",
        "shipped",
        *VOCABULARY,
    },
    "plugins/refinery_airflow/embedded/connections.py": set(),
    "plugins/refinery_airflow/embedded/postgresql.py": VOCABULARY,
    "plugins/refinery_airflow/embedded/runner.py": {
        "engines.early_start",
        "flow.running",
        "run.runners",
        "shipped",
        *VOCABULARY,
    },
    "plugins/refinery_airflow/embedded/standalone.py": set(),
    "plugins/refinery_airflow/embedded/up.py": {"demo.FOLDER", "run.loops", "service.daemon", "shipped", *VOCABULARY},
    "plugins/refinery_airflow/tasks/failures.py": {"alerts.sent", "deployment", "flow.failures"},
    "plugins/refinery_airflow/texts/find.py": READS | {"text.urls.takedown", "text.urls.takedown_entries"},
    "plugins/refinery_airflow/runs/form.py": VOCABULARY,
    "plugins/refinery_airflow/texts/intruder.py": READS,
    "plugins/refinery_airflow/internals.py": set(),
    "plugins/refinery_airflow/pages/landed.py": {"store", *VOCABULARY},
    "plugins/refinery_airflow/tasks/launch.py": {
        "binding.places_in",
        "engines.address",
        "engines.card",
        "landing.listing",
        "service",
        *VOCABULARY,
        *REQUESTS,
    },
    "plugins/refinery_airflow/access/looks.py": {"store.access_log", *VOCABULARY},
    "plugins/refinery_airflow/texts/map.py": READS,
    "plugins/refinery_airflow/alerts/metrics.py": {"alerts.sent"},
    "plugins/refinery_airflow/tasks/models.py": REQUESTS,
    "plugins/refinery_airflow/questions.py": {"ask.known"},
    "plugins/refinery_airflow/alerts/openlineage.py": {"alerts", "flow.attempt", *VOCABULARY},
    "plugins/refinery_airflow/alerts/openlineage_provider.py": {"alerts"},
    "plugins/refinery_airflow/tasks/operators.py": {"flow", *VOCABULARY, *REQUESTS},
    "plugins/refinery_airflow/pages/overview.py": READS | {"flow.plan"},
    "plugins/refinery_airflow/runs/places.py": {"binding.places_in", "store.store_settings", *VOCABULARY},
    "plugins/refinery_airflow/plugin.py": {"ask.question"},
    "plugins/refinery_airflow/access/purpose.py": {"store.access_log"},
    "plugins/refinery_airflow/tasks/quarantine.py": {"flow"} | REQUESTS,
    "plugins/refinery_airflow/texts/read.py": READS,
    "plugins/refinery_airflow/texts/rejects.py": READS,
    "plugins/refinery_airflow/pages/rendering.py": READS,
    "plugins/refinery_airflow/tasks/retry.py": {"flow.tries"},
    "plugins/refinery_airflow/access/roles.py": {"ask.question", "flow.plan", "publish.logs", *VOCABULARY},
    "plugins/refinery_airflow/pages/roots.py": READS,
    "plugins/refinery_airflow/runs/run.py": {"flow.attempt", "flow.plan", *VOCABULARY},
    "plugins/refinery_airflow/texts/search.py": READS,
    "plugins/refinery_airflow/tasks/session.py": {
        "engines.card",
        "engines.cluster_jobs",
        "service",
        "store.temporary",
        *VOCABULARY,
        *REQUESTS,
    },
    "plugins/refinery_airflow/runs/newest.py": {"flow.plan", *VOCABULARY},
    "plugins/refinery_airflow/tasks/sensor.py": {"flow.attempt", "landing.arrival", "landing.listing", *VOCABULARY},
    "plugins/refinery_airflow/pages/snapshot.py": READS,
    "plugins/refinery_airflow/tasks/sources.py": {
        "binding",
        "landing.listing",
        "publish.taking_down",
        "shipped",
        "store",
        *VOCABULARY,
    },
    "plugins/refinery_airflow/pages/standing.py": READS,
    "plugins/refinery_airflow/pages/target.py": READS,
    "plugins/refinery_airflow/tasks/turn.py": {"flow.plan", "landing.arrival", *VOCABULARY},
    "plugins/refinery_airflow/tasks/walk.py": set(),
    "plugins/refinery_airflow/pages/verdicts.py": READS,
    "plugins/refinery_airflow/pages/whatif.py": READS | {"flow.plan"},
    "plugins/refinery_airflow/tasks/wiring.py": {"flow.plan", *VOCABULARY},
    "dags/arrivals.py": {"deployment", "recipe"},
    "dags/build.py": {"flow.plan", "recipe"},
    "dags/maintenance.py": {"deployment", "recipe", *REQUESTS},
    "dags/refine.py": {"deployment", "flow.plan", "recipe"},
    "dags/ablate.py": {"deployment"},
    "dags/refused.py": {"errors"},
    "dags/rollout.py": {"deployment", "recipe"},
    "dags/sources.py": {"deployment"},
    "dags/train_quality_model.py": {"deployment"},
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
    files = {
        str(path.relative_to(PROJECT))
        for room in ("plugins/refinery_airflow", "dags")
        for path in (PROJECT / room).rglob("*.py")
    }
    files = {file for file in files if not file.endswith("__init__.py")}
    assert files == set(ALLOWED)


@pytest.mark.parametrize("file", ALLOWED)
def test_a_file_imports_only_what_its_contract_allows(file: str) -> None:
    names = imported(Path(PROJECT, file).read_text(encoding="utf-8"))
    outside = [name for name in names if not any(f"{name}.".startswith(f"{room}.") for room in ALLOWED[file])]
    assert outside == []


def test_an_import_outside_the_contract_is_seen() -> None:
    source = "def lazily():\n    from pipeline_tasks.engines import choose\n    import pipeline_tasks.cli.main\n"
    assert imported(source) == {"engines.choose", "cli.main"}


def test_airflow_executes_no_file_of_the_folder() -> None:
    """Where it had, a gate's refusal was of another class than the one that the failure callback knows: two messages."""
    from airflow._shared.module_loading import find_path_from_directory

    assert list(find_path_from_directory(str(PROJECT / "plugins"), ".airflowignore", "glob")) == []
