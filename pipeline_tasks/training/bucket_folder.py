"""Fetches a dataset from a bucket as chunks of its files, ahead of need, into a bounded cache on this machine.

What is fetched whole (a file of at most one chunk, every `.ends` and lineage) is checked by its digest. Of a larger
file each chunk's length is checked, and the file's size once. Chunks are named by the digest of their file, so that
ranks, workers and versions on one machine share them. When the store is too busy, a fetch waits, and is repeated.
"""

import os
import posixpath
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from pipeline_tasks.constraints import S3, is_brought, kind_of
from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.store.brought_store import brought_store
from pipeline_tasks.store.clouds.store import CloudStore
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.s3.client import s3_client
from pipeline_tasks.store.s3.store import S3Store
from pipeline_tasks.training.cache import Cache, ChunkFiles, Fetching
from pipeline_tasks.training.folder import Mapped, Span, beside, missing, require_digest
from pipeline_tasks.training.index import NAME, WAY_OUT, StoredFile

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a refused fetch is repeated; the pause doubles."""

MAP_TRIES = 5
"""How often a chunk may vanish from the cache between its fetch and its use."""

_BUSY = (429, 500, 502, 503, 504)

_Any = TypeVar("_Any")


class BucketFolder:
    """A dataset's folder in a bucket; bytes come through a cache of this machine."""

    def __init__(self, uri: str, cache: Cache, fetching: Fetching) -> None:
        whole = uri.rstrip("/").removesuffix(f"/{NAME}")
        above, self._own = posixpath.split(whole)
        if above.endswith((":/", ":")):
            message = f"{uri}: a dataset is a folder in a bucket; name {kind_of(uri)}bucket/.../publish/<digest>"
            raise RecipeError(message)
        self._store: Store = _store(above)
        self._files, self._cache = ChunkFiles(cache), cache
        self._fetching, self._lock, self._closed = fetching, threading.Lock(), threading.Event()
        self._threads = ThreadPoolExecutor(cache.threads, "fetch")
        self._coming: dict[Span, Future[None]] = {}
        self._sized: set[StoredFile] = set()
        self.chunk_bytes, self.ahead = cache.chunk_bytes, cache.ahead
        self._is_counted = uri.startswith(S3)  # obstore does not show what it repeats
        if self._is_counted:
            s3_client().meta.events.register("needs-retry.s3", self._count)

    def index(self) -> tuple[bytes, str]:
        path = f"{self._own}/{NAME}"
        try:
            return self._patiently(lambda: self._store.read(path)), f"{self._store.root}/{path}"
        except FileNotFoundError as error:
            message = f"{self._store.root}/{path} is missing; name the folder of a published version"
            raise RecipeError(message) from error

    def map(self, span: Span) -> Mapped:
        for _ in range(MAP_TRIES):
            mapped = self._files.map(span)
            if mapped is not None:
                return mapped
            self._future(span).result()
            with self._lock:
                self._coming.pop(span, None)
        message = (
            f"{span.file.path}: the cache {self._cache.folder} lost bytes {MAP_TRIES} times before they were used; "
            f"give Cache more than {self._cache.bytes} bytes, or a folder that nothing else removes files from"
        )
        raise RecipeError(message)

    def prefetch(self, spans: Iterable[Span]) -> None:
        with self._lock:
            self._coming = {span: future for span, future in self._coming.items() if not future.done()}
        for span in spans:
            if not self._files.has(span):
                self._future(span)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._closed.set()  # after that, so that who waits for a busy store leaves the queue empty
        self._threads.shutdown()
        if self._is_counted:
            s3_client().meta.events.unregister("needs-retry.s3", self._count)

    # --- In the threads -------------------------------------------------------------------------------------------

    def _future(self, span: Span) -> "Future[None]":
        with self._lock:
            if span not in self._coming:
                self._coming[span] = self._threads.submit(self._fetch, span)
            return self._coming[span]

    def _fetch(self, span: Span) -> None:
        path = beside(self._own, span.file.path)
        where = f"{self._store.root}/{path}"
        try:
            if span.file not in self._sized:
                self._patiently(lambda: self._require_size(path, span.file))
            body = self._patiently(lambda: self._range(path, span))
        except FileNotFoundError as error:
            raise missing(where) from error
        if (span.start, span.stop) == (0, span.file.bytes):
            require_digest(body, span.file, where)
        self._files.add(span, body)
        with self._lock:
            self._fetching.requests += 1
            self._fetching.bytes += len(body)

    def _range(self, path: str, span: Span) -> bytes:
        if isinstance(self._store, S3Store | CloudStore):
            return self._store.read_range(path, span.start, span.stop)
        [body] = self._store.read_ranges(path, [(span.start, span.stop)])
        return body

    def _require_size(self, path: str, file: StoredFile) -> None:
        size = self._store.size(path)
        if size is None:
            raise FileNotFoundError(path)
        if size != file.bytes:
            where = f"{self._store.root}/{path}"
            message = f"{where} has {size} bytes, and {NAME} promises {file.bytes}; it was cut or changed; {WAY_OUT}"
            raise ContractError(message)
        self._sized.add(file)

    def _patiently(self, request: Callable[[], _Any]) -> _Any:
        """Return what a request returns, repeated while the store is busy; StorageBusy if patience ends, or reading."""
        end, pause = time.monotonic() + self._cache.patience_s, FIRST_PAUSE
        while True:
            try:
                return request()
            except StorageBusy:
                share = 1 + os.getpid() % 97 / 97  # workers do not come back all at once
                if time.monotonic() + pause > end or self._closed.wait(pause * share):
                    raise
            pause = min(2 * pause, LONGEST_PAUSE)

    def _count(self, response: tuple[Any, Any] | None = None, **_: object) -> None:
        """Count a response that says that a store is too busy; boto3 shows it each one before it repeats a request."""
        if response is not None and response[0].status_code in _BUSY:
            with self._lock:
                self._fetching.throttled += 1


def _store(uri: str) -> Store:
    if is_brought(uri):
        return brought_store(uri)
    return S3Store(uri) if uri.startswith(S3) else CloudStore(uri)
