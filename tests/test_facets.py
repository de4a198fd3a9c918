"""Facets of every card of the table: a stage that is new says of itself what those of its kind say."""

from dataclasses import MISSING, fields
from typing import Any

import pyarrow as pa
import pytest
from refinery_rights.disclose.measures import judges_addresses

from pipeline_tasks.cards import added_by, adds, stage_card
from pipeline_tasks.stage import Stage
from pipeline_tasks.stages import NAMES

CARDS = [stage_card(stage) for stage in NAMES]


def comes_bare(card: Stage[Any]) -> bool:
    """Return whether a recipe may have a stage without params."""
    return not any(each.default is each.default_factory is MISSING for each in fields(card.params))


@pytest.mark.parametrize(
    "card", [card for card in CARDS if card.remarks and comes_bare(card)], ids=lambda each: each.name
)
def test_a_stage_as_it_comes_needs_no_remark(card: Stage[Any]) -> None:
    assert card.remarks is not None
    assert list(card.remarks(card.params())) == []


@pytest.mark.parametrize("card", [card for card in CARDS if card.idle], ids=lambda card: card.name)
def test_what_a_run_is_idle_for_is_known_before_it(card: Stage[Any]) -> None:
    """What has nothing for the language of a document has nothing for a language that a recipe keeps."""
    assert card.idle is not None
    params, profile = card.params(), {"kind": "name", "count": 1, "sum": 1, "bins": {"xx": 1}}
    after = [idle for idle in card.idle(params, dict.fromkeys(card.profiled, profile)) if "xx (" in idle.lacks]
    before = card.unread(params, ["xx"]) if card.unread else ()
    assert [idle.lacks for idle in before] == [idle.lacks.replace("xx (1 document)", "xx") for idle in after]


def test_who_tells_languages_says_which_it_keeps() -> None:
    assert [card.name for card in CARDS if card.languages] == [
        card.name for card in CARDS if "language" in added_by(card)
    ]


@pytest.mark.parametrize(
    "column", ["opt_out", "language", "toxic_hits", "contaminated_by", "document_type", "perplexity"]
)
def test_one_stage_answers_for_a_column(column: str) -> None:
    """Disclosures and reports tell of the stage that adds the column: of two they would tell of the first alone."""
    assert len([stage for stage in NAMES if adds(column, stage)]) == 1


def test_one_stage_judges_addresses() -> None:
    assert list(filter(judges_addresses, NAMES)) == ["filter_url"]


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_column_of_places_by_kind_is_of_spans(card: Stage[Any]) -> None:
    """`refinery look redactions` lists them, and no page shows what a stage that clears personal data replaced."""
    lists = [(field.name, field.type.value_type) for field in card.writes if pa.types.is_list(field.type)]
    structs = [(name, kind) for name, kind in lists if pa.types.is_struct(kind)]
    named = [name for name, kind in structs if {"kind", "start", "end", "at"} <= {part.name for part in kind}]
    assert named == ([card.spans.column] if card.spans else [])
    assert bool(card.spans and card.spans.actions and card.spans.conceal) == card.clears_personal_data
