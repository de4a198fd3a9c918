"""Prose, and what a shop would say with its words: texts that a small model tells apart once it was trained."""

import json
from itertools import chain
from pathlib import Path

from pipeline_tasks.demo.prose import english

SHOP = "buy {} now at our shop, best {} offers, order {} today and save, {} sale"


def prose() -> list[str]:
    paragraphs = list(chain.from_iterable(english().values()))
    return ["\n\n".join(paragraphs[at : at + 4]) for at in range(0, len(paragraphs) - 4, 4)]


def shop(texts: list[str]) -> list[str]:
    """Return what a shop would say with the words of texts."""
    words = [[word for word in text.split() if word.isalpha()] for text in texts]
    return [". ".join(SHOP.format(*few[at : at + 4]) for at in range(0, 80, 4)) + "." for few in words if len(few) > 84]


def write(path: Path, texts: list[str], kind: str) -> Path:
    rows = [
        {"text": text, "url": f"https://{kind}{at % 25}.example/{at}", "language": "en"}
        for at, text in enumerate(texts)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
