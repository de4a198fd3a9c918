"""Tokenizers of Hugging Face, each loaded once."""

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=2)
def loaded(definition: bytes) -> Any:  # noqa: ANN401 -- of tokenizers
    """Return the tokenizer of a tokenizer.json; special tokens in a text are text to it."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(definition.decode())
    tokenizer.encode_special_tokens = True
    return tokenizer
