"""Turns token ids back into text."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pipeline_tasks.stages.tokenize.hugging_face import loaded
from pipeline_tasks.stages.tokenize.sentence_piece import SENTENCEPIECE, processor
from pipeline_tasks.stages.tokenize.tiktoken_ranks import tiktoken_encoding

Decoder = Callable[[list[int]], str]


@lru_cache(maxsize=2)
def decoder(kind: str, definition: bytes) -> Decoder:
    """Return a function that turns ids into text; special tokens are written by their names."""
    if kind == "tiktoken":
        decode: Decoder = tiktoken_encoding(definition).decode
        return decode
    if kind == SENTENCEPIECE:
        return _with_names(processor(definition))
    tokenizer = loaded(definition)
    return lambda ids: str(tokenizer.decode(ids, skip_special_tokens=False))


def _with_names(model: Any) -> Decoder:  # noqa: ANN401 -- a processor of sentencepiece
    """Return a decoder that writes control tokens, which the library leaves out, by their names."""

    def decode(ids: list[int]) -> str:
        parts, at = [], 0
        for place in [*(n for n, number in enumerate(ids) if model.IsControl(number)), len(ids)]:
            parts.append(model.decode(ids[at:place]))
            parts += [model.id_to_piece(number) for number in ids[place : place + 1]]
            at = place + 1
        return "".join(parts)

    return decode
