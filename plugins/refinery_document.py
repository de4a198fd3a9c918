"""Gathers what the page of a document shows: its decisions, its duplicates, its landed records and its tokens."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect import redactions
from pipeline_tasks.inspect.document import Document, Record, Step, bytes_read, document, edit_facts
from pipeline_tasks.inspect.duplicates import STAGES, Cluster, duplicates
from pipeline_tasks.inspect.find import Reach, current_versions, reach_of
from pipeline_tasks.inspect.places import Place, placed
from pipeline_tasks.inspect.text_edits import COMPARED, Piece, TextEdit, marked, marked_redactions, scrubbed
from pipeline_tasks.inspect.trace import landed_header
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.text.urls.takedown import DOC

MOST_BYTES = 2_000_000_000
"""Bytes of a snapshot's shards up to which a request looks for a document in them."""

MOST_LINEAGE = 256_000_000
"""Bytes of the lineages of training datasets in which a request looks for a document."""

RECORDS_SHOWN = MEMBERS_SHOWN = PLACES_SHOWN = 20
"""Records with the document's text, members of its cluster, and places in tokens that the page has."""

TEXT_SHOWN = 4000
"""Characters of its text that are shown."""


@dataclass(frozen=True, slots=True)
class ShownEdit:
    """What a stage changed in the text: how much, in characters, and the text with marks."""

    facts: Mapping[str, Any]
    pieces: Sequence[Piece]
    is_cut_short: bool


@dataclass(frozen=True, slots=True)
class Explored:
    """The page: what was looked for, and what is known of it, or the message of what is wrong.

    `headers` has the identifying lines of each record that is shown. `cluster` is None where nothing was compared with
    the document, or where the snapshots are too large to look for it on a page. `edits` are of the record whose text is
    shown.
    """

    version: Version
    wanted: str
    message: str = ""
    document: Document | None = None
    headers: Sequence[Sequence[str]] = ()
    cluster: Cluster | None = None
    places: Sequence[Place] = ()
    edits: Sequence[ShownEdit] = ()
    reach: Reach | None = None

    @property
    def records(self) -> Sequence[tuple[Record, Sequence[str]]]:
        """The records that are shown, with their headers."""
        return list(zip(self.document.records, self.headers, strict=False)) if self.document else []

    @property
    def text(self) -> str:
        """The beginning of its text, as the last stage left it of the first record that came farthest."""
        return _farthest(self.document).text[:TEXT_SHOWN] if self.document else ""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the stages found of it that is a single value, by column."""
        steps = [step for record in self.document.records for step in record.steps] if self.document else []
        return {name: value for step in steps for name, value in step.facts.items() if _is_single(value)}

    @property
    def snapshots_of_members(self) -> Mapping[str, str]:
        """The snapshot of each member of the cluster, by its id."""
        return {member.id: member.snapshot for member in self.cluster.members} if self.cluster else {}

    def command(self, root: str) -> str:
        """Return the command that prints the same."""
        named = ["refinery", "document", self.wanted or "ID", root]
        return shlex.join([*named, "--recipe", self.version.recipe, "--snapshot", self.version.snapshot])


def explored(root: str, version: Version, wanted: str) -> Explored:
    """Return the page of a document of a snapshot; without one that is `wanted`, it asks for an id."""
    page = Explored(version, wanted)
    if not wanted:
        return page
    try:
        return _filled(root, page)
    except RecipeError as error:
        return replace(page, message=str(error))


def _filled(root: str, page: Explored) -> Explored:
    size = bytes_read(root, page.version)
    if size > MOST_BYTES:
        message = (
            f"snapshot {page.version.snapshot} has {size:,} bytes of shards, and a page searches {MOST_BYTES:,}; the "
            "command below has no limit"
        )
        raise RecipeError(message)
    known = document(root, page.version, page.wanted)
    reach = reach_of(root, current_versions(root), 0, MOST_LINEAGE)
    shown = known.records[:RECORDS_SHOWN]
    return replace(
        page,
        document=known,
        headers=[list(landed_header(known.landing, asdict(record))) for record in shown],
        cluster=_cluster(root, page.version, known.id),
        places=list(islice(_places(root, page.version, known.id, reach), PLACES_SHOWN)),
        reach=reach,
        edits=[_shown_edit(root, page.version, _farthest(known), edit) for edit in _farthest(known).edits],
    )


def _places(root: str, version: Version, wanted: str, reach: Reach) -> Iterator[Place]:
    """Yield where training datasets have a document of a snapshot, in the shards that are looked at."""
    for place in placed(root, current_versions(root), [(DOC, wanted)], reach):
        if (place.source, place.use.snapshot) == (version.recipe, version.snapshot):
            yield place


def _farthest(known: Document) -> Record:
    """Return the first record of a document that came farthest."""
    return max(known.records, key=lambda record: len(record.steps))


def _shown_edit(root: str, version: Version, record: Record, edit: TextEdit) -> ShownEdit:
    """Return what a stage changed in a record's text, without the personal data that `scrub_pii` replaces."""
    facts: dict[str, Any] = {}
    for step in record.steps:
        facts |= step.facts
    is_cut_short = max(len(edit.before), len(edit.after)) > COMPARED
    if edit.stage == redactions.STAGE:
        pieces = marked_redactions(edit.before, edit.after, facts[redactions.COLUMNS[-1]])
    else:
        texts = (edit.before[:COMPARED], edit.after[:COMPARED])
        pieces = marked(*scrubbed(root, version, texts, str(facts.get("language") or ""), record.url))
    return ShownEdit(edit_facts(edit), pieces, is_cut_short)


def _cluster(root: str, version: Version, wanted: str) -> Cluster | None:
    """Return the document's cluster over all snapshots; None if it never came to deduplication, or they are large."""
    if not any(stage in version.manifests for stage in STAGES):
        return None
    versions = version_log.latest_by_snapshot(root, version.recipe)
    if sum(bytes_read(root, each) for each in versions) > MOST_BYTES:
        return None
    try:
        cluster = duplicates(root, version.recipe, wanted)
    except RecipeError:  # a stage before deduplication rejected it
        return None
    return cluster if len(cluster.members) > 1 else None


def _is_single(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


# --- Steps ----------------------------------------------------------------------------------------------------------


def single_facts(step: Step) -> list[tuple[str, object]]:
    """Return what a stage found that is a single value."""
    return [(name, value) for name, value in step.facts.items() if not isinstance(value, Mapping | list)]


def signals(step: Step) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the signals of each profile that a stage computed."""
    return [(name, value) for name, value in step.facts.items() if isinstance(value, Mapping)]


def stretches(step: Step) -> list[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Return the stretches of the text that a stage replaced or took out, as places and never as texts."""
    lists = [(name, value) for name, value in step.facts.items() if isinstance(value, list) and value]
    return [(name, value) for name, value in lists if all(isinstance(part, Mapping) for part in value)]
