"""A sync of vectors that kills itself between the real calls of its store, and one that does not."""

import os
import signal
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from refinery_vectors import syncing
from refinery_vectors.postgres import PostgresTable, is_postgres
from refinery_vectors.table import State, VectorTable

from tests.vector_root import RECIPE


def synced(root: str, store: str) -> None:
    """Sync."""
    syncing.sync(root, RECIPE, store)


def killed(root: str, store: str, place: str, at: str) -> None:
    """Sync, and die at the point `at` of this kind: before, within or after a commit, or before files are rewritten."""
    left = int(at)
    kind: Any = PostgresTable if is_postgres(store) else VectorTable
    commit, tidy = kind.commit, kind.tidy

    def reached(point: str) -> None:
        nonlocal left
        left -= point == place
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def killed_commit(self: Any, state: State, rows: Iterable[pa.RecordBatch] = (), gone: str = "") -> Any:
        def read() -> Iterator[pa.RecordBatch]:
            reached("within")
            for batch in rows:
                yield batch
                reached("within")

        reached("before")
        made = commit(self, state, read(), gone)
        reached("after")
        return made

    def killed_tidy(self: Any) -> Any:
        reached("tidy")
        return tidy(self)

    kind.commit, kind.tidy = killed_commit, killed_tidy
    syncing.AT_ONCE = 4
    syncing.sync(root, RECIPE, store)
