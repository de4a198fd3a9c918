"""Reads the landed page of a document again, by any method of extraction, or its file by the reader of its type."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from pipeline_tasks.binding import bind
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.file_types import HTML, TEXT, FileType, brought_types
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LAND
from pipeline_tasks.stage import LANDING
from pipeline_tasks.stages import ingest
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.text.page.file_reading import drawing
from pipeline_tasks.text.page.main_text import DEEPEST
from pipeline_tasks.text.page.sandbox import Sandbox
from pipeline_tasks.text.page.sandbox_messages import PLAIN, Limits, Page, Result

MOST_FILE = 64 << 20
"""Bytes of a landed file that is read from its start, where its records cannot be found by their places."""

MOST_PAGE = 4 << 20
"""Bytes of a page that is parsed; a file of another type may have as many as a landed file (`MOST_FILE`)."""

SECONDS = 5.0
"""Seconds of processor time to parse a page."""


class NoPage(Exception):
    """Says why the page of a record is not to be had."""


class Place(Protocol):
    """Where a record landed, and the URL by which it is known to be there still."""

    @property
    def file(self) -> str:
        """The landed file."""

    @property
    def offset(self) -> int:
        """Its first byte, or row."""

    @property
    def url(self) -> str:
        """Its URL, "" if it has none."""


class Landed(NamedTuple):
    """A landed page or file with its type, whose card is None if the core reads it itself."""

    page: Page
    type: str
    card: FileType | None = None


def page_again(root: str, version: Version, place: Place, method: str) -> Result:
    """Return what a method of `main_text` finds on the page that landed at a place, in a process of its own.

    A file of another type is read by the reader of its type. Reads one record by its place, or a landed file of at most
    MOST_FILE bytes from its start. A page of more than MOST_PAGE bytes is not parsed, and of a page that nests too deep
    the main part is not looked for. NoPage for whatever is wrong with what has landed.
    """
    return read_again(landed(root, version, place), method)


def landed(root: str, version: Version, place: Place) -> Landed:
    """Return what landed at a place, as `ingest` read it; NoPage for whatever is wrong with it."""
    try:
        return _landed(root, version, place)
    except FileNotFoundError as error:
        message = f"The landed file {place.file} is not there any more."
        raise NoPage(message) from error
    except RefineryError as error:
        message = f"Its landed record could not be read: {error}"
        raise NoPage(message) from error


def read_again(found: Landed, method: str) -> Result:
    """Return what a method finds on a landed page, or its reader in a file; NoPage if it cannot be read."""
    method = PLAIN if found.type == TEXT else method
    with Sandbox(Limits(seconds=SECONDS)) as sandbox:
        [result] = sandbox.process(found.card.read if found.card else method, [found.page])
    if result.outcome != "done":
        what = f"Its {found.card.title} file" if found.card else "Its page"
        message = f"{what} could not be parsed in the time and memory that a page has."
        raise NoPage(message)
    return result


def draw_pages(found: Landed, numbers: Sequence[int], width: int) -> Iterator[tuple[int, bytes]]:
    """Yield pages of a file as PNG, so many pixels wide, with their numbers; none of a type that has no look.

    A page that cannot be drawn in the time and memory that a page has is left out.
    """
    if found.card is None or not found.card.image:
        return
    with Sandbox(Limits(seconds=SECONDS)) as sandbox:
        for number in numbers:
            for result in sandbox.process(drawing(found.card.image, number, width), [found.page]):
                if result.outcome == "done":
                    yield number, bytes(result.text)


def _landed(root: str, version: Version, place: Place) -> Landed:
    stage = read_manifest(root, version.manifests[ingest.STAGE.name])
    record = _record(version, place, _fields(root, version, place.file))
    params = bind(ingest.STAGE, {**stage.params, "taken_down": ""})
    [page] = ingest.select_pages(iter([record]), params=params)
    payload, kind = page.column("payload")[0].as_py(), page.column("type")[0].as_py() or HTML
    card = brought_types().get(kind)
    if payload is None:
        message = "Its landed record has a text and no HTML page."
        raise NoPage(message)
    most = MOST_FILE if card else MOST_PAGE
    if len(payload) > most:
        message = f"Its page has {counted(len(payload), 'byte')}; pages of up to {most:,} are shown."
        raise NoPage(message)
    return Landed(Page(payload, page.column("content_type")[0].as_py() or "", depth=DEEPEST + 1), kind, card)


def _fields(root: str, version: Version, file: str) -> str:
    """Return how the records of a landed file name their fields, as its shard says."""
    if LAND not in version.manifests:
        return ""
    shards = read_manifest(root, version.manifests[LAND]).shards
    return next((shard.fields for shard in shards if shard.path == f"{LANDING}{file}"), "")


def _record(version: Version, place: Place, fields: str) -> pa.RecordBatch:
    """Return the landed record at a place as one row of `schema.RECORD`; its URL tells whether it is still there."""
    uri = f"{version.landing}/{place.file}"
    names = {"snapshot": version.snapshot, "batch_bytes": 1, "fields": json.loads(fields or "{}")}
    with storage.open_landed(uri) as stream:
        stream.seek(place.offset)
        first = next(read_records(place.file, stream, start=place.offset, **names))
        if _is_of(first, place):
            return first
        if (storage.connect(version.landing).size(place.file) or 0) > MOST_FILE:
            message = f"{place.file} is compressed as a whole, or a table, and has over {MOST_FILE >> 20} MiB."
            raise NoPage(message)
        stream.seek(0)
        for batch in read_records(place.file, stream, **names):
            if batch["offset"][0].as_py() == place.offset and _is_of(batch, place):
                return batch
    message = f"{place.file} has no record of its URL at byte {place.offset:,}: the file was changed."
    raise NoPage(message)


def _is_of(batch: pa.RecordBatch, place: Place) -> bool:
    is_sound = batch.num_rows == 1 and batch["kind"][0].as_py() != "damage"
    return is_sound and (batch["url"][0].as_py() or "") == place.url
