"""Which stages read what landed, make documents of it and take the list of what was taken down is said by their cards."""

import pytest

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import has_param, maker_of, makes_documents, reads_landed, reads_records, stage_card
from pipeline_tasks.publish.takedowns import PINNED
from pipeline_tasks.recipe import RECIPES, load_recipe, recipe_names
from pipeline_tasks.stages import NAMES


@pytest.mark.parametrize("name", recipe_names(RECIPES))
def test_a_recipe_reads_landed_bytes_until_one_stage_makes_documents(name: str) -> None:
    stages = [step.stage for step in load_recipe(name).steps]
    made = stages.index(maker_of(stages))
    assert [stage for stage in stages if reads_records(stage)] == stages[:1]
    assert [stage for stage in stages if reads_landed(stage)] == stages[: made + 1]
    assert [stage for stage in stages if makes_documents(stage)] == [stages[made]]
    assert ["id" in stage_card(stage).writes.names for stage in stages] == [at >= made for at in range(len(stages))]


@pytest.mark.parametrize("stage", [stage for stage in NAMES if has_param(stage, PINNED)])
def test_a_list_of_what_was_taken_down_is_a_file_of_the_stage_that_takes_it(stage: str) -> None:
    card = stage_card(stage)
    assert card.resources
    assert "a list" in card.resources(bind(card, {PINNED: "a list"}))


def test_reasons_that_bring_no_page_are_of_stages_that_read_what_landed() -> None:
    cards = [card for card in map(stage_card, NAMES) if card.no_page]
    assert all(set(card.no_page) <= set(card.reasons) for card in cards)
    assert [card.name for card in cards if not reads_landed(card.name) or makes_documents(card.name)] == []


def test_a_stage_of_another_release_is_none_of_these() -> None:
    assert not reads_landed("gone")
    assert not reads_records("gone")
    assert not has_param("gone", PINNED)
    assert maker_of(["land", "gone"]) == ""
