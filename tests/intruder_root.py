"""A root of documents in two languages that have a topic, a level from 0 to 1, and a cluster by number."""

from pathlib import Path

import pyarrow as pa

from pipeline_tasks.publish.logs import version_log
from tests.documents import documents
from tests.refining import commit_parent, refined

RECIPE, DAY = "web", "2026-11-19"
TOPICS = ("sea", "law", "bread")
WORDS = {
    "sea": "The ferry leaves the harbor at dawn and crosses the sound to the islands in calm water",
    "law": "The court heard the appeal of the tenant and set a date on which both parties may reply",
    "bread": "Knead the dough for ten minutes and let it rest under a cloth until it has doubled",
}


def texts(count: int, script: str = "") -> list[str]:
    """Return documents of all topics in turn, each with a line of its own."""
    names = [TOPICS[at % 3] for at in range(count)]
    return [f"{WORDS[name]}, as number {at} says.{script}\n" * 4 for at, name in enumerate(names)]


def build(root: Path, count: int = 60, script: str = "") -> version_log.Version:
    """Publish so many documents, every fifth of them in German, by a stage that keeps all."""
    table = documents(
        texts(count, script),
        language=pa.array(["de" if at % 5 == 4 else "en" for at in range(count)]),
        topic=pa.array([TOPICS[at % 3] if at % 10 else None for at in range(count)], pa.string()),
        level=pa.array([None if at == 7 else at / count for at in range(count)], pa.float64()),
        cluster=pa.array([at % 4 for at in range(count)], pa.int32()),
        tags=pa.array([["a"]] * count),
    )
    path, manifest = refined(root, "dedup_exact", commit_parent(root, [table.slice(0, 25), table.slice(25)]))
    assert manifest.rows == count
    entry = {"recipe": RECIPE, "snapshot": DAY, "landing": "", "manifests": {"dedup_exact": path}, "verdicts": {}}
    return version_log.append(
        str(root), entry | {"prefix": "publish/a", "documents": count, "tokens": 0, "sequences": 0}
    )
