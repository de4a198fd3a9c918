"""A sync of vectors that kills itself between the real calls of Lance, and one that does not."""

import os
import signal
from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipeline_tasks.publish.vectors import syncing
from pipeline_tasks.publish.vectors.table import State, VectorTable
from tests.vector_root import RECIPE


def synced(root: str) -> None:
    """Sync."""
    syncing.sync(root, RECIPE)


def killed(root: str, place: str, at: str) -> None:
    """Sync, and die at the point `at` of this kind: before, within or after a commit, or before files are rewritten."""
    left = int(at)
    commit, tidy = VectorTable.commit, VectorTable.tidy

    def reached(point: str) -> None:
        nonlocal left
        left -= point == place
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def killed_commit(
        self: VectorTable, state: State, rows: Iterable[pa.RecordBatch] = (), gone: str = ""
    ) -> VectorTable:
        def read() -> Iterator[pa.RecordBatch]:
            reached("within")
            for batch in rows:
                yield batch
                reached("within")

        reached("before")
        made = commit(self, state, read(), gone)
        reached("after")
        return made

    def killed_tidy(self: VectorTable) -> VectorTable:
        reached("tidy")
        return tidy(self)

    VectorTable.commit, VectorTable.tidy = killed_commit, killed_tidy  # type: ignore[method-assign]
    syncing.AT_ONCE = 4
    syncing.sync(root, RECIPE)
