"""Draws a sample of a version's documents, and keeps where they are on a map: once for each version."""

import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import JobLost, RecipeError
from pipeline_tasks.inspect.whatif import sampled_shards
from pipeline_tasks.publish.datasets.vectors import dataset_of, vectors_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.sealed import digest_of, seal, sha256, unseal
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest

MAPS = "maps"
"""The folder of a root that has the maps, by recipe."""

DOCUMENTS = 4_000
"""Documents of a map. UMAP compares every two of so many; of more it would look for near ones."""

DRAWN_FROM = 25
"""Documents that are looked at for each of the map: whole shards, in the order of their digests."""

FEWEST = 20
"""Documents below which UMAP has no neighborhoods to keep."""

SEED = 1

DECIMALS = 4


@dataclass(frozen=True, slots=True)
class DocumentMap:
    """Where documents of a version are on its map: `ids`, and the coordinates of each in `x` and `y`.

    `source` is the manifest of the documents. They were drawn by `seed` from `looked_at`, of which all had vectors.
    There is no text, URL or vector in it.
    """

    recipe: str
    snapshot: str
    source: str
    seed: int
    looked_at: int
    ids: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]


def is_installed() -> bool:
    """Return whether this machine can make maps."""
    return find_spec("umap") is not None


def path_of(version: Version, documents: int = DOCUMENTS, seed: int = SEED) -> str:
    """Return where the map of a version's documents is kept: versions with the same documents have the same."""
    return f"{MAPS}/{version.recipe}/{digest_of([version.refined, documents, seed])}.json"


def stored_map(root: str, version: Version, documents: int = DOCUMENTS, seed: int = SEED) -> DocumentMap | None:
    """Return the map that was made of a version; None if there is none."""
    path = path_of(version, documents, seed)
    return _read(root, path) if storage.connect(root).size(path) is not None else None


@lru_cache(maxsize=8)
def _read(root: str, path: str) -> DocumentMap:
    """Return a map by its path; it is never replaced."""
    fields: dict[str, Any] = unseal(
        storage.connect(root).read(path), path, "remove it and make it anew: `refinery look map`"
    )
    return DocumentMap(**(fields | {name: tuple(fields[name]) for name in ("ids", "x", "y")}))


def make_map(root: str, version: Version, documents: int = DOCUMENTS, seed: int = SEED) -> DocumentMap | None:
    """Return the map of a version, which is made and stored if there is none; None if too few documents have vectors.

    RecipeError where umap-learn is not installed, JobLost if its process fails. Who commits first decides, as another
    machine may round otherwise.
    """
    known = stored_map(root, version, documents, seed)
    if known is not None:
        return known
    if not is_installed():
        message = "umap-learn is not installed here: pip install '.[map]' in a checkout, or make the map where it is"
        raise RecipeError(message)
    rows, looked_at = _sample(root, version, documents, seed)
    if looked_at < FEWEST:
        return None
    made = _laid_out(rows[EMBEDDING], seed)
    x, y = (tuple(np.round(made[:, at].astype(np.float64), DECIMALS).tolist()) for at in (0, 1))
    drawn = DocumentMap(
        version.recipe, version.snapshot, version.refined, seed, looked_at, tuple(rows["id"].to_pylist()), x, y
    )
    path = path_of(version, documents, seed)
    storage.commit(storage.connect(root), path, seal(asdict(drawn)))
    return _read(root, path)


def mapped(root: str, recipe: str, snapshot: str) -> str:
    """Return the path of the map of a snapshot, which is made if there is none; "" where umap-learn is not installed.

    It is "", too, if too few documents have vectors.
    """
    if not is_installed():
        return ""
    version = version_log.current(root, recipe, snapshot)
    return path_of(version) if make_map(root, version) else ""


def shards_of(root: str, version: Version, documents: int = DOCUMENTS) -> Shards:
    """Return the shards that the documents of a map are drawn from."""
    manifest = read_manifest(root, version.refined)
    return sampled_shards(manifest.shards, documents * DRAWN_FROM / max(manifest.rows, 1))[0]


_EMPTY = pa.table({"id": pa.array([], pa.string()), EMBEDDING: pa.array([], pa.large_binary())})


def _sample(root: str, version: Version, documents: int, seed: int) -> tuple[pa.Table, int]:
    """Return the documents with a vector whose ids a seed puts first, in the order of their ids; and of how many."""
    left = dataset_of(root, version.recipe).left
    rows = [
        batch.select(["id", EMBEDDING])
        for batch in vectors_of(root, version, left, shards_of(root, version, documents))
    ]
    table = pa.Table.from_batches(rows) if rows else _EMPTY
    ranks = [sha256(f"{seed} {name}".encode()) for name in table["id"].to_pylist()]
    first = np.argsort(np.array(ranks))[:documents]
    return table.take(pa.array(first)).sort_by("id"), table.num_rows


def _laid_out(vectors: pa.ChunkedArray, seed: int) -> npt.NDArray[np.float32]:
    """Return x and y of each vector, by a process of its own."""
    from pipeline_tasks.text.near.vectors import unpacked

    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "vectors.npy", Path(folder) / "layout.npy"
        np.save(source, unpacked(vectors.combine_chunks()).astype(np.float32))
        command = [sys.executable, "-m", "refinery_study.map.layout", str(source), str(target), str(seed)]
        one = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, env={**os.environ, **one}, capture_output=True, text=True, check=False)  # noqa: S603 -- this interpreter, our module
        if done.returncode:
            message = f"UMAP failed with exit code {done.returncode}: {done.stderr.strip()[-500:]}"
            raise JobLost(message)
        layout: npt.NDArray[np.float32] = np.load(target)
        return layout
