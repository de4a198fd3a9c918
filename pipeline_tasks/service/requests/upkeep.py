"""Requests of maintenance: history, what nobody names, what is kept too long, and what is damaged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pipeline_tasks.constraints import NameOrUri, Note, PlainWord, Ratio, Uri, Weight
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.run.request import Reply, Request

Report = dict[str, Any]
"""What the command of the same name prints with `--json`: people read it, and no code its keys."""


class CompactReply(Reply):
    """The parents of each merged manifest, by its fingerprint."""

    compacted: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class CompactRequest(Request[CompactReply]):
    """Merge the history of many snapshots."""

    verb: ClassVar[str] = "compact"

    root: Uri
    engine: PlainWord = LOCAL
    address: Note = ""


@dataclass(frozen=True, slots=True)
class VacuumRequest(Request[Report]):
    """List what no manifest names, or `delete` it: `grace` and `expire` are seconds, `limit` a share of all bytes."""

    verb: ClassVar[str] = "vacuum"

    root: Uri
    grace: Weight
    expire: Weight
    limit: Ratio
    delete: bool = False


@dataclass(frozen=True, slots=True)
class RetentionRequest(Request[Report]):
    """List what the `policy` of retention asks for, by its name or the path of its YAML, or `apply` it."""

    verb: ClassVar[str] = "retention"

    root: Uri
    policy: NameOrUri
    apply: bool = False
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class VerifyRequest(Request[Report]):
    """Verify everything that is published; `full` reads every byte."""

    verb: ClassVar[str] = "verify"

    root: Uri
    full: bool = False
    engine: PlainWord = LOCAL
    address: Note = ""
