"""Requests to publish a version, and to export, register and index what is published."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NotRequired

from pipeline_tasks.constraints import (
    Count,
    Note,
    ObjectPath,
    OptionalPath,
    OptionalSnapshot,
    OptionalUri,
    OptionalWord,
    PlainWord,
    SnapshotName,
    Uri,
)
from pipeline_tasks.recipe import LOCAL, ShardBytes
from pipeline_tasks.run.request import Reply, Request


class PublishReply(Reply):
    """The version that was made or found.

    That of a snapshot has what it supersedes, its `report`, files that landed `late`, and later snapshots that are
    `stale` now; that of a build its `index`, `tokens` and `sequences`.
    """

    version: int
    dataset: str
    prefix: str
    documents: int
    superseded: NotRequired[int]
    report: NotRequired[str]
    late: NotRequired[str]
    stale: NotRequired[list[str]]
    index: NotRequired[str]
    tokens: NotRequired[int]
    sequences: NotRequired[int]


@dataclass(frozen=True, slots=True)
class PublishRequest(Request[PublishReply]):
    """Make a dataset version of a snapshot's manifests, `land`'s included, and of their verdicts, by stage.

    Manifests with one of `compose` make a version of a training dataset, whose shards the engine exports.
    """

    verb: ClassVar[str] = "publish"

    root: Uri
    recipe: PlainWord
    snapshot: SnapshotName
    manifests: Mapping[str, ObjectPath]
    verdicts: Mapping[str, OptionalPath] = field(default_factory=dict)
    landing: OptionalUri = ""
    run_id: Note = ""
    engine: PlainWord = LOCAL
    address: Note = ""


class ExportReply(Reply):
    """How many shards were written, by format."""

    shards: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ExportRequest(Request[ExportReply]):
    """Export a version of the training dataset `recipe` in formats of other trainers, each with the bytes of a shard.

    The files are kept in the root, below the version's own.
    """

    verb: ClassVar[str] = "export"

    root: Uri
    recipe: PlainWord
    version: Count
    exports: Mapping[str, ShardBytes]
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""
    engine: PlainWord = LOCAL
    address: Note = ""


class RegisterReply(Reply):
    """What each table of a catalog has of the version; `catalog` is its address."""

    catalog: str
    tables: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RegisterRequest(Request[RegisterReply]):
    """Make a version a snapshot of the tables of its recipe in a `catalog`, "" for that of the deployment.

    The files of the tables are kept in the root, below the version's own.
    """

    verb: ClassVar[str] = "register"

    root: Uri
    recipe: PlainWord
    version: Count
    catalog: Note = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""
    engine: PlainWord = LOCAL
    address: Note = ""


class IndexReply(Reply):
    """What was done to each table of vectors; `missing` is what is not installed, `map` the path of a map or ""."""

    tables: list[dict[str, Any]]
    missing: str
    map: str


@dataclass(frozen=True, slots=True)
class IndexRequest(Request[IndexReply]):
    """Bring the store of vectors in line with what a recipe has published, or every store that there is ("").

    Of a named snapshot the map is made, too, if there is none.
    `store` is its folder or prefix; "" is that of the root.
    """

    verb: ClassVar[str] = "index"

    root: Uri
    recipe: OptionalWord = ""
    store: OptionalUri = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""
