"""Gathers what the page of columns shows: how many documents would stay if only those with some values did."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fastapi import APIRouter, Depends, Response

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.conditions import select_lines, split_conditions, with_value
from pipeline_tasks.inspect.whatif.columns import (
    ColumnForecast,
    KnownColumn,
    columns_of,
    default_group,
    known_columns,
    whatif_columns,
)
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator
from refinery_airflow.pages.fields import UNPROCESSABLE, Name, Where
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import root

router = APIRouter(route_class=LookRoute)


MOST_ROWS = 500_000
"""Documents whose columns a request reads; of a larger version a sample of whole shards."""

GROUPS_SHOWN = 100
"""Groups that the page shows, the largest; the command prints all."""


@dataclass(frozen=True, slots=True)
class ColumnsPage:
    """The page: conditions and the column of groups as typed, and what they keep, or the message of what is wrong."""

    version: Version
    where: str
    by: str
    columns: Sequence[KnownColumn]
    forecast: ColumnForecast | None = None
    message: str = ""

    @property
    def lines(self) -> str:
        """The YAML for the recipe of a build that keeps the same."""
        return "\n".join(select_lines(self.forecast.conditions)) if self.forecast else ""

    def command(self, root: str) -> str:
        """Return the command that prints the same, of every document."""
        where = [word for condition in split_conditions(self.where) for word in ("--where", condition)]
        of = ["--recipe", self.version.recipe, "--snapshot", self.version.snapshot]
        return shlex.join(["refinery", "whatif", root, *of, *(where or ["--where", "COLUMN=VALUE"]), "--by", self.by])


def columns_page(root: str, version: Version, where: str, by: str, more: str = "") -> ColumnsPage:
    """Return the page of conditions, written in one line, and of one `more`; without any it lists the columns."""
    where = with_value(where, more) if more else where
    page = ColumnsPage(version, where, by or default_group(columns_of(root, version)), known_columns(root, version))
    if not where:
        return page
    try:
        return replace(page, forecast=whatif_columns(root, version, split_conditions(where), page.by, MOST_ROWS))
    except RecipeError as error:
        return replace(page, message=str(error))


@router.get("/columns/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def columns_of_snapshot(recipe: str, snapshot: str, where: Where = "", by: Name = "", more: Where = "") -> Response:
    """Show how many documents would stay if only those with some values in their columns did, and one `more` value."""
    version = version_log.current(root(), recipe, snapshot)
    page = columns_page(root(), version, where.strip(), by.strip(), more.strip())
    shown = show("columns.html", shown=page, most=GROUPS_SHOWN, command=page.command(root()))
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown
