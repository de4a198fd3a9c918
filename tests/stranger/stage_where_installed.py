"""What `test_stranger` runs in a process that has the package: a snapshot that its stage refined, and who asks of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from refinery_study.read.sample import reasons_of_judges

from pipeline_tasks import api
from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.run.unit_costs import cost_of
from tests.chain import Chain, How, refined, reply

DAY = "2026-11-19"
RECIPE = """
name: brief_days
stages:
  ingest: {}
  extract: {min_chars: 1}
  STAGE: {max_chars: 60}
  dedup_exact: {}
gates:
  STAGE: {retention: {warning: {min_value: 0.95}}}
run: {engines: {STAGE: local}, error_budget: {share: 1}}
"""
NAMES = {"brief": "brief", "brief:STAGE": "brief--STAGE"}
"""How a recipe may write the stage, with the name that it has then."""

Asked = Callable[..., str]


@pytest.fixture(scope="module", params=NAMES)
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Ninety documents in a landed file, thirty of them long, refined and published by a recipe with the stage."""
    folder = tmp_path_factory.mktemp("stranger")
    landing = folder / "landing" / DAY
    landing.mkdir(parents=True)
    texts = [f"Line {at} of a short text.\nAnd one more." * (1 if at % 3 else 4) for at in range(90)]
    rows = [{"text": text, "url": f"https://example.org/{at}"} for at, text in enumerate(texts)]
    (landing / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "brief_days.yaml").write_text(RECIPE.replace("STAGE:", f'"{request.param}":'))
    return refined(str(folder / "root"), str(landing), How(str(folder / "brief_days.yaml")))


@pytest.fixture
def stage(chain: Chain) -> str:
    """The name of the stage in the root."""
    return next(name for name in NAMES.values() if name in chain.version.manifests)


@pytest.fixture
def asked(chain: Chain, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Ask a command of the root; return what it printed. AssertionError unless it ends well."""
    monkeypatch.chdir(Path(chain.root).parent)

    def ask(*words: str) -> str:
        assert main([*words]) == 0, capsys.readouterr()
        return capsys.readouterr().out

    return ask


def test_it_conserves_rows_and_its_distribution_is_identity(chain: Chain, stage: str) -> None:
    manifest = chain.manifest(stage)
    assert (manifest.rows_in, manifest.rows, manifest.rejected) == (90, 60, {"brief:long": 30})
    assert manifest.libraries["refinery-brief"] == "1.0"
    assert {row["n_lines"] for row in chain.rows(stage)} == {2}


def test_its_gate_has_its_suite_and_the_bounds_of_the_recipe(chain: Chain, stage: str) -> None:
    named = {"root": chain.root, "recipe": "brief_days", "snapshot": DAY}
    bounds = {"retention": {"critical": {"min_value": 0.9}}}
    judged = reply("judge", **named, manifest=chain.version.manifests[stage], bounds=bounds, override="a test")
    assert [failure["column"] for failure in judged["failures"]] == ["retention"]


def test_who_plans_and_foretells_asks_its_card(asked: Asked, stage: str) -> None:
    assert cost_of(stage).seconds == 0.01
    assert stage_card(stage).removes == "unfit"
    assert "brief" in asked("lint", "brief_days.yaml")


def test_every_question_of_a_root_knows_it(asked: Asked, chain: Chain, stage: str) -> None:
    rejected = chain.rows(stage, "rejects", ["id"])[0]["id"]
    assert asked("verify", chain.root)
    assert f"{stage}" in asked("look", "funnel", chain.root)
    assert "brief:long" in asked("rejects", chain.root, "--stage", stage)
    assert "brief:long" in asked("document", rejected, chain.root)
    assert "brief:long" in asked("sql", chain.root, "SELECT reason FROM rejects")
    assert "brief:long" in reasons_of_judges(chain.root, chain.version)
    assert stage in asked("look", "lineage", chain.root)


@pytest.mark.parametrize("name", NAMES)
def test_the_library_applies_it(name: str) -> None:
    kept, rejected = api.apply(name, pa.table({"text": ["One line.", "One\nand two"]}), max_chars=10)
    assert kept.select(["text", "n_lines"]).to_pylist() == [{"text": "One line.", "n_lines": 1}]
    assert rejected.select(["text", "reason", "evidence"]).to_pylist() == [
        {"text": "One\nand two", "reason": "brief:long", "evidence": "{}"}
    ]


def test_vacuum_finds_what_it_left_and_nothing_that_is_in_use(asked: Asked, chain: Chain, stage: str) -> None:
    left = Path(chain.root) / stage / ("0" * 32) / "data" / "left.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"left by a killed run")
    asked("keep", "vacuum", chain.root, "--apply", "--grace", "0")
    assert not left.exists()
    assert asked("verify", chain.root)


def test_a_typed_name_is_told_the_nearest_one() -> None:
    with pytest.raises(RecipeError, match="did you mean 'brief'"):
        parse_recipe({"stages": {"ingest": {}, "breif": {}}}, "mine.yaml")
    with pytest.raises(RecipeError, match="no installed package has that module"):
        parse_recipe({"stages": {"ingest": {}, "no_such_module:STAGE": {}}}, "mine.yaml")
