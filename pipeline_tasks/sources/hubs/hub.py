"""Sends requests to the Hugging Face Hub, and follows where it leads.

Downloads of large files are redirected to other hosts. A redirect is followed because a file is believed by its digest
and not by its host, and only so: from https to https, to the name of a host and not to a number, `HOPS` times at most.
The token goes to the Hub's own address and to no other, also after a redirect that leads back.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.landing.listing import LISTING_BYTES
from pipeline_tasks.sources.web import Web, answered, body_of, tried

if TYPE_CHECKING:
    import httpx

TOKEN = "HF_TOKEN"  # noqa: S105 -- the name of a variable
"""The variable of the Hub's own clients that has the token of a user."""

HOPS = 4
"""Redirects of one download that are followed."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ANSWERED = frozenset({200, 206, 416})
_NEXT = re.compile(r'<([^<>]+)>\s*;\s*rel="?next"?')


@dataclass(frozen=True, slots=True)
class Hub:
    """The Hub at an address, and the dataset that it is asked for."""

    address: str
    dataset: str

    @property
    def place(self) -> str:
        """The page of the dataset."""
        return f"{self.address}/datasets/{self.dataset}"

    def owns(self, url: str) -> bool:
        """Return whether a URL is at the Hub itself."""
        return _origin(url) == _origin(self.address)


def has_token() -> bool:
    """Return whether the user has named a token."""
    return bool(_token())


def page(web: Web, hub: Hub, url: str) -> tuple[str, bytes]:
    """Return the URL of the next page, and the body of this one."""
    return tried(web, lambda: _read(web, hub, url))


def _read(web: Web, hub: Hub, url: str) -> tuple[str, bytes]:
    with answered(web, url, headers=_authorized(hub, url, {}), judge=_judged(hub)) as response:
        body = body_of(web, response, url, LISTING_BYTES)
        following = _NEXT.search(response.headers.get("Link", ""))
        return following[1] if following else "", body


# --- Who is asked, and with what ----------------------------------------------------------------------------------


def _token() -> str:
    return os.environ.get(TOKEN, "").strip()


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _authorized(hub: Hub, url: str, headers: dict[str, str]) -> dict[str, str]:
    """Return headers with the user's token if the Hub itself is asked."""
    if _token() and hub.owns(url):
        return {**headers, "Authorization": f"Bearer {_token()}"}
    return headers


def _judged(hub: Hub) -> "Callable[[httpx.Response], None]":
    """Return what raises RecipeError where the Hub itself says why it refuses: so no other request is forbidden."""

    def judge(response: "httpx.Response") -> None:
        code = response.headers.get("X-Error-Code", "") if hub.owns(str(response.url)) else ""
        if code == "GatedRepo":
            raise gated(hub)
        if code == "RepoNotFound":
            message = (
                f"{hub.address} has no dataset {hub.dataset}, or it is private: correct the repository, or set "
                f"{TOKEN} to the token of a user who may read it"
            )
            raise RecipeError(message)

    return judge


def gated(hub: Hub) -> RecipeError:
    """Return the error for a dataset whose terms nobody has accepted."""
    return RecipeError(
        f"the dataset {hub.dataset} is gated: accept its terms at {hub.place}, and set {TOKEN} to a token of the user "
        "who did"
    )


@contextlib.contextmanager
def redirected(hub: Hub, web: Web, url: str, headers: dict[str, str]) -> Iterator["httpx.Response"]:
    """Ask for a file, and go where the answer leads, by the rule at the head of this module."""
    target = url.partition("#")[0]
    for _ in range(HOPS + 1):
        own = _authorized(hub, target, headers)
        with (
            _unsigned(target),
            answered(web, target, headers=own, accepted=_ANSWERED | _REDIRECTS, judge=_judged(hub)) as response,
        ):
            if response.status_code not in _REDIRECTS:
                yield response
                return
            location = response.headers.get("Location", "")
        target = _followed(hub, target, location)
    message = f"{url.partition('#')[0]} is redirected more than {HOPS} times"
    raise RecipeError(message)


@contextlib.contextmanager
def _unsigned(url: str) -> Iterator[None]:
    """Leave the query of a URL out of errors: it is signed, and lets whoever has it read the file."""
    try:
        yield
    except RefineryError as error:
        if "?" not in url or url not in str(error):
            raise
        raise type(error)(str(error).replace(url, url.partition("?")[0])) from None


def _followed(hub: Hub, url: str, location: str) -> str:
    """Return where a redirect leads; RecipeError if the rule forbids to go there."""
    target = urljoin(url, location)
    parts = urlsplit(target)
    if not location or not parts.hostname or parts.scheme not in ("https", "http") or "@" in parts.netloc:
        reason = "to no address of the web"
    elif not hub.owns(target) and _is_number(parts.hostname) and not _is_number(urlsplit(hub.address).hostname or ""):
        reason = "to the number of a host"
    elif parts.scheme != "https" and hub.address.startswith("https:"):
        reason = "to an address without TLS"
    else:
        return target
    message = f"{url.partition('?')[0]} is redirected {reason} ({parts.netloc.rpartition('@')[2][:100]}): not followed"
    raise RecipeError(message)


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True
