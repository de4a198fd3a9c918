"""Traces a packed token back: position, sequence, document, and the landed record with its bytes."""

import argparse
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import SystemRandom
from typing import Any, cast

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect import redactions
from pipeline_tasks.inspect.command import add_snapshot, number, print_result, version_of
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.decoding import decoder_of
from pipeline_tasks.publish.published_tokens import open_published
from pipeline_tasks.store import storage

AROUND = 24
"""Tokens shown on each side of the traced one."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A token's way back. `header` is the first line and the identifying fields of the record as landed.

    `redactions` is the command that lists what was replaced in the document ("" where nothing was looked for).
    """

    position: int
    sequence: int
    in_sequence: int
    in_document: int
    text: str
    document: str
    url: str
    record: str
    snapshot: str
    file: str
    offset: int
    landed: str
    header: tuple[str, ...]
    redactions: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, and the tokens to trace."""
    add_snapshot(parser)
    parser.add_argument("--token", type=int, action="append", help="position in the stream, from 0; may be repeated")
    parser.add_argument("--random", type=number(int, 0), default=0, metavar="N", help="trace N tokens drawn at random")


def answer(options: argparse.Namespace) -> int:
    """Print each token's way back, one JSON object per line with `--json`."""
    version = version_of(options)
    drawn = [SystemRandom().randrange(max(version.tokens, 1)) for _ in range(options.random)]
    positions = [*(options.token or []), *drawn]
    if not positions:
        message = "name tokens with --token POSITION, or draw some with --random N"
        raise RecipeError(message)
    for position in positions:
        traced = trace(options.root, version, position)
        print_result(options, asdict(traced), [*trace_lines(traced), ""])
    return 0


def trace(root: str, version: version_log.Version, position: int) -> Trace:
    """Trace token `position` of a version; RecipeError if there is no such token."""
    if "pack" not in version.manifests:
        message = f"{root}: version {version.number} of recipe {version.recipe} has no packed tokens; add `pack` to it"
        raise RecipeError(message)
    tokens = open_published(root, version)
    try:
        sequence, piece = tokens.locate(position)
    except IndexError as error:
        message = f"{error}; version {version.number} has {version.tokens} tokens"
        raise RecipeError(message) from error
    at = position - sequence * tokens.counts.length
    ids = tokens.sequence(sequence)
    shown = ids[max(piece["start"], at - AROUND) : min(piece["start"] + piece["length"], at + AROUND)]
    uri = f"{version.landing}/{piece['file']}"
    return Trace(
        position=position,
        sequence=sequence,
        in_sequence=at,
        in_document=piece["doc_start"] + at - piece["start"],
        text=decoder_of(root, version)(shown.tolist()),
        document=piece["id"],
        url=piece["url"],
        record=piece["record_id"],
        snapshot=piece["snapshot"],
        file=piece["file"],
        offset=piece["offset"],
        landed=uri,
        header=tuple(_header(uri, piece)),
        redactions=_redactions(root, version, piece) if redactions.STAGE in version.manifests else "",
    )


def _redactions(root: str, version: version_log.Version, piece: dict[str, Any]) -> str:
    chosen = f"--recipe {version.recipe} --snapshot {version.snapshot} --document {piece['id']}"
    return f"refinery redactions {root} {chosen}"


def _header(uri: str, piece: dict[str, Any]) -> Iterator[str]:
    """Yield the identifying WARC header lines of the landed record; ContractError if the file was changed."""
    if ".parquet" in piece["file"] or ".json" in piece["file"]:
        yield f"row or byte {piece['offset']} of {piece['file']}"
        return
    try:
        record = _read_at(uri, piece["offset"])
    except FileNotFoundError:
        yield "the landed file is not there any more"
        return
    head = record.split(b"\r\n\r\n", 1)[0].decode("utf-8", "replace")
    lines = head.splitlines()
    if piece["record_id"].startswith("<") and not any(piece["record_id"] in line for line in lines):
        message = f"{uri} byte {piece['offset']}: not record {piece['record_id']}; the landed file was changed"
        raise ContractError(message)
    wanted = ("warc/", "warc-type", "warc-record-id", "warc-date", "warc-target-uri", "warc-payload-digest")
    yield from (line for line in lines if line.lower().startswith(wanted))


def _read_at(uri: str, offset: int, size: int = 1 << 16) -> bytes:
    with storage.open_landed(uri) as stream:
        stream.seek(offset)
        raw = stream.read(size)
    if raw[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(raw, size)
    if raw[:4] == b"WARC":
        return raw
    with storage.open_landed(uri) as stream:  # one gzip member around the whole file: offsets count its content
        whole = gzip.GzipFile(fileobj=io.BufferedReader(cast("io.RawIOBase", stream)))
        whole.seek(offset)
        return whole.read(size)


def trace_lines(traced: Trace) -> Iterator[str]:
    """Yield the trace as lines for a person."""
    yield f"token      {traced.position:,}: sequence {traced.sequence:,}, token {traced.in_sequence:,} in it"
    yield f"text       ...{' '.join(traced.text.split())}..."
    yield f"document   {traced.document}, token {traced.in_document:,} in it"
    yield f"url        {traced.url}"
    yield f"record     {traced.record} in {traced.landed} at byte {traced.offset:,} (snapshot {traced.snapshot})"
    for line in traced.header:
        yield f"           {line}"
    if traced.redactions:
        yield f"redactions {traced.redactions}"
