"""Reads what only the provider of a model knows, from a small YAML file: who, which model, which licence, what else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pipeline_tasks.binding import bind_fields, require_mapping
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.yaml_file import read_yaml

Category = Literal["", "public", "licensed", "private", "crawled", "user", "synthetic", "other"]
"""Kinds of sources as the EU's template lists them; "" where the kind of the source decides."""


@dataclass(frozen=True, slots=True)
class SourceAbout:
    """What a provider says of the snapshots of a source: which list it belongs to, its name, and how it was got.

    `croissant` is the address of the source's own description in that format.
    """

    category: Category = ""
    name: str = ""
    link: str = ""
    licence: str = ""
    description: str = ""
    crawler: str = ""
    crawler_purpose: str = ""
    crawler_behavior: str = ""
    croissant: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """What a provider says of itself, of its model and of its measures; "" is shown as not given.

    `sources` are by the name of a snapshot, of a source's recipe, of its kind, of a recipe, or `*`. `datasheet` are
    answers by the key of a question.
    """

    provider: str = ""
    contact: str = ""
    representative: str = ""
    model: str = ""
    model_version: str = ""
    model_dependencies: str = ""
    placed_on_market: str = ""
    small_enterprise: bool = False
    content_types: str = ""
    collection_ongoing: str = ""
    other_characteristics: str = ""
    title: str = ""
    description: str = ""
    url: str = ""
    licence: str = ""
    citation: str = ""
    code_of_practice: str = ""
    rights_measures: str = ""
    illegal_content_measures: str = ""
    other_processing: str = ""
    licensed_data: str = ""
    private_data: str = ""
    user_data: str = ""
    synthetic_data: str = ""
    other_sources: str = ""
    sources: Mapping[str, SourceAbout] = field(default_factory=dict)
    datasheet: Mapping[str, str] = field(default_factory=dict)

    def source(self, *names: str) -> SourceAbout:
        """Return what is said of the first of these names that something is said of, else of every source."""
        return next((self.sources[name] for name in (*names, "*") if name in self.sources), SourceAbout())


def read_about(path: str, questions: frozenset[str]) -> About:
    """Return what a file says; RecipeError names a key that is unknown, or has a value of another type.

    `questions` are the keys that answers of the datasheet may have.
    """
    if not path:
        return About()
    about = bind_fields(About, require_mapping(read_yaml(Path(path)), path), path)
    unknown = sorted(set(about.datasheet) - questions)
    if unknown:
        message = f"{path}: datasheet has no question {unknown[0]!r}; its keys are {', '.join(sorted(questions))}"
        raise RecipeError(message)
    return about
