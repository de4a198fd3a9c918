"""The tokens that proxies are trained on: sequences of one group each, in files that need numpy alone to be read."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import DigestMismatch
from refinery_ablate.mixture.search_plan import Counts

TOKENS, BORDERS = "pool-tokens.npy", "pool-borders.npz"


@dataclass(frozen=True, slots=True)
class Pool:
    """Sequences by group, one group after the other.

    `tokens` are sequences x length. `starts` are ascending places in all tokens at which a document, or a sequence,
    begins. `sequences` are those of each group.
    """

    tokens: npt.NDArray[np.integer]
    starts: npt.NDArray[np.int64]
    sequences: Counts

    @property
    def length(self) -> int:
        """The tokens of a sequence."""
        return int(self.tokens.shape[1])

    def borders(self, sequence: int) -> npt.NDArray[np.int64]:
        """Return where documents begin in a sequence, 0 included."""
        first, stop = np.searchsorted(self.starts, (sequence * self.length, (sequence + 1) * self.length))
        return self.starts[first:stop] - sequence * self.length


def save_pool(folder: Path, pool: Pool) -> str:
    """Write a pool; return the digest of its files."""
    np.save(folder / TOKENS, pool.tokens)
    np.savez(folder / BORDERS, starts=pool.starts, sequences=pool.sequences)
    return pool_digest(folder)


def read_pool(folder: Path, digest: str) -> Pool:
    """Return the pool of a folder; its tokens stay on disk until they are read. DigestMismatch for another one."""
    if pool_digest(folder) != digest:
        message = (
            f"{folder / TOKENS} is not the pool of this search; copy the folder again, or begin anew in another one"
        )
        raise DigestMismatch(message)
    with np.load(folder / BORDERS) as stored:
        return Pool(np.load(folder / TOKENS, mmap_mode="r"), stored["starts"], stored["sequences"])


def pool_digest(folder: Path) -> str:
    """Return the SHA-256 of the files of a pool, of the larger one first."""
    digest = hashlib.sha256()
    for name in (TOKENS, BORDERS):
        with (folder / name).open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
