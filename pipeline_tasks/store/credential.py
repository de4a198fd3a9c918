"""Reads who sends a request, and with which secret: from a variable of the environment, or from an Airflow connection.

A recipe names the variable or the connection, never the secret, so nothing that is stored, shown or logged has it.
"""

import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from pipeline_tasks.errors import RecipeError

STORE = "REFINERY_STORE_"
"""How the variables begin in which the operator says what a store is, and by whose keys it is asked."""

CONNECTIONS = "AIRFLOW_CONN_"
"""How variables begin in which Airflow keeps connections, as a URI or as JSON."""

SHORTEST = 8
"""Characters of a secret that is known again in other texts."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class Credential:
    """Where a secret is: in the variable `env` as it is, or in the password of an Airflow `connection`."""

    env: str = ""
    connection: str = ""

    def require_names(self, subject: str) -> None:
        """Raise ValueError unless it is one name, without repeating it: somebody may have written the secret here."""
        if bool(self.env) == bool(self.connection):
            message = (
                f"{subject} takes its secret by `env`, the name of a variable, or by `connection`, and not by both"
            )
            raise ValueError(message)
        if not _NAME.fullmatch(self.env or self.connection):
            message = "`env` and `connection` are names: set the secret itself as a variable of the environment"
            raise ValueError(message)

    @property
    def variable(self) -> str:
        """The variable of the environment that has it."""
        return self.env or variable_of(self.connection)

    def read(self, subject: str, form: str, *, has_user: bool) -> tuple[str, str]:
        """Return user and secret; the user of a variable is what it has before `:`, "" unless it `has_user`.

        RecipeError, which names the variable and the `form` that it has, if the secret is not there.
        """
        value = os.environ.get(self.variable, "").strip()
        user, secret = _of_connection(value) if self.connection else ("", value)
        if has_user and self.env:
            user, _, secret = value.partition(":")
        if not secret or not secret.isascii() or not secret.isprintable():
            what = "has no secret that a request can carry" if value else "is not set"
            message = f"{subject}: the variable {self.variable} {what}; set it to {form}"
            raise RecipeError(message)
        note_secret(secret, self)
        return user, secret


_READ: dict[str, Credential] = {}
"""The secrets that this process has read to send them, with where each was."""


def note_secret(secret: str, credential: Credential) -> None:
    """Note a secret, or another form of it, so that it is sent nowhere else, and written nowhere.

    One of fewer than `SHORTEST` characters is not: it is a part of many texts.
    """
    if len(secret) >= SHORTEST:
        _READ[secret] = credential


def read_secrets() -> list[tuple[str, Credential]]:
    """Return what was noted."""
    return list(_READ.items())


MASK = b"<SECRET>"
"""What stands in data in place of a secret."""

LONG = 16
"""Characters of a secret of the environment at least that is looked for in data: a shorter one may be a word."""

_SECRET = re.compile(r"(?i).*(?:key|secret|token|password)")
_IN_URL = re.compile(r"://[^/@\s]*:([^/@\s]+)@")


def masked(data: bytes) -> tuple[bytes, int]:
    """Return data with `MASK` in place of secrets, as they are and as JSON writes them, and how many there were.

    Secrets are those that were noted here, and those of the environment: values of variables that are called keys,
    tokens and passwords, keys of stores, and passwords of connections and databases.
    """
    count = 0
    for secret in _sought(tuple(_READ), tuple(sorted(os.environ.items()))):
        if found := data.count(secret):
            data, count = data.replace(secret, MASK), count + found
    return data, count


@lru_cache(maxsize=4)
def _sought(noted: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> tuple[bytes, ...]:
    """Return the bytes that are looked for, the longest first, as one may be a part of another."""
    values = [value for name, value in variables if _SECRET.fullmatch(name)]
    values += [part for name, value in variables if name.startswith(STORE) for part in value.split(" ")[0].split(":")]
    values += [unquote(match[1]) for _, value in variables for match in _IN_URL.finditer(value)]
    values += [_of_connection(value)[1] for name, value in variables if name.startswith(CONNECTIONS)]
    secrets = {*noted, *(value for value in values if len(value) >= LONG and not value.startswith("/"))}
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
    return tuple(sorted((form.encode() for form in forms), key=lambda form: (-len(form), form)))


def variable_of(connection: str) -> str:
    """Return the variable in which Airflow keeps a connection."""
    return f"{CONNECTIONS}{connection.upper()}"


def database_of(connection: str) -> str:
    """Return the URI of the database of a connection as Airflow writes it to a variable, as URI or as JSON."""
    if not connection.lstrip().startswith("{"):
        parts = urlsplit(connection)
        return urlunsplit(("postgresql", parts.netloc, parts.path, parts.query, ""))
    fields = json.loads(connection)
    user, password, host, name = (
        quote(str(fields.get(key) or ""), safe="") for key in ("login", "password", "host", "schema")
    )
    port = f":{fields['port']}" if fields.get("port") else ""
    extra = fields.get("extra") or {}
    options = urlencode(json.loads(extra) if isinstance(extra, str) else extra)
    return f"postgresql://{user}:{password}@{host}{port}/{name}" + (f"?{options}" if options else "")


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
