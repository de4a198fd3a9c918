"""What PyIceberg raises as errors of ours, which name the catalog or the table and the way out."""

import contextlib
import zlib
from collections.abc import Iterator

import pyarrow as pa
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NotInstalledError,
    OAuthError,
    ResolveError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    SignError,
    TableAlreadyExistsError,
    TooManyRequestsError,
    UnauthorizedError,
    ValidationError,
    ValidationException,
    WaitingForLockException,
)

from pipeline_tasks.errors import ContractError, RecipeError, RefineryError, StorageBusy
from refinery_exports.tables.catalog import Changed

REPAIR = "`refinery register --repair` makes the table anew, of the files that the root has"

_CHANGED = (CommitFailedException, TableAlreadyExistsError, ValidationException)

_AWAY = (ServerError, ServiceUnavailableError, TooManyRequestsError, WaitingForLockException, OSError)
"""Errors of a catalog, and of the connections to it and to the store of its metadata: requests' are OSErrors, too."""

_REFUSED = (
    AuthorizationExpiredError,
    BadRequestError,
    ForbiddenError,
    NotInstalledError,
    OAuthError,
    PermissionError,
    SignError,
    UnauthorizedError,
)

_LOST = (
    AssertionError,
    AttributeError,
    EOFError,
    FileNotFoundError,
    KeyError,
    IndexError,
    MemoryError,
    OverflowError,
    SystemError,
    TypeError,
    ValidationError,
    ValueError,
    pa.ArrowException,
    zlib.error,
)
"""What readers of JSON and Avro raise over bytes that are no metadata of a table."""


@contextlib.contextmanager
def answering(catalog: str) -> Iterator[None]:
    """Turn what a catalog's server answers, or that it does not, into errors that name the catalog."""
    try:
        yield
    except (RefineryError, FileNotFoundError):
        raise
    except Exception as error:
        ours = _translated(catalog, error)
        if ours is None:
            raise
        raise ours from error


def _translated(catalog: str, error: Exception) -> Exception | None:
    """Return the error of ours for one of PyIceberg; None for one that is not of a server."""
    said = _first_line(error)
    if isinstance(error, _CHANGED):
        return Changed(said)
    if isinstance(error, CommitStateUnknownException):
        return StorageBusy(f"the catalog {catalog} did not say whether it has made a commit ({said}); try again")
    if isinstance(error, _REFUSED):
        return RecipeError(f"the catalog {catalog} refuses ({said}); correct what PyIceberg's configuration says of it")
    if isinstance(error, _AWAY) or _is_of_database(error):
        return StorageBusy(f"the catalog {catalog} does not answer ({said}); wait for it, or correct its `uri`")
    if isinstance(error, RESTError):
        return RecipeError(f"the catalog {catalog} answers as no catalog of Iceberg does ({said}); correct its `uri`")
    return None


@contextlib.contextmanager
def readable(catalog: str, table: str) -> Iterator[None]:
    """Turn what lost or damaged metadata lead to into a ContractError that names the table."""
    try:
        with answering(catalog):
            yield
    except (RefineryError, Changed):
        raise
    except _LOST as error:
        message = (
            f"the metadata of the table {table} of the catalog {catalog} are lost or damaged ({_first_line(error)}); "
            f"restore them, or {REPAIR}"
        )
        raise ContractError(message) from error


@contextlib.contextmanager
def fitting(table: str) -> Iterator[None]:
    """Turn the refusal of columns that a table cannot have into a RecipeError that names the table."""
    try:
        yield
    except (ValueError, TypeError, ResolveError, ValidationError) as error:
        message = (
            f"the table {table} cannot have the columns of this version ({_first_line(error)}): values of another type "
            "need a column of another name, or another table; publish by a recipe of another name, or drop the table"
        )
        raise RecipeError(message) from error


def _is_of_database(error: Exception) -> bool:
    """Return whether a catalog's database does not answer: SQLAlchemy is there only where such a catalog is."""
    return any(kind.__module__ == "sqlalchemy.exc" and kind.__name__ == "DBAPIError" for kind in type(error).__mro__)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:300]}"
