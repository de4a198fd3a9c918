"""Gathers what the page of a version's lineage shows: its manifests, what they read, and a drawing of both."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from pipeline_tasks.inspect.versions.lineage import Lineage, lineage
from pipeline_tasks.plots.lineage import COMPOSED, HISTORY, MADE_FROM, ManifestNode, lineage_plot
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


PLACES_SHOWN = 8
"""Versions that the first screen lists, the newest."""

LISTED = 50
"""Manifests of other versions that are listed for a stage, the newest."""


@dataclass(frozen=True, slots=True)
class LineagePage:
    """The page: the lineage of a version, and its plot."""

    lineage: Lineage
    plot: Plot | None

    def made_from(self, node: ManifestNode) -> Sequence[ManifestNode]:
        """Return the manifest that a stage refined."""
        return self.lineage.parents(node, MADE_FROM)

    def read(self, node: ManifestNode) -> Sequence[ManifestNode]:
        """Return the manifests of other versions that a stage read, the newest snapshot first."""
        parents = self.lineage.parents(node, HISTORY, COMPOSED)
        return sorted(parents, key=attrgetter("recipe", "snapshot"), reverse=True)

    @property
    def places(self) -> Sequence[tuple[ManifestNode, int]]:
        """A manifest of each other version that was read, the newest snapshot first, and how many of it were."""
        others = [node for node in self.lineage.nodes if not node.is_own]
        counts = Counter(node.place for node in others)
        one_each = {node.place: node for node in others}.values()
        ordered = sorted(one_each, key=attrgetter("recipe", "snapshot"), reverse=True)
        return [(node, counts[node.place]) for node in ordered]

    def command(self, root: str) -> str:
        """Return the command that prints the same."""
        version = self.lineage.version
        named = ["refinery", "look", "lineage", root, "--recipe", version.recipe, "--snapshot", version.snapshot]
        return shlex.join(named)


def lineage_page(root: str, version: Version) -> LineagePage:
    """Return the page of a version."""
    shown = lineage(root, version)
    addresses = {node.path: f"{base()}/manifest/{quote(node.path)}" for node in shown.nodes}
    return LineagePage(shown, lineage_plot(shown.nodes, shown.edges, addresses))


@router.get("/lineage/{recipe}/{snapshot}")
def lineage_of_snapshot(recipe: str, snapshot: str) -> HTMLResponse:
    """Show the manifests that a snapshot's version was made from, with their parents and what became of their rows."""
    shown = lineage_page(root(), version_log.current(root(), recipe, snapshot))
    limits = {"listed": LISTED, "places_shown": PLACES_SHOWN}
    return show("lineage.html", shown=shown, command=shown.command(root()), **limits)
