"""Refining and building from Python: the manifests of the product's requests, judged by gates, without Airflow."""

from pathlib import Path

import pytest

from pipeline_tasks import api
from pipeline_tasks.ask import known
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.ledger import ledger_of
from tests.chain import How, build_of, built, refined

STAGES: api.Steps = ["ingest", "extract", "filter_language", "dedup_exact", ("dedup_minhash", {"threshold": 0.7})]
RECIPE = "  ingest: {}\n  extract: {}\n  filter_language: {}\n  dedup_exact: {}\n  dedup_minhash: {threshold: 0.7}\n"
DAYS = ("2026-11-19", "2026-11-20")


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(folder, DAYS, scale=0.1)
    return folder


@pytest.fixture(scope="module")
def root(crawl: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both days, refined from Python, and a dataset built of them."""
    root = tmp_path_factory.mktemp("api") / "root"
    recipe = api.recipe(STAGES, "mine")
    for day in DAYS:
        assert api.refine(crawl / day, root, recipe).snapshot == day
    api.build(root, build_of("mine", {}))
    return root


def test_versions_are_those_that_the_requests_of_tasks_make(crawl: Path, root: Path, tmp_path: Path) -> None:
    """By the YAML of the same recipe, without gates: every manifest has the same bytes, the second day's history too."""
    path = tmp_path / "mine.yaml"
    path.write_text(f"stages:\n{RECIPE}")
    other = str(tmp_path / "root")
    days = [refined(other, str(crawl / day), How(recipe=str(path))) for day in DAYS]
    versions = api.versions(root, "mine")
    assert [day.version.manifests for day in days] == [version.manifests for version in versions]
    assert days[1].manifest("dedup_exact").parents[1:] == (days[0].manifest("dedup_exact").fingerprint,)
    assert built(other, build_of("mine", {})).manifests == api.versions(root, "corpus")[0].manifests


def test_every_stage_and_the_snapshot_were_judged(root: Path) -> None:
    refined, dataset = api.versions(root, "mine")[-1], api.versions(root, "corpus")[-1]
    assert set(refined.verdicts) == {*(stage for stage in refined.manifests if stage != "land"), "publish"}
    assert set(dataset.verdicts) == {stage for stage in dataset.manifests if stage != "compose"}


def test_versions_of_all_recipes_are_listed_by_name(root: Path) -> None:
    named = [(version.recipe, version.snapshot) for version in api.versions(root)]
    assert named == [("corpus", "build"), *(("mine", day) for day in DAYS)]


def test_what_is_done_is_found(crawl: Path, root: Path) -> None:
    again = api.refine(crawl / DAYS[1], root, api.recipe(STAGES, "mine"))
    assert again == api.versions(root, "mine")[-1]


def test_sql_asks_a_version(root: Path) -> None:
    counted = api.sql(root, "SELECT count(*) AS n FROM kept", recipe="mine", version=DAYS[0])
    assert counted.to_pylist() == [{"n": api.versions(root, "mine")[0].documents}]


def test_sql_where_nothing_answers_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "entry_of", {}.get)
    with pytest.raises(api.RecipeError, match="nothing that is installed here answers 'sql'; install the package"):
        api.sql(tmp_path, "SELECT 1")


def test_a_gate_refuses_until_a_reason_lets_it_pass(crawl: Path, tmp_path: Path) -> None:
    recipe = api.recipe(["ingest", "extract"], "strict", gates={"ingest": {"rows": {"min_value": 10**9}}})
    with pytest.raises(api.GateRefused, match=r"(?s)gate of ingest refuses ingest/.*override={GATE: WHY}"):
        api.refine(crawl / DAYS[0], tmp_path, recipe)
    assert not api.versions(tmp_path)
    assert api.refine(crawl / DAYS[0], tmp_path, recipe, override={"ingest": "a test"}).documents > 0
    with api.Ledger.open(ledger_of(str(tmp_path))) as ledger:
        judged = [row for row in ledger.query("gates", recipe="strict", snapshot=DAYS[0]) if row["stage"] == "ingest"]
    assert {row["override_reason"] for row in judged} == {"a test"}


def test_a_recipe_that_requires_a_verdict_is_asked_for_it(crawl: Path, tmp_path: Path) -> None:
    recipe = api.recipe(["ingest", "extract"], "judged", requires={"verdict": "not-worse"})
    with pytest.raises(api.GateRefused, match="gate of verdict"):
        api.refine(crawl / DAYS[0], tmp_path, recipe)


def test_what_would_end_a_run_is_said_before_its_first_stage(crawl: Path, tmp_path: Path) -> None:
    recipe = api.recipe(["ingest", "extract", ("filter_url", {"domains": "no/such/list"})], "lists")
    with pytest.raises(api.RecipeError, match="no/such/list"):
        api.refine(crawl / DAYS[0], tmp_path / "root", recipe)
    assert not list(tmp_path.glob("root/*/*/manifest.json"))


def test_a_recipe_of_the_other_kind_is_refused(crawl: Path, tmp_path: Path) -> None:
    with pytest.raises(api.RecipeError, match="refines a snapshot"):
        api.build(tmp_path, api.recipe(["ingest"], "snapshots"))
    with pytest.raises(api.RecipeError, match="builds"):
        api.refine(crawl / DAYS[0], tmp_path, build_of("mine", {}))
