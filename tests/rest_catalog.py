"""A catalog of Iceberg behind the REST protocol, for tests: a server on loopback over PyIceberg's catalog on SQLite.

It answers what clients ask of tables (https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml):
its configuration, namespaces, and tables: they are listed, loaded, staged, dropped, and changed if what a request
requires of them holds. There is no server of this protocol that a package brings.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, StagedTable, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

Answer = tuple[int, Any]

_STATUS = {
    CommitFailedException: 409,
    NamespaceAlreadyExistsError: 409,
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    TableAlreadyExistsError: 409,
}


@dataclass(slots=True)
class RestCatalog:
    """The server: where it is, what was asked as (method, path), and the statuses that coming commits are answered with.

    `lost` is a status of a commit that is made; a commit with any other status is not.
    """

    folder: Path
    uri: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    lost: int = 0

    def inner(self) -> SqlCatalog:
        """Open the catalog that the server has, for one request."""
        return SqlCatalog("inner", uri=f"sqlite:///{self.folder}/rest.db", warehouse=f"file://{self.folder}/warehouse")

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """Return the status and body for a request."""
        self.asked.append((method, path))
        parts = tuple(unquote(part) for part in urlsplit(path).path.split("/")[2:])
        with contextlib.closing(self.inner()) as catalog:
            try:
                return self._routed(catalog, method, parts, body)
            except tuple(_STATUS) as error:
                return _refusal(_STATUS[type(error)], error)
            except Exception as error:  # noqa: BLE001 -- a server answers
                return _refusal(500, error)

    def _routed(self, catalog: SqlCatalog, method: str, parts: tuple[str, ...], body: bytes) -> Answer:
        match parts:
            case ("config",):
                return 200, {"defaults": {}, "overrides": {}}
            case ("namespaces",):
                namespace = tuple(json.loads(body)["namespace"])
                catalog.create_namespace(namespace)
                return 200, {"namespace": namespace, "properties": {}}
            case ("namespaces", namespace):
                return 200, {"namespace": [namespace], "properties": catalog.load_namespace_properties(namespace)}
            case ("namespaces", namespace, "tables"):
                return 200, _listed(catalog, namespace) if method == "GET" else _made(catalog, namespace, body)
            case ("namespaces", namespace, "tables", name):
                return self._of_table(catalog, method, (namespace, name), body)
            case _:
                return _refusal(404, LookupError("/".join(parts)))

    def _of_table(self, catalog: SqlCatalog, method: str, identifier: tuple[str, str], body: bytes) -> Answer:
        if method == "POST":
            return self._committed(catalog, identifier, CommitTableRequest.model_validate_json(body))
        if method == "DELETE":
            catalog.drop_table(identifier)
            return 204, None
        return 200, _loaded(catalog.load_table(identifier))

    def _committed(self, catalog: SqlCatalog, identifier: tuple[str, str], request: CommitTableRequest) -> Answer:
        fault = self.faults.pop(0) if self.faults else 0
        if fault and fault != self.lost:
            return _refusal(fault, RuntimeError("a fault that a test asked for"))
        staged = StagedTable(identifier, catalog._empty_table_metadata(), "", catalog._load_file_io(), catalog)
        response = catalog.commit_table(staged, request.requirements, request.updates)
        if fault:
            return _refusal(fault, RuntimeError("the answer was lost"))
        return 200, {"metadata-location": response.metadata_location, "metadata": _json(response.metadata)}


def _listed(catalog: SqlCatalog, namespace: str) -> dict[str, Any]:
    names = [identifier[-1] for identifier in catalog.list_tables((namespace,))]
    return {"identifiers": [{"namespace": [namespace], "name": name} for name in names]}


def _made(catalog: SqlCatalog, namespace: str, body: bytes) -> dict[str, Any]:
    request = CreateTableRequest.model_validate({"location": None, "write-order": None, **json.loads(body)})
    identifier = (namespace, request.name)
    if not catalog.namespace_exists((namespace,)):
        raise NoSuchNamespaceError(namespace)
    if catalog.table_exists(identifier):
        raise TableAlreadyExistsError(request.name)
    make: Callable[..., Table] = catalog._create_staged_table if request.stage_create else catalog.create_table
    made = make(
        identifier,
        request.table_schema,
        location=request.location,
        partition_spec=request.partition_spec or UNPARTITIONED_PARTITION_SPEC,
        sort_order=request.write_order or UNSORTED_SORT_ORDER,
        properties=request.properties,
    )
    return _loaded(made)


def _loaded(table: Table) -> dict[str, Any]:
    where = None if isinstance(table, StagedTable) else table.metadata_location
    return {"metadata-location": where, "metadata": _json(table.metadata), "config": {}}


def _json(metadata: Any) -> Any:
    return json.loads(metadata.model_dump_json())


def _refusal(status: int, error: Exception) -> Answer:
    return status, {"error": {"message": str(error), "type": type(error).__name__, "code": status}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    catalog: RestCatalog

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, answer = self.catalog.answer(self.command, self.path, body)
        sent = b"" if answer is None or self.command == "HEAD" else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_HEAD = do_POST = do_DELETE = _handle  # noqa: N815 -- what `BaseHTTPRequestHandler` calls

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def rest_catalog(folder: Path) -> Iterator[RestCatalog]:
    """Serve a catalog whose tables are in a folder, as long as the context lasts."""
    catalog = RestCatalog(folder)
    handler = type("Handler", (_Handler,), {"catalog": catalog})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        catalog.uri = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield catalog
        finally:
            server.shutdown()
            thread.join()
