"""Where bytes are kept: local directories and S3, with put-if-absent as the only commit.

S3 is spoken through boto3, whose PUT either happens whole or not at all and whose GET checks the length of
its body (pyarrow's S3 files publish whatever was written when a body raised, and believe short answers).
"""

import base64
import contextlib
import errno
import hashlib
import io
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from pipeline_tasks.errors import (
    ContractError,
    DeterminismViolation,
    DigestMismatch,
    NoSpace,
    RecipeError,
    StorageBusy,
)

PART = 64 * 1024 * 1024
"""Objects above this many bytes are uploaded in parts (which become visible only when completed)."""

CHUNK = 8 * 1024 * 1024
"""Bytes that are copied, hashed or fetched at a time."""

REQUESTS = 10
"""Ranges of one object that are asked for at the same time: as many as boto3 keeps connections."""

BRIDGE = 128 * 1024
"""A gap of so many bytes is fetched rather than a request more made: Hadoop's `fs.s3a.vectored.read.min.seek.size`."""

UNFINISHED = ".tmp-"
"""Start of the names under which a local directory holds what is still being written; never listed."""

ABSENT = ("404", "NoSuchKey", "NotFound", "NoSuchBucket")
"""What S3 servers answer where nothing is."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored object: its path relative to the root, its size, and when the server says it was written."""

    path: str
    bytes: int
    modified: float


class Store(Protocol):
    """Bytes under one root; paths are relative, with `/`."""

    root: str

    def read(self, path: str) -> bytes:
        """Return an object whole; FileNotFoundError if there is none."""

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return bytes [start, stop) of an object for each range, all of them; DigestMismatch if it ends before."""

    def open(self, path: str) -> BinaryIO:
        """Open an object for reading in sequence."""

    def create(self, path: str, body: bytes) -> bool:
        """Store `body` if nothing is there; False if something is. The only commit."""

    def put_file(self, path: str, local: Path, digest: str) -> None:
        """Store a local file under a name that its content decides; storing it twice is harmless."""

    def size(self, path: str) -> int | None:
        """Return the bytes of an object, None if there is none."""

    def stamp(self, path: str) -> str:
        """Return words that change when an object does; FileNotFoundError if there is none."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield every object under `prefix`, sorted by path."""

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        """Yield what killed writers left half-written under `prefix`; no reader ever sees it."""


def commit(store: Store, path: str, body: bytes) -> None:
    """Put-if-absent that never trusts a status code: another attempt's equal bytes are success.

    No commit is empty, but some servers keep an empty object of a PUT whose client died before its body
    (MiniStack 1.4 does): such a one is removed and the slot tried again.
    """
    if store.create(path, body):
        return
    there = store.read(path)
    if not there:
        store.delete(path)
        there = body if store.create(path, body) else store.read(path)
    if there != body:
        message = (
            f"{store.root}/{path} was committed with other bytes by another attempt at the same work; "
            "the first stays. Compare the two (versions of models or packages differ?) and remove its folder to redo it"
        )
        raise DeterminismViolation(message)


def mismatch(path: str, promised: str, found: str) -> DigestMismatch:
    """Return the error for stored bytes that are not the promised ones."""
    message = (
        f"{path}: SHA-256 is {found}, its manifest promised {promised}; the file was changed or damaged after it "
        "was written. Restore it, or remove it and its manifest and refine again"
    )
    return DigestMismatch(message)


def cut_short(path: str, size: int, stop: int) -> DigestMismatch:
    """Return the error for an object that ends before bytes which its manifest promised."""
    message = (
        f"{path} has {size} bytes and its manifest promised {stop} or more; the file was cut short after it was "
        "written. Restore it, or remove it and its manifest and refine again"
    )
    return DigestMismatch(message)


def connect(uri: str) -> Store:
    """Return the store at `uri`: `s3://bucket/prefix`, `file:///path` or a local path."""
    return _connect(uri.rstrip("/") if uri != "/" else uri)


@lru_cache(maxsize=64)
def _connect(uri: str) -> Store:
    if uri.startswith("s3://"):
        return S3Store(uri)
    if "://" in uri and not uri.startswith("file://"):
        message = f"{uri}: storage speaks s3://bucket/prefix and local paths"
        raise RecipeError(message)
    return LocalStore(uri.removeprefix("file://"))


def is_absolute(path: str) -> bool:
    """Tell a landed file's own URI from a path relative to the root."""
    return "://" in path or path.startswith("/")


def open_landed(uri: str) -> BinaryIO:
    """Open a landed file by its absolute URI."""
    folder, _, name = uri.rpartition("/")
    return connect(folder or "/").open(name)


def localize(uri: str, digest: str) -> str:
    """Return a local path of the file at `uri`: itself if local, else a checked copy in this user's cache."""
    if not uri.startswith("s3://"):
        return uri.removeprefix("file://")
    cache = Path(tempfile.gettempdir()) / f"refinery-{os.getuid()}" / digest
    target = cache / uri.rpartition("/")[2]
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        _copy_checked(uri, digest, target)
    return str(target)


def _copy_checked(uri: str, digest: str, target: Path) -> None:
    with _local_errors(str(target)), _staged(target) as (staged, path):
        with open_landed(uri) as source:
            shutil.copyfileobj(source, staged, CHUNK)
        _settle(staged)
        found = _sha256(path)
        if found != digest:
            message = f"{uri}: SHA-256 is {found}, not {digest} as when the run was planned; plan it again"
            raise DigestMismatch(message)
        path.replace(target)


def digest_of_file(uri: str) -> tuple[int, str]:
    """Return (bytes, SHA-256) of a file by URI; asked again in this process, it is read again only if it changed."""
    folder, _, name = uri.rpartition("/")
    return _digest(uri, connect(folder or "/").stamp(name))


@lru_cache(maxsize=4096)
def _digest(uri: str, stamp: str) -> tuple[int, str]:  # noqa: ARG001 -- the stamp is what the cache forgets by
    hasher, size = hashlib.sha256(), 0
    with open_landed(uri) as stream:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
            size += len(chunk)
    return size, hasher.hexdigest()


class LocalStore:
    """A directory; commits by link(2), which fails where rename(2) would replace."""

    def __init__(self, root: str) -> None:
        self.root = str(Path(root).absolute())

    def read(self, path: str) -> bytes:
        with self.open(path) as stream:
            return stream.read()

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        bodies = []
        with self.open(path) as stream:
            for start, stop in ranges:
                stream.seek(start)
                bodies.append(stream.read(stop - start))
                if len(bodies[-1]) != stop - start:
                    where = f"{self.root}/{path}"
                    raise cut_short(where, self.size(path) or 0, stop)
        return bodies

    def open(self, path: str) -> BinaryIO:
        with _local_errors(f"{self.root}/{path}"):
            return Path(self.root, path).open("rb")

    def create(self, path: str, body: bytes) -> bool:
        target = Path(self.root, path)
        with _local_errors(str(target)), _staged(target) as (staged, name):
            staged.write(body)
            _settle(staged)
            try:
                os.link(name, target)
            except FileExistsError:
                return False
            _settle_folder(target.parent)
            return True

    def put_file(self, path: str, local: Path, digest: str) -> None:
        target = Path(self.root, path)
        if self.size(path) == local.stat().st_size and _sha256(target) == digest:
            return
        with _local_errors(str(target)), _staged(target) as (staged, name), local.open("rb") as source:
            shutil.copyfileobj(source, staged, CHUNK)
            _settle(staged)
            name.replace(target)  # content-addressed: replacing heals a damaged twin
            _settle_folder(target.parent)

    def size(self, path: str) -> int | None:
        target = Path(self.root, path)
        return target.stat().st_size if target.is_file() else None

    def stamp(self, path: str) -> str:
        facts = Path(self.root, path).stat()
        return f"{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}"

    def list(self, prefix: str) -> Iterator[Entry]:
        found = sorted(str(one.relative_to(self.root)) for one in Path(self.root, prefix).rglob("*"))
        for path in found:
            whole = Path(self.root, path)
            if whole.is_file() and not whole.name.startswith(UNFINISHED):
                with contextlib.suppress(FileNotFoundError):  # removed since it was listed
                    facts = whole.stat()
                    yield Entry(path, facts.st_size, facts.st_mtime)

    def delete(self, path: str) -> None:
        with _local_errors(f"{self.root}/{path}"):
            Path(self.root, path).unlink(missing_ok=True)

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        for path in sorted(Path(self.root, prefix).rglob(f"{UNFINISHED}*")):
            facts = path.stat()
            yield Entry(str(path.relative_to(self.root)), facts.st_size, facts.st_mtime)


@contextlib.contextmanager
def _staged(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a new file beside `target`, hidden from listings, which is gone at the end unless it was renamed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    name = target.parent / f"{UNFINISHED}{uuid.uuid4().hex}"
    try:
        with name.open("xb") as staged:
            yield staged, name
    finally:
        name.unlink(missing_ok=True)


def _settle(staged: BinaryIO) -> None:
    staged.flush()
    os.fsync(staged.fileno())


def _settle_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _local_errors(path: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        message = f"{path}: permission denied; give this user access or choose another place"
        raise RecipeError(message) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = f"{path}: no space left on the disk; free some and run again, nothing was committed"
            raise NoSpace(message) from error
        if error.errno in (errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG):
            message = f"{path}: cannot be written ({error.strerror}); choose another place"
            raise RecipeError(message) from error
        raise


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class S3Store:
    """A prefix in a bucket of any S3 server with race-safe `If-None-Match: *`.

    Endpoint, region and credentials come from the standard AWS environment and files
    (`AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, ...), as boto3 finds them.
    """

    def __init__(self, uri: str) -> None:
        self.root = uri
        self._bucket, _, self._prefix = uri.removeprefix("s3://").partition("/")

    @property
    def _client(self) -> Any:  # noqa: ANN401 -- boto3 builds its clients at run time
        return _s3_client(_aws_environment())

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path

    def read(self, path: str) -> bytes:
        return self._ask(path, {})

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        spans, of = _bridged(ranges)
        with ThreadPoolExecutor(REQUESTS) as pool:
            bodies = list(pool.map(lambda one: self.read_range(path, *one), spans))
        return [
            bodies[span][start - spans[span][0] : stop - spans[span][0]]
            for span, (start, stop) in zip(of, ranges, strict=True)
        ]

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """As `read_ranges`, for one range."""
        if stop <= start:
            return b""
        body = self._ask(path, {"Range": f"bytes={start}-{stop - 1}"})
        if len(body) == stop - start:
            return body
        where, size = f"{self.root}/{path}", self.size(path) or 0
        if size < stop:
            raise cut_short(where, size, stop)
        message = f"{where}: the store sent {len(body)} of {stop - start} bytes; try again"
        raise StorageBusy(message)

    def _ask(self, path: str, wanted: dict[str, str]) -> bytes:
        """Return the body of a GET; one that breaks off is asked for again."""
        from botocore.exceptions import IncompleteReadError, ReadTimeoutError, ResponseStreamingError

        with self._errors(path):
            for _ in range(2):
                with contextlib.suppress(IncompleteReadError, ReadTimeoutError, ResponseStreamingError):
                    return self._get(path, wanted)
            return self._get(path, wanted)

    def _get(self, path: str, wanted: dict[str, str]) -> bytes:
        from botocore.exceptions import ClientError

        try:
            body = self._client.get_object(Bucket=self._bucket, Key=self._key(path), **wanted)["Body"]
        except ClientError as error:
            if _code(error) == "InvalidRange":  # the object ends before it
                return b""
            if _code(error) not in ABSENT:
                raise
            self._require_bucket()
            raise FileNotFoundError(errno.ENOENT, "no such object", f"{self.root}/{path}") from error
        return cast("bytes", body.read())

    def open(self, path: str) -> BinaryIO:
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", f"{self.root}/{path}")
        return io.BufferedReader(_Ranges(self, path, size), CHUNK)

    def create(self, path: str, body: bytes) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        for _ in range(5):
            try:
                self._put(path, body, {"IfNoneMatch": "*"})
            except ClientError as error:
                code = _code(error)
                if code in ("ConditionalRequestConflict", "409"):
                    continue  # a racing writer: ask again
                if code in ("PreconditionFailed", "412"):
                    return self._mine(path, body)
                if _server_side(error) and self.size(path) is not None:
                    return self._mine(path, body)
                raise self._refusal(path, error) from error
            except BotoCoreError as error:
                if self.size(path) is not None:  # the answer was lost, not the object
                    return self._mine(path, body)
                raise self._refusal(path, error) from error
            else:
                return True
        message = f"{self.root}/{path}: the store did not settle a conditional PUT in five tries; try again later"
        raise StorageBusy(message)

    def _mine(self, path: str, body: bytes) -> bool:
        # A lost response makes the SDK's own retry answer 412 on our own object: equal bytes are ours.
        return self.read(path) == body

    def _put(self, path: str, body: bytes, extra: dict[str, str]) -> None:
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        self._client.put_object(Bucket=self._bucket, Key=self._key(path), Body=body, ChecksumSHA256=checksum, **extra)

    def put_file(self, path: str, local: Path, digest: str) -> None:
        with self._errors(path):
            if local.stat().st_size <= PART:
                self._put(path, local.read_bytes(), {})
            else:
                self._client.upload_file(str(local), self._bucket, self._key(path))
        if self.size(path) != local.stat().st_size:
            message = f"{self.root}/{path}: the store kept other bytes than were sent (SHA-256 {digest}); try again"
            raise StorageBusy(message)

    def size(self, path: str) -> int | None:
        facts = self._head(path)
        return None if facts is None else int(facts["ContentLength"])

    def stamp(self, path: str) -> str:
        facts = self._head(path)
        if facts is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", f"{self.root}/{path}")
        return f"{facts['ContentLength']}-{facts['ETag']}-{facts['LastModified']}"

    def _head(self, path: str) -> Any:  # noqa: ANN401 -- boto3's answer
        from botocore.exceptions import ClientError

        with self._errors(path):
            try:
                return self._client.head_object(Bucket=self._bucket, Key=self._key(path))
            except ClientError as error:
                if _code(error) not in ABSENT:
                    raise
                self._require_bucket()
                return None

    def _require_bucket(self) -> None:
        _bucket_exists(_aws_environment(), self._bucket)

    def list(self, prefix: str) -> Iterator[Entry]:
        with self._errors(prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._key(prefix.rstrip("/") + "/" if prefix else "")
            )
            for page in pages:
                for one in page.get("Contents", ()):
                    path = one["Key"].removeprefix(f"{self._prefix}/" if self._prefix else "")
                    yield Entry(path, int(one["Size"]), one["LastModified"].timestamp())

    def delete(self, path: str) -> None:
        with self._errors(path):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(path))

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        # Incomplete multipart uploads are the bucket's to expire (a lifecycle rule); nothing else can be half there.
        del prefix
        yield from ()

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        from boto3.exceptions import S3UploadFailedError
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise self._refusal(path, error) from error
        except S3UploadFailedError as error:  # boto3 wraps what a part of an upload failed with
            raise self._refusal(path, error.__context__ or error) from error

    def _refusal(self, path: str, error: BaseException) -> Exception:
        from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError

        where = f"{self.root}/{path}"
        if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
            return RecipeError(f"{where}: no S3 credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        if isinstance(error, ClientError) and not _server_side(error):
            return _client_refusal(where, self._bucket, error)
        return StorageBusy(
            f"{where}: the object store did not answer ({str(error)[:300]}); it is tried again later. "
            "If it never answers, check AWS_ENDPOINT_URL and the network"
        )


def _bridged(ranges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Join ranges with small gaps between them; return what to ask for, and which of it holds each range."""
    spans: list[tuple[int, int]] = []
    of: list[int] = []
    for start, stop in ranges:
        if spans and 0 <= start - spans[-1][1] <= BRIDGE:
            spans[-1] = (spans[-1][0], stop)
        else:
            spans.append((start, stop))
        of.append(len(spans) - 1)
    return spans, of


class _Ranges(io.RawIOBase):
    """An S3 object as a seekable file; each read is one ranged GET, checked for its length."""

    def __init__(self, store: S3Store, path: str, size: int) -> None:
        super().__init__()
        self._store, self._path, self._size, self._at = store, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readall(self) -> bytes:
        body = bytearray(max(self._size - self._at, 0))
        self.readinto(body)
        return bytes(body)

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- any writable buffer
        stop = min(self._at + len(buffer), self._size)
        if stop <= self._at:
            return 0
        body = self._store.read_range(self._path, self._at, stop)
        buffer[: len(body)] = body
        self._at = stop
        return len(body)


def _client_refusal(where: str, bucket: str, error: Any) -> Exception:  # noqa: ANN401 -- botocore's ClientError
    code = _code(error)
    if code == "NoSuchBucket":
        return RecipeError(f"{where}: bucket {bucket} does not exist; create it or correct the URI")
    if code in ("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"):
        return RecipeError(
            f"{where}: the object store refused the credentials ({code}); "
            "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy"
        )
    if code == "RequestTimeTooSkewed":
        return RecipeError(f"{where}: this machine's clock differs from the object store's; set it (NTP)")
    return ContractError(f"{where}: the object store refused the request ({code}: {str(error)[:300]})")


def _code(error: Any) -> str:  # noqa: ANN401 -- botocore's ClientError
    return str(error.response.get("Error", {}).get("Code", ""))


def _server_side(error: Any) -> bool:  # noqa: ANN401 -- botocore's ClientError
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return status >= 500 or _code(error) in ("SlowDown", "Throttling", "RequestTimeout", "503", "429")  # noqa: PLR2004


def _aws_environment() -> tuple[tuple[str, str], ...]:
    """Return the environment that decides which server and which credentials a client is for."""
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


@lru_cache(maxsize=64)
def _bucket_exists(environment: tuple[tuple[str, str], ...], bucket: str) -> None:
    from botocore.exceptions import ClientError

    try:
        _s3_client(environment).head_bucket(Bucket=bucket)
    except ClientError as error:
        if _code(error) not in ABSENT:
            raise
        message = f"s3://{bucket}: this bucket does not exist; create it or correct the URI"
        raise RecipeError(message) from error


@lru_cache(maxsize=8)
def _s3_client(environment: tuple[tuple[str, str], ...]) -> Any:  # noqa: ANN401 -- boto3 builds its clients at run time
    import boto3
    from botocore.config import Config

    named = dict(environment)
    own_server = "AWS_ENDPOINT_URL_S3" in named or "AWS_ENDPOINT_URL" in named
    style = {"addressing_style": "path"} if own_server else {}
    retries = {"mode": "standard"} if "AWS_MAX_ATTEMPTS" in named else {"mode": "standard", "max_attempts": 8}
    session = boto3.session.Session()
    config = Config(s3=style, retries=retries, connect_timeout=10, read_timeout=60)
    region = named.get("AWS_REGION") or session.region_name or "us-east-1"
    return session.client("s3", config=config, region_name=region)
