"""The page of engines: what each one does and which stages use it by default."""

import importlib

from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.reference.markdown import docstring, generated_note, names
from pipeline_tasks.engines.card import engine_card
from pipeline_tasks.recipe import engine_names
from pipeline_tasks.stages import NAMES

HEAD = """
An engine runs the kernels of a stage. Every engine gives the same shards, byte for byte. A stage has a default engine;
`run: engines:` in a recipe or the DAG param `engines` changes it.
"""


def engines_page() -> str:
    """Return the page as Markdown."""
    head = ["# Engines\n", generated_note("the modules of the engines"), HEAD.strip()]
    return "\n".join([*head, *(_section(name) for name in engine_names())]) + "\n"


def _section(name: str) -> str:
    stages = [stage for stage in NAMES if stage_card(stage).engine == name]
    module = importlib.import_module(engine_card(name).module)
    return f"\n## {name}\n\n{docstring(module)}\n\nDefault of: {names(stages)}"
