"""Counts the characters of a text that its tokens do not give back."""

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate

from pipeline_tasks.stages.tokenize.decoding import decoder
from pipeline_tasks.stages.tokenize.hugging_face import loaded
from pipeline_tasks.stages.tokenize.sentence_piece import SENTENCEPIECE, processor

Loss = Callable[[str, list[int]], int]

SPACE_SIGN = "\u2581"
"""What many tokenizers write for a space, and decode as one."""


@lru_cache(maxsize=2)
def loss(kind: str, definition: bytes) -> Loss:
    """Return a function of a text and its ids: the characters of the stretch that does not come back, 0 if all does.

    The tokenizer's own normalization is no loss: both texts are compared as it leaves them. Of white space it counts
    where words are parted: how much of it there is, and of which kind, is none. Where a text comes back and some of its
    words are one word, each place that parted them is a lost character.
    """
    decode, normalize = decoder(kind, definition), _normalizer(kind, definition)

    def count(text: str, ids: list[int]) -> int:
        words, found = _words(normalize(text)), _words(normalize(decode(ids)))
        wanted, actual = "".join(words), "".join(found)
        if wanted == actual:
            return len({*accumulate(map(len, words))} - {*accumulate(map(len, found))})
        before = _shared(wanted, actual)
        after = _shared(wanted[before:][::-1], actual[before:][::-1])
        return max(len(wanted) - before - after, 1)

    return count


def _shared(text: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((number for number, (sign, another) in pairs if sign != another), min(len(text), len(other)))


def _normalizer(kind: str, definition: bytes) -> Callable[[str], str]:
    if kind == SENTENCEPIECE:
        model = processor(definition)
        return lambda text: str(model.normalize(text))
    if kind == "tiktoken":
        return str
    normalizer = loaded(definition).normalizer
    return (lambda text: str(normalizer.normalize_str(text))) if normalizer else str


def _words(text: str) -> list[str]:
    """Return what white space parts, in whatever form a tokenizer writes it."""
    return text.replace(SPACE_SIGN, " ").split()
