"""A spaCy pipeline that was trained in a second on eight sentences, and finds the names that it saw."""

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline_tasks.scorers.entities import EntityFinder
from tests.documents import documents

if TYPE_CHECKING:
    import pytest

SENTENCES = [
    ("Ada Lovelace lived in London.", [(0, 12, "PERSON"), (22, 28, "GPE")]),
    ("Alan Turing was born in London.", [(0, 11, "PERSON"), (24, 30, "GPE")]),
    ("Grace Hopper worked in Paris.", [(0, 12, "PERSON"), (23, 28, "GPE")]),
    ("In Paris it rained all day.", [(3, 8, "GPE")]),
    ("The river was calm and the road was long.", []),
    ("London and Paris are cities.", [(0, 6, "GPE"), (11, 16, "GPE")]),
    ("A heron waits for hours near the water.", []),
    ("Alan Turing met Grace Hopper.", [(0, 11, "PERSON"), (16, 28, "PERSON")]),
]


def write_pipeline(folder: Path, language: str = "en", rounds: int = 25) -> str:
    """Train a pipeline and write its folder; the same bytes each time."""
    import spacy
    from spacy.training import Example
    from spacy.util import fix_random_seed

    fix_random_seed(7)
    pipeline = spacy.blank(language)
    finder = pipeline.add_pipe("ner")
    for _, entities in SENTENCES:
        for _, _, label in entities:
            finder.add_label(label)  # type: ignore[attr-defined]
    examples = [Example.from_dict(pipeline.make_doc(text), {"entities": found}) for text, found in SENTENCES]
    pipeline.initialize(lambda: examples)
    order = random.Random(7)
    for _ in range(rounds):
        order.shuffle(examples)
        pipeline.update(examples, drop=0.0)
    pipeline.to_disk(folder)
    return str(folder)


def noted_texts(monkeypatch: "pytest.MonkeyPatch") -> Counter[str]:
    """Count from now on how often each text is given to a pipeline in this process."""
    seen, find = Counter[str](), EntityFinder.find

    def noted(self: EntityFinder, text: str) -> Any:
        seen[text] += 1
        return find(self, text)

    monkeypatch.setattr(EntityFinder, "find", noted)
    return seen


def fail_on(monkeypatch: "pytest.MonkeyPatch", word: str) -> None:
    """Let pipelines of this process fail from now on at each text with a word."""
    find = EntityFinder.find

    def failing(self: EntityFinder, text: str) -> Any:
        if word in text:
            message = "[E999] planted"
            raise ValueError(message)
        return find(self, text)

    monkeypatch.setattr(EntityFinder, "find", failing)


def given(texts: list[str | None], languages: list[str | None] | None = None) -> pa.Table:
    """Return documents with these texts, in English unless languages are named."""
    return documents(texts, language=pa.array(languages or ["en"] * len(texts), pa.string()))
