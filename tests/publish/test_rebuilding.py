"""A rebuilt ledger says what the root says, and keeps what only the old one knew."""

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.lost_log import require_log
from pipeline_tasks.ledger.rebuilding import rebuild
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.log_chain import dataset_log, entry_path, head_path
from tests.chain import reply
from tests.small_root import DAYS, RECIPE, RETRACTED, SmallRoot

pytestmark = pytest.mark.slow

FACTS = ("versions", "manifests_of_version", "funnel", "reasons", "quarantine", "gates", "overrides", "retractions")
"""Queries whose rows the root knows, but for times and the engine."""


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    """A copy of the small root, with its ledger."""
    return str(shutil.copytree(small_root.root, tmp_path / "root"))


def answers(root: str) -> dict[str, Any]:
    with Ledger.open(ledger_of(root)) as ledger:
        return {name: [_without_times(row) for row in ledger.query(name)] for name in FACTS}


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "recorded_at"}


def ledger_file(root: str) -> Path:
    return Path(ledger_of(root))


def test_a_lost_ledger_is_made_from_the_root(root: str) -> None:
    before = answers(root)
    assert all(before.values())
    ledger_file(root).unlink()
    rebuilt = rebuild(root, ledger_of(root))
    assert answers(root) == before
    assert (rebuilt.versions, rebuilt.retractions, rebuilt.old, rebuilt.missing) == (3, 1, "", [])


def test_a_readable_ledger_keeps_its_costs_and_prices_and_loses_its_errors(root: str) -> None:
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.set_price("cpu", 1.25)
        costs, before = ledger.query("cost"), answers(root)
    with sqlite3.connect(ledger_file(root)) as connection:
        connection.execute("UPDATE dataset_versions SET documents = 999")
        connection.execute("UPDATE gate_verdicts SET outcome = 'pass'")
        connection.execute("DELETE FROM rejections")
    connection.close()
    rebuilt = rebuild(root, ledger_of(root))
    assert answers(root) == before
    with Ledger.open(ledger_of(root)) as ledger:
        assert ledger.query("cost") == costs
        assert ledger.query("cost_of_tokens")
    with sqlite3.connect(ledger_file(root)) as connection:
        assert connection.execute("SELECT usd_per_hour FROM prices WHERE resource = 'cpu'").fetchone() == (1.25,)
    connection.close()
    assert Path(rebuilt.old).name == "ledger.sqlite.old-1"
    assert rebuilt.unread == []


def test_a_damaged_ledger_is_put_aside(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = answers(root)
    body = ledger_file(root).read_bytes()
    ledger_file(root).write_bytes(body[:4096] + b"\xff" * (len(body) - 4096))
    assert main(["keep", "ledger", root]) == 0
    printed = capsys.readouterr().out
    assert "lost      damaged in the old ledger, rows may be missing: prices, manifests" in printed
    assert "old       now" in printed
    assert answers(root) == before
    assert ledger_file(root).with_name("ledger.sqlite.old-1").read_bytes()[4096:4100] == b"\xff" * 4


def test_what_the_root_cannot_say_any_more_is_listed(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    version = version_log.current(root, RECIPE, DAYS[0])
    path = path_of(version.manifests["extract"])
    Path(root, path).write_bytes(b"{}")
    assert main(["keep", "ledger", root]) == ContractError.exit_code
    assert f"PROBLEM   not recorded: {root}/{path}" in capsys.readouterr().out
    assert {row["snapshot"] for row in answers(root)["retractions"]} == {RETRACTED}


@pytest.mark.parametrize("entries", [(1, 2, 3, 4), (4,)])
def test_a_log_that_was_removed_is_no_new_dataset(
    entries: tuple[int, ...], root: str, small_root: SmallRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of it, or its last entry with its head, a retraction; before, the next run published without a word."""
    for number in entries:
        Path(root, entry_path(RECIPE, number)).unlink()
        Path(root, head_path(RECIPE, number)).unlink()
    named = {"root": root, "recipe": RECIPE, "snapshot": DAYS[0]}
    refused = (
        rf"{root}/datasets/{RECIPE} .* {4 - len(entries)}, .* 4\..*"
        rf"`refinery keep ledger {root}`.*: {RETRACTED} \(.*: a test\)"
    )
    for verb, fields in {"land": {"input": str(small_root.landing / DAYS[0])}, "history": {}}.items():
        with pytest.raises(ContractError, match=refused):
            reply(verb, **named, **fields)
    assert main(["keep", "ledger", root]) == 0
    lost = f"lost      was retracted, and the log does not say so; leave it out, or retract it again: {RETRACTED} of "
    assert lost in capsys.readouterr().out
    facts = reply("history", **named)
    assert [facts[name] for name in ("history", "previous", "trailing", "snapshots")] == [{}, {}, {}, []]


def test_a_whole_log_has_all_that_the_ledger_knows(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keep", "ledger", root]) == 0
    assert "was retracted" not in capsys.readouterr().out
    require_log(root, RECIPE)
    require_log(root, "another")


def test_a_ledger_of_several_roots_is_a_witness_of_the_log_of_each(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said nothing of any before, as a version in it names no root."""
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "shared.sqlite"))
    other = str(shutil.copytree(root, tmp_path / "other"))
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.record_log(other, dataset_log(RECIPE))
    shutil.rmtree(Path(root, "datasets"))
    require_log(root, RECIPE)
    shutil.rmtree(Path(other, "datasets"))
    with pytest.raises(ContractError, match=re.escape(f"{other}/datasets/{RECIPE} ")):
        require_log(other, RECIPE)


def test_a_ledger_of_several_roots_keeps_the_rows_of_the_others(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "shared.sqlite"))
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.record_version(version_log.Version(1, "other", "day", "s3://in", {}, {}, "p/1", 8, 9, 1))
    rebuild(root, ledger_of(root))
    assert {row["recipe"] for row in answers(root)["versions"]} == {RECIPE, "other"}
