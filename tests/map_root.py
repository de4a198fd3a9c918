"""A root whose documents have vectors around three directions, and a map of them that is given and not computed."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from refinery_study.map.projecting import DOCUMENTS, SEED, DocumentMap, path_of

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import seal
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.text.near.vectors import packed
from tests.documents import documents
from tests.refining import commit_parent, refined, rows

RECIPE, SNAPSHOT = "web", "2026-11-20"
SCRIPT = "</script><script>alert(1)</script>"
KINDS = ("garden", "engine", "court")


def published(root: Path, count: int = 30) -> version_log.Version:
    """Publish documents of which each third is near to a direction of its own; a title tries to run a script."""
    draws = np.random.default_rng(1)
    vectors = np.repeat(np.eye(8)[:3], -(-count // 3), axis=0)[:count] + draws.normal(0, 0.05, (count, 8))
    table = documents(
        [f"text {at}" for at in range(count)],
        [f"https://site{at % 2}.example/{at}" for at in range(count)],
        kind=pa.array([KINDS[at // -(-count // 3)] for at in range(count)], pa.string()),
        score=pa.array([at / count for at in range(count)], pa.float64()),
        embedding=packed(vectors / np.linalg.norm(vectors, axis=1)[:, None]),
        embedding_model=pa.array(["m"] * count, pa.string()),
    )
    titles = pa.array([SCRIPT, *(f"Page {at}" for at in range(1, count))], pa.string())
    table = table.set_column(table.schema.get_field_index("title"), "title", titles)
    path, _ = refined(root, "scrub_pii", commit_parent(root, [table]))
    entry = {"recipe": RECIPE, "snapshot": SNAPSHOT, "landing": "", "manifests": {"scrub_pii": path}, "verdicts": {}}
    return version_log.append(str(root), entry | {"prefix": "", "documents": count, "tokens": 0, "sequences": 0})


def stored(root: Path, version: version_log.Version) -> dict[str, dict[str, Any]]:
    """The documents of a version, by id."""
    return {row["id"]: row for row in rows(root, read_manifest(str(root), version.refined)).to_pylist()}


def given_map(root: Path, version: version_log.Version) -> DocumentMap:
    """Store a map in which documents are in a row, in the order of their ids."""
    ids = tuple(sorted(stored(root, version)))
    places = tuple(float(at) for at in range(len(ids)))
    given = DocumentMap(version.recipe, version.snapshot, version.refined, SEED, len(ids), ids, places, places[::-1])
    storage.commit(storage.connect(str(root)), path_of(version, DOCUMENTS, SEED), seal(asdict(given)))
    return given
