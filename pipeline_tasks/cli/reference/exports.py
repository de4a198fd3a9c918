"""The page of exports: the files of every format in which a version is exported."""

import sys
from collections.abc import Iterator

from pipeline_tasks.cli.reference.markdown import docstring, generated_note
from pipeline_tasks.publish.exports.formats import FORMATS, Writer

HEAD = """
A version is exported in every format under `publish/<digest>/`. [What is stored](formats.md) describes the other files
of a root.
"""


def exports_page() -> str:
    """Return the page as Markdown."""
    head = ["# Exports\n", generated_note("the modules of `pipeline_tasks/publish/exports/`"), HEAD.strip()]
    return "\n".join([*head, *(line for name, write in FORMATS.items() for line in _section(name, write))]) + "\n"


def _section(name: str, write: Writer) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield docstring(sys.modules[write.__module__])
    yield f"\n{docstring(write)}"
