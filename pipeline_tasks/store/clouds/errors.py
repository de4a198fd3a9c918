"""What each error of obstore means: the same table as for S3, told by its class, and by the status in its text.

obstore itself repeats 5xx, 429 and lost connections. Its errors have no status and no code of their own, so both are
read from the text, which begins with the server's answer.
"""

import re

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError, StorageBusy
from pipeline_tasks.store.named_store import SetBy

NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "InvalidBucketName")
"""Codes of servers for a bucket or container that does not exist."""

_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,80})</Code>")
_IDENTITY = ("performing token request", "169.254.169.254", "metadata.google.internal", "credential error")
"""What errors say that came where credentials are asked for, and not objects."""

_FORBIDDEN, _UNAUTHORIZED, _ABSENT, _CONFLICT, _PRECONDITION = 403, 401, 404, 409, 412
_RANGE, _TOO_MANY, _TIMEOUT, _SERVER_FAULT = 416, 429, 408, 500
_INCAPABLE = (405, 501)
_FULL = 507


def reason_of(error: BaseException) -> str:
    """Return what an error says, without obstore's view of its own source."""
    return re.sub(r"\s+", " ", str(error).partition("\n\nDebug source")[0])[:400].strip()


def status_of(error: BaseException) -> int:
    """Return the HTTP status that an error tells, 0 for none."""
    match = _STATUS.search(str(error))
    return int(match[1]) if match else 0


def code_of(error: BaseException) -> str:
    """Return the code of a server's answer, "" for none."""
    match = _CODE.search(str(error).partition("\n\nDebug source")[0])
    return match[1] if match else ""


def is_beyond(error: BaseException) -> bool:
    """Return whether a range began behind the end of its object."""
    return status_of(error) == _RANGE


def is_of_identity(error: BaseException) -> bool:
    """Return whether what failed was to become somebody, which obstore has tried again."""
    reason = reason_of(error)
    return any(part in reason for part in _IDENTITY)


def is_refusal(error: BaseException) -> bool:
    """Return whether the server answered that it will not do this, rather than that it cannot do it now."""
    from obstore.exceptions import InvalidPathError, PermissionDeniedError, UnauthenticatedError

    if isinstance(error, (PermissionDeniedError, UnauthenticatedError, InvalidPathError, ValueError)):
        return True
    status = status_of(error)
    if is_of_identity(error):
        return True
    busy = status in (_CONFLICT, _PRECONDITION, _TOO_MANY, _TIMEOUT)
    return 0 < status < _SERVER_FAULT and not busy


def is_expired(error: BaseException) -> bool:
    """Return whether the server does not know who asks, as where a token was revoked or its time is over."""
    from obstore.exceptions import UnauthenticatedError

    return isinstance(error, UnauthenticatedError) or status_of(error) == _UNAUTHORIZED


def translated(path: str, bucket: str, error: BaseException, by: SetBy, *, is_renewed: bool) -> Exception:
    """Return Refinery's error for obstore's; `path` is the object's URI, and `by` where its store is set.

    `is_renewed` says that requests are signed by tokens, of which a role gives others.
    """
    status, code, reason = status_of(error), code_of(error), reason_of(error)
    told = f"{status or ''} {code}".strip()
    if status in _INCAPABLE:
        return RecipeError(
            f"{path}: the object store cannot do this ({told}); choose one that `refinery setup doctor` accepts, "
            f"or correct {by.endpoint}"
        )
    if status == _FULL:
        return NoSpace(f"{path}: the object store is full ({told}); free space there, nothing was committed")
    if is_of_identity(error):
        return RecipeError(f"{path}: no credentials could be had ({reason}); {by.keys}")
    if is_refusal(error):
        return _refusal(path, bucket, error, by, is_renewed=is_renewed)
    later = "nothing was committed, and it is tried again later"
    if status:
        return StorageBusy(f"{path}: the object store cannot answer now ({told}: {reason}); {later}")
    return StorageBusy(
        f"{path}: the object store did not answer, or broke off ({reason}); {later}. "
        f"If it never answers, check {by.endpoint} and the network"
    )


def _refusal(path: str, bucket: str, error: BaseException, by: SetBy, *, is_renewed: bool) -> Exception:
    from obstore.exceptions import PermissionDeniedError

    told = f"{status_of(error) or ''} {code_of(error)}".strip()
    if is_renewed and is_expired(error):
        return StorageBusy(f"{path}: the token was refused ({told}); it is tried again later, by a new one; {by.keys}")
    if code_of(error) in NO_BUCKET:
        return no_bucket(path, bucket)
    if isinstance(error, PermissionDeniedError) or is_expired(error) or status_of(error) == _FORBIDDEN:
        return RecipeError(f"{path}: the object store refused the credentials ({told}); {by.keys}, and its roles")
    return ContractError(f"{path}: the object store refused the request ({told}: {reason_of(error)})")


def no_bucket(path: str, bucket: str) -> RecipeError:
    """Return the error of a bucket or container that does not exist."""
    return RecipeError(f"{path}: bucket or container {bucket} does not exist; create it or correct the URI")
