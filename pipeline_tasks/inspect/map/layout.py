"""Lays vectors out in two dimensions by UMAP (arXiv 1802.03426): a process of its own, which `projecting` starts.

UMAP compiles loops that would run on threads, and a process that has started these must not fork, as workers do. One
thread gives the same coordinates each time on a machine.
"""

import sys
import warnings

import numpy as np

NEIGHBORS = 15
"""Nearest documents that keep their distances: the package's own default."""

DISTANCE = 0.1
"""The least distance of two points, as a share of the typical one: the package's own default."""


def main(source: str, target: str, seed: int) -> None:
    """Read vectors of length 1 (documents x numbers, float32, `.npy`), and write x and y of each."""
    warnings.simplefilter("ignore")  # of TensorFlow, which is not installed, and of one thread, which is wanted
    from umap import UMAP

    vectors = np.load(source)
    layout = UMAP(
        n_neighbors=min(NEIGHBORS, len(vectors) - 1), min_dist=DISTANCE, metric="cosine", random_state=seed, n_jobs=1
    )
    np.save(target, layout.fit_transform(vectors))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
