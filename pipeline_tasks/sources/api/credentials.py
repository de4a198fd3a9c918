"""Who asks an API: a secret of the environment or of an Airflow connection, which nothing stores, shows or logs."""

import base64
import json
import os
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from pipeline_tasks.errors import RecipeError

CONNECTIONS = "AIRFLOW_CONN_"
"""How variables begin in which Airflow keeps connections, as a URI or as JSON."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Auth:
    """How a request says who asks: `env` is a variable with the secret (`user:password` for `basic`).

    `connection` names an Airflow connection in its place, whose password is the secret. `name` is that of the header or
    of the param.
    """

    by: Literal["bearer", "basic", "header", "query"]
    env: str = ""
    connection: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what is missing; a value is not repeated: somebody may have written the secret here."""
        if bool(self.env) == bool(self.connection):
            message = "auth takes its secret by `env`, the name of a variable, or by `connection`, and not by both"
            raise ValueError(message)
        if not _NAME.fullmatch(self.env or self.connection):
            message = "`env` and `connection` are names: set the secret itself as a variable of the environment"
            raise ValueError(message)
        if bool(self.name) != (self.by in ("header", "query")):
            message = "auth needs `name` by header or query, and has none otherwise"
            raise ValueError(message)


def headers_of(auth: Auth | None) -> dict[str, str]:
    """Return the headers that say who asks; RecipeError if the secret is not there."""
    if auth is None or auth.by == "query":
        return {}
    user, secret = _secret(auth)
    if auth.by == "basic":
        return {"Authorization": f"Basic {base64.b64encode(f'{user}:{secret}'.encode()).decode()}"}
    return {"Authorization": f"Bearer {secret}"} if auth.by == "bearer" else {auth.name: secret}


def params_of(auth: Auth | None) -> dict[str, str]:
    """Return the params that say who asks; RecipeError if the secret is not there."""
    return {auth.name: _secret(auth)[1]} if auth is not None and auth.by == "query" else {}


def _secret(auth: Auth) -> tuple[str, str]:
    """Return user and secret, the user "" where none is needed."""
    variable = auth.env or f"{CONNECTIONS}{auth.connection.upper()}"
    value = os.environ.get(variable, "").strip()
    user, secret = _of_connection(value) if auth.connection else ("", value)
    if auth.by == "basic" and auth.env:
        user, _, secret = value.partition(":")
    if not secret or not secret.isascii() or not secret.isprintable():
        what = "is not set" if not value else "has no secret that a request can carry"
        message = f"auth: the variable {variable} {what}; set it to the secret, and pull again"
        raise RecipeError(message)
    return user, secret


def _of_connection(value: str) -> tuple[str, str]:
    """Return login and password of a connection as Airflow writes it to a variable."""
    if value.startswith("{"):
        try:
            fields = json.loads(value)
        except ValueError:
            return "", ""
        return str(fields.get("login") or ""), str(fields.get("password") or "")
    parts = urlsplit(value)
    return unquote(parts.username or ""), unquote(parts.password or "")
