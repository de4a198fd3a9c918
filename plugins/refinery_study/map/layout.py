"""Lays vectors out in two dimensions by UMAP (arXiv 1802.03426): a process of its own, which `projecting` starts.

UMAP compiles loops that would run on threads, and a process that has started these must not fork, as workers do. One
thread gives the same coordinates each time on a machine.
"""

import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numba
import numpy as np

from pipeline_tasks.owned import require_own

NEIGHBORS = 15
"""Nearest documents that keep their distances: the package's own default."""

DISTANCE = 0.1
"""The least distance of two points, as a share of the typical one: the package's own default."""


def main(source: str, target: str, seed: int) -> None:
    """Read vectors of length 1 (documents x numbers, float32, `.npy`), and write x and y of each."""
    warnings.simplefilter("ignore")  # of TensorFlow, which is not installed, and of one thread, which is wanted
    from umap import UMAP

    _keep_compiled()
    vectors = np.load(source)
    layout = UMAP(
        n_neighbors=min(NEIGHBORS, len(vectors) - 1), min_dist=DISTANCE, metric="cosine", random_state=seed, n_jobs=1
    )
    np.save(target, layout.fit_transform(vectors))


def _keep_compiled() -> None:
    """Keep UMAP's slowest loops below NUMBA_CACHE_DIR, if that is set: each process compiled them, for ten seconds.

    RecipeError if another user could have written there. numba knows a loop by its own file and not by those of the
    loops that it calls, so each release has a folder.
    """
    from umap import umap_, utils

    if not numba.config.CACHE_DIR:
        return
    releases = [f"{name}-{version(name)}" for name in ("umap-learn", "pynndescent")]
    numba.config.CACHE_DIR = str(Path(numba.config.CACHE_DIR) / "-".join(releases))
    require_own(numba.config.CACHE_DIR)
    for loop in (utils.fast_knn_indices, umap_.smooth_knn_dist, umap_.compute_membership_strengths):
        loop.enable_caching()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
