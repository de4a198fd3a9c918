"""Builds obstore's clients for `gs://` and `az://`: for this process's environment, or for what a URI was given.

Variables have the names of Rust's `object_store`, which obstore is: `GOOGLE_APPLICATION_CREDENTIALS`,
`AZURE_STORAGE_ACCOUNT_NAME`, ... What is given decides alone, as for S3.
"""

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pipeline_tasks.constraints import AZURE, GOOGLE, bucket_and_prefix, kind_of
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.named_store import SetBy
from pipeline_tasks.store.store_settings import Settings, settings_of

if TYPE_CHECKING:
    from obstore.store import AzureStore, GCSStore

EXTRA = "pip install 'refinery-tokens[clouds]'"


class _Kind(NamedTuple):
    """A kind of store: how its variables begin, which of them names a server, and where a person sets the rest."""

    prefix: str
    endpoints: tuple[str, ...]
    set_by: SetBy


_KINDS: Mapping[str, _Kind] = {
    GOOGLE: _Kind(
        "GOOGLE_",
        ("GOOGLE_BASE_URL",),
        SetBy("GOOGLE_BASE_URL", "", "check GOOGLE_APPLICATION_CREDENTIALS, or the connection google_cloud_default"),
    ),
    AZURE: _Kind(
        "AZURE_",
        ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        SetBy(
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ENDPOINT",
            "",
            "check AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the connection wasb_default",
        ),
    ),
}

_WAYS: Mapping[str, str] = {
    "AZURE_STORAGE_ACCOUNT_KEY": "access_key",
    "AZURE_STORAGE_SAS_KEY": "sas_token",
    "AZURE_CLIENT_SECRET": "client_secret",
    "AZURE_FEDERATED_TOKEN_FILE": "workload_identity",
}
"""How requests are signed, by the variable that is given; without one of them by the machine's managed identity."""

_ALWAYS_READ = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY")
"""Variables that obstore heeds whatever a client is given."""

FIXED = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY")
"""Variables by which requests are signed that nothing renews."""

SKIP = "_SKIP_SIGNATURE"
"""How the variable ends with which requests are nobody's."""

PATIENT: Mapping[str, str] = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "15m"}
QUICK: Mapping[str, str] = {"connect_timeout": "5s", "read_timeout": "10s", "timeout": "20s"}
"""Timeouts of requests of a run, and of the question before it."""

RETRIES, QUICK_RETRIES = 11, 2
"""How often obstore repeats what a busy or lost server did not answer; not for longer than `RETRIED` and `QUICKLY`."""

RETRIED, QUICKLY = timedelta(minutes=3), timedelta(seconds=15)

FIRST_PAUSE = timedelta(milliseconds=100)
"""The pause before the first repeated request; it doubles."""


class _Forks:
    """Whether this process was forked from one that had asked a store: obstore's threads did not come with it."""

    def __init__(self) -> None:
        self.asked = self.lost = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.lost = self.lost or self.asked


_forks = _Forks()


def renews(uri: str) -> bool:
    """Return whether requests of a URI are signed by tokens that a role gives, and gives again."""
    kind = kind_of(uri)
    variables = dict(settings_of(uri, _KINDS[kind].prefix).variables)
    return not variables.keys() & {f"GOOGLE{SKIP}", f"AZURE{SKIP}", *FIXED}


def forget_clients() -> None:
    """Let the next request have a client that asks for its token anew."""
    _client.cache_clear()


def set_by(uri: str) -> SetBy:
    """Return where a person sets what requests of a URI need."""
    return _KINDS[kind_of(uri)].set_by


def cloud_client(uri: str) -> "AzureStore | GCSStore":
    """Return the client for the bucket or container of a URI.

    RecipeError in a process that was forked from one with a client: its requests would wait for ever.
    """
    if _forks.lost:
        message = (
            f"{uri}: this process was forked from one that had read or written {kind_of(uri)}; start it as a new "
            'one: multiprocessing.get_context("spawn"), or multiprocessing_context="spawn" for a data loader'
        )
        raise RecipeError(message)
    client = _client(_place(uri), settings_of(uri, _KINDS[kind_of(uri)].prefix), is_quick=False)
    _forks.asked = True
    return client


def quick_client(uri: str) -> "AzureStore | GCSStore":
    """Return a client that gives up within seconds."""
    _forks.asked = True
    return _client(_place(uri), settings_of(uri, _KINDS[kind_of(uri)].prefix), is_quick=True)


def _place(uri: str) -> str:
    """Return the bucket of a URI, as URI."""
    return kind_of(uri) + bucket_and_prefix(uri)[0]


def options_of_other_clients(uri: str) -> dict[str, str]:
    """Return what a library with a client of its own needs to reach a URI's server with the same rights.

    The names are those of Rust's `object_store`, as for S3.
    """
    kind = kind_of(uri)
    variables = dict(settings_of(uri, _KINDS[kind].prefix).variables)
    options = {name.lower(): value for name, value in variables.items()}
    return options | ({"allow_http": "true"} if _is_http(kind, variables) else {})


@lru_cache(maxsize=16)
def _client(place: str, settings: Settings, *, is_quick: bool) -> "AzureStore | GCSStore":
    try:
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore
    except ImportError as error:
        message = f"{place}: the package obstore, which reads and writes it, is not installed; {EXTRA}"
        raise RecipeError(message) from error
    kind, variables = kind_of(place), dict(settings.variables)
    config = {name.lower(): value for name, value in variables.items()} if settings.are_given else {}
    if settings.are_given:
        config |= _alone(kind, variables)
    tries = QUICK_RETRIES if is_quick else RETRIES
    options = {**(QUICK if is_quick else PATIENT), "allow_http": _is_http(kind, variables)}
    retry = {
        "max_retries": tries,
        "retry_timeout": QUICKLY if is_quick else RETRIED,
        "backoff": {"init_backoff": FIRST_PAUSE, "max_backoff": timedelta(seconds=20), "base": 2},
    }
    of_kind: Callable[..., AzureStore | GCSStore] = GCSStore if kind == GOOGLE else AzureStore
    try:
        return of_kind(place.removeprefix(kind), config=config, client_options=options, retry_config=retry)
    except (BaseError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        message = f"{place}: no client can be made of its settings ({reason}); {_KINDS[kind].set_by.keys}"
        raise RecipeError(message) from error


def _alone(kind: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what lets a client heed nothing of this process's environment; RecipeError where obstore would."""
    if kind == AZURE:
        ways = [way for name, way in _WAYS.items() if name in variables]
        unsigned = "false" if f"AZURE{SKIP}" not in variables else "true"
        return {"credential_type": ways[0] if ways else "managed_identity", "skip_signature": unsigned}
    if heeded := [name for name in _ALWAYS_READ if name in os.environ and name not in variables]:
        message = (
            f"{heeded[0]} is set, and obstore heeds it whatever a connection says; unset it, and name the file by "
            "GOOGLE_APPLICATION_CREDENTIALS"
        )
        raise RecipeError(message)
    return {"skip_signature": "true" if f"GOOGLE{SKIP}" in variables else "false"}


def _is_http(kind: str, variables: Mapping[str, str]) -> bool:
    """Return whether requests go to a server without TLS, which a person has to name."""
    return any(variables.get(name, "").startswith("http://") for name in _KINDS[kind].endpoints)
