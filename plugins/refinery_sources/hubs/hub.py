"""Sends requests to the Hugging Face Hub, and follows where it leads.

Downloads of large files are redirected to other hosts. A redirect is followed because a file is believed by its digest
and not by its host (`redirects.to_any_name`). The token goes to the address that the operator names and to no other,
whatever Hub a run or a recipe asks.
"""

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.listing import LISTING_BYTES
from pipeline_tasks.store.credential import Credential, note_secret
from refinery_sources.redirects import origin_of, to_any_name
from refinery_sources.web import Rule, Web, answered, body_of, tried

if TYPE_CHECKING:
    import httpx

TOKEN = Credential("HF_TOKEN")
"""The variable of the Hub's own clients that has the token of a user."""

HUB = "https://huggingface.co"

ADDRESS = "HF_ENDPOINT"
"""The variable of the Hub's own clients that names another address of the Hub."""

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
        return origin_of(url) == origin_of(self.address)


def own_address() -> str:
    """Return the address of the Hub that the operator names, to which alone the token goes."""
    return (os.environ.get(ADDRESS) or HUB).rstrip("/")


def has_token(hub: Hub) -> bool:
    """Return whether the user has named a token, and the Hub is the one that it is of."""
    return bool(_token()) and origin_of(hub.address) == origin_of(own_address())


def page(web: Web, hub: Hub, url: str) -> tuple[str, bytes]:
    """Return the URL of the next page, and the body of this one."""
    return tried(web, lambda: _read(web, hub, url))


def _read(web: Web, hub: Hub, url: str) -> tuple[str, bytes]:
    with answered(web, url, headers=_authorized(hub, url, {}), by=Rule(_judged(hub))) as response:
        body = body_of(web, response, url, LISTING_BYTES)
        following = _NEXT.search(response.headers.get("Link", ""))
        return following[1] if following else "", body


# --- Who is asked, and with what ----------------------------------------------------------------------------------


def _token() -> str:
    token = os.environ.get(TOKEN.env, "").strip()
    if token:
        note_secret(token, TOKEN)
    return token


def _authorized(hub: Hub, url: str, headers: dict[str, str]) -> dict[str, str]:
    """Return headers with the user's token if the Hub itself is asked, and is the one that the token is of."""
    if has_token(hub) and hub.owns(url):
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
                f"{TOKEN.env} to the token of a user who may read it{_of_other(hub)}"
            )
            raise RecipeError(message)

    return judge


def gated(hub: Hub) -> RecipeError:
    """Return the error for a dataset whose terms nobody has accepted."""
    return RecipeError(
        f"the dataset {hub.dataset} is gated: accept its terms at {hub.place}, and set {TOKEN.env} to a token of the "
        f"user who did{_of_other(hub)}"
    )


def _of_other(hub: Hub) -> str:
    """Return why a token that is set was not sent, "" if it was."""
    is_withheld = bool(_token()) and not has_token(hub)
    return f"; {TOKEN.env} is of {own_address()}, and {ADDRESS} names another Hub for it" if is_withheld else ""


def redirected(
    hub: Hub, web: Web, url: str, headers: dict[str, str]
) -> "contextlib.AbstractContextManager[httpx.Response]":
    """Ask for a file, and go where the answer leads, by the rule at the head of this module."""
    target = url.partition("#")[0]
    own = _authorized(hub, target, headers)
    return answered(web, target, headers=own, by=Rule(_judged(hub), to_any_name))
