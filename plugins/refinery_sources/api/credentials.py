"""Who asks an API: a secret of the environment or of an Airflow connection, which nothing stores, shows or logs."""

import base64
from dataclasses import dataclass
from typing import Literal

from pipeline_tasks.store.credential import Credential, note_secret


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
        """Raise ValueError for what is missing."""
        self.credential.require_names("auth")
        if bool(self.name) != (self.by in ("header", "query")):
            message = "auth needs `name` by header or query, and has none otherwise"
            raise ValueError(message)

    @property
    def credential(self) -> Credential:
        """Where the secret is."""
        return Credential(self.env, self.connection)


def headers_of(auth: Auth | None) -> dict[str, str]:
    """Return the headers that say who asks; RecipeError if the secret is not there."""
    if auth is None or auth.by == "query":
        return {}
    user, secret = _secret(auth)
    if auth.by == "basic":
        pair = base64.b64encode(f"{user}:{secret}".encode()).decode()
        note_secret(pair, auth.credential)
        return {"Authorization": f"Basic {pair}"}
    return {"Authorization": f"Bearer {secret}"} if auth.by == "bearer" else {auth.name: secret}


def params_of(auth: Auth | None) -> dict[str, str]:
    """Return the params that say who asks; RecipeError if the secret is not there."""
    return {auth.name: _secret(auth)[1]} if auth is not None and auth.by == "query" else {}


def _secret(auth: Auth) -> tuple[str, str]:
    """Return user and secret, the user "" where none is needed."""
    return auth.credential.read("auth", "the secret, and pull again", has_user=auth.by == "basic")
