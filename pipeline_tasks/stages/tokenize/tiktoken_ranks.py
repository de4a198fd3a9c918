"""Vocabularies of tiktoken: their ranks as JSON."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stages.tokenize.params import MOST_ID, PROBE

if TYPE_CHECKING:
    import tiktoken


def is_tiktoken(body: bytes) -> bool:
    """Return whether a file has tiktoken's ranks as `tiktoken_definition` writes them."""
    return body.startswith(b'{"name":') and b'"pat_str":' in body and b'"ranks":{' in body


def tiktoken_definition(encoding: "tiktoken.Encoding") -> bytes:
    """Return JSON to build `encoding` again without the network: name, pattern, special tokens, ranks as hex."""
    parts = {
        "name": encoding.name,
        "pat_str": encoding._pat_str,  # noqa: SLF001 -- as tiktoken's own documentation extends encodings
        "special_tokens": encoding._special_tokens,  # noqa: SLF001 -- as above
        "ranks": {piece.hex(): rank for piece, rank in encoding._mergeable_ranks.items()},  # noqa: SLF001 -- as above
    }
    return json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()


def tiktoken_encoding(definition: bytes, name: str = "tiktoken") -> "tiktoken.Encoding":
    """Return the encoding of a `tiktoken_definition`; RecipeError if it is none."""
    import tiktoken

    try:
        parts = json.loads(definition)
        require_range([*parts["ranks"].values(), *parts["special_tokens"].values()])
        encoding = tiktoken.Encoding(
            name=parts["name"],
            pat_str=parts["pat_str"],
            mergeable_ranks={bytes.fromhex(piece): rank for piece, rank in parts["ranks"].items()},
            special_tokens=parts["special_tokens"],
        )
        encoding.encode_ordinary(PROBE)  # ranks without single bytes
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        # ranks with gaps, ids out of range and a wrong pattern end in a PanicException, which is no Exception
        message = f"tokenize.tokenizer: {name} has no ranks of tiktoken ({str(error)[:200]}); export it again"
        raise RecipeError(message) from error
    return encoding


def require_range(ids: Iterable[object]) -> None:
    """Raise ValueError unless ids are numbers that a vocabulary may have."""
    for number in ids:
        if type(number) is not int or not 0 <= number <= MOST_ID:
            message = f"the id {str(number)[:20]} of a token is not a number from 0 to {MOST_ID:,}"
            raise ValueError(message)
