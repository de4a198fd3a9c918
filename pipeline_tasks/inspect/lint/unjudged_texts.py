"""Finds generated texts that nothing judges as pages are judged, and stages that are on the wrong side of a model."""

from collections.abc import Iterator

from pipeline_tasks.cards import known_cards, stage_card
from pipeline_tasks.recipe import Recipe
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.schema import N_GENERATED


def unjudged_texts(recipe: Recipe) -> Iterator[Finding]:
    """Yield a fault for each stage that judges documents and has a twin for generated ones, where this one lacks.

    The stage itself has to be before the one that generates: what it removes, no model may read. So has one that
    removes copies, for which a rewrite is one of its source.
    """
    stages = [step.stage for step in recipe.steps]
    twins = {card.wiring.twin_of: card.name for card in known_cards() if card.wiring.twin_of}
    for at, stage in enumerate(stages):
        card = stage_card(stage)
        if N_GENERATED in card.writes.names:
            for late in (later for later in stages[at + 1 :] if later in twins):
                message = f"is behind {stage}, whose model reads what it removes; put it before {stage}"
                yield Finding(fault=True, where=late, message=message)
        if card.conserves == "offspring":
            for twin in (twins[earlier] for earlier in stages[:at] if earlier in twins):
                if twin not in stages[at + 1 :]:
                    judged = stage_card(twin).wiring.twin_of
                    message = f"makes documents that {judged} does not see; put `{twin}` behind it"
                    yield Finding(fault=True, where=stage, message=message)
            for later in (later for later in stages[at + 1 :] if stage_card(later).removes == "copies"):
                message = f"is behind {stage}, and takes texts of a source for copies of it; put it before the model"
                yield Finding(fault=True, where=later, message=message)
