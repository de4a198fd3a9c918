"""The page of exports: the files of a training dataset, and the formats of other trainers."""

import sys
from collections.abc import Iterator

from pipeline_tasks.cli.reference.markdown import docstring, generated_note
from pipeline_tasks.publish.exports import shards
from pipeline_tasks.publish.trainers.format import Format
from pipeline_tasks.publish.trainers.formats import FORMATS

HEAD = """
A build publishes the shards of a training dataset, which the loader reads. `exports:` of its recipe, and `refinery
export`, write the same sequences or texts in formats of other trainers. [What is stored](formats.md) describes the
other files of a root.
"""


def exports_page() -> str:
    """Return the page as Markdown."""
    head = ["# Exports\n", generated_note("the modules of `pipeline_tasks/publish/trainers/`"), HEAD.strip()]
    own = ["\n## Shards\n", docstring(shards)]
    return "\n".join([*head, *own, *(line for name, kind in FORMATS.items() for line in _section(name, kind))]) + "\n"


def _section(name: str, kind: Format) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield docstring(sys.modules[kind.write.__module__])
