"""A store: `shelf://name` is a folder of that name below `STRANGER_SHELF`."""

import os
from typing import Any

from pipeline_tasks.store.local_store import LocalStore


class Shelf:
    """The objects below a URI, which a folder has."""

    def __init__(self, uri: str) -> None:
        self.root = uri
        self._folder = LocalStore(f"{os.environ['STRANGER_SHELF']}/{uri.removeprefix('shelf://')}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._folder, name)
