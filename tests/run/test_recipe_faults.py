"""What a run of a recipe would refuse later is found before it starts, each kind by a planted recipe."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cards import adds, has_param, stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.preflight import PlannedRun, recipes, refuse
from pipeline_tasks.recipe import Recipe, load_recipe, parse_recipe
from pipeline_tasks.run.recipe_faults import (
    PII_CONNECTION,
    check_secrets,
    file_faults,
    missing_files,
    order_faults,
    type_faults,
    vectors_of,
)
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.stages import NAMES
from tests.static_embeddings import write_embeddings

START: dict[str, Any] = {"ingest": {}, "extract": {}}
KEY = "REFINERY_PII_KEY"


def recipe(stages: Mapping[str, Any], **run: Any) -> Recipe:
    return parse_recipe({"stages": stages, "run": run}, "ours")


def found(ours: Recipe) -> list[tuple[str, bool]]:
    return [(finding.where, finding.fault) for finding in order_faults(ours)]


@pytest.mark.parametrize("name", ["web", "web_en"])
def test_a_shipped_recipe_has_no_fault_of_order(name: str) -> None:
    assert found(load_recipe(name)) == []


def test_a_recipe_that_begins_with_landed_records_as_they_are_is_found() -> None:
    assert found(recipe({"extract": {}})) == [("extract", True)]
    assert found(recipe(START)) == []


def test_a_stage_before_the_one_that_writes_what_it_needs_is_found_with_its_place() -> None:
    (finding,) = order_faults(recipe({"ingest": {}, "filter_quality": {}, "extract": {}}))
    assert (finding.where, finding.fault) == ("filter_quality", True)
    assert {"language", "extract", "filter_language"} <= set(re.findall(r"\w+", finding.message))


def test_a_stage_behind_the_one_that_removes_what_it_needs_is_found_with_its_place() -> None:
    *_, finding = order_faults(recipe({"extract": {}, "ingest": {}}))
    assert (finding.where, finding.fault) == ("ingest", True)
    assert {"payload", "extract"} <= set(re.findall(r"\w+", finding.message))


@pytest.mark.parametrize("stage", [name for name in NAMES if has_param(name, "prefer")])
def test_a_type_of_files_that_nobody_reads_is_found_with_the_one_that_was_meant(stage: str) -> None:
    ours = recipe({**START, "embed": {"model": "m"}, stage: {"prefer": {"type": ["pfd", "html"]}}})
    (finding,) = type_faults(ours)
    assert (finding.where, finding.fault) == (stage, True)
    assert "'pfd' (did you mean 'pdf'?)" in finding.message
    with pytest.raises(RecipeError, match=f"{stage}: `prefer`: no type of file is called 'pfd'"):
        refuse([*recipes(PlannedRun("root", (ours,)))])


def test_values_of_other_columns_are_free() -> None:
    assert not list(type_faults(recipe({**START, "dedup_exact": {"prefer": {"source": ["pfd"]}}})))


def test_stages_that_read_vectors_leave_all_columns_to_those_behind() -> None:
    before = {**START, "filter_language": {}, "embed": {"model": "model"}}
    topics: dict[str, Any] = {"topics": {"topics": "topics.json"}}
    assert found(recipe(before | {"dedup_semantic": {}, "filter_toxicity": {}} | topics)) == []
    assert found(recipe(before | topics | {"enrich": {}, "dedup_semantic": {}})) == []


def test_every_stage_that_makes_vectors_says_of_which_model() -> None:
    makers = [name for name in NAMES if adds(EMBEDDING, name)]
    assert makers
    assert [name for name in makers if not stage_card(name).vectors] == []


def test_vectors_are_of_the_model_that_a_step_names_and_of_none_where_it_makes_none(tmp_path: Path) -> None:
    folders = [write_embeddings(tmp_path / name, words) for name, words in (("a", ["one"]), ("b", ["two"]))]
    steps = [recipe({**START, "embed": {"model": folder}}).steps[-1] for folder in folders]
    assert len({vectors_of(step).name for step in steps}) == len(folders)
    assert vectors_of(recipe({**START, "filter_url": {}}).steps[-1]).name == ""


def test_any_stage_may_be_the_last_as_its_documents_are_published() -> None:
    before = {**START, "filter_language": {}, "dedup_exact": {}}
    assert found(recipe(before | {"embed": {"model": "model"}, "scrub_pii": {}})) == []
    assert found(recipe(before | {"scrub_pii": {}, "embed": {"model": "model"}})) == []
    assert found(recipe(before | {"score_quality": {}, "dedup_minhash": {}, "decontaminate": {}})) == []


def test_gpus_for_a_stage_that_uses_none_are_found() -> None:
    asked = recipe({**START, "filter_url": {}}, resources={"filter_url": {"gpus": 1}})
    assert found(asked) == [("filter_url", True)]
    assert found(recipe({**START, "filter_url": {}}, resources={"filter_url": {"gpus": 0}})) == []


def test_a_file_that_is_not_there_is_found_by_its_stage(tmp_path: Path) -> None:
    lists = {"filter_url": {"domains": str(tmp_path / "none.txt")}}
    for faults in (missing_files, file_faults):
        (finding,) = faults(recipe({**START, **lists}))
        assert (finding.where, finding.fault, finding.error) == ("filter_url", True, RecipeError)
        assert str(tmp_path / "none.txt") in finding.message
        assert not finding.message.startswith("filter_url")


def test_a_key_of_pseudonyms_that_is_not_here_is_refused_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.delenv(PII_CONNECTION, raising=False)
    ours = recipe({**START, "scrub_pii": {"action": "pseudonymize"}})
    for short in ("", "x" * 15):
        monkeypatch.setenv(KEY, short)
        with pytest.raises(RecipeError, match=KEY):
            check_secrets(ours)
    monkeypatch.setenv(KEY, "x" * 16)
    check_secrets(ours)
    monkeypatch.delenv(KEY)
    monkeypatch.setenv(PII_CONNECTION, "generic://")
    check_secrets(ours)
    check_secrets(recipe(START))
