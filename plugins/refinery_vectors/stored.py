"""The kinds of objects that this extension stores below a root."""

from pipeline_tasks.inspect.verify.kinds import COPY, Kind
from refinery_vectors import FOLDER

KINDS = (
    Kind("vectors", f"{FOLDER}/**", COPY, "nobody: no row is made of it, and `refinery keep index` makes it anew"),
)
