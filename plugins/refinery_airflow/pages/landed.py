"""Names the snapshots that have a folder where they land, for the overview page."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_tasks.constraints import SNAPSHOT_NAME
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.store import storage

log = logging.getLogger("refinery")


@dataclass(frozen=True, slots=True)
class Landed:
    """The snapshots below `landing`, sorted by name, or the message of why they are not known."""

    landing: str
    snapshots: Sequence[str] = ()
    message: str = ""


def landed_now() -> Landed:
    """Return the snapshots below `REFINERY_LANDING`, which is listed once; none where it is not set.

    A folder whose name is none of a snapshot is left out. Whether a snapshot is complete is not looked at.
    """
    landing = os.environ.get("REFINERY_LANDING", "")
    if not landing:
        return Landed("")
    try:
        return Landed(landing, [name for name in storage.connect(landing).folders() if SNAPSHOT_NAME.admits(name)])
    except RefineryError as error:
        log.warning("The page does not show what has landed: %s", error)
        return Landed(landing, message=str(error))
