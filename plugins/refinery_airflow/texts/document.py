"""Gathers what the page of a document shows: its decisions, its duplicates, its landed records and its tokens."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from pipeline_tasks.ask.question import Role
from pipeline_tasks.cards import known_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.document import (
    KEPT,
    Document,
    Record,
    Step,
    blocks_of,
    bytes_of,
    document,
    edit_facts,
    unread_text,
)
from pipeline_tasks.inspect.document.duplicates import Cluster, compares_documents, duplicates
from pipeline_tasks.inspect.document.generated import generated_of
from pipeline_tasks.inspect.document.page_blocks import PageBlocks
from pipeline_tasks.inspect.document.text_edits import COMPARED, Piece, TextEdit, marked, marked_redactions, scrubbed
from pipeline_tasks.inspect.document.trace import landed_header
from pipeline_tasks.inspect.evidence import evidence_of
from pipeline_tasks.inspect.search.find import Reach, current_versions, reach_of
from pipeline_tasks.inspect.search.places import Place, placed
from pipeline_tasks.inspect.why.sought import sought
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import clears_personal_data
from pipeline_tasks.text.urls.takedown import DOC
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.access.roles import curator, may_see
from refinery_airflow.pages.ask import why_page
from refinery_airflow.pages.fields import NOT_FOUND, SEE_OTHER, Term
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import root

router = APIRouter(route_class=LookRoute)


MOST_BYTES = 256_000_000
"""Bytes of a snapshot's shards that a request reads to find a document."""

MOST_OF_CLUSTERS = 64_000_000
"""Bytes of all snapshots' shards up to which a request looks for a cluster in them; it reads them two to four times."""

MOST_HEADER = 16_000_000
"""Bytes of the content of a file that is compressed as a whole, which a request reads to come to a record."""

MOST_LINEAGE = 256_000_000
"""Bytes of the lineages of training datasets in which a request looks for a document."""

RECORDS_SHOWN = MEMBERS_SHOWN = PLACES_SHOWN = 20
"""Records with the document's text, members of its cluster, and places in tokens that the page has."""

TEXT_SHOWN = 4000
"""Characters of its text that are shown."""

BLOCKS_SHOWN = 1000
"""Blocks of its page that are shown."""


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
    the document, or where it is not looked for, as a page reads less than `cluster_unread` bytes. `edits` and `blocks`
    are of the record whose text is shown.
    """

    version: Version
    wanted: str
    message: str = ""
    document: Document | None = None
    headers: Sequence[Sequence[str]] = ()
    cluster: Cluster | None = None
    cluster_unread: int = 0
    places: Sequence[Place] = ()
    edits: Sequence[ShownEdit] = ()
    blocks: PageBlocks | None = None
    reach: Reach | None = None

    @property
    def concealing(self) -> str:
        """The stage that finds personal data, which the page does not show; "" without one."""
        return next(filter(clears_personal_data, self.version.manifests), "")

    @property
    def unread(self) -> Sequence[str]:
        """What was not read of the snapshot, by stage and outcome."""
        return [unread_text(part) for part in self.document.unread] if self.document else []

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


def duplicates_command(root: str, version: Version, wanted: str) -> str:
    """Return the command that finds the cluster of a document."""
    return shlex.join(["refinery", "look", "duplicates", wanted, root, "--recipe", version.recipe])


def explored(root: str, version: Version, wanted: str, file: str = "", *, sees_all: bool) -> Explored:
    """Return the page of a document of a snapshot; without one that is `wanted`, it asks for an id.

    Who does not see all, a curator, gets a kept document alone. A rejected one is, for them, as one that does not
    exist. Where the page knows the landed `file` of a record of it, the shards of that are read first.
    """
    page = Explored(version, wanted)
    if not wanted:
        return page
    try:
        known = document(root, version, wanted, MOST_BYTES, file)
        if sees_all:
            return _with_findings(root, _with_places(root, page, known), known)
        if known.is_kept:
            return _for_curators(_with_places(root, page, known), known)
    except RecipeError as error:
        if sees_all:
            return replace(page, message=str(error))
    message = f"no document {wanted} was kept of snapshot {version.snapshot}; stewards see rejected ones"
    return replace(page, message=message)


def _for_curators(page: Explored, known: Document) -> Explored:
    """Add the kept records of a document, without evidence, places, cut text and headers."""
    kept = [record for record in known.records if record.last.outcome == KEPT]
    records = tuple(_without_texts(record) for record in kept)
    return replace(page, document=replace(known, records=records), headers=[()] * min(len(kept), RECORDS_SHOWN))


def _without_texts(record: Record) -> Record:
    """Return a record without texts of stages before the last one, and without what they found."""
    return replace(record, edits=(), extracted="", steps=tuple(map(_without_findings, record.steps)))


def _without_findings(step: Step) -> Step:
    return replace(step, evidence="", facts={name: fact for name, fact in step.facts.items() if _is_single(fact)})


def _with_places(root: str, page: Explored, known: Document) -> Explored:
    """Add where training datasets have a document."""
    reach = reach_of(root, current_versions(root), 0, MOST_LINEAGE)
    places = list(islice(_places(root, page.version, known.id, reach), PLACES_SHOWN))
    return replace(page, places=places, reach=reach)


def _with_findings(root: str, page: Explored, known: Document) -> Explored:
    """Add a document, with the headers of its landed records, its duplicates, and what stages cut from it."""
    shown = known.records[:RECORDS_SHOWN]
    weight = _bytes_of_clusters(root, page.version)
    return replace(
        page,
        document=known,
        headers=[list(landed_header(known.landing, asdict(record), MOST_HEADER)) for record in shown],
        cluster=_cluster(root, page.version, known.id) if weight <= MOST_OF_CLUSTERS else None,
        cluster_unread=weight if weight > MOST_OF_CLUSTERS else 0,
        edits=[_shown_edit(root, page.version, _farthest(known), edit) for edit in _farthest(known).edits],
        blocks=blocks_of(root, page.version, _farthest(known)),
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
    """Return what a stage changed in a record's text, without the personal data that a stage replaces."""
    facts = record.facts
    is_cut_short = max(len(edit.before), len(edit.after)) > COMPARED
    card = known_card(edit.stage)
    if card and card.spans and card.spans.conceal:
        pieces = marked_redactions(edit.before, edit.after, facts[card.spans.column])
    else:
        texts = (edit.before[:COMPARED], edit.after[:COMPARED])
        pieces = marked(*scrubbed(root, version, texts, str(facts.get("language") or ""), record.url))
    return ShownEdit(edit_facts(edit), pieces, is_cut_short)


def _bytes_of_clusters(root: str, version: Version) -> int:
    """Return how many bytes the shards of every snapshot of a recipe have, in which a cluster is looked for."""
    if not any(map(compares_documents, version.manifests)):
        return 0
    return sum(bytes_of(root, each) for each in version_log.latest_by_snapshot(root, version.recipe))


def _cluster(root: str, version: Version, wanted: str) -> Cluster | None:
    """Return the document's cluster over all snapshots; None if it never came to deduplication, or is alone."""
    if not any(map(compares_documents, version.manifests)):
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


@router.get("/document/{recipe}/{snapshot}", dependencies=[Depends(curator)])
def document_page(
    request: Request, recipe: str, snapshot: str, user: GetUserDep, doc: Term = "", file: Term = ""
) -> Response:
    """Show every decision on a document of a snapshot, its duplicates, its landed records, its tokens and its text.

    Curators see documents that were kept, without what was found or cut in them and without their duplicates.

    A page that leads here may name the landed `file` of a record of it, so that the shards of that are read first.
    What is no whole id (an address, words, the first digits of an id) leads to its story over all snapshots.
    """
    version = version_log.current(root(), recipe, snapshot)
    if doc.strip() and not sought(doc).is_whole_id:
        return RedirectResponse(why_page(doc.strip()), SEE_OTHER)
    sees_all = may_see(request, user, Role.STEWARD)
    page = explored(root(), version, doc.strip(), file, sees_all=sees_all)
    values = {"evidence_of": evidence_of, "singles_of": single_facts, "signals_of": signals, "stretches_of": stretches}
    values["generated_of"] = generated_of
    limits = {"most": MEMBERS_SHOWN, "longest": TEXT_SHOWN, "compared": COMPARED}
    limits |= {"most_bytes": MOST_BYTES, "most_clusters": MOST_OF_CLUSTERS, "most_blocks": BLOCKS_SHOWN}
    commands = {"command": page.command(root()), "duplicates": duplicates_command(root(), version, page.wanted)}
    known = page.document
    shown = show("document.html", version=version, explored=page, sees_all=sees_all, **values, **limits, **commands)
    shown.of(len(known.records) if known else 0, [known.id] if known else [])
    shown.status_code = NOT_FOUND if page.message else shown.status_code
    return shown
