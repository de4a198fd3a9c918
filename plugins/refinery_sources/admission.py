"""Admits what a pull opens, whom it asks and what it sends: what query and recipe name, and nothing that data names.

A kind of source declares where it is by the types of its fields (`constraints.PLACE`); by `Asking` what its own code
names, and by `Secretive` which secrets it sends where. What a pull opens and asks goes through here, so that a kind
which has not declared a place, a host or a secret is refused: kinds import no other way to a store.
"""

import contextlib
import os
import re
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeVar, runtime_checkable
from urllib.parse import quote

from pipeline_tasks.binding import places_in
from pipeline_tasks.constraints import is_bucket, on_web
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store import storage
from pipeline_tasks.store.credential import Credential, read_secrets
from pipeline_tasks.store.local_store import real_path
from pipeline_tasks.store.protocol import Store
from refinery_sources.redirects import Origin, origin_of

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
U = TypeVar("U")

FILE = "file://"

METADATA = frozenset(
    {"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"}
)
"""Addresses at which clouds give a machine its keys, beside those that are link-local."""

_TRANSLATED = IPv6Network("64:ff9b::/96")
"""Addresses of version 6 that a network translates to those of version 4 at their end (RFC 6052)."""

_OTHER_S3 = re.compile("^s3[an]://")


@runtime_checkable
class Asking(Protocol):
    """A kind of source whose code names addresses that none of its fields has."""

    @property
    def asks(self) -> Collection[str]:
        """The addresses."""


@runtime_checkable
class Secretive(Protocol):
    """A kind of source that sends secrets."""

    @property
    def secrets(self) -> Mapping[Credential, Collection[str]]:
        """The addresses to which each secret may go."""


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    """Places below which files are opened, origins that are asked, and to which of them each secret goes.

    What is opened is below one of `places`, and below one of `within`, too, unless that is None: those that the
    operator names.
    """

    places: frozenset[str] = frozenset()
    origins: frozenset[Origin] = frozenset()
    secrets: Mapping[Credential, frozenset[Origin]] = field(default_factory=dict)
    within: frozenset[str] | None = None

    def has(self, place: str) -> bool:
        """Return whether a place is one of them, or below one."""
        real = real_place(place)
        fences = (self.places,) if self.within is None else (self.places, self.within)
        return ".." not in real.split("/") and all(is_below_any(real, fence) for fence in fences)


@dataclass(slots=True)
class Gate:
    """What the client of a pull may ask: it is closed until a source is admitted.

    `within` are the places of the operator, for a pull that somebody else has changed; None for any.
    """

    admission: Admission = field(default_factory=Admission)
    within: frozenset[str] | None = None
    led: set[Origin] = field(default_factory=set)
    looked_at: set[Origin] = field(default_factory=set)

    def require(self, request: "httpx.Request") -> None:
        """Raise RecipeError for a request to a host that was not declared, and for one with a secret of another."""
        origin = origin_of(str(request.url))
        is_declared = origin in self.admission.origins
        if not is_declared and origin not in self.led:
            raise _unnamed(origin)
        if origin not in self.looked_at:
            _require_outside(origin, is_led=not is_declared and not any(map(_is_here, self.admission.origins)))
            self.looked_at.add(origin)
        sent = "\n".join([str(request.url), *request.headers.values()])
        for secret, credential in read_secrets():
            if (secret in sent or quote(secret, safe="") in sent) and origin not in self.admission.secrets.get(
                credential, ()
            ):
                message = (
                    f"{_text(origin)} is not where the secret of {credential.variable} belongs; it is not sent there"
                )
                raise RecipeError(message)

    def lead(self, url: str) -> None:
        """Note the host of an address that a list names: it may be asked as one that an answer leads to."""
        self.led.add(origin_of(url))

    def follow(self, response: "httpx.Response") -> None:
        """Note where an answer leads: a host that was asked may lead to others of the web, without secrets."""
        if response.has_redirect_location:
            with contextlib.suppress(ValueError):
                self.led.add(origin_of(str(response.url.join(response.headers["Location"]))))


_NOW: ContextVar[Admission] = ContextVar("admission", default=Admission())  # noqa: B039 -- it is frozen


@contextlib.contextmanager
def admitted(source: object, gate: Gate, rights: Iterable[str] = ()) -> Iterator[None]:
    """Let what is done meanwhile open and ask what a source declares, and the files of rights that its recipe names."""
    named = [*(place for _, place in places_in(source)), *rights]
    asked = [place for place in (*named, *(source.asks if isinstance(source, Asking) else ())) if on_web(place)]
    secrets = source.secrets if isinstance(source, Secretive) else {}
    gate.admission = Admission(
        frozenset(real_place(place) for place in named if not on_web(place)),
        frozenset(map(origin_of, asked)),
        {credential: frozenset(map(origin_of, places)) for credential, places in secrets.items()},
        gate.within,
    )
    with _in_force(gate.admission):
        yield


@contextlib.contextmanager
def _in_force(admission: Admission) -> Iterator[None]:
    token = _NOW.set(admission)
    try:
        yield
    finally:
        _NOW.reset(token)


def admitted_in_threads(call: Callable[[T], U]) -> Callable[[T], U]:
    """Return a call for threads that work for the same pull, in which they open what is admitted here."""
    admission = _NOW.get()

    def called(item: T) -> U:
        with _in_force(admission):
            return call(item)

    return called


# --- Places -------------------------------------------------------------------------------------------------------


def require_place(place: str) -> str:
    """Return a place that a library opens by itself; RecipeError unless it was declared."""
    if not _NOW.get().has(place):
        raise _foreign(place)
    return place


def fence_at(*places: str) -> Callable[[str], object]:
    """Return what raises RecipeError for a place that was not declared here, in threads of a library, too.

    `places` are those that a catalog says besides, which the operator has set up.
    """
    admission = _NOW.get()
    real = [real_place(place) for place in places]

    def require(place: str) -> None:
        place = _OTHER_S3.sub("s3://", place)
        if not admission.has(place) and not is_below_any(real_place(place), real):
            raise _foreign(place)

    return require


def admits_within(place: str) -> bool:
    """Return whether the operator lets a pull open a place that is above what its query names, such as its folder."""
    within = _NOW.get().within
    return within is None or is_below_any(real_place(place), within)


def connect(place: str, store: str = "") -> Store:
    """Return the store at a place that was declared, or at the folder of one; RecipeError for any other."""
    admission = _NOW.get()
    is_above = any(known.rpartition("/")[0] == real_place(place) for known in admission.places)
    if not is_above and not admission.has(place):
        raise _foreign(place)
    return storage.connect(place, store, admission.has)


def open_file(uri: str, store: str = "") -> BinaryIO:
    """Open a file by its URI; RecipeError unless it is below a declared place, and no link has led it elsewhere."""
    return storage.open_landed(require_place(uri), store, _NOW.get().has)


def require_links_within(folder: str) -> None:
    """Raise RecipeError for a link below a local folder that leads out, for libraries that follow them."""
    admission = _NOW.get()
    if is_bucket(folder):
        return
    for parent, folders, names in os.walk(folder.removeprefix(FILE)):
        for path in (Path(parent, name) for name in (*folders, *names)):
            if path.is_symlink() and not admission.has(str(path)):
                raise _foreign(str(path))


def _foreign(place: str) -> RecipeError:
    real = real_place(place)
    led = f", which leads to {real}," if real != place.removeprefix(FILE).rstrip("/") else ""
    return RecipeError(
        f"{place}{led} is not below what the query of this source names: data names no places. Copy it there, exclude "
        "it, or name it in a recipe of its own"
    )


def real_place(place: str) -> str:
    """Return a place without detours: a path of this machine without links, `..` and the scheme."""
    return place.rstrip("/") if "://" in place and not place.startswith(FILE) else real_path(place.removeprefix(FILE))


def is_below_any(place: str, places: Iterable[str]) -> bool:
    """Return whether a place is one of others, or below one."""
    return any(f"{place}/".startswith(f"{known.rstrip('/')}/") for known in places)


def require_host(url: str) -> None:
    """Raise RecipeError unless an address was declared, for a program that asks it by itself."""
    origin = origin_of(url)
    if origin not in _NOW.get().origins:
        raise _unnamed(origin)
    _require_outside(origin, is_led=False)


# --- Hosts --------------------------------------------------------------------------------------------------------


def _text(origin: Origin) -> str:
    return f"{origin[0]}://{origin[1]}:{origin[2]}"


def _unnamed(origin: Origin) -> RecipeError:
    message = f"{_text(origin)} is no address that the query or the recipe of this source names; nothing is sent there"
    return RecipeError(message)


def _require_outside(origin: Origin, *, is_led: bool) -> None:
    """Raise RecipeError for a host that gives machines their keys, and for one of this network that an answer leads to.

    A name that is not known here is one of a proxy's.
    """
    _, host, port = origin
    try:
        found = {str(each[4][0]).partition("%")[0] for each in socket.getaddrinfo(host, port)}
    except (OSError, UnicodeError):
        found = set()
    for each in map(ip_address, found):
        address = _within(each)
        if address.is_link_local or str(address) in METADATA or (is_led and not address.is_global):
            message = (
                f"{_text(origin)} is at {address}, an address of this machine or its network: nothing is sent there"
            )
            raise RecipeError(message)


def _within(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the address of version 4 that one of version 6 stands for, by its form or by translation, or itself."""
    if isinstance(address, IPv4Address):
        return address
    translated = IPv4Address(int(address) & 0xFFFF_FFFF) if address in _TRANSLATED else None
    return address.ipv4_mapped or address.sixtofour or translated or address


def _is_here(origin: Origin) -> bool:
    """Return whether an origin is written as an address of this machine or its network."""
    try:
        return not ip_address(origin[1]).is_global
    except ValueError:
        return origin[1] == "localhost"
