"""Starts engines of this machine while the rest of a run is imported, unless connections name clusters.

Connections are variables of the environment, in the form in which Airflow reads them.
"""

import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from pipeline_tasks.engines.card import engine_card, engine_cards
from pipeline_tasks.recipe import LOCAL, Recipe, engine_names, engine_of

log = logging.getLogger(__name__)


SECRETS = ("AIRFLOW__SECRETS__BACKEND", "AIRFLOW__WORKERS__SECRETS_BACKEND")
"""How the settings of a secrets backend begin, whose connections win over those of the environment."""


CONNECTION = "AIRFLOW_CONN_"
"""How the variables of connections begin."""


def connections() -> frozenset[str]:
    """Return the engines for which this process has, or may have, a connection already: they may be clusters."""
    elsewhere = any(name.startswith(SECRETS) for name in os.environ)
    return frozenset(name for name in engine_names()[1:] if elsewhere or variable_of(name) in os.environ)


def addresses() -> dict[str, str]:
    """Return the addresses of the engines of this machine."""
    return {name: card.address(_host(name)) for name, card in engine_cards().items()}


def engines_of(recipe: Recipe, engines: Mapping[str, str]) -> frozenset[str]:
    """Return the engines that need a start, of a recipe that runs with `engines` by stage, `*` for all others."""
    return frozenset(engine_of(step.stage, step.engine, engines) for step in recipe.steps) - {LOCAL}


def embedded() -> frozenset[str]:
    """Return the engines that surely run on this machine, but for `local`, which always does."""
    elsewhere = connections()
    return frozenset(name for name in engine_names()[1:] if name not in elsewhere or _is_local(_connection(name)))


def maybe_clusters() -> frozenset[str]:
    """Return the engines that may be clusters: their connections are read later."""
    return frozenset(engine_names()[1:]) - embedded()


def _is_local(connection: str) -> bool:
    """Return whether a connection, as JSON or as a URI, names an engine of this machine; not where none is set."""
    if any(name.startswith(SECRETS) for name in os.environ):
        return False
    host = host_of(connection)
    return host.startswith("local[") or host == "local"


def place_of(connection: str) -> str:
    """Return the host of a connection that is JSON, and a URI as it is."""
    host = _host_in(connection)
    return connection if host is None else host


def host_of(connection: str) -> str:
    """Return the host of a connection that is JSON, and of a URI all behind its scheme."""
    host = _host_in(connection)
    return unquote(connection.partition("://")[2]) if host is None else host


def _host_in(connection: str) -> str | None:
    """Return the host that a connection names as JSON, None of one that is none."""
    try:
        return str(json.loads(connection).get("host", ""))
    except (ValueError, AttributeError):
        return None


def start_engines(names: Iterable[str]) -> None:
    """Start engines of this machine in a thread; a stage that needs one waits until it has started.

    Modules are imported here, as two threads that import at once may see half of a module.
    """
    from pipeline_tasks.engines import choose  # with all that runs stages: refusals of a run need none of it

    places = [(name, _host(name)) for name in sorted(names, reverse=True)]  # Spark, which takes longer, first
    for name, address in places:
        choose.load(name, address)
    if places:
        threading.Thread(target=_start, args=(places,), name="engines", daemon=True).start()


def _start(places: Sequence[tuple[str, str]]) -> None:
    from pipeline_tasks.engines import choose

    for name, address in places:
        try:
            choose.start(name, address)
        except Exception:
            log.debug("%s does not start ahead", name, exc_info=True)


def _host(name: str) -> str:
    return host_of(_connection(name)) or engine_card(name).here


def _connection(name: str) -> str:
    return os.environ.get(variable_of(name), "")


def variable_of(name: str) -> str:
    """Return the variable that has the usual connection of an engine."""
    return f"{CONNECTION}{name.upper()}_DEFAULT"
