"""What objects at a URI are reached by: this process's variables, or those that the URI was given.

A process that others share (a triggerer, a web server) gives the URIs of Refinery their settings, and leaves its own
environment as it is. What was given goes on to the processes and the workers that a process sends its work to.
"""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pipeline_tasks.errors import RecipeError

STORES = "REFINERY_STORES"
"""The variable by which a process has from the one that started it what was given, by URI, as JSON."""

OF_PLACES, PLACES = "places:/", "REFINERY_PLACES"
"""What stands before a landing in what was given: the places that its lists may point to. The variable has them for all
landings, with blanks between them, and for runs the places that their params may name."""

ALL = "s3://"
"""The URI that all objects are below."""

OF_MACHINE = ("AWS_CONFIG_FILE", "AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_FEDERATED_TOKEN_FILE")
"""Settings that say something on this machine alone."""


class Settings(NamedTuple):
    """The variables that decide which server and which credentials a client is for, sorted.

    They are those of this process, unless they were given: then a client heeds none of the process's.
    """

    variables: tuple[tuple[str, str], ...]
    are_given: bool = False


OWN = Settings(())
"""What decides nothing: boto3 itself asks this process's environment."""

_GIVEN: dict[str, Settings] = {}
"""What was given, by URI."""

_RECEIVED: dict[str, Settings] = {}
"""What the driver of the task that runs here was given, by URI: a worker may serve several, one after the other."""


def give(uri: str, variables: Mapping[str, str]) -> None:
    """Let clients of objects at and below a URI be what these variables of boto3 say, from now on."""
    _GIVEN[uri.rstrip("/")] = _given(variables)


def given() -> str:
    """Return what was given here, or to the process that started this one, as `STORES` has it; "" if nothing was."""
    return _written(_known())


def sendable() -> str:
    """Return as `given` what workers on other machines can use: no roles and profiles, which are of this machine."""
    return _written(
        {uri: known for uri, known in _known().items() if not dict(known.variables).keys() & set(OF_MACHINE)}
    )


def receive(stores: str) -> None:
    """Let clients of this worker be what the driver of its next task was given, and nothing that others were."""
    _RECEIVED.clear()
    _RECEIVED.update(_read(stores))


def _given(variables: Mapping[str, str]) -> Settings:
    return Settings(tuple(sorted(variables.items())), are_given=True)


def _known() -> dict[str, Settings]:
    """Return what was given, by URI; what this process was given itself comes first."""
    return {**_places(), **_read(os.environ.get(STORES, "")), **_RECEIVED, **_GIVEN}


def _places() -> dict[str, Settings]:
    """Return the places that the lists of all landings may point to; none where the operator names none."""
    named = [*os.environ.get(PLACES, "").split(), os.environ.get("REFINERY_LANDING", "")]
    return {OF_PLACES.rstrip("/"): _given({PLACES: "\n".join(filter(None, named))})} if any(named) else {}


def _written(known: Mapping[str, Settings]) -> str:
    return json.dumps({uri: dict(known[uri].variables) for uri in sorted(known)}) if known else ""


@lru_cache(maxsize=8)
def _read(stores: str) -> Mapping[str, Settings]:
    try:
        return {uri: _given(variables) for uri, variables in json.loads(stores or "{}").items()}
    except (ValueError, AttributeError) as error:  # without its text, which may have a key
        message = f'{STORES} is no JSON of the form {{"s3://bucket": {{"AWS_REGION": ...}}}}; correct or remove it'
        raise RecipeError(message) from error


def settings_of(uri: str, prefix: str = "AWS_") -> Settings:
    """Return what the longest part of a URI was given, else what variables of this process with a `prefix` say."""
    known = _known()
    above = [place for place in known if f"{uri}/".startswith(f"{place}/")]
    if above:
        return known[max(above, key=len)]
    return Settings(tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(prefix))))
