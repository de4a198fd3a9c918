"""Finds what of a stage had nothing to work with in a run: lists, sets or models that its params name none of."""

from dataclasses import fields

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import known_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stage import VARIABLE, Idle


def idle_parts(manifest: Manifest) -> tuple[Idle, ...]:
    """Return what of the stage that wrote a manifest was idle; nothing where an older version had other params."""
    card = known_card(manifest.stage)
    if card is None or card.idle is None or card.version != manifest.version:
        return ()
    secrets = {entry.name for entry in fields(card.params) if VARIABLE in entry.metadata}
    try:
        params = bind(card, {name: value for name, value in manifest.params.items() if name not in secrets})
    except RecipeError:  # the params have what no recipe may, or what only the run knew
        return ()
    return card.idle(params, manifest.metrics.get("kept", {}))
