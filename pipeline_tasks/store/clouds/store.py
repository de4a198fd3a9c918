"""Stores objects in a bucket of Google Cloud Storage or a container of Azure's Blob Storage, through obstore.

Put-if-absent is `x-goog-if-generation-match: 0` at the one, and `If-None-Match: *` at the other. obstore repeats what a
busy server did not answer; its errors become Refinery's in `cloud_errors`.
"""

import contextlib
import errno
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pipeline_tasks.constraints import AZURE, bucket_and_prefix, kind_of
from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.store.clouds.client import cloud_client, forget_clients, quick_client, renews, set_by
from pipeline_tasks.store.clouds.errors import (
    NO_BUCKET,
    code_of,
    is_beyond,
    is_expired,
    is_refusal,
    no_bucket,
    translated,
)
from pipeline_tasks.store.protocol import CHUNK, PARALLEL_REQUESTS, Entry, confined, cut_short, require_whole
from pipeline_tasks.store.ranges import RangeReader, read_merged
from pipeline_tasks.store.s3.errors import settled

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import AzureStore, GCSStore

PART = 32 * 1024 * 1024
"""Larger objects are uploaded in parts of as many bytes, which become visible only when all are completed.

Google takes 10,000 parts, and Azure 50,000.
"""

PARTS_AT_ONCE = 4
"""Parts that are in memory at a time."""

IF_ABSENT: Mapping[str, Any] = {"mode": "create", "use_multipart": False}
"""Options of a put-if-absent: one request, as parts of an upload have no condition."""

_CONDITIONAL: set[str] = set()
"""Buckets that have refused, in this process, to put an object that was there."""

_THERE: set[str] = set()
"""Buckets that have been seen in this process."""


class CloudStore:
    """A prefix in a bucket of Google's, or in a container of Azure's; their credentials are those of `cloud_client`.

    Objects have one storage class here. To delete many is one request an object, several at a time.
    """

    def __init__(self, uri: str) -> None:
        self.root, self._kind = uri, kind_of(uri)
        self._bucket, self._prefix = bucket_and_prefix(uri)

    @property
    def _client(self) -> "AzureStore | GCSStore":
        return cloud_client(self.root)

    def _key(self, path: str) -> str:
        """Return the key of a path; ContractError for one that obstore would write in another way."""
        confined(self.root, path)
        if any(part in ("", ".") for part in path.rstrip("/").split("/")) or path.endswith("/"):
            message = f"{self._uri(path)}: {path!r} is no path of an object; write it without empty parts and `.`"
            raise ContractError(message)
        return f"{self._prefix}/{path}" if self._prefix else path

    def _below(self, prefix: str) -> str | None:
        """Return the key that objects under a prefix are below, None for the whole bucket."""
        return "/".join(filter(None, (self._prefix, confined(self.root, prefix.rstrip("/"))))) or None

    def _uri(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def _missing(self, path: str) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "no such object", self._uri(path))

    # --- Reading --------------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        import obstore

        return self._fetched(path, lambda client, key: bytes(obstore.get(client, key).bytes())) or b""

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        # Not obstore's own `get_ranges`: a range behind the end makes it panic (0.12.1).
        return read_merged(partial(self.read_range, path), ranges)

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """As `read_ranges`, for one range."""
        import obstore

        if stop <= start:
            return b""
        get = partial(obstore.get_range, start=start, end=stop)
        body = self._fetched(path, lambda client, key: bytes(get(client, key))) or b""
        if len(body) != stop - start:
            raise self._short(path, stop)
        return body

    def _short(self, path: str, stop: int) -> Exception:
        """Return the error for a body that has fewer bytes than were asked for."""
        size = self.size(path) or 0
        if size < stop:
            return cut_short(self._uri(path), size, stop)
        return StorageBusy(f"{self._uri(path)}: the store sent fewer bytes than it has; try again")

    def _fetched(self, path: str, get: "Callable[[AzureStore | GCSStore, str], bytes]") -> bytes | None:
        """Return what a call gets, None of a range behind the end; obstore goes on with a body that breaks off."""
        from obstore.exceptions import GenericError

        with self._errors(path):
            try:
                return get(self._client, self._key(path))
            except FileNotFoundError as error:
                self._require_bucket(error)
                raise self._missing(path) from error
            except GenericError as error:
                if not is_beyond(error):
                    raise
                return None

    def open(self, path: str) -> BinaryIO:
        size = self.size(path)
        if size is None:
            raise self._missing(path)
        return io.BufferedReader(RangeReader(self, path, size), CHUNK)

    def size(self, path: str) -> int | None:
        head = self._head(path)
        return None if head is None else int(head["size"])

    def stamp(self, path: str) -> str:
        head = self._head(path)
        if head is None:
            raise self._missing(path)
        return f"{head['size']}-{head['e_tag']}-{head['last_modified']}"

    def _head(self, path: str) -> "ObjectMeta | None":
        import obstore

        with self._errors(path):
            try:
                return obstore.head(self._client, self._key(path))
            except FileNotFoundError as error:
                self._require_bucket(error)
                return None

    def _require_bucket(self, error: BaseException) -> None:
        """Raise RecipeError if what is absent is the bucket itself: an answer without a body does not say so."""
        import obstore

        place = f"{self._kind}{self._bucket}"
        if code_of(error) in NO_BUCKET:
            raise no_bucket(place, self._bucket) from error
        if place not in _THERE:
            with self._errors(""):
                next(iter(obstore.list(self._client, self._below(""), chunk_size=1)), None)
            _THERE.add(place)

    def list(self, prefix: str) -> Iterator[Entry]:
        # A storage account with folders lists folder by folder: `a/x` before `a-b`.
        entries = self._listed(prefix)
        yield from sorted(entries, key=lambda entry: entry.path) if self._kind == AZURE else entries

    def _listed(self, prefix: str) -> Iterator[Entry]:
        import obstore

        start = f"{self._prefix}/" if self._prefix else ""
        with self._errors(prefix):
            for page in obstore.list(self._client, self._below(prefix), chunk_size=1000):
                for item in page:
                    path = str(item["path"]).removeprefix(start)
                    yield Entry(path, int(item["size"]), item["last_modified"].timestamp())

    def folders(self) -> Iterator[str]:
        import obstore

        with self._errors(""):
            found = obstore.list_with_delimiter(self._client, self._below(""))["common_prefixes"]
        names = (str(folder).rpartition("/")[2] for folder in found)
        yield from sorted(name for name in names if name and not name.startswith(("_", ".")))

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        # Azure drops blocks of no blob after a week; uploads of parts are Google's to expire, by a lifecycle rule.
        del prefix
        yield from ()

    def require_reachable(self) -> None:
        """Raise RecipeError or StorageBusy within seconds if the prefix cannot be listed from here."""
        import obstore

        with self._errors(""):
            next(iter(obstore.list(quick_client(self.root), self._below(""), chunk_size=1)), None)

    # --- Writing --------------------------------------------------------------------------------------------------

    def create(self, path: str, body: bytes) -> bool:
        created = settled(self._uri(path), path, partial(self._try_create, path, body))
        if created:
            self._require_conditional(path, body)
        return created

    def _try_create(self, path: str, body: bytes) -> bool | None:
        """Return whether the object at `path` is `body`, None if it was there and is gone again."""
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        try:
            self._put(path, body, IF_ABSENT)
        except BaseError as error:
            met = isinstance(error, (AlreadyExistsError, PreconditionError))
            if met or not is_refusal(error):
                # A lost answer makes obstore's own retry meet our own object: equal bytes are ours.
                with contextlib.suppress(FileNotFoundError):
                    return self.read(path) == body
            if met:
                return None
            raise self._translated(path, error) from error
        return True

    def _require_conditional(self, path: str, body: bytes) -> None:
        """Raise RecipeError if the server puts an object that is there once more; each process asks once."""
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        place = f"{self._kind}{self._bucket}"
        if place in _CONDITIONAL:
            return
        try:
            self._put(path, body, IF_ABSENT)
        except (AlreadyExistsError, PreconditionError):
            _CONDITIONAL.add(place)
            return
        except BaseError:
            return  # the server is busy: the next commit asks again
        message = (
            f"{self._uri(path)}: the store put this object although it was there: it does not heed the condition of a "
            "put-if-absent, so a retry could overwrite what was committed. Use a server that does (`refinery setup "
            "doctor URI` tries it)"
        )
        raise RecipeError(message)

    def _put(self, path: str, body: bytes | Path, options: Mapping[str, Any]) -> None:
        import obstore

        try:
            obstore.put(self._client, self._key(path), body, **options)
        except FileNotFoundError as error:
            raise no_bucket(self._uri(path), self._bucket) from error

    def put_file(self, path: str, local: Path, digest: str, *, spare: bool = False) -> None:  # noqa: ARG002 -- uploads copy
        whole = local.stat().st_size
        with self._errors(path):
            if whole <= PART:
                self._put(path, local.read_bytes(), {"use_multipart": False})
            else:
                self._put(path, local, {"chunk_size": PART, "max_concurrency": PARTS_AT_ONCE})
        require_whole(self._uri(path), self.size(path), whole, digest)

    def put_scratch(self, path: str, local: Path) -> None:
        self.put_file(path, local, "of scratch")

    def delete(self, path: str) -> None:
        import obstore

        with self._errors(path), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._client, self._key(path))

    def delete_many(self, paths: Sequence[str]) -> None:
        # One request an object: Azure's batch ends at the first that is not there, and Google has none.
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            list(pool.map(self.delete, paths))

    def transition(self, path: str, storage_class: str) -> str:
        """As the protocol says: `az://` and `gs://` have rules of their own for tiers, and none is set from here."""
        del storage_class
        if self.size(path) is None:
            raise self._missing(path)
        return ""

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except BaseError as error:
            raise self._translated(path, error) from error

    def _translated(self, path: str, error: BaseException) -> Exception:
        if is_expired(error):
            forget_clients()
        return translated(self._uri(path), self._bucket, error, set_by(self.root), is_renewed=renews(self.root))
