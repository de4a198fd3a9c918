"""Sends a request to where it runs: this process, the worker daemon of this machine, Spark or Ray.

The connections `spark_default` and `ray_default` alone decide, or those that the deployment's file names for a recipe:

`local[N]` / `local`          the worker daemon of this machine (`pipeline_tasks.service.daemon`); the default
`spark://host` port 7077      a driver of the stage on this machine, in Spark's client mode
`sc://host` port 15002        a driver of the stage on this machine, as a client of Spark Connect
`emr-serverless://ID/;role=`  a driver of the stage in the application of EMR Serverless, as a job run
`http://ray-head` port 8265   a driver of the stage on the Ray cluster, as a job of its Jobs API
`ray://ray-head` port 10001   a driver of the stage on this machine, as a Ray client
`node` port 6379, or `auto`   a driver of the stage on this machine, which is a node of the Ray cluster

A driver serves all partitions of a stage of a run (`tasks.session`), and tasks wait for it in the triggerer.
`refinery run` has neither daemon nor triggerer: its own process is what they are above, but for the Jobs API and EMR.

S3 credentials come from the environment, else from the connection `aws_default` (a cluster's workers need them in
their own environment); those of connections that the deployment's file names go to the workers with their tasks. The
key of pseudonyms comes from the environment, else from the connection `refinery_pii`; it is never part of a request, so
a Ray cluster needs it in its own environment, too.

Requests of verbs over a whole root that name an engine are drivers of it, too, in the worker daemon of this machine:
it sends their tasks there. All other requests are small and are handled on this machine.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from pipeline_tasks.binding import places_in
from pipeline_tasks.deployment import deployed
from pipeline_tasks.engines.address import Place, is_cluster
from pipeline_tasks.engines.card import EngineCard, engine_card
from pipeline_tasks.errors import ClusterUnreachable, Transient
from pipeline_tasks.recipe import LOCAL, engine_names, untried
from pipeline_tasks.run.plan import secret_variable
from pipeline_tasks.run.request import LoggedReply, LoggedT, OnEngine, RefineReply, RefineRequest, ReplyT, Request
from pipeline_tasks.service import daemon
from pipeline_tasks.service.requests.stages import (
    LandRequest,
    PreflightRequest,
    QuarantineRequest,
    RecordRequest,
    SealRequest,
)
from pipeline_tasks.service.session import Session
from refinery_airflow.runs.credentials import adopt_credentials, adopt_secret, adopt_store, not_set
from refinery_airflow.runs.run import is_here
from refinery_airflow.tasks.session import Waiting, post, wait

log = logging.getLogger("refinery")

RequestT = TypeVar("RequestT", bound=Request[Any])

TRIES, PAUSE = 3, 5.0
"""How often `refinery run` looks for a cluster before anything runs, and the seconds between two looks."""

HTTP = ("http", "https")
"""Schemes that Airflow's own HTTP connections say beside their type."""


def send(request: Request[ReplyT]) -> ReplyT:
    """Send a request to where the connections point, and return the reply; a refusal is raised as its own class."""
    return _answer(prepared(request))


def send_logged(request: Request[LoggedT], name: str = "") -> LoggedT:
    """Send a request, log the lines of its reply under a name (its verb), and return the reply without them."""
    reply = send(request)
    logged: LoggedReply = reply
    for line in logged.pop("lines", []):
        log.info("%s  %s", name or request.verb, line)
    return reply


def submit(request: RefineRequest, attempt: str) -> RefineReply | Waiting:
    """Return the reply to a request, or what waits for it: the request was posted to its session on a cluster."""
    request = prepared(request)
    if not needs_session(request):
        return _answer(request)
    waiting = post(request, attempt)
    return waiting if defers() else wait(waiting)


def prepared(request: RequestT) -> RequestT:
    """Return a request with the address of its engine, after this process has what it needs to reach its objects."""
    recipe = recipe_of(request)
    adopt_credentials(*uris_of(request), recipe=recipe)
    adopt_secret(_secret_variable_of(request))
    for name in _stores_of(request):
        adopt_store(name)
    if isinstance(request, OnEngine):
        return replace(request, address=address_of(request.engine, recipe))
    return request


def needs_session(request: RefineRequest) -> bool:
    """Return whether a request is for a cluster that this process cannot drive itself."""
    address = request.address
    is_own = address in ("", "local") or address.startswith("local[")
    return engine_card(request.engine).jobs(address) is not None or not (is_own or is_here())


def release(request: RefineRequest) -> bool:
    """Return whether a stage had a driver; it may end, as all is answered, and ends by itself if this is lost."""
    request = prepared(request)
    if not needs_session(request):
        return False
    with contextlib.suppress(Transient):
        Session.of(request).close_all()
    return True


def defers() -> bool:
    """Return whether tasks wait in the triggerer: not in `refinery run`, and not where REFINERY_DEFER is 0."""
    return not is_here() and os.environ.get("REFINERY_DEFER", "1") != "0"


def _answer(request: Request[ReplyT]) -> ReplyT:
    if is_here():
        from pipeline_tasks.service.handle import handle

        return handle(request)
    return daemon.send(request)


def _secret_variable_of(request: Request[Any]) -> str:
    refining = request.stage if isinstance(request, SealRequest | QuarantineRequest) else request
    return secret_variable(refining) if isinstance(refining, RefineRequest) else ""


def recipe_of(request: Request[Any]) -> str:
    """Return the recipe that a request is sent for, "" for one that is of no recipe."""
    about = request.stage if isinstance(request, SealRequest | QuarantineRequest | RecordRequest) else request
    return untried(getattr(about, "recipe", ""))


def uris_of(request: Request[Any]) -> tuple[str, ...]:
    """Return the places that a request names, its root first: all of its fields whose types say that they are."""
    return tuple(place for _, place in places_in(request))


def _stores_of(request: Request[Any]) -> Sequence[str]:
    """Return the names of the stores in which a request reads landed files."""
    from pipeline_tasks.landing.listing import PROMISE, stores_of

    if isinstance(request, LandRequest):
        return stores_of(request.input)
    if isinstance(request, PreflightRequest) and request.landing:
        return stores_of(request.landing)
    if isinstance(request, RefineRequest) and request.landing.endswith(f"/{PROMISE}"):
        return stores_of(request.landing)
    return ()


def connection_of(engine: str, recipe: str) -> str:
    """Return the connection that says where an engine runs a recipe, and "" for `local`."""
    if engine == LOCAL or engine not in engine_names():
        return ""
    return deployed(recipe).connections.engines.get(engine) or f"{engine}_default"


def address_of(engine: str, recipe: str = "") -> str:
    """Return the address of an engine from its connection; "" where none is set, which means this machine.

    RecipeError for a connection that the deployment's file names, and that is not set.
    """
    name = connection_of(engine, recipe)
    if not name:
        return ""
    try:
        connection = Connection.get(name)
    except AirflowNotFoundException as error:
        if name == f"{engine}_default":
            return ""
        raise not_set(name) from error
    card = engine_card(engine)
    if connection.conn_type == "spark_connect":
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

        return card.address(SparkConnectHook(name).get_connection_url())
    return card.address(_place(card, connection).written())


def _place(card: EngineCard, connection: Connection) -> Place:
    """Return where a connection says that an engine is; Airflow makes of a URI the type, and `schema` of its path."""
    scheme, host = card.schemes.get(connection.conn_type, ""), connection.host or ""
    if connection.conn_type in HTTP and connection.schema in HTTP:
        scheme = connection.schema
    if scheme in card.path_schemes and connection.schema:
        host = f"{host}/{connection.schema}"
    return Place(host, connection.port or 0, scheme)


def addresses_of(engines: Iterable[str], recipe: str = "") -> dict[str, str]:
    """Return the address of each engine for a recipe."""
    return {engine: address_of(engine, recipe) for engine in set(engines)}


def require_clusters(engines: Iterable[str], pause: float = PAUSE, recipe: str = "", uris: Sequence[str] = ()) -> None:
    """Raise ClusterUnreachable if the cluster of an engine does not answer, after a few looks.

    RecipeError for one that does not reach the URIs, a root and what has landed, whatever answers.

    `refinery run` asks before anything runs; the tasks of a scheduled run are tried again for minutes.
    """
    for engine in sorted(engines):
        address, card = address_of(engine, recipe), engine_card(engine)
        card.require_reach(address, *uris)
        if is_cluster(address):
            _require_cluster(engine, address, pause)


def _require_cluster(engine: str, address: str, pause: float) -> None:
    for left in reversed(range(TRIES)):
        try:
            return engine_card(engine).require_answer(address)
        except ClusterUnreachable as error:
            if not left:
                raise
            log.warning("%s  is tried again in %.0f s: %s", engine, pause, error)
            time.sleep(pause)
    return None
