"""What cards say of copies agrees with their params, history and removals, whatever stages there are."""

from dataclasses import fields

import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.publish.superseded import REPLACED
from pipeline_tasks.stages import NAMES


@pytest.mark.parametrize("stage", NAMES)
def test_a_card_says_how_copies_are_found(stage: str) -> None:
    card = stage_card(stage)
    copies, params = card.copies, {field.name for field in fields(card.params)}
    assert copies.over_snapshots == ({"policy", "sources", "quality", "prefer"} <= params)
    assert bool(copies.over_snapshots or copies.replaced) == ("superseded" in card.history)
    assert bool(copies.compared) == (copies.equal or copies.over_snapshots or copies.replaced != "")
    assert not copies.compared or card.removes == "copies"
    assert bool(copies.title) == bool(copies.deciding) == copies.over_snapshots
    assert {"policy", "sources", "quality", "prefer"} <= set(copies.deciding) or not copies.over_snapshots
    assert [name for name in copies.deciding if not hasattr(card.params, name)] == []
    if copies.replaced:
        assert set(REPLACED) <= set(card.history[copies.replaced].schema.names)
