"""Gathers what the page of a breakdown shows: documents by a column or two, with what became of them."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Request, Response
from refinery_study.breakdown import ACROSS, USUAL, VALUES, Breakdown, Group, breakdown, shown_cell

from pipeline_tasks.ask.question import Role
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator, may_see
from refinery_airflow.pages.fields import UNPROCESSABLE, Name
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import root

router = APIRouter(route_class=LookRoute)


MOST_BYTES = 64_000_000
"""Bytes of shards that the page reads; the command reads all."""

GROUPS = 200
"""Groups that the page shows, the largest."""

SHOWN = 3
"""Reasons and sites of each value that the page names."""


@dataclass(frozen=True, slots=True)
class BreakdownPage:
    """The page: the column, those to choose from, and the table, or the message of what is wrong."""

    version: Version
    by: str
    across: str
    columns: Sequence[str]
    table: Breakdown | None
    message: str = ""

    @property
    def firsts(self) -> Sequence[str]:
        """The columns to choose the first from."""
        return _with(self.columns, self.by)

    @property
    def seconds(self) -> Sequence[str]:
        """The columns to choose a second from."""
        return _with([*ACROSS, *(name for name in self.columns if name != self.by)], self.across)

    @property
    def values(self) -> Sequence[str]:
        """The values of the second column that have a column of their own."""
        return self.table.values[:VALUES] if self.table else ()

    @property
    def rows(self) -> Iterator[tuple[Group, Sequence[str]]]:
        """The groups, each with its cells as text."""
        for group in self.table.groups[:GROUPS] if self.table else ():
            yield group, [shown_cell(group, value, self.across) for value in self.values]

    def command(self, root: str) -> str:
        """Return the command that reads all documents."""
        of = ["--recipe", self.version.recipe, "--snapshot", self.version.snapshot]
        across = ["--across", self.across] if self.across else []
        return shlex.join(["refinery", "look", "breakdown", root, *of, "--by", self.by, *across])


def _with(names: Sequence[str], chosen: str) -> Sequence[str]:
    return [*names, chosen] if chosen and chosen not in names else names


def breakdown_of(root: str, version: Version, by: str, across: str, *, sees_all: bool) -> BreakdownPage:
    """Return the page of a column, of the type of documents if none is named, and of a second if one is."""
    column, second = by.strip() or USUAL[0], across.strip()
    known = [name for name, _ in read_manifest(root, version.refined).schema]
    columns = [name for name in USUAL if name == USUAL[0] or name in known]
    try:
        table = breakdown(root, version, column, MOST_BYTES, second, sees_rejected=sees_all)
        return BreakdownPage(version, column, second, columns, table)
    except RecipeError as error:
        return BreakdownPage(version, column, second, columns, None, str(error))


@router.get("/breakdown/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def breakdown_page(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, by: Name = "", across: Name = ""
) -> Response:
    """Show documents by a column: kept, rejected for which reasons, and of which sites; or a table of two columns.

    Stewards see the values of rejected rows, too.
    """
    version = version_log.current(root(), recipe, snapshot)
    page = breakdown_of(root(), version, by, across, sees_all=may_see(request, user, Role.STEWARD))
    shown = show(
        "breakdown.html",
        shown=page,
        version=version,
        most=SHOWN,
        most_groups=GROUPS,
        command=page.command(root()),
    )
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown
