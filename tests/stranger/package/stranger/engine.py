"""The card of the engine `threads`, which imports little: forms and pages ask for it."""

from pipeline_tasks.engines.card import EngineCard

ENGINE = EngineCard("stranger.threads")
