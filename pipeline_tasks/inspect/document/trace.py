"""Traces a packed token back: position, sequence, document, and the landed record with its bytes."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from random import SystemRandom
from typing import Any

import pyarrow.compute as pc

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.command import add_dataset, built_version, number, print_result
from pipeline_tasks.inspect.document.generated import Generated, found_generated
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.landing.decompression import GZIP, PlainSource, Reader, inflated_start
from pipeline_tasks.landing.first_look import OF_TABLES
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.publish.datasets.decoding import decoder_of
from pipeline_tasks.publish.datasets.published_shards import PublishedShards, Spot, open_build, refined_version
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.schema import PARENT
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import clears_personal_data

AROUND = 24
"""Tokens shown on each side of the traced one."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A token's way back. `header` is the first line and the identifying fields of the record as landed.

    `redactions` is the command that lists what was replaced in the document ("" where nothing was looked for).
    `position` counts pads, `sequence` is within `shard`, and `copy` is which use of the document it is. `generated` is
    how a model wrote the document, of which the record is that of the source.
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
    shard: int = 0
    copy: int = 0
    generated: Generated | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the dataset, and the tokens to trace."""
    add_dataset(parser)
    parser.add_argument(
        "--token", type=int, action="append", help="position in all shards, from 0, pads included; may be repeated"
    )
    for name in ("shard", "sequence"):
        help_ = f"the {name} from 0, in which --token counts; both are needed"
        parser.add_argument(f"--{name}", type=number(int, 0), default=None, metavar="N", help=help_)
    parser.add_argument("--random", type=number(int, 0), default=0, metavar="N", help="trace N tokens drawn at random")


def answer(options: argparse.Namespace) -> int:
    """Print each token's way back, one JSON object per line with `--json`."""
    version = built_version(options.root, options.recipe)
    for traced in _traces(options, version):
        looked(options, 1, [traced.document], version)
        print_result(options, asdict(traced), [*trace_lines(traced), ""])
    return 0


def _traces(options: argparse.Namespace, version: version_log.Version) -> Iterator[Trace]:
    """Yield the traces of the tokens that the options name, then of some drawn at random."""
    dataset = open_build(options.root, version)
    if (options.shard is None) != (options.sequence is None):
        message = "name both --shard and --sequence, or neither: then --token counts through all shards, pads included"
        raise RecipeError(message)
    tokens = options.token or []
    if options.shard is None:
        spots = [dataset.spot(position) for position in tokens]
    else:
        spots = [Spot(options.shard, options.sequence, token) for token in tokens]
    if not spots and not options.random:
        message = "name a token with --shard S --sequence I --token J, or draw some with --random N"
        raise RecipeError(message)
    for spot in spots:
        yield trace_spot(options.root, dataset, spot)
    yield from _drawn(options.root, dataset, options.random)


def _drawn(root: str, dataset: PublishedShards, count: int) -> Iterator[Trace]:
    positions = dataset.index["sequences"] * dataset.index["length"]
    while count and dataset.index["tokens"]:
        spot = dataset.spot(SystemRandom().randrange(positions))
        try:
            traced = trace_spot(root, dataset, spot)
        except RecipeError:  # a pad
            continue
        count -= 1
        yield traced


def trace_spot(root: str, dataset: PublishedShards, spot: Spot, most_bytes: int = 0) -> Trace:
    """Trace a token of a training dataset; RecipeError if there is no such token, or it is a pad.

    `most_bytes` is of `landed_header`.
    """
    piece, version = dataset.piece(spot), dataset.version
    shown = dataset.sequence(spot)[_around(piece, spot.token)]
    refined = refined_version(root, version, piece["snapshot"])
    before = sum(entry["sequences"] for entry in dataset.index["shards"][: spot.shard])
    position = (before + spot.sequence) * dataset.index["length"] + spot.token
    text = decoder_of(root, version)(shown.tolist())
    return replace(
        _traced(root, refined, piece, text, most_bytes),
        position=position,
        shard=spot.shard,
        sequence=spot.sequence,
        in_sequence=spot.token,
        in_document=piece["doc_start"] + spot.token - piece["start"],
        copy=piece["copy"],
    )


def _around(piece: dict[str, Any], at: int) -> slice:
    return slice(max(piece["start"], at - AROUND), min(piece["start"] + piece["length"], at + AROUND))


def trace(root: str, version: version_log.Version, position: int, most_bytes: int = 0) -> Trace:
    """Trace the token at a position of all shards end to end, pads included; RecipeError if there is none, or a pad.

    `most_bytes` is of `landed_header`.
    """
    dataset = open_build(root, version)
    return trace_spot(root, dataset, dataset.spot(position), most_bytes)


def _traced(root: str, version: version_log.Version, piece: dict[str, Any], text: str, most_bytes: int) -> Trace:
    """Return the trace of a piece without the numbers of its token; `version` is that of its snapshot."""
    return Trace(
        position=0,
        sequence=0,
        in_sequence=0,
        in_document=0,
        text=text,
        document=piece["id"],
        url=piece["url"],
        record=piece["record_id"],
        snapshot=piece["snapshot"],
        file=piece["file"],
        offset=piece["offset"],
        landed=f"{version.landing}/{piece['file']}",
        header=tuple(landed_header(version.landing, piece, most_bytes)),
        redactions=_redactions(root, version, piece) if any(map(clears_personal_data, version.manifests)) else "",
        generated=found_generated(root, version, piece["id"]) if piece.get(PARENT) else None,
    )


def _redactions(root: str, version: version_log.Version, piece: dict[str, Any]) -> str:
    chosen = f"--recipe {version.recipe} --snapshot {version.snapshot} --document {piece['id']}"
    return f"refinery look redactions {root} {chosen}"


def landed_header(landing: str, piece: Mapping[str, Any], most_bytes: int = 0) -> Iterator[str]:
    """Yield the identifying WARC header lines of the landed record; ContractError if the file was changed.

    `piece` has the `file` below `landing`, the `offset` in it, and the `record_id`. A file that is compressed as a
    whole is read from its start: with `most_bytes` only for a record that begins within so many bytes of its content.
    """
    uri = f"{landing}/{piece['file']}"
    if any(ending in piece["file"].lower() for ending in (".parquet", ".json")):
        yield f"row or byte {piece['offset']} of {piece['file']}"
        return
    try:
        lines = _stored_header(uri, piece)
        if lines is None and most_bytes and piece["offset"] > most_bytes:
            yield f"its header is behind {piece['offset']:,} bytes of {piece['file']}, and so was not read"
            return
        lines = lines or _read_header(uri, piece)
    except FileNotFoundError:
        yield "the landed file is not there any more"
        return
    if lines is None:
        message = (
            f"{uri} has no record {piece['record_id']} at byte {piece['offset']}; the landed file was changed: restore "
            "it, or refine the snapshot again"
        )
        raise ContractError(message)
    wanted = ("warc/", "warc-type", "warc-record-id", "warc-date", "warc-target-uri", "warc-payload-digest")
    yield from (line for line in lines if line.lower().startswith(wanted))


def _stored_header(uri: str, piece: Mapping[str, Any], size: int = 1 << 16) -> list[str] | None:
    """Return the header lines of a record that begins at its stored byte, None where it does not."""
    with storage.open_landed(uri) as stream:
        stream.seek(piece["offset"])
        stored = Reader(PlainSource(stream))
        begin = inflated_start(stored, size) if stored.peek(2) == GZIP else stored.peek(size)
    head = begin.split(b"\r\n\r\n", 1)[0].decode("utf-8", "replace").splitlines()
    is_it = begin[:5].upper() == b"WARC/" and any(piece["record_id"] in line for line in head)
    return head if is_it else None


def _read_header(uri: str, piece: Mapping[str, Any]) -> list[str] | None:
    """Return what the header of a record says, None if it is not there.

    It reads the file from its start: a place in a file that is compressed as a whole is one in its content.
    """
    columns = ["offset", "kind", "record_id", "crawled_at", "url", "payload_digest"]
    with storage.open_landed(uri) as stream:
        for batch in read_records(piece["file"], stream, snapshot=piece["snapshot"], columns=columns):
            if not pc.any(pc.equal(batch["offset"], piece["offset"])).as_py():
                if batch.num_rows and pc.min(batch["offset"]).as_py() > piece["offset"]:
                    return None  # records come in the order of their places
                continue
            row = batch.filter(pc.equal(batch["offset"], piece["offset"])).to_pylist()[0]
            names = ("WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Target-URI", "WARC-Payload-Digest")
            values = zip(names, list(row.values())[1:], strict=True)
            is_it = row["record_id"] == piece["record_id"] or row["kind"] in OF_TABLES  # whose id a recipe may rename
            return [f"{name}: {value}" for name, value in values if value] if is_it else None
    return None


def trace_lines(traced: Trace) -> Iterator[str]:
    """Yield the trace as lines for a person."""
    place = f"sequence {traced.sequence:,}, token {traced.in_sequence:,} in it"
    yield f"token      {traced.position:,}: {f'shard {traced.shard:,}, ' if traced.shard else ''}{place}"
    yield f"text       ...{' '.join(traced.text.split())}..."
    yield f"document   {traced.document}, token {traced.in_document:,} in it"
    yield from [f"generated  {traced.generated.line}"] if traced.generated else []
    yield f"url        {traced.url}"
    yield f"record     {traced.record} in {traced.landed} at byte {traced.offset:,} (snapshot {traced.snapshot})"
    for line in traced.header:
        yield f"           {line}"
    if traced.redactions:
        yield f"redactions {traced.redactions}"
