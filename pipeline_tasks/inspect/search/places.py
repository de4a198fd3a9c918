"""Says of each use that is found which token it begins with, and which snapshot its document is of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from pipeline_tasks.inspect.search.find import Reach, Use, find
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.text.urls.takedown import Entry


@dataclass(frozen=True, slots=True)
class Place:
    """A use with the number of its first token as `trace` counts them, and what its pages are named by.

    `published` is the snapshot of the version that has the token (`build` for a training dataset), and `source` is the
    recipe that refined the document's snapshot.
    """

    use: Use
    token: int
    published: str
    source: str


def placed(
    root: str, versions: Sequence[Version], entries: Sequence[Entry], reach: Reach | None = None
) -> Iterator[Place]:
    """Yield every use that is found in versions, in the shards that `reach` names, as a place."""
    by_name = {(version.recipe, version.number): version for version in versions}
    orders: dict[tuple[str, int], _Order] = {}
    for use in find(root, versions, entries, reach):
        named = use.recipe, use.version
        version = by_name[named]
        if named not in orders:
            orders = {named: _order(root, version)}  # uses come by version
        order = orders[named]
        token = (order.begins[use.shard] + use.sequence) * order.length + use.start
        yield Place(use, token, version.snapshot, order.sources.get(use.snapshot, version.recipe))


class _Order(NamedTuple):
    """The sequences before each shard of a version, their length, and the recipe of each selected snapshot."""

    begins: Sequence[int]
    length: int
    sources: Mapping[str, str]


def _order(root: str, version: Version) -> _Order:
    index = open_build(root, version).index
    begins = [0, *accumulate(entry["sequences"] for entry in index["shards"])]
    composed = read_manifest(root, version.manifests[COMPOSE]).params["versions"]
    return _Order(begins, index["length"], {part["snapshot"]: part["recipe"] for part in composed})
