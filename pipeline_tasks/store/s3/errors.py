"""What each status of an S3 server means, for any verb: the table of `docs/reference/failures.md`, and its only code.

Repeated within a request are 5xx, throttling, lost connections, and 409 and 412 where no condition was given. boto3
repeats none of them: it has 500 tokens for a process, which a store that refuses a third of its requests uses up, and
from then on it gives up at the first refusal. What is still refused after that is one of Refinery's errors.
"""

import time
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError, StorageBusy
from pipeline_tasks.store.named_store import SetBy

if TYPE_CHECKING:
    from botocore.client import BaseClient

ABSENT = ("404", "NoSuchKey", "NotFound", "NoSuchBucket")
"""Error codes of S3 servers for an object that does not exist."""

TRIES, LOST_TRIES = 12, 8
"""How often a request is sent before it is `StorageBusy`: to a store that is busy, and to one that does not answer.

A busy store is waited for a minute or more; `AWS_MAX_ATTEMPTS` changes both.
"""

CONFLICT_TRIES = 5
"""How often a request that met another one is sent before it is `StorageBusy`."""

PAUSE, LONGEST = 0.1, 20.0
"""Seconds before a request is sent again; each further pause is twice the one before, up to the longest."""

_UNAUTHORIZED, _CONFLICT, _PRECONDITION, _SERVER_FAULT = 401, 409, 412, 500
_CREDENTIALS = ("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken")

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired")
"""Codes for credentials that were right, and follow from a role, a file or a connection, which has new ones."""

_OVERLOADED = ("SlowDown", "Throttling", "RequestTimeout", "503", "429")

_BUSY_STATUS = (408, _CONFLICT, _PRECONDITION, 425, 429)
"""Statuses below 500 of a server that could not do it now."""

_INCAPABLE = (405, 501)
_FULL = 507

OWN = SetBy("AWS_ENDPOINT_URL", "AWS_REGION", "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY")
"""Where this process's own store is set."""

_ELSEWHERE = ("PermanentRedirect", "301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")


class Incapable(RecipeError):
    """The server does not have this request at all."""


def error_code(error: BaseException) -> str:
    """Return the code of a server's error response, "" for an error without a response."""
    return str(_response(error).get("Error", {}).get("Code", ""))


def status_of(error: BaseException) -> int:
    """Return the HTTP status of a server's error response, 0 for an error without a response."""
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _response(error: BaseException) -> Mapping[str, Any]:
    from botocore.exceptions import ClientError

    return error.response if isinstance(error, ClientError) else {}


def listed_error(entry: Mapping[str, Any], verb: str) -> Exception:
    """Return an error that a server lists for one object of a request as if it had answered one for that object."""
    from botocore.exceptions import ClientError

    code = str(entry.get("Code", ""))
    status = 503 if code in (*_OVERLOADED, "InternalError", "ServiceUnavailable") else 403
    about = {"Code": code, "Message": str(entry.get("Message", ""))}
    error: Exception = ClientError({"Error": about, "ResponseMetadata": {"HTTPStatusCode": status}}, verb)
    return error


def is_conflict(error: BaseException) -> bool:
    """Return whether a conditional PUT raced with another one, and is to be tried again."""
    return status_of(error) == _CONFLICT


def exists_already(error: BaseException) -> bool:
    """Return whether a conditional PUT met an object."""
    return status_of(error) == _PRECONDITION


def is_refusal(error: BaseException) -> bool:
    """Return whether the server responded that it will not do this, rather than that it cannot do it now."""
    status = status_of(error)
    busy = status in _BUSY_STATUS or error_code(error) in _OVERLOADED
    return 0 < status < _SERVER_FAULT and not busy


def is_expired(error: BaseException) -> bool:
    """Return whether credentials were refused because their time is over: a client made anew may have others."""
    return error_code(error) in _EXPIRED


def repeat_requests(client: "BaseClient", tries: int | None = None) -> None:
    """Let a client repeat its requests, after pauses that double; with `tries`, so often at most."""
    client.meta.events.register("needs-retry.s3", partial(_delay, tries))


def _delay(
    tries: int | None,
    attempts: int,
    request_dict: Mapping[str, Any],
    response: tuple[Any, Mapping[str, Any]] | None = None,
    caught_exception: Exception | None = None,
    **_: object,
) -> float | None:
    """Return the seconds until a request is sent again, None if it is not."""
    from botocore import exceptions as boto

    if response is None:
        lost = (boto.ConnectionError, boto.HTTPClientError, boto.ChecksumError)
        most = (tries or LOST_TRIES) if isinstance(caught_exception, lost) else 1
    else:
        conditional = "If-None-Match" in request_dict.get("headers", {})  # `create` knows what these two mean for it
        status, code = response[0].status_code, str(response[1].get("Error", {}).get("Code", ""))
        if status in (_CONFLICT, _PRECONDITION):
            most = 1 if conditional else CONFLICT_TRIES
        else:
            most = (tries or TRIES) if _is_busy(status, code) else 1
    return pause(attempts, str(request_dict.get("url", ""))) if attempts < most else None


def _is_busy(status: int, code: str) -> bool:
    failed = status >= _SERVER_FAULT and status not in (*_INCAPABLE, _FULL)
    return failed or status in _BUSY_STATUS or code in _OVERLOADED


def pause(attempts: int, url: str) -> float:
    """Return the seconds after a number of attempts; clients of different objects do not come back at one moment."""
    share = zlib.crc32(f"{attempts} {url}".encode()) / 2**32
    return min(PAUSE * 2.0 ** (attempts - 1), LONGEST) * (0.5 + share / 2)


def settled(uri: str, path: str, attempt: Callable[[], bool | None]) -> bool:
    """Return what an attempt at a conditional PUT ends with, which is None while it meets another one.

    StorageBusy if it goes on to: nothing was committed by it.
    """
    for number in range(CONFLICT_TRIES):
        if number:
            time.sleep(pause(number, path))
        if (created := attempt()) is not None:
            return created
    message = f"{uri}: the store did not settle a conditional PUT in {CONFLICT_TRIES} tries; try again later"
    raise StorageBusy(message)


def translated(path: str, bucket: str, error: BaseException, by: SetBy = OWN) -> Exception:
    """Return Refinery's error for boto3's; `path` is the object's URI, and `by` where its store is set."""
    from botocore.exceptions import NoCredentialsError, PartialCredentialsError

    if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
        return RecipeError(f"{path}: no S3 credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if status_of(error) in _INCAPABLE or error_code(error) == "NotImplemented":
        return Incapable(
            f"{path}: the object store cannot do this ({_code(error)}); "
            f"choose a server that `refinery setup doctor` accepts, or correct {by.endpoint}"
        )
    if status_of(error) == _FULL:
        return NoSpace(f"{path}: the object store is full ({_code(error)}); free space there, nothing was committed")
    if is_expired(error):
        return StorageBusy(
            f"{path}: the credentials have expired ({_code(error)}); it is tried again later, by those that follow "
            f"them. If they are set by hand, set new ones; {by.keys}"
        )
    if is_refusal(error):
        return _refusal(path, bucket, error, by)
    return StorageBusy(_unanswered(path, error, by))


def _code(error: BaseException) -> str:
    return f"{status_of(error)} {error_code(error)}".strip()


def _unanswered(path: str, error: BaseException, by: SetBy) -> str:
    """Return what happened to a request that may succeed later."""
    reason, later = str(error)[:300], "it is tried again later"
    if status_of(error) in (_CONFLICT, _PRECONDITION):
        return f"{path}: the object store did not settle requests that met ({_code(error)}: {reason}); {later}"
    if status_of(error):
        return f"{path}: the object store cannot answer now ({_code(error)}: {reason}); {later}"
    if is_corrupted(error):
        return f"{path}: the object store's answer is corrupted ({reason}); nothing was committed, and {later}"
    if _broke_off(error):
        return f"{path}: the connection to the object store broke off ({reason}); nothing was committed, and {later}"
    return (
        f"{path}: the object store{_place(error)} did not answer ({reason}); {later}. "
        f"If it never answers, check that it runs, {by.endpoint}, and the network"
    )


def _place(error: BaseException) -> str:
    """Return where a server was looked for, without what was asked of it; "" if the error does not say."""
    url = urlsplit(str(getattr(error, "kwargs", {}).get("endpoint_url", "")))
    return f" at {url.scheme}://{url.hostname}{f':{url.port}' if url.port else ''}" if url.hostname else ""


def is_corrupted(error: BaseException) -> bool:
    """Return whether an answer came that is none of S3's, or has another checksum than it says."""
    from botocore import exceptions as boto
    from botocore.parsers import ResponseParserError

    return isinstance(error, ResponseParserError | boto.ChecksumError | boto.FlexibleChecksumError)


def _broke_off(error: BaseException) -> bool:
    from botocore import exceptions as boto

    cut = (boto.ConnectionClosedError, boto.IncompleteReadError, boto.ReadTimeoutError, boto.ResponseStreamingError)
    return isinstance(error, cut)


def _refusal(path: str, bucket: str, error: BaseException, by: SetBy) -> Exception:
    code = error_code(error)
    if code == "NoSuchBucket":
        return RecipeError(f"{path}: bucket {bucket} does not exist; create it or correct the URI")
    if code in _CREDENTIALS or status_of(error) == _UNAUTHORIZED:
        return RecipeError(
            f"{path}: the object store refused the credentials ({code}); {by.keys} and the bucket's policy"
        )
    if code in _ELSEWHERE:
        return RecipeError(f"{path}: bucket {bucket} is in another region ({code}); set {by.region} to it")
    if code == "RequestTimeTooSkewed":
        return RecipeError(f"{path}: this machine's clock differs from the object store's; set it (NTP)")
    return ContractError(f"{path}: the object store refused the request ({code}: {str(error)[:300]})")
