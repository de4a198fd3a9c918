"""Names S3 stores that are not this process's own: recipes and lists have a name, and the operator says what it is.

The variable of a store is its own: its name follows from the store's, and no other variable begins like it. So whatever
a list names, no secret is read but that of a store which the operator has set up for lists.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from pipeline_tasks.constraints import Word
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.credential import STORE
from pipeline_tasks.store.store_settings import Settings, settings_of

OURS = "REFINERY_"
"""How variables begin that processes of ours are told apart by: a worker daemon of other values is another daemon."""

CONNECTION, OF_STORES = "refinery_store_", "store:"
"""What stands before the name of a store in the id of its Airflow connection, and in what was given."""

ANONYMOUS = "anonymous"
"""What a variable has in place of keys where requests are not signed."""

FORM = "KEY:SECRET, KEY:SECRET:TOKEN or anonymous, and behind a blank each its endpoint (AWS) and region (us-east-1)"

NAME = r"[a-z0-9_]{1,40}"

StoreName = Annotated[str, Word(f"({NAME})?", "the name of a store in small letters, digits and _, or empty")]
"""The name of a store, "" for this process's own."""

_WHO = {"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_NO_SIGN_REQUEST"}
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


class SetBy(NamedTuple):
    """Where a person sets what requests need: the words of error messages."""

    endpoint: str
    region: str
    keys: str


def variable_of(name: str) -> str:
    """Return the variable in which the operator says what a store is."""
    return f"{STORE}{name.upper()}"


def set_by(name: str) -> SetBy:
    """Return where the parts of a store are set."""
    variable = variable_of(name)
    return SetBy(f"the endpoint in {variable}", f"the region in {variable}", f"check the keys in {variable}")


def settings_of_store(name: str) -> Settings:
    """Return what the client of a store is: what this process was given for it, else what its variable says.

    RecipeError, which repeats nothing of the value, if there is neither.
    """
    given = settings_of(f"{OF_STORES}{name}")
    if not given.are_given:
        return Settings(tuple(sorted(_written(name).items())), are_given=True)
    if not _WHO & dict(given.variables).keys():
        message = f"the connection {CONNECTION}{name} has no keys, so that requests would be this process's; set login"
        raise RecipeError(message)
    return given


def _written(name: str) -> dict[str, str]:
    """Return by boto3's names what the variable of a store says."""
    who, endpoint, region, *more = [*os.environ.get(variable_of(name), "").split(), "", "", ""][:4]
    key, _, secret = who.partition(":")
    secret, _, token = secret.partition(":")
    if (who != ANONYMOUS and not (key and secret)) or any(more) or not _is_endpoint(endpoint):
        message = (
            f"store {name}: the variable {variable_of(name)} is not set, or is none; set it to {FORM}; on Airflow the "
            f"connection {CONNECTION}{name} may have them"
        )
        raise RecipeError(message)
    keys = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}
    said = {"AWS_NO_SIGN_REQUEST": "YES"} if who == ANONYMOUS else keys
    said |= {"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": region or "us-east-1"}
    return {variable: value for variable, value in said.items() if value}


def _is_endpoint(endpoint: str) -> bool:
    """Return whether a text is the address of a server, without user, path and query; "" is that of AWS."""
    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        return False
    return not endpoint or bool(is_url and endpoint.isprintable() and not parts.query and not parts.path.strip("/"))


def require_as_set(name: str, block: Mapping[str, Any]) -> None:
    """Raise RecipeError unless what a list says of a store is what the operator says: lists had endpoints once."""
    set_up = dict(settings_of_store(name).variables)
    endpoint = next((set_up[variable] for variable in _ENDPOINTS if variable in set_up), "")
    ours = (endpoint, set_up.get("AWS_REGION", "us-east-1"), "AWS_NO_SIGN_REQUEST" in set_up)
    if (block.get("endpoint", ""), block.get("region", "us-east-1"), block.get("anonymous", False)) != ours:
        message = (
            f"`stores` says of {name} another endpoint, region or `anonymous` than {variable_of(name)}, and a list "
            "names no endpoint: remove `stores` from it"
        )
        raise RecipeError(message)
