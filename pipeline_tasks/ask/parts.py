"""The parts of an answer, as data: tables whose columns say what their values are, notes, and plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline_tasks.plots.plot import Plot

Kind = Literal[
    "text",
    "count",
    "share",
    "figure",
    "bytes",
    "seconds",
    "time",
    "flag",
    "state",
    "id",
    "version",
    "url",
    "path",
    "digest",
    "tally",
    "names",
]
"""What the values of a column are: it says how they are written, and what they may lead to.

A `share` is of 1, a `time` ISO 8601 in UTC, a `flag` said where it is true, an `id` that of a document, a `version` the
snapshot of one, a `tally` has counts by name, and `names` what is named by them.
"""

NUMBERS = frozenset({"count", "share", "figure", "bytes", "seconds"})
"""Kinds of columns that are written to the right."""

Row = Mapping[str, object]


def _has(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or bool(value)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key of its values in rows, its title, and what they are."""

    key: str
    title: str = ""
    kind: Kind = "text"

    @property
    def is_number(self) -> bool:
        """Return whether its values are written to the right."""
        return self.kind in NUMBERS


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, as JSON has them, and the columns of them that are shown; `empty` is said where there is no row.

    A column of which no row has a value is not shown.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    empty: str = ""

    @property
    def shown(self) -> list[Column]:
        """The columns of which a row has a value; a flag that is off is none."""
        return [each for each in self.columns if any(_has(row.get(each.key)) for row in self.rows)]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence or more. `warn` asks for care; `next` is what a person may do, with commands in backticks."""

    text: str
    kind: Literal["plain", "warn", "next"] = "plain"


Part = Table | Note | Plot
