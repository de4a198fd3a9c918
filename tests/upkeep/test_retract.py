"""Retracting any snapshot equals never having had it, and restoring it equals never having retracted it."""

import json
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.commands import retract
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.inspect.versions.staleness import stale_versions
from pipeline_tasks.inspect.versions.status import status_lines
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.superseded import read_superseded
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.chain import reply

RECIPE = "web"
STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ingest", {}),
    ("extract", {"min_chars": 20}),
    ("dedup_exact", {"buckets": 2}),
    ("dedup_minhash", {"buckets": 2, "policy": ["longest", "lowest_id"]}),
)
DAYS = ("2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22")


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four days of the same pages, edited and copied: every day equals, resembles and supersedes some of another."""
    folder, draws = tmp_path_factory.mktemp("crawl"), random.Random(3)
    pages = [[f"word{draws.randrange(10**6)}" for _ in range(80)] for _ in range(12)]
    for number, name in enumerate(DAYS):
        (folder / name).mkdir()
        texts = []
        for page in draws.sample(pages, 8):
            extra = [f"day{number}"] * draws.randrange(3)
            texts.append(" ".join([*page, *extra]))
        lines = [
            json.dumps({"text": text, "url": f"https://example.org/{number}/{at}"}) for at, text in enumerate(texts)
        ]
        (folder / name / "pages.jsonl").write_text("\n".join(lines))
    return folder


def refine(root: str, uri: Path, recipe: str = RECIPE) -> version_log.Version:
    """Refine one day as its DAG does: land, stages with all earlier days as history, publish."""
    landed = reply("land", root=root, input=str(uri), recipe=recipe)
    named = {"root": root, "recipe": recipe, "snapshot": landed["snapshot"]}
    history = reply("history", **named)["history"]
    parent = landed["manifest"]
    manifests = {"land": parent}
    for stage, params in STEPS:
        request = {"stage": stage, "params": params, "parent": parent, "history": history.get(stage, [])}
        refined = reply("refine", **named, **request, landing=landed["landing"])
        parent = manifests[stage] = refined["manifest"]
    reply("publish", **named, landing=landed["landing"], manifests=manifests)
    return version_log.current(root, recipe, landed["snapshot"])


def record(root: str, day: str, reason: str = "", *, undo: bool = False) -> None:
    """Record in log and ledger that a day is retracted or restored, as `refinery retract` does."""
    with Ledger.open(ledger_of(root)) as ledger:
        retract.record(root, RECIPE, day, reason, undo=undo, ledger=ledger)


def ledger_status(root: str, day: str) -> tuple[int | None, str | None]:
    """The version of a day that is published according to the ledger, and why it is retracted if it is."""
    with Ledger.open(ledger_of(root)) as ledger:
        (row,) = [row for row in ledger.query("status", recipe=RECIPE) if row["snapshot"] == day]
    return row["version"], row["retraction_reason"]


def redo(root: str, snapshot: str) -> list[str]:
    """Refine stale days again, as `refinery retract` does; return those days."""
    days = []
    while (due := retract.next_due(root, RECIPE, snapshot)) is not None:
        refine(root, Path(retract.landed(root, due.version)))
        days.append(due.version.snapshot)
    return days


def stale(root: str) -> list[str]:
    """The snapshots that were refined with another history than there is now."""
    versions = version_log.latest_by_snapshot(root, RECIPE)
    return [stale_version.version.snapshot for stale_version in stale_versions(root, versions)]


def dataset(root: str) -> set[str]:
    """The documents of the dataset: what every day kept, less what later days superseded."""
    kept = {
        document
        for version in version_log.latest_by_snapshot(root, RECIPE)
        for batch in read_shards(root, read_manifest(root, version.manifests["dedup_minhash"]).shards, ["id"])
        for document in batch.column("id").to_pylist()
    }
    superseded = {id_ for batch in read_superseded(root, RECIPE) for id_ in batch["id"].to_pylist()}
    assert superseded <= kept
    return kept - superseded


def summaries(root: str) -> dict[str, tuple[str, int, int]]:
    """Each live day's last manifest, and the counts of its version."""
    live = version_log.latest_by_snapshot(root, RECIPE)
    return {
        version.snapshot: (version.manifests["dedup_minhash"], version.documents, version.superseded)
        for version in live
    }


def without(day: str) -> tuple[str, ...]:
    return tuple(other for other in DAYS if other != day)


@pytest.fixture(scope="module")
def after(crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A root after each number of days; tests work on a copy."""
    roots = {0: tmp_path_factory.mktemp("after0")}
    for number, day in enumerate(DAYS, 1):
        roots[number] = shutil.copytree(roots[number - 1], tmp_path_factory.mktemp("days") / "root")
        refine(str(roots[number]), crawl / day)
    return roots


@pytest.fixture(scope="module")
def full(
    after: dict[int, Path], crawl: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, ...], tuple[set[str], Any]]:
    """The dataset after each set of days that the tests compare with."""
    datasets = {}
    for days in [DAYS, *map(without, DAYS)]:
        same = next((number for number, day in enumerate(days) if day != DAYS[number]), len(days))
        root = str(shutil.copytree(after[same], tmp_path_factory.mktemp("plain") / "root"))
        for day in days[same:]:
            refine(root, crawl / day)
        datasets[days] = dataset(root), summaries(root)
    return datasets


@pytest.mark.parametrize("day", DAYS)
def test_retracting_a_day_equals_never_having_had_it(
    day: str, after: dict[int, Path], tmp_path: Path, full: dict[tuple[str, ...], tuple[set[str], Any]]
) -> None:
    root = str(shutil.copytree(after[4], tmp_path / "root"))
    before = version_log.versions(root, RECIPE)
    assert len(before) == len(DAYS)
    assert (dataset(root), summaries(root)) == full[DAYS]
    planned = [due.version.snapshot for due in retract.later(root, RECIPE, day)]
    record(root, day, "a test day")
    assert redo(root, day) == planned == [other for other in DAYS if other > day]
    assert (dataset(root), summaries(root)) == full[without(day)]
    assert stale(root) == []
    assert ledger_status(root, day) == (None, "a test day")
    assert version_log.versions(root, RECIPE)[: len(DAYS)] == before, "published versions never change"
    assert verify(root).findings.problems == []
    page = storage.connect(root).read(version_log.latest_by_snapshot(root, RECIPE)[-1].report).decode()
    assert ("a test day" in page) == (day < DAYS[-1])

    record(root, day, undo=True)
    redo(root, day)
    assert (dataset(root), summaries(root)) == full[DAYS]
    assert ledger_status(root, day) == (version_log.current(root, RECIPE, day).number, None)


def test_a_dataset_with_every_snapshot_retracted_has_a_status(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path)
    refine(root, crawl / DAYS[0])
    record(root, DAYS[0])
    assert main(["status", root]) == 0
    account = version_log.retractions(root, RECIPE)[DAYS[0]].account
    assert re.fullmatch(r"retracted on \d{4}-\d\d-\d\d \d\d:\d\d UTC", account)
    assert f"{DAYS[0]:<20}{account}" in capsys.readouterr().out
    assert main(["status", root, "--json"]) == 0
    (retracted,) = json.loads(capsys.readouterr().out)
    assert {**retracted, "retracted_at": ""} == {
        "recipe": RECIPE,
        "snapshot": DAYS[0],
        "note": account,
        "retracted_at": "",
        "reason": "",
    }
    assert retracted["retracted_at"][:16].replace("T", " ") in account
    assert main(["look", "report", root]) == RecipeError.exit_code
    assert f"snapshot {DAYS[0]} of recipe {RECIPE} was {account}" in capsys.readouterr().err


def test_days_supersede_each_other_and_versions_count_it(after: dict[int, Path]) -> None:
    root = str(after[4])
    versions = version_log.versions(root, RECIPE)
    superseded = [row for batch in read_superseded(root, RECIPE) for row in batch.to_pylist()]
    assert len(superseded) == sum(version.superseded for version in versions) > 0
    assert all(0 < version.superseding <= version.superseded for version in versions if version.superseded)
    for row in superseded:
        assert row["similarity"] >= 0.8
        assert row["bands"] > 0
        assert row["snapshot"] < row["winner_snapshot"]
    (last,) = [version for version in versions if version.snapshot == superseded[0]["winner_snapshot"]]
    page = storage.connect(root).read(last.report).decode()
    assert "Superseded" in page
    assert superseded[0]["snapshot"] in page
    lines = list(status_lines(root, versions, {DAYS[0]: "a note"}))
    assert "superseded" in lines[0]
    assert lines[2].strip() == "a note"


def test_a_retraction_is_recorded_once_and_continues_where_it_was_interrupted(
    after: dict[int, Path], crawl: Path, tmp_path: Path
) -> None:
    root = str(shutil.copytree(after[3], tmp_path / "root"))
    for _ in range(2):
        record(root, DAYS[0], "spam")
    assert len(version_log.log(root, RECIPE)) == 4
    assert version_log.retractions(root, RECIPE)[DAYS[0]].reason == "spam"
    assert stale(root) == list(DAYS[1:3])
    refine(root, crawl / DAYS[1])  # and here the power fails
    assert stale(root) == [DAYS[2]]
    assert redo(root, DAYS[0]) == [DAYS[2]]


def test_a_retracted_day_is_neither_shown_nor_refined_again_from_the_same_files(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "root")
    day = tmp_path / DAYS[0]
    day.mkdir()
    text = (crawl / DAYS[0] / "pages.jsonl").read_text()
    (day / "pages.jsonl").write_text(text)
    refine(root, day)
    refine(root, crawl / DAYS[1])
    record(root, DAYS[0], "spam")
    with pytest.raises(RecipeError, match=f"{DAYS[0]} of recipe {RECIPE} .*: spam"):
        version_log.current(root, RECIPE, DAYS[0])
    with pytest.raises(RecipeError, match=f"{DAYS[0]} of recipe {RECIPE} .*`refinery retract --undo {DAYS[0]} "):
        refine(root, day)
    assert main(["status", root]) == 0
    printed = capsys.readouterr().out
    assert re.search("retracted on .* UTC: spam", printed)
    assert "stale from ingest on" in printed
    (day / "pages.jsonl").write_text(text.replace("word", "cure"))
    assert refine(root, day).number == 4
    assert version_log.retractions(root, RECIPE) == {}
    assert ledger_status(root, DAYS[0]) == (4, None)


def test_a_ledger_that_missed_a_retraction_gets_it_later(crawl: Path, tmp_path: Path) -> None:
    root = str(tmp_path)
    refine(root, crawl / DAYS[0])
    version_log.retract(root, RECIPE, DAYS[0], "spam")  # and here the power fails
    assert ledger_status(root, DAYS[0]) == (1, None)
    record(root, DAYS[0], "not the reason that is in the log")
    assert ledger_status(root, DAYS[0]) == (None, "spam")
    version_log.restore(root, RECIPE, DAYS[0])  # and here again
    record(root, DAYS[0], undo=True)
    assert ledger_status(root, DAYS[0]) == (3, None)


def unknown(root: str, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["retract", *arguments, root]) == RecipeError.exit_code
    return capsys.readouterr().err


def test_snapshots_that_cannot_be_retracted_are_refused(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path / "root")
    Path(root).mkdir()
    assert "published here: nothing" in unknown(root, ["2026-11-19"], capsys)
    moved = tmp_path / DAYS[1]
    moved.mkdir()
    (moved / "pages.jsonl").write_text((crawl / DAYS[1] / "pages.jsonl").read_text())
    refine(root, crawl / DAYS[0])
    refine(root, moved)
    assert "it has 2026-11-19, 2026-11-20" in unknown(root, ["2026-11-18"], capsys)
    (moved / "pages.jsonl").unlink()
    assert "Bring its files back" in unknown(root, [DAYS[0]], capsys)
    assert len(version_log.log(root, RECIPE)) == 2
    with pytest.raises(RecipeError, match=f"'{DAYS[0]}' of recipe {RECIPE} "):
        version_log.restore(root, RECIPE, DAYS[0])


def test_a_custom_recipe_must_be_named_if_a_snapshot_is_refined_again(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path)
    for day in DAYS[:2]:
        refine(root, crawl / day, "ours")
    assert "published here: ours" in unknown(root, [DAYS[0], "--recipe", "web"], capsys)
    for arguments in (
        ["retract", "--dry-run", DAYS[1], root, "more"],
        ["retract", DAYS[1], "--dry-run", "--none", root],
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
    assert "unrecognized arguments: more" in capsys.readouterr().err
    assert "give the path of its YAML file" in unknown(root, [DAYS[0]], capsys)
    assert version_log.retractions(root, "ours") == {}
    for undo in ([], ["--undo"]):
        assert main(["retract", DAYS[1], root, *undo]) == 0
        assert list(version_log.retractions(root, "ours")) == ([] if undo else [DAYS[1]])


@pytest.mark.usefixtures("airflow_here")
def test_a_snapshot_comes_back_without_what_was_taken_down_meanwhile(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its version is restored and refined again; before, it came back as it was."""
    root, recipe = str(tmp_path / "root"), tmp_path / "ours.yaml"
    recipe.write_text(json.dumps({"name": "ours", "stages": dict(STEPS[:3])}))
    run = ["run", "--input", str(crawl / DAYS[0]), "--output", root, "--recipe", str(recipe)]
    assert main(run) == 0
    url = "https://example.org/0/3"
    retracting = ["retract", DAYS[0], root, "--recipe", str(recipe)]
    assert main([*retracting, "--reason", "a leak"]) == 0
    assert main(["takedown", root, "--url", url, "--reason", "a letter"]) == 0
    assert main([*retracting, "--undo", "--dry-run"]) == 0
    assert f"{DAYS[0]}: refined again itself, without what was taken down since" in capsys.readouterr().out
    assert version_log.retractions(root, "ours")
    for _ in range(2):  # the second time, nothing is left to do
        assert main([*retracting, "--undo"]) == 0
        version = version_log.current(root, "ours", DAYS[0])
        batches = read_shards(root, read_manifest(root, version.refined).shards, ["url"])
        urls = {url for batch in batches for url in batch["url"].to_pylist()}
        assert (version.number, len(urls), url in urls) == (4, 7, False)


def test_a_dry_run_lists_what_would_be_refined_again(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path)
    refine(root, crawl / DAYS[0])
    refine(root, crawl / DAYS[1])
    assert main(["retract", DAYS[0], root, "--dry-run"]) == 0
    assert "2026-11-20: refined again from ingest on (now version 2)" in capsys.readouterr().out
    assert main(["retract", DAYS[1], root, "--dry-run"]) == 0
    assert "nothing after 2026-11-20" in capsys.readouterr().out
    assert len(version_log.log(root, RECIPE)) == 2


def test_a_repeated_retraction_prints_that_it_is_recorded(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path)
    refine(root, crawl / DAYS[0])
    assert main(["retract", DAYS[0], root, "--undo"]) == 0
    assert "is not retracted" in capsys.readouterr().out
    for line in ("retracting 2026-11-19 of", r"2026-11-19 of .* was retracted on .* UTC: spam"):
        assert main(["retract", DAYS[0], root, "--reason", "spam"]) == 0
        assert re.search(line, capsys.readouterr().out)
    assert main(["retract", DAYS[0], root, "--undo"]) == 0
    assert re.search("restoring .* UTC: spam", capsys.readouterr().out)
    assert ledger_status(root, DAYS[0]) == (3, None)


def test_commands_print_which_snapshot_they_read(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(tmp_path)
    version = refine(root, crawl / DAYS[0])
    assert main(["look", "report", root, "--json"]) == 0
    named = {"recipe": RECIPE, "snapshot": DAYS[0], "version": 1}
    assert json.loads(capsys.readouterr().out) == {**named, "report": f"{root}/{version.report}"}
    assert main(["look", "funnel", root]) == 0
    assert capsys.readouterr().out.startswith(f"{RECIPE} version 1, snapshot {DAYS[0]}\ningest ")
    assert main(["look", "trace", root, "--token", "0"]) == RecipeError.exit_code
    assert f"{root} has no training dataset 'corpus'" in capsys.readouterr().err
    assert main(["verify", root, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["problems"] == []
    (account,) = report["versions"]
    assert account.items() >= {**named, "records": 8}.items()
    assert account["published"] + sum(account["rejected"].values()) == 8
