"""The tokenizer that the package has, for a dataset that names none and has too little text to train one.

A byte-level BPE of 32,768 entries, trained by `benchmarks/default_tokenizer.py` on packages of free licences, which
`default.sources.json` lists (decision 43). It loses no text, and its end token is `<|endoftext|>`.
"""

import gzip
import hashlib
import zlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pipeline_tasks.errors import DigestMismatch

NAME = "default"

SHA256 = "3d8c5a8d7ece53d7d3fa48461e2cf49fd58a63c06d22b98e72226805f8d58234"
"""SHA-256 of the definition. Another one is another tokenizer: datasets that have this one keep it by their pins."""

PATH = Path(__file__).with_name("default.json.gz")


class DefaultTokenizer(NamedTuple):
    """The name, the tokenizer.json and its SHA-256."""

    name: str
    definition: bytes
    sha256: str


@cache
def default_tokenizer() -> DefaultTokenizer:
    """Return the default tokenizer, read once in a process; DigestMismatch if its file is not the released one."""
    return read_default(PATH)


def read_default(path: Path) -> DefaultTokenizer:
    """Return the default tokenizer out of a file; DigestMismatch if the file lacks, or is not the released one."""
    try:
        definition = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error):  # absent, no gzip, cut, or changed inside
        definition = b""
    if hashlib.sha256(definition).hexdigest() != SHA256:
        message = f"{path} is not the tokenizer of this release; install the package again"
        raise DigestMismatch(message)
    return DefaultTokenizer(NAME, definition, SHA256)
