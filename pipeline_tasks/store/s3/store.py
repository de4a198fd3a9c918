"""Stores objects in a bucket of any S3 server, through boto3.

A PUT of boto3 happens whole or not at all, and its GET checks the length of the body. pyarrow's S3 files publish
whatever was written when a body raised, and accept short responses.
"""

import base64
import contextlib
import errno
import hashlib
import io
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pipeline_tasks.constraints import bucket_and_prefix
from pipeline_tasks.errors import DigestMismatch, RecipeError, StorageBusy
from pipeline_tasks.store.named_store import set_by
from pipeline_tasks.store.protocol import (
    CHUNK,
    DELETED_AT_ONCE,
    PARALLEL_REQUESTS,
    Entry,
    confined,
    cut_short,
    require_whole,
)
from pipeline_tasks.store.ranges import RangeReader, read_merged
from pipeline_tasks.store.s3.client import forget_clients, require_bucket, s3_client
from pipeline_tasks.store.s3.errors import (
    ABSENT,
    OWN,
    Incapable,
    error_code,
    exists_already,
    is_conflict,
    is_expired,
    is_refusal,
    listed_error,
    pause,
    settled,
    status_of,
    translated,
)
from pipeline_tasks.store.s3.waits import count_repeated

if TYPE_CHECKING:
    from botocore.client import BaseClient

PART = 64 * 1024 * 1024
"""Objects above this many bytes are uploaded in parts, which become visible only when all are completed."""

BODY_TRIES = 8
"""How often an object is requested whose body breaks off, or arrives corrupted."""


COPIED_AT_ONCE = 4 << 30
"""Bytes of an object that one request copies, a larger one in parts; S3 takes up to 5 GB."""

STANDARD = "STANDARD"
"""The storage class of objects of which a bucket names none."""

BAD_REQUEST = 400

GONE = (*ABSENT, "NoSuchUpload")
"""Error codes for an upload that was completed or aborted meanwhile."""

UPLOAD = "?uploadId="
"""What follows the path of an object in the name of an upload of it, as in S3's own requests."""

_CONDITIONAL: set[str] = set()
"""Buckets whose server has refused, in this process, to put an object that was there."""


class S3Store:
    """A prefix in a bucket of any S3 server with race-safe `If-None-Match: *`.

    Endpoint, region and credentials come from the standard AWS environment and files
    (`AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, ...), as boto3 finds them, unless
    it is in a `store` that has a name. With `listed` bytes and ETag, DigestMismatch is raised for an object that has
    others. Each response whose bytes are read is compared, so that no server has to heed a condition.
    """

    def __init__(self, uri: str, store: str = "", listed: tuple[int, str] | None = None) -> None:
        self.root = uri
        self._bucket, self._prefix = bucket_and_prefix(uri)
        self._store, self._listed = store, listed

    @property
    def _client(self) -> "BaseClient":
        return s3_client(self._store, self.root)

    def _require_bucket(self) -> None:
        if not self._store:  # who may read objects of another may not ask for the bucket
            require_bucket(self.root)

    def _key(self, path: str) -> str:
        confined(self.root, path)
        return f"{self._prefix}/{path}" if self._prefix else path

    def _uri(self, path: str) -> str:
        store = f" of store {self._store}" if self._store else ""
        return f"{self.root}/{path}{store}"

    def _translated(self, path: str, error: BaseException) -> Exception:
        if is_expired(error):
            forget_clients()
        return translated(self._uri(path), self._bucket, error, set_by(self._store) if self._store else OWN)

    # --- Reading --------------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        return self._fetch(path, {})

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return read_merged(partial(self.read_range, path), ranges)

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """As `read_ranges`, for one range."""
        if stop <= start:
            return b""
        body = self._fetch(path, {"Range": f"bytes={start}-{stop - 1}"})
        if len(body) == stop - start:
            return body
        where, size = self._uri(path), self.size(path) or 0
        if size < stop:
            raise cut_short(where, size, stop)
        message = f"{where}: the store sent {len(body)} of {stop - start} bytes; try again"
        raise StorageBusy(message)

    def _fetch(self, path: str, headers: dict[str, str]) -> bytes:
        """Return the body of a GET; a body that breaks off, or is corrupted, is requested again."""
        from botocore.exceptions import (
            FlexibleChecksumError,
            IncompleteReadError,
            ReadTimeoutError,
            ResponseStreamingError,
        )

        broken = (IncompleteReadError, ReadTimeoutError, ResponseStreamingError, FlexibleChecksumError)
        with self._errors(path):
            for attempt in range(1, BODY_TRIES):
                with contextlib.suppress(*broken):
                    return self._get(path, headers)
                seconds = pause(attempt, path)
                time.sleep(seconds)
                count_repeated(seconds)
            return self._get(path, headers)

    def _get(self, path: str, headers: dict[str, str]) -> bytes:
        from botocore.exceptions import ClientError

        try:
            response = self._client.get_object(Bucket=self._bucket, Key=self._key(path), **headers)
        except ClientError as error:
            if error_code(error) == "InvalidRange":  # the object ends before it
                return b""
            if error_code(error) not in ABSENT:
                raise
            self._require_bucket()
            raise self._missing(path) from error
        with contextlib.closing(response["Body"]) as body:
            self._require_listed(path, response)
            return cast("bytes", body.read())

    def _require_listed(self, path: str, response: Mapping[str, Any], size: int | None = None) -> None:
        """Raise DigestMismatch for a response of another object than was listed; its `size`, where that is known."""
        if self._listed is None:
            return
        (listed, etag), there = self._listed, etag_of(response)
        if (listed if size is None else size, there) != (listed, etag):
            bytes_there = "" if size is None else f"{size:,} bytes and "
            message = (
                f"{self._uri(path)} was changed since it was listed: it has {bytes_there}the ETag {there[:100]!a}, and "
                f"had {listed:,} bytes and {etag!a}; pull it into a new landing, or bring the same object back"
            )
            raise DigestMismatch(message)

    def open(self, path: str) -> BinaryIO:
        size = self.size(path)
        if size is None:
            raise self._missing(path)
        return io.BufferedReader(RangeReader(self, path, size), CHUNK)

    def size(self, path: str) -> int | None:
        head = self._head(path)
        return None if head is None else int(head["ContentLength"])

    def stamp(self, path: str) -> str:
        head = self._head(path)
        if head is None:
            raise self._missing(path)
        return f"{head['ContentLength']}-{head['ETag']}-{head['LastModified']}"

    def seen(self, path: str) -> tuple[int, str]:
        """Return bytes and ETag of an object, by which it is known again; FileNotFoundError if there is none."""
        head = self._head(path)
        if head is None:
            raise self._missing(path)
        return int(head["ContentLength"]), etag_of(head)

    def _head(self, path: str) -> Mapping[str, Any] | None:
        from botocore.exceptions import ClientError

        with self._errors(path):
            try:
                head: Mapping[str, Any] = self._client.head_object(Bucket=self._bucket, Key=self._key(path))
            except ClientError as error:
                if error_code(error) not in ABSENT:
                    self._require_credentials(error)
                    raise
                self._require_bucket()
                return None
        self._require_listed(path, head, int(head["ContentLength"]))
        return head

    def _require_credentials(self, error: BaseException) -> None:
        """Raise what a listing is refused for where a HEAD has 400, to which an answer has no body that says why."""
        if status_of(error) == BAD_REQUEST:
            self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix, MaxKeys=1)

    def _missing(self, path: str) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "no such object", self._uri(path))

    def list(self, prefix: str) -> Iterator[Entry]:
        with self._errors(prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._key(prefix.rstrip("/") + "/" if prefix else "")
            )
            for page in pages:
                for item in page.get("Contents", ()):
                    path = item["Key"].removeprefix(f"{self._prefix}/" if self._prefix else "")
                    modified, storage_class = item["LastModified"].timestamp(), item.get("StorageClass", "")
                    yield Entry(path, int(item["Size"]), modified, storage_class)

    def folders(self) -> Iterator[str]:
        start = f"{self._prefix}/" if self._prefix else ""
        with self._errors(""):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=start, Delimiter="/"):
                names = (item["Prefix"].removeprefix(start).rstrip("/") for item in page.get("CommonPrefixes", ()))
                yield from (name for name in names if name and not name.startswith(("_", ".")))

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        start = f"{self._prefix}/" if self._prefix else ""
        below = f"{prefix.rstrip('/')}/" if prefix else ""
        try:
            with self._errors(prefix):
                pages = self._client.get_paginator("list_multipart_uploads")
                for page in pages.paginate(Bucket=self._bucket, Prefix=f"{start}{below}"):
                    for upload in page.get("Uploads", ()):
                        name = f"{upload['Key'].removeprefix(start)}{UPLOAD}{upload['UploadId']}"
                        yield Entry(name, self._uploaded(upload), upload["Initiated"].timestamp())
        except Incapable:  # a server that has no list of them keeps none that anybody could abort
            return

    def _uploaded(self, upload: Mapping[str, Any]) -> int:
        """Return the bytes of an upload that nobody has completed, 0 for one that is gone."""
        from botocore.exceptions import ClientError

        which = {"Bucket": self._bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
        try:
            pages = list(self._client.get_paginator("list_parts").paginate(**which))
        except ClientError as error:
            if error_code(error) in GONE:
                return 0
            raise
        return sum(int(part["Size"]) for page in pages for part in page.get("Parts", ()))

    # --- Writing --------------------------------------------------------------------------------------------------

    def create(self, path: str, body: bytes) -> bool:
        created = settled(self._uri(path), path, partial(self._try_create, path, body))
        if created:
            self._require_conditional(path, body)
        return created

    def _try_create(self, path: str, body: bytes) -> bool | None:
        """Return whether the object at `path` is `body`, None if the PUT has to be tried again."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._put(path, body, {"IfNoneMatch": "*"})
        except (BotoCoreError, ClientError) as error:
            if is_conflict(error):
                return None
            if not is_refusal(error) and self.size(path) is not None:
                # A lost response makes the SDK's own retry fail with 412 on our own object: equal bytes are ours.
                return self.read(path) == body
            if exists_already(error):  # and is gone again
                return None
            raise self._translated(path, error) from error
        return True

    def _require_conditional(self, path: str, body: bytes) -> None:
        """Raise RecipeError if the server puts an object that is there once more; each process asks once.

        Such a server lets two attempts commit, the later over the earlier. The object is not changed by the question.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        if self._bucket in _CONDITIONAL:
            return
        try:
            self._put(path, body, {"IfNoneMatch": "*"})
        except (BotoCoreError, ClientError) as error:
            if exists_already(error):
                _CONDITIONAL.add(self._bucket)
            else:
                count_repeated()  # the server is busy: the next commit asks again
            return
        message = (
            f"{self._uri(path)}: the store put this object although it was there: it does not heed `If-None-Match: *`, "
            "so a retry could overwrite what was committed. Use a server that does (`refinery setup doctor "
            "URI` tries it)"
        )
        raise RecipeError(message)

    def _put(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        self._client.put_object(Bucket=self._bucket, Key=self._key(path), Body=body, ChecksumSHA256=checksum, **headers)

    def put_file(self, path: str, local: Path, digest: str, *, spare: bool = False) -> None:  # noqa: ARG002 -- uploads copy
        with self._errors(path):
            if local.stat().st_size <= PART:
                self._put(path, local.read_bytes(), {})
            else:
                self._client.upload_file(str(local), self._bucket, self._key(path))
        require_whole(self._uri(path), self.size(path), local.stat().st_size, digest)

    def put_scratch(self, path: str, local: Path) -> None:
        self.put_file(path, local, "of scratch")

    def delete(self, path: str) -> None:
        name, _, upload = path.partition(UPLOAD)
        with self._errors(path):
            if upload:
                self._abort(name, upload)
            else:
                self._client.delete_object(Bucket=self._bucket, Key=self._key(path))

    def _abort(self, path: str, upload: str) -> None:
        from botocore.exceptions import ClientError

        try:
            self._client.abort_multipart_upload(Bucket=self._bucket, Key=self._key(path), UploadId=upload)
        except ClientError as error:
            if error_code(error) not in GONE:
                raise

    def delete_many(self, paths: Sequence[str]) -> None:
        for path in paths:
            if UPLOAD in path:
                self.delete(path)
        paths = [path for path in paths if UPLOAD not in path]
        parts = [paths[start : start + DELETED_AT_ONCE] for start in range(0, len(paths), DELETED_AT_ONCE)]
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            list(pool.map(self._delete_part, parts))

    def _delete_part(self, paths: Sequence[str]) -> None:
        """Remove at most `DELETED_AT_ONCE` objects; those that the store was too busy for are asked for again."""
        failed = self._not_deleted(paths)
        for attempt in range(1, BODY_TRIES):
            if not failed or any(map(is_refusal, failed.values())):
                break
            seconds = pause(attempt, paths[0])
            time.sleep(seconds)
            count_repeated(seconds)
            failed = self._not_deleted([*failed])
        for path, error in sorted(failed.items(), key=lambda item: not is_refusal(item[1])):
            raise self._translated(path, error) from error

    def _not_deleted(self, paths: Sequence[str]) -> dict[str, Exception]:
        """Ask to remove objects, with one request; return the errors of those that are still there."""
        keys = {self._key(path): path for path in paths}
        with self._errors(paths[0]):
            answer = self._client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
            )
        errors = (error for error in answer.get("Errors", ()) if error.get("Code") not in ABSENT)
        return {keys[error["Key"]]: listed_error(error, "DeleteObjects") for error in errors}

    def transition(self, path: str, storage_class: str) -> str:
        """As the protocol says: a copy onto itself, whose bytes never leave the store.

        The object's time of modification is that of the copy.
        """
        if self.size(path) is None:
            raise self._missing(path)
        from boto3.s3.transfer import TransferConfig

        key = self._key(path)
        with self._errors(path):
            self._client.copy(
                {"Bucket": self._bucket, "Key": key},
                self._bucket,
                key,
                ExtraArgs={"StorageClass": storage_class, "MetadataDirective": "COPY"},
                Config=TransferConfig(multipart_threshold=COPIED_AT_ONCE, multipart_chunksize=COPIED_AT_ONCE // 4),
            )
        head = self._head(path)
        return STANDARD if head is None else str(head.get("StorageClass", STANDARD))

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        from boto3.exceptions import S3UploadFailedError
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            yield
        except (BotoCoreError, ClientError, ResponseParserError) as error:
            raise self._translated(path, error) from error
        except S3UploadFailedError as error:  # boto3 wraps the error of a part
            raise self._translated(path, error.__context__ or error) from error


def etag_of(response: Mapping[str, Any]) -> str:
    """Return the ETag of a response, without its quotes; "" where it has none."""
    return str(response.get("ETag") or "").strip('"')
