"""Gathers what the map's page shows: documents as points, as a worker or a person has laid them out."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import APIRouter, Depends, Response
from refinery_study.map.plot import map_plot
from refinery_study.map.points import ColoredMap, colored, columns_to_color
from refinery_study.map.projecting import DocumentMap, stored_map

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator
from refinery_airflow.pages.fields import UNPROCESSABLE, Name
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


@dataclass(frozen=True, slots=True)
class MapPage:
    """The page: the column of colors, those to choose from, and the plot; or why there is none.

    `drawn` is None where no map was made yet.
    """

    version: Version
    by: str
    columns: Sequence[str]
    drawn: DocumentMap | None = None
    shown: ColoredMap | None = None
    plot: Plot | None = None
    message: str = ""

    def command(self, root: str) -> str:
        """Return the command that makes the map, and writes it as a file."""
        of = ["--recipe", self.version.recipe, "--snapshot", self.version.snapshot]
        by = ["--by", self.by] if self.by else []
        return shlex.join(["refinery", "look", "map", root, *of, *by, "--to", "map.html"])


def map_page(root: str, version: Version, by: str) -> MapPage:
    """Return the page of a version; a map that was not made is not made here, as it takes a process seconds."""
    columns = columns_to_color(root, version)
    page = MapPage(version, by or next(iter(columns), ""), [*columns, *([by] if by and by not in columns else [])])
    drawn = stored_map(root, version)
    if drawn is None:
        return page
    try:
        shown = colored(root, version, drawn, page.by)
    except RecipeError as error:
        return MapPage(version, page.by, page.columns, drawn, message=str(error))
    place = f"{quote(version.recipe, safe='')}/{quote(version.snapshot, safe='')}"
    plot = map_plot(f"Documents by {page.by}", page.by, shown.points, f"{base()}/document/{place}?doc=")
    return MapPage(version, page.by, page.columns, drawn, shown, plot)


@router.get("/map/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def map_of_snapshot(recipe: str, snapshot: str, by: Name = "") -> Response:
    """Show documents of a snapshot as points that are near by their vectors, colored by a column."""
    page = map_page(root(), version_log.current(root(), recipe, snapshot), by.strip())
    shown = show("map.html", map=page, command=page.command(root())).of(len(page.shown.points) if page.shown else 0)
    shown.status_code = UNPROCESSABLE if page.message else shown.status_code
    return shown
