"""Tells by the names of files which are of another split than train, as the Hub and `datasets` name them."""

import re
from collections.abc import Iterable

from pipeline_tasks.landing.brought_formats import PACKED

TRAIN = "train"

_MEANINGS = {
    TRAIN: ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_MEANING = {word: split for split, words in _MEANINGS.items() for word in words}
_WORDS = "|".join(sorted(_MEANING, key=len, reverse=True))
_WHOLE = re.compile(rf"(?i)({_WORDS})(?:[-_.]?(?:part|shard|of)?[-_.]?\d+)*(?:-[0-9a-f]{{16}})?\.[a-z]\w*{PACKED}")
"""A split's name with the numbers of parts behind it, and the digest that older pushes to the Hub have there."""

_ANYWHERE = re.compile(rf"(?i)(?<![a-z])({_WORDS})(?![a-z])")
_DIGITS = re.compile(r"\d+")

WAY_OUT = (
    "a landing takes train; to read another split, name one file or the folder of the split as the input, or list "
)
WAY_OUT += "its files in snapshot.json"
"""What to do about files that are left out."""


def other_splits(names: Iterable[str], asked: str = "") -> dict[str, str]:
    """Return the files of splits other than train, by name, with their split; `asked` is one that is wanted, too.

    A split is a folder's whole name, a file's but for numbers of parts (`test-00000-of-00001.parquet`), or a word in it
    where the same name exists with `train` (`c4-validation.00000-of-00008.json.gz`). The Hub's own rule takes the word
    anywhere, so that `dev-blog.jsonl` would be validation: without such a twin it is data like any other.
    """
    every = list(names)
    trains = {_form(name) for name in every}
    found = {name: _split(name, trains) for name in every}
    return {name: split for name, split in found.items() if split not in ("", TRAIN, asked)}


def split_of_folder(name: str) -> str:
    """Return the split that a folder is of by its name, "" for none."""
    return _MEANING.get(name.lower(), "")


def _split(name: str, trains: set[str]) -> str:
    *folders, own = name.split("/")
    whole = _WHOLE.match(own)
    if whole is not None:
        return _MEANING[whole[1].lower()]
    start = len(name) - len(own)
    for word in _ANYWHERE.finditer(name, start):
        split = _MEANING[word[1].lower()]
        if split != TRAIN and _form(f"{name[: word.start()]}{TRAIN}{name[word.end() :]}") in trains:
            return split
    return next(filter(None, map(split_of_folder, reversed(folders))), "")


def _form(name: str) -> str:
    """Return a name without the numbers of its shards."""
    return _DIGITS.sub("", name)
