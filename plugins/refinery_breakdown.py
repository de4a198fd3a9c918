"""Gathers what the page of a breakdown shows: documents by a column, with what became of them and of which sites."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.breakdown import USUAL, Breakdown, breakdown
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.store.reading import read_manifest

MOST_BYTES = 64_000_000
"""Bytes of shards that the page reads; the command reads all."""

SHOWN = 3
"""Reasons and sites of each value that the page names."""


@dataclass(frozen=True, slots=True)
class BreakdownPage:
    """The page: the column, those to choose from, and the table, or the message of what is wrong."""

    version: Version
    by: str
    columns: Sequence[str]
    table: Breakdown | None
    message: str = ""

    def command(self, root: str) -> str:
        """Return the command that reads all documents."""
        of = ["--recipe", self.version.recipe, "--snapshot", self.version.snapshot]
        return shlex.join(["refinery", "breakdown", root, *of, "--by", self.by])


def breakdown_of(root: str, version: Version, by: str) -> BreakdownPage:
    """Return the page of a column, of the type of documents if none is named."""
    column = by.strip() or USUAL[0]
    known = [name for name, _ in read_manifest(root, version.refined).schema]
    columns = [name for name in USUAL if name == USUAL[0] or name in known]
    try:
        return BreakdownPage(version, column, columns, breakdown(root, version, column, MOST_BYTES))
    except RecipeError as error:
        return BreakdownPage(version, column, columns, None, str(error))
