"""Gathers what the page of rejected rows shows, and writes them as a file: rows of one reason, some at a time."""

import csv
import io
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, HTTPException, Response
from fastapi.responses import HTMLResponse

from pipeline_tasks.inspect.evidence import evidence_of
from pipeline_tasks.inspect.expired import expired_note
from pipeline_tasks.inspect.rejects import reasons_of
from pipeline_tasks.inspect.rejects.rows import RejectedRows, rejected_rows
from pipeline_tasks.inspect.search import Bounds
from pipeline_tasks.inspect.unpublished import Committed, UnpublishedRun, committed
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest
from refinery_airflow.access.looks import LookRoute, ShownFile
from refinery_airflow.access.roles import steward
from refinery_airflow.pages.fields import NOT_FOUND, Reason, Row
from refinery_airflow.pages.rendering import SAMPLE, show
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


ROWS_SHOWN = 20
"""Rows of a page."""

MOST_BYTES = 64_000_000
"""Bytes of rejected rows that a page reads; it leads on behind them."""

MOST_ROWS, MOST_FILE_BYTES = 10_000, 256_000_000
"""Rows of a file, and bytes that are read for it."""

TEXT_WRITTEN = 4000
"""Characters of a text in a file."""

COLUMNS = ("reason", "id", "url", "language", "file", "offset", "record_id", "crawled_at", "evidence", "text")
"""Columns of a file, of those that a stage's rows have."""

CSV, JSONL = "csv", "jsonl"
MEDIA_TYPES = {CSV: "text/csv; charset=utf-8", JSONL: "application/x-ndjson"}
"""Formats of a file."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet computes."""


@dataclass(frozen=True, slots=True)
class RejectsPage:
    """The page: rows of a stage with a reason ("" for any), and where it leads."""

    of: Version | UnpublishedRun
    stage: str
    reason: str
    reasons: Mapping[str, int]
    shown: RejectedRows
    expired: str = ""

    @property
    def rows(self) -> int:
        """How many rows have the reason."""
        return self.reasons.get(self.reason, 0) if self.reason else self.shown.total

    @property
    def has_texts(self) -> bool:
        """Return whether a row has a text: those of the first stages have none."""
        return any(row.get("text") for row in self.shown.rows)

    @property
    def path(self) -> str:
        """The path of the page, below that of Refinery's pages."""
        parts = (self.of.recipe, self.of.snapshot, self.stage)
        return "/".join(quote(part, safe="") for part in parts)

    @property
    def following(self) -> str:
        """The address of the next rows; "" behind the last."""
        return self._address(self.shown.end) if self.shown.end < self.shown.total else ""

    @property
    def first(self) -> str:
        """The address of the first rows; "" on their page."""
        return self._address(0) if self.shown.start else ""

    @property
    def files(self) -> dict[str, str]:
        """The addresses of the files, by format."""
        query = f"?{urlencode({'reason': self.reason})}" if self.reason else ""
        return {kind: f"{base()}/rejects/{self.path}/rows.{kind}{query}" for kind in MEDIA_TYPES}

    def _address(self, start: int) -> str:
        fields = {"reason": self.reason, "start": str(start) if start else ""}
        query = urlencode({name: value for name, value in fields.items() if value})
        return f"{base()}/rejects/{self.path}" + (f"?{query}" if query else "")

    def command(self, root: str) -> str:
        """Return the command that writes all rows."""
        named = ["refinery", "rejects", root, "--recipe", self.of.recipe, "--snapshot", self.of.snapshot]
        chosen = ["--reason", self.reason] if self.reason else []
        return shlex.join([*named, "--stage", self.stage, *chosen, "--to", "FOLDER"])


def rejects_of(root: str, of: Version | UnpublishedRun, manifest: Manifest, reason: str, start: int) -> RejectsPage:
    """Return the page of a stage's rows from row `start` on."""
    shown = rejected_rows(root, manifest, reason, Bounds(start, ROWS_SHOWN, MOST_BYTES))
    return RejectsPage(of, manifest.stage, reason, reasons_of(manifest), shown, expired_note(root, [manifest]))


# --- Files ----------------------------------------------------------------------------------------------------------


def file_of(root: str, manifest: Manifest, reason: str, kind: str) -> tuple[bytes, bool]:
    """Return the first rows with a reason as a file, and whether these are all of them."""
    found = rejected_rows(root, manifest, reason, Bounds(0, MOST_ROWS, MOST_FILE_BYTES))
    names = dict(manifest.schema)
    columns = [name for name in COLUMNS if name in names or any(name in row for row in found.rows[:1])]
    rows = ({name: _written(row.get(name)) for name in columns} for row in found.rows)
    write: Callable[..., bytes] = _csv if kind == CSV else _jsonl
    return write(rows, columns), found.end == found.total


def file_name(manifest: Manifest, reason: str, kind: str, *, is_whole: bool) -> str:
    """Return the name of a file; that of the first rows alone says so."""
    words = [manifest.stage, *([reason] if reason else []), *([] if is_whole else [f"first-{MOST_ROWS}"])]
    return f"{re.sub('[^A-Za-z0-9_.-]+', '-', '-'.join(words))}.{kind}"


def _written(value: object) -> object:
    """Return a value of a row as a file has it: a text's beginning, and what is neither text nor number as text."""
    if value is None or isinstance(value, int | float):
        return value
    return str(value)[:TEXT_WRITTEN]


def _csv(rows: Iterator[Mapping[str, Any]], columns: list[str]) -> bytes:
    """Return rows as CSV; a text that a spreadsheet would take for a formula has an apostrophe before it."""
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _inert(value) for name, value in row.items()})
    return written.getvalue().encode("utf-8", "replace")


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _jsonl(rows: Iterator[Mapping[str, Any]], _: list[str]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=True).encode() + b"\n" for row in rows)


@router.get("/rejects/{recipe}/{snapshot}/{stage}", dependencies=[Depends(steward)])
def rejects_page(recipe: str, snapshot: str, stage: str, reason: Reason = "", start: Row = 0) -> HTMLResponse:
    """Show rows that a stage rejected or quarantined, from row `start` on, with the evidence."""
    known, manifest = _of_stage(recipe, snapshot, stage)
    page = rejects_of(root(), known.shown, manifest, reason, start)
    of = {"version": known.shown, "is_published": known.version is not None}
    limits = {"most_rows": MOST_ROWS, "sample": SAMPLE}
    known_ids = [str(row["id"]) for row in page.shown.rows if row.get("id")]
    return show(
        "rejects.html", **of, shown_page=page, evidence_of=evidence_of, **limits, command=page.command(root())
    ).of(len(page.shown.rows), known_ids)


@router.get("/rejects/{recipe}/{snapshot}/{stage}/rows.{kind}", dependencies=[Depends(steward)])
def rejects_file(recipe: str, snapshot: str, stage: str, kind: str, reason: Reason = "") -> Response:
    """Return rows that a stage rejected or quarantined as a file, CSV or JSON lines: of many the first ones."""
    if kind not in MEDIA_TYPES:
        raise HTTPException(NOT_FOUND, f"rows are written as {' or '.join(MEDIA_TYPES)}, and not as {kind}")
    _, manifest = _of_stage(recipe, snapshot, stage)
    body, is_whole = file_of(root(), manifest, reason, kind)
    name = file_name(manifest, reason, kind, is_whole=is_whole)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    rows = reasons_of(manifest)
    wanted = rows.get(reason, 0) if reason else sum(rows.values())
    return ShownFile(body, media_type=MEDIA_TYPES[kind], headers=headers).of(min(wanted, MOST_ROWS))


def _of_stage(recipe: str, snapshot: str, stage: str) -> tuple[Committed, Manifest]:
    """Return what is committed of a snapshot, and the manifest of one of its stages; 404 if it has none."""
    known = committed(root(), recipe, snapshot)
    if stage not in known.shown.manifests:
        raise HTTPException(NOT_FOUND, f"snapshot {snapshot} has no stage {stage}")
    return known, read_manifest(root(), known.shown.manifests[stage])
