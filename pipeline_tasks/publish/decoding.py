"""Decodes a version's tokens back to text, with the tokenizer of the version."""

import json
from collections.abc import Callable
from typing import Any

from pipeline_tasks.publish.exports.source import tokenizer_of
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.store.reading import read_manifest


def decoder_of(root: str, version: Version) -> Callable[[list[int]], str]:
    """Return a function that turns a version's token ids into text."""
    tokenizer = tokenizer_of(root, read_manifest(root, version.manifests["tokenize"]))
    if tokenizer.kind == "tiktoken":
        import tiktoken

        parts = json.loads(tokenizer.definition)
        ranks = {bytes.fromhex(piece): rank for piece, rank in parts["ranks"].items()}
        decode: Callable[[list[int]], str] = tiktoken.Encoding(
            parts["name"], pat_str=parts["pat_str"], mergeable_ranks=ranks, special_tokens=parts["special_tokens"]
        ).decode
        return decode
    import tokenizers

    loaded: Any = tokenizers.Tokenizer.from_str(tokenizer.definition.decode())
    return lambda ids: str(loaded.decode(ids, skip_special_tokens=False))
