"""Where bytes are kept: local directories and S3, with put-if-absent as the only commit.

Data is read through `pyarrow.fs`; on S3 it is written through boto3, whose PUT either happens whole or
not at all (a closed pyarrow stream publishes whatever was written when its body raised).
"""

import base64
import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import pyarrow as pa
from pyarrow import fs

from pipeline_tasks.errors import ContractError, DeterminismViolation, NoSpace, RecipeError, StorageBusy

PART = 64 * 1024 * 1024
"""Objects above this many bytes are uploaded in parts (which become visible only when completed)."""


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

    def open(self, path: str) -> BinaryIO:
        """Open an object for reading in sequence."""

    def create(self, path: str, body: bytes) -> bool:
        """Store `body` if nothing is there; False if something is. The only commit."""

    def put_file(self, path: str, local: Path, digest: str) -> None:
        """Store a local file under a name that its content decides; storing it twice is harmless."""

    def size(self, path: str) -> int | None:
        """Return the bytes of an object, None if there is none."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield every object under `prefix`, sorted by path."""

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""


def commit(store: Store, path: str, body: bytes) -> None:
    """Put-if-absent that never trusts a status code: another attempt's equal bytes are success."""
    if store.create(path, body):
        return
    there = store.read(path)
    if there != body:
        message = (
            f"{store.root}/{path} was committed with other bytes by another attempt at the same work; "
            "the first stays. Compare the two (versions of models or packages differ?) and remove its folder to redo it"
        )
        raise DeterminismViolation(message)


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
    """Return a local path of the file at `uri`: itself if local, else a copy in this machine's cache, by digest."""
    if not uri.startswith("s3://"):
        return uri.removeprefix("file://")
    cache = Path(tempfile.gettempdir()) / "refinery-cache" / digest
    target = cache / uri.rpartition("/")[2]
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache, delete=False) as copy, open_landed(uri) as source:
            shutil.copyfileobj(source, copy)
        Path(copy.name).replace(target)
    return str(target)


@lru_cache(maxsize=256)
def digest_of_file(uri: str) -> tuple[int, str]:
    """Return (bytes, SHA-256) of a file by URI; the answer is kept for the life of the process."""
    hasher, size = hashlib.sha256(), 0
    with open_landed(uri) as stream:
        while chunk := stream.read(8 * 1024 * 1024):
            hasher.update(chunk)
            size += len(chunk)
    return size, hasher.hexdigest()


class LocalStore:
    """A directory; commits by link(2), which fails where rename(2) would replace."""

    def __init__(self, root: str) -> None:
        self.root = str(Path(root).absolute())
        self._fs = fs.LocalFileSystem()

    def read(self, path: str) -> bytes:
        with self.open(path) as stream:
            return stream.read()

    def open(self, path: str) -> BinaryIO:
        with _local_errors(f"{self.root}/{path}"):
            return cast("BinaryIO", self._fs.open_input_file(f"{self.root}/{path}"))

    def create(self, path: str, body: bytes) -> bool:
        with _local_errors(f"{self.root}/{path}"), self._staged(path) as staged:
            staged.write(body)
            return self._link(staged, path)

    def put_file(self, path: str, local: Path, digest: str) -> None:
        target = Path(self.root, path)
        if self.size(path) == local.stat().st_size and _sha256(target) == digest:
            return
        with _local_errors(str(target)), self._staged(path) as staged, local.open("rb") as source:
            shutil.copyfileobj(source, staged, PART)
            staged.flush()
            os.fsync(staged.fileno())
            Path(staged.name).replace(target)  # content-addressed: replacing heals a damaged twin

    def size(self, path: str) -> int | None:
        target = Path(self.root, path)
        return target.stat().st_size if target.is_file() else None

    def list(self, prefix: str) -> Iterator[Entry]:
        base = Path(self.root, prefix)
        found = sorted(one for one in base.rglob("*") if one.is_file() and not one.name.startswith(".tmp-"))
        for one in found:
            facts = one.stat()
            yield Entry(str(one.relative_to(self.root)), facts.st_size, facts.st_mtime)

    def delete(self, path: str) -> None:
        Path(self.root, path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _staged(self, path: str) -> Iterator[Any]:
        folder = Path(self.root, path).parent
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".tmp-", delete=False) as staged:
            try:
                yield staged
            finally:
                Path(staged.name).unlink(missing_ok=True)

    def _link(self, staged: Any, path: str) -> bool:  # noqa: ANN401 -- a NamedTemporaryFile
        staged.flush()
        os.fsync(staged.fileno())
        try:
            os.link(staged.name, Path(self.root, path))
        except FileExistsError:
            return False
        folder = os.open(Path(self.root, path).parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True


@contextlib.contextmanager
def _local_errors(path: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        message = f"{path}: permission denied; give this user access or choose another place"
        raise RecipeError(message) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"{path}: no space left on the disk; free some and run again, nothing was committed"
            raise NoSpace(message) from error
        raise


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class S3Store:
    """A prefix in a bucket of any S3 server with race-safe `If-None-Match: *`.

    Endpoint, region and credentials come from the standard AWS environment and files
    (`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, ...), as boto3 finds them.
    """

    def __init__(self, uri: str) -> None:
        self.root = uri
        self._bucket, _, self._prefix = uri.removeprefix("s3://").partition("/")
        self._client = _s3_client()

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path

    @property
    def _fs(self) -> Any:  # noqa: ANN401 -- pyarrow ships no types for its S3 file system
        return _s3_filesystem()

    def read(self, path: str) -> bytes:
        with self.open(path) as stream:
            return stream.read()

    def open(self, path: str) -> BinaryIO:
        with self._errors(path):
            if self.size(path) is None:
                raise FileNotFoundError(errno.ENOENT, "no such object", f"{self.root}/{path}")
            return cast("BinaryIO", self._fs.open_input_file(f"{self._bucket}/{self._key(path)}"))

    def create(self, path: str, body: bytes) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        for _ in range(5):
            try:
                self._put(path, body, {"IfNoneMatch": "*"})
            except ClientError as error:
                code = _code(error)
                if code in ("PreconditionFailed", "412"):
                    return self._mine(path, body)
                if code in ("ConditionalRequestConflict", "409"):
                    continue  # a racing writer: ask again
                if not _server_side(error):
                    raise self._refusal(path, error) from error
                if self.size(path) is not None:
                    return self._mine(path, body)
            except BotoCoreError as error:
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
        self._client.put_object(
            Bucket=self._bucket, Key=self._key(path), Body=body, ChecksumSHA256=checksum, **extra
        )

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
        from botocore.exceptions import ClientError

        with self._errors(path):
            try:
                return int(self._client.head_object(Bucket=self._bucket, Key=self._key(path))["ContentLength"])
            except ClientError as error:
                if _code(error) in ("404", "NoSuchKey", "NotFound"):
                    self._require_bucket()
                    return None
                raise

    def _require_bucket(self) -> None:
        _bucket_exists(self._bucket)

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

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise self._refusal(path, error) from error
        except pa.ArrowException as error:
            message = f"{self.root}/{path}: reading failed ({str(error)[:300]}); try again later"
            raise StorageBusy(message) from error

    def _refusal(self, path: str, error: Exception) -> Exception:
        from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError

        where = f"{self.root}/{path}"
        if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
            return RecipeError(f"{where}: no S3 credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        if isinstance(error, ClientError) and not _server_side(error):
            return _client_refusal(where, self._bucket, error)
        return StorageBusy(f"{where}: the object store did not answer ({str(error)[:300]}); it is tried again later")


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


@lru_cache(maxsize=8)
def _bucket_exists(bucket: str) -> None:
    _s3_client().head_bucket(Bucket=bucket)


@lru_cache(maxsize=1)
def _s3_client() -> Any:  # noqa: ANN401 -- boto3 builds its clients at run time
    import boto3
    from botocore.config import Config

    style = {"addressing_style": "path"} if os.environ.get("AWS_ENDPOINT_URL") else {}
    retries = {"max_attempts": 8, "mode": "standard"}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    session = boto3.session.Session()
    config = Config(s3=style, retries=retries, connect_timeout=10, read_timeout=60)
    return session.client("s3", config=config, region_name=region or session.region_name or "us-east-1")


@lru_cache(maxsize=1)
def _s3_filesystem() -> Any:  # noqa: ANN401 -- pyarrow ships no types for its S3 file system
    import boto3

    found = boto3.session.Session().get_credentials()
    if found is None:
        message = "no S3 credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise RecipeError(message)
    keys = found.get_frozen_credentials()
    client = _s3_client()
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    scheme, _, host = endpoint.partition("://")
    return fs.S3FileSystem(
        access_key=keys.access_key,
        secret_key=keys.secret_key,
        session_token=keys.token,
        region=client.meta.region_name,
        **({"endpoint_override": host.rstrip("/"), "scheme": scheme} if host else {}),
    )
