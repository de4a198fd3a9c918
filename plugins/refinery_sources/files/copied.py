"""Copies a file of a store as it is into a part of a landing; one of bzip2, which a landing does not read, unpacked."""

import hashlib
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError, SnapshotIncomplete
from pipeline_tasks.landing.parquet.footer import read_footer
from pipeline_tasks.landing.parquet.rows import FAULTS, MAGIC
from pipeline_tasks.store.local_store import flush, os_errors
from pipeline_tasks.store.protocol import CHUNK
from refinery_sources.admission import open_file
from refinery_sources.budget import Stopped
from refinery_sources.files.contents import unpacked
from refinery_sources.source import UNKNOWN, Flow, Part, Received
from refinery_sources.web import Web


def copy_part(part: Part, partial: Path, web: Web, flow: Flow, named: str = "") -> Received:
    """Copy the file at a part's address to `partial`; SnapshotIncomplete if it has other bytes than were listed."""
    try:
        with open_file(part.address, named) as stored:
            is_packed = part.address.endswith(".bz2") and not part.name.endswith(".bz2")
            received = copy_stream(unpacked(stored, part.address) if is_packed else stored, part, partial, web, flow)
    except FileNotFoundError as error:
        message = f"{part.address} is gone since it was listed"
        raise SnapshotIncomplete(message) from error
    if part.bytes not in (UNKNOWN, received.bytes):
        message = f"{part.address} has {received.bytes:,} bytes, and had {part.bytes:,} when it was listed"
        raise SnapshotIncomplete(message)
    return received


def require_whole(partial: Path, address: str) -> None:
    """Raise ContractError for a copy whose compressed content is cut or damaged, at any place of it."""
    with partial.open("rb") as stored:
        content = unpacked(stored, address)
        while content.read(CHUNK):
            pass


def require_parquet(partial: Path, address: str) -> None:
    """Raise ContractError for a copy that is no Parquet file, or one whose footer is cut or damaged."""
    with partial.open("rb") as stream:
        is_parquet = stream.read(len(MAGIC)) == MAGIC
        try:
            if is_parquet:
                read_footer(stream, stream.seek(0, 2))  # which bounds what pyarrow is given
                pq.ParquetFile(stream, pre_buffer=False)
        except FAULTS as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            message = f"{address} is a Parquet file that is cut or damaged: its footer cannot be read"
            raise ContractError(message) from error
    if not is_parquet:
        message = f"{address} is no Parquet file: it does not begin with {MAGIC.decode()}"
        raise ContractError(message)


def copy_stream(stored: BinaryIO, part: Part, partial: Path, web: Web, flow: Flow) -> Received:
    """Copy a stream to the local file `partial`, from its beginning; return what was written."""
    digest, size = hashlib.sha256(), 0
    with os_errors(str(partial)), partial.open("wb") as stream:
        while chunk := stored.read(CHUNK):
            if web.stop.is_set():
                raise Stopped
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            flow.on_bytes(part.name, len(chunk))
        flush(stream)
    return Received(size, digest.hexdigest())
