"""The kinds of objects that this extension stores below a root."""

from pipeline_tasks.inspect.verify.kinds import SEALED, Kind
from pipeline_tasks.inspect.verify.sealed_objects import sealed
from refinery_study.intruder.answers import INTRUDERS
from refinery_study.map.projecting import MAPS
from refinery_study.read.answers import READINGS

_BY_SEAL = "its seal, also when it is read"
_FROM_BACKUP = "restore it from a backup, or remove it: it is not counted then"

KINDS = (
    Kind(
        "map", f"{MAPS}/<recipe>/*.json", SEALED, _BY_SEAL, sealed, "remove it, and make it anew: `refinery look map`"
    ),
    Kind("reading", f"{READINGS}/<recipe>/*.json", SEALED, _BY_SEAL, sealed, _FROM_BACKUP),
    Kind("answer of an intruder", f"{INTRUDERS}/<recipe>/*.json", SEALED, _BY_SEAL, sealed, _FROM_BACKUP),
)
