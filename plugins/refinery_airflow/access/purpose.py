"""Keeps the purpose for which a user looks at texts: a signed cookie, of this user and this day."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

from airflow.api_fastapi.auth.tokens import get_signing_key
from fastapi import HTTPException, Request, Response

from pipeline_tasks.store.access_log import needs_purpose, one_line
from refinery_airflow.runs.run import base, site

COOKIE = "refinery_purpose"

FORBIDDEN = 403

STALE = "This form is not of this page, or not of yours. Open the page again and answer there."


class PurposeNeeded(HTTPException):
    """Texts are shown for a purpose alone, and this user has named none today: the answer is the form that asks."""

    def __init__(self, user: str) -> None:
        """Remember who is asked."""
        super().__init__(FORBIDDEN, "Texts of this root are shown for a purpose alone. It is logged with your name.")
        self.user = user


def purpose_of(request: Request, user: str) -> str:
    """Return the purpose that a user has named today, "" for none; a cookie of another user or day is none."""
    body, _, signature = request.cookies.get(COOKIE, "").partition(".")
    if not hmac.compare_digest(signature.encode(), _signature(user, body).encode()):
        return ""
    said = json.loads(base64.urlsafe_b64decode(body))
    return str(said["purpose"]) if said["day"] == _today() else ""


def require_purpose(request: Request, user: str) -> None:
    """Raise PurposeNeeded where a look needs a purpose and the user has named none."""
    if needs_purpose() and not purpose_of(request, user):
        raise PurposeNeeded(user)


def keep_purpose(request: Request, response: Response, user: str, purpose: str) -> None:
    """Have the browser keep the purpose of a user until the end of the day, in UTC."""
    said = json.dumps({"purpose": one_line(purpose), "day": _today()})
    body = base64.urlsafe_b64encode(said.encode()).decode()
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    response.set_cookie(
        COOKIE,
        f"{body}.{_signature(user, body)}",
        expires=midnight,
        path=site(),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def form_token(user: str) -> str:
    """Return what the form proves by that this server gave it to this user."""
    return _signature(user, "form")


def is_form_token(token: str, user: str) -> bool:
    """Return whether the form has the token of its user."""
    return hmac.compare_digest(token.encode(), form_token(user).encode())


def own_address(address: str) -> str:
    """Return an address of these pages as it is, and that of the first page for any other."""
    is_own = address.startswith(f"{site()}/") and "\\" not in address and address.isprintable()
    return address if is_own else f"{base()}/page"


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _signature(user: str, body: str) -> str:
    key = get_signing_key("api", "secret_key")
    return hmac.new(key.encode(), f"refinery purpose\n{user}\n{body}".encode(), hashlib.sha256).hexdigest()


def require_own_form(request: Request, *, has_token: bool) -> None:
    """Raise 403 for a form of another site, or one without the token of its user."""
    is_own = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    if not is_own or not has_token:
        raise HTTPException(FORBIDDEN, STALE)
