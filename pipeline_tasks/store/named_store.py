"""Names an S3 store that is not this process's own: where it answers, and who may read it. A recipe or a list has it.

Endpoint and region are in the name, and the secret is not: each process reads it from the variable that is named.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from pipeline_tasks.constraints import PlainWord
from pipeline_tasks.store.credential import Credential

OURS = "REFINERY_"
"""How variables begin that processes of ours are told apart by: a worker daemon of other values is another daemon."""

_WORD = re.compile(r"[!-~]+")


class SetBy(NamedTuple):
    """Where a person sets what requests need: the words of error messages."""

    endpoint: str
    region: str
    keys: str


@dataclass(frozen=True, slots=True)
class NamedStore:
    """A store of S3: its `endpoint`, that of AWS if empty, its `region`, and whose keys its requests have.

    Nobody's if it is `anonymous`; else those of the variable `env` (`key:secret`, or `key:secret:token`), or login and
    password of an Airflow `connection`.
    """

    name: PlainWord
    endpoint: str = ""
    region: str = "us-east-1"
    anonymous: bool = False
    env: str = ""
    connection: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an endpoint that is none, and unless it says whose keys its requests have."""
        parts = urlsplit(self.endpoint)
        _ = parts.port  # ValueError for one that is none
        if not _WORD.fullmatch(self.endpoint + self.region):
            message = "endpoint and region: write them without blanks, and in ASCII"
            raise ValueError(message)
        is_url = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc
        if self.endpoint and (not is_url or parts.query or parts.path.strip("/")):
            message = "endpoint: name an address of https:// or http://, without user, path and query"
            raise ValueError(message)
        if self.anonymous and (self.env or self.connection):
            message = f"store {self.name} is anonymous and has keys; leave one out"
            raise ValueError(message)
        if not self.anonymous:
            self._credential.require_names(f"store {self.name}, unless it is `anonymous: true`,")
        if self.env and not self.env.startswith(OURS):
            message = f"env: name a variable that begins with {OURS}, as {OURS}{self.name.upper()}"
            raise ValueError(message)

    @property
    def _credential(self) -> Credential:
        return Credential(self.env, self.connection)

    @property
    def keys(self) -> tuple[str, str, str]:
        """Access key, secret key and session token, "" for none; RecipeError if the variable is not set."""
        if self.anonymous:
            return "", "", ""
        form = "key:secret" if self.env else "the connection, its login the key and its password the secret"
        key, secret = self._credential.read(f"store {self.name}", form, has_user=True)
        secret, _, token = secret.partition(":")
        return key, secret, token

    @property
    def set_by(self) -> SetBy:
        """Where its parts are set."""
        keys = "give it keys by `env` or `connection`" if self.anonymous else f"check {self._credential.variable}"
        return SetBy(f"`endpoint` of store {self.name}", f"`region` of store {self.name}", keys)

    def block(self) -> Mapping[str, str | bool]:
        """Return what a list of files says of it under its name."""
        return {field: value for field, value in asdict(self).items() if field != "name" and value}
