"""Lists the formats in which a version is exported, and stores their files."""

import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from pipeline_tasks.publish.exports import lineage, tokenizer, tokens
from pipeline_tasks.publish.exports.source import Source
from pipeline_tasks.publish.published import Promised, PublishedFile, publish_file

Writer = Callable[[Source, Path], None]
"""Writes the files of one format into an empty local folder; their names are part of the format."""

FORMATS: Mapping[str, Writer] = {
    "tokens": tokens.write,
    "lineage": lineage.write,
    "tokenizer": tokenizer.write,
}
"""Every version is exported in all of these formats. A new format is its module, its test and a line here."""


def export(source: Source, prefix: str, promised: Promised) -> list[PublishedFile]:
    """Store the files of every format under `prefix`, relative to the source's root, and return them.

    Formats are written side by side: most of their time is spent in reading, hashing and storing.
    """
    with ThreadPoolExecutor(len(FORMATS)) as pool:
        written = pool.map(lambda write: _export(write, source, prefix, promised), FORMATS.values())
        return list(chain.from_iterable(written))


def _export(write: Writer, source: Source, prefix: str, promised: Promised) -> list[PublishedFile]:
    """Store the files of one format."""
    with tempfile.TemporaryDirectory(prefix="refinery-export-") as folder:
        write(source, Path(folder))
        written = sorted(Path(folder).iterdir())
        return [
            publish_file(source.packing.root, f"{prefix}/{file.name}", file, promised, spare=True) for file in written
        ]
