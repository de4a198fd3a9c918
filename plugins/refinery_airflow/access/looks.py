"""Logs who saw texts on a page, before the page is sent: a page whose look cannot be logged is not shown."""

import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

from pipeline_tasks.store import access_log
from refinery_airflow.access.roles import Seer
from refinery_airflow.runs.run import root

log = logging.getLogger("refinery")

SEE_OTHER = 303

PAGE = "page"

_DOCUMENT = re.compile("[0-9a-f]{32}")
"""An id. A text or an address that is written in its place is none, and is not logged."""

_PLAIN = {"token": re.compile(r"\d{1,18}"), "start": re.compile(r"\d{1,18}"), "doc": _DOCUMENT, "document": _DOCUMENT}
"""Fields of addresses that are logged as they are, where they look so; of all others the digest is."""


class Counted:
    """A response that knows how many rows it shows, and the ids of their documents."""

    rows = 0
    documents: tuple[str, ...] = ()
    names: Mapping[str, str] = MappingProxyType({})

    def of(self, rows: int, documents: Iterable[str] = (), **names: str) -> Self:
        """Say what the response shows, and the names of what it is of; return it."""
        self.rows, self.documents, self.names = rows, tuple(documents), names
        return self


class Shown(Counted, HTMLResponse):
    """A page."""


class ShownFile(Counted, Response):
    """A file."""


class LookRoute(APIRoute):
    """A route whose response is logged as a look, and then sent, if it shows what not everybody may see."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler that logs."""
        handle = super().get_route_handler()

        async def handle_and_log(request: Request) -> Response:
            response = await handle(request)
            seer: Seer | None = getattr(request.state, "seer", None)
            if seer is not None and response.status_code != SEE_OTHER:
                await run_in_threadpool(_log, self.path, request, response, seer)
            return response

        return handle_and_log


def _log(route: str, request: Request, response: Response, seer: Seer) -> None:
    query = request.query_params.multi_items()
    plain = {name: value for name, value in query if name in _PLAIN and _PLAIN[name].fullmatch(value)}
    words: dict[str, list[str]] = {}
    for name, value in query:
        if name not in plain and value:
            words.setdefault(name, []).append(value)
    look = access_log.Look(
        by=seer.name,
        through=PAGE,
        what=getattr(request.state, "what", route.split("/")[1]),
        of={**getattr(response, "names", {}), **request.path_params, **plain},
        asked=access_log.asked(words),
        rows=getattr(response, "rows", 0),
        documents=getattr(response, "documents", ()),
        purpose=seer.purpose,
        role=seer.role,
    )
    access_log.record(root(), look)
    log.info("%s reads texts: %s", seer.name, request.url.path)
