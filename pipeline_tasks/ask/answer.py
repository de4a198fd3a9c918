"""An answer: its title and parts as data, with its lines, its HTML, and what a command ends with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline_tasks.ask.html import html_of
from pipeline_tasks.ask.lines import lines_of
from pipeline_tasks.ask.parts import Part, Table


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a question, as data.

    `facts` are its JSON; without them these are the rows of its first table. `documents` are the ids of the documents
    that it shows, and `of` names the recipe, snapshot or version that they are of, for the log of looks. `exit_code` is
    that of a command.
    """

    title: str
    parts: Sequence[Part]
    facts: object = None
    documents: Sequence[str] = ()
    of: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0

    @property
    def tables(self) -> list[Table]:
        """Its tables."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def json(self) -> object:
        """What `--json` prints."""
        return [dict(row) for row in self.tables[0].rows] if self.facts is None else self.facts

    @property
    def rows(self) -> int:
        """The rows that it shows."""
        return sum(len(table.rows) for table in self.tables)

    def __str__(self) -> str:
        """Return its lines."""
        return "\n".join(lines_of(self.parts))

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        return html_of(self.parts)
