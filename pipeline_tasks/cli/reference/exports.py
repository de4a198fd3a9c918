"""The page of exports: the files of a training dataset, and the formats of other trainers."""

from collections.abc import Iterator
from importlib import import_module

from pipeline_tasks.cli.reference.markdown import docstring, generated_note
from pipeline_tasks.publish.exports import shards
from pipeline_tasks.seams import EXPORTS, Part, own_parts

HEAD = """
A build publishes the shards of a training dataset, which the loader reads. `exports:` of its recipe, and `refinery
export`, write the same sequences or texts in formats of other trainers. [What is stored](formats.md) describes the
other files of a root.
"""


def exports_page() -> str:
    """Return the page as Markdown."""
    head = ["# Exports\n", generated_note("the modules of `plugins/refinery_exports/`"), HEAD.strip()]
    own = ["\n## Shards\n", docstring(shards)]
    return "\n".join([*head, *own, *(line for part in own_parts(EXPORTS).values() for line in _section(part))]) + "\n"


def _section(part: Part) -> Iterator[str]:
    yield f"\n## {part.name}\n"
    yield docstring(import_module(part.place.partition(":")[0]))
