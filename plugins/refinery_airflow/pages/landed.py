"""Names the snapshots that have a folder where they land, for the overview page."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_tasks.constraints import SNAPSHOT_NAME
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.store import storage
from refinery_airflow.runs.run import landing

log = logging.getLogger("refinery")


@dataclass(frozen=True, slots=True)
class Landed:
    """The snapshots below `landing`, sorted by name, or the message of why they are not known."""

    landing: str
    snapshots: Sequence[str] = ()
    message: str = ""


def landed_now() -> Landed:
    """Return the snapshots below the landing that a page shows, which is listed once; none where nobody has named it.

    A folder whose name is none of a snapshot is left out. Whether a snapshot is complete is not looked at.
    """
    place = landing()
    if not place:
        return Landed("")
    try:
        return Landed(place, [name for name in storage.connect(place).folders() if SNAPSHOT_NAME.admits(name)])
    except RefineryError as error:
        log.warning("The page does not show what has landed: %s", error)
        return Landed(place, message=str(error))
