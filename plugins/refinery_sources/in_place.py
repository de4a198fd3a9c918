"""Files that stay in their store: a part of a landing is then the address, and by what it is known again."""

from collections.abc import Mapping
from typing import Any

from pipeline_tasks.constraints import S3, is_bucket, on_web
from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from pipeline_tasks.store.s3.store import S3Store
from refinery_sources.admission import require_place
from refinery_sources.budget import Stopped
from refinery_sources.source import UNKNOWN, Part, Received
from refinery_sources.web import Web


def locate(web: Web, part: Part, named: str) -> Received:
    """Return where a part stays, after one request for its length and ETag.

    SnapshotIncomplete if it is gone, or has other bytes than were listed; ContractError if its store gives no ETag.
    """
    if web.stop.is_set():
        raise Stopped
    folder, _, name = require_place(part.address).rpartition("/")
    try:
        size, etag = S3Store(folder, named).seen(name)
    except FileNotFoundError as error:
        message = f"{part.address} is not there"
        raise SnapshotIncomplete(message) from error
    if part.bytes not in (UNKNOWN, size):
        message = f"{part.address} has {size:,} bytes, and had {part.bytes:,} when it was listed"
        raise SnapshotIncomplete(message)
    if not etag:
        message = f"{part.address} has no ETag, by which a change of it would be noticed; land a copy: in_place: false"
        raise ContractError(message)
    return Received(size, "", etag, address=part.address)


def query_of(*, in_place: bool, store: str) -> Mapping[str, Any]:
    """Return what a query says of where its files stay: nothing for one that lands copies from its own store."""
    said: dict[str, Any] = {"in_place": True} if in_place else {}
    return said | ({"store": store} if store else {})


def require_bucket(place: str, *, in_place: bool, store: str) -> None:
    """Raise RecipeError for files of this machine that are to stay in a store, or to come from one."""
    if place.startswith(S3) or not (in_place or store):
        return
    if is_bucket(place) or on_web(place):
        message = f"{place}: in_place and store are of s3://; land a copy: in_place: false, without `store`"
        raise RecipeError(message)
    if in_place:
        message = f"{place} is on this machine, and in_place is of a bucket; name it as the input of a run: --input"
        raise RecipeError(message)
    message = f"{place} is on this machine, and store is of a bucket; remove `store`"
    raise RecipeError(message)
