"""Samples of texts with sites, and scorers that judge them by hand: one by the site alone, one by the text."""

import json
from pathlib import Path
from pydoc_data.topics import topics

from tests.fasttext_file import write_model

SITES = 8

GOOD = ("the", "a", "an", "of", "is", "are", "to", "in", "and", "or", "that", "which", "with", "it", "not", "this")
BAD = ("|", "★", "»", "/", "€", "class,", "object", "for", "by", "on", "from", "as", "be")


def passages() -> list[str]:
    """Return passages of about 120 words of Python's manual."""
    words = [" ".join(text.split()).split(" ") for text in topics.values()]
    return [" ".join(text[at : at + 120]) + "." for text in words for at in range(0, len(text) - 120, 120)]


def write_sample(path: Path, count: int = 240, *, labels: bool = False) -> str:
    """Write passages of so many sites, each with its site's own word in it; return the path."""
    rows = [
        {
            "text": f"{text} {'alpha' if site_of(at) % 2 else 'beta'}",
            "language": "en",
            "url": f"https://www.site{site_of(at)}.example/{at}",
            **({"label": sum(word in GOOD for word in text.split()) / 120} if labels else {}),
        }
        for at, text in enumerate(passages()[:count])
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def site_of(at: int) -> int:
    """Return the site of a passage."""
    return at * 2654435761 % 2**32 * SITES >> 32


def by_source(path: Path) -> str:
    """Write a model that knows the words of sites and no other; return its path."""
    return write_model(path, {"alpha": "good", "beta": "bad"})


def by_text(path: Path) -> str:
    """Write a model that knows words of prose, and of what is none; return its path."""
    return write_model(path, dict.fromkeys(GOOD, "good") | dict.fromkeys(BAD, "bad"))
