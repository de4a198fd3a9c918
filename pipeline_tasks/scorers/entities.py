"""Finds names of persons, places and so on in texts, by a pipeline of spaCy, which reads a text of any length whole."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pyarrow as pa

from pipeline_tasks.errors import RecipeError

WINDOW = 50_000
"""Code points that the pipeline reads at once: memory grows by about 1 MB for a thousand. spaCy refuses a million."""

FINDERS = ("ner", "entity_ruler", "beam_ner", "spancat_singlelabel")
"""Factories of components that find entities."""

UNUSED = ("parser", "tagger", "morphologizer", "lemmatizer", "trainable_lemmatizer", "senter", "textcat")
"""Factories of components that no entity follows from; they are not loaded."""

ANY_LANGUAGE = "xx"
"""The language of a pipeline for texts in several ones."""


class Entity(NamedTuple):
    """A stretch of a text by code points, the end exclusive, and what it is."""

    label: str
    start: int
    end: int


class Card(NamedTuple):
    """What `meta.json` and `config.cfg` of a pipeline's folder say.

    These are its language, factories by component, and the labels of what the components find.
    """

    language: str
    components: dict[str, str]
    labels: tuple[str, ...] = ()


def read_card(folder: str) -> Card:
    """Return what a pipeline is, without loading it; RecipeError for a folder that has none that finds entities."""
    path = Path(folder) / "meta.json"
    try:
        meta = json.loads(path.read_bytes())
        language, named = str(meta["lang"]), [str(name) for name in meta["pipeline"]]
        labels = {name: [str(label) for label in found] for name, found in meta.get("labels", {}).items()}
        factories = _factories((Path(folder) / "config.cfg").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{folder} is no folder of a spaCy pipeline ({error}); name one with meta.json and config.cfg"
        raise RecipeError(message) from error
    components = {name: factories.get(name, name) for name in named}
    if not set(components.values()) & set(FINDERS):
        message = f"{folder} finds no entities: its components are {', '.join(named) or 'none'}; name one with `ner`"
        raise RecipeError(message)
    found = {label for name, factory in components.items() if factory in FINDERS for label in labels.get(name, [])}
    return Card(language, components, tuple(sorted(found)))


def _factories(config: str) -> dict[str, str]:
    """Return the factory of each component that a config names."""
    found, name = {}, ""
    for line in config.splitlines():
        if line.startswith("["):
            above, _, below = line.strip("[]").partition(".")
            name = below if above == "components" and "." not in below else ""  # a component's own section
        key, _, value = line.partition("=")
        if name and key.strip() == "factory":
            found[name] = value.strip().strip('"')
    return found


class EntityFinder:
    """A loaded pipeline. One thread uses it at a time; what it finds in a text follows from that text alone."""

    hardware = "cpu"

    def __init__(self, folder: str) -> None:
        card = read_card(folder)
        self.language, self.labels = card.language, card.labels
        spacy = import_spacy(folder)
        unused = [name for name, factory in card.components.items() if factory in UNUSED]
        try:
            self._pipeline = spacy.load(folder, exclude=unused)
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            message = f"{folder} cannot be read as a spaCy pipeline ({str(error)[:300]}); restore the folder"
            raise RecipeError(message) from error

    def reads(self, language: str | None) -> bool:
        """Return whether the pipeline is for texts in a language; `en` is for `en-Latn`, too."""
        return self.language in (ANY_LANGUAGE, (language or "").partition("-")[0])

    def reads_rows(self, batch: pa.RecordBatch) -> pa.Array:
        """Return of each row whether the pipeline is for its `language`; it is for all rows of a batch without one."""
        named = "language" in batch.schema.names
        codes = batch.column("language").to_pylist() if named else [self.language] * batch.num_rows
        return pa.array([self.reads(code) for code in codes], pa.bool_())

    def find(self, text: str) -> list[Entity]:
        """Return the entities of a text in order, each of a window of it."""
        found = []
        for start, window in windows(text):
            with self._pipeline.memory_zone():
                entities = self._pipeline(window).ents
                found += [Entity(each.label_, start + each.start_char, start + each.end_char) for each in entities]
        return found


def windows(text: str, size: int = WINDOW) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text of at most `size` code points, each with its place; they end at a line, else a word."""
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            ends = (text.rfind(sign, start + size // 2, end) for sign in ("\n", " "))
            end = next((at + 1 for at in ends if at >= 0), end)
        yield start, text[start:end]
        start = end


def counted_labels(entities: list[Entity]) -> list[tuple[str, int]]:
    """Return how many entities have each label, the most frequent first, then by name."""
    counts = Counter(each.label for each in entities)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def import_spacy(folder: str) -> ModuleType:
    """Return spaCy; RecipeError where it is not installed."""
    try:
        import spacy
    except ImportError as error:
        message = (
            f"{folder} is a spaCy pipeline, and {error.name} is not installed; install `refinery-tokens[entities]`"
        )
        raise RecipeError(message) from error
    package: ModuleType = spacy
    return package
