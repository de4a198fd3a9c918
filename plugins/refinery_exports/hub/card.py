"""Writes what the Hub and `datasets` read of a folder beside its rows: the head of the card, and Croissant."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import yaml

from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.report.croissant import Node, dataset, file_object, file_set, record_set
from pipeline_tasks.training.index import StoredFile
from refinery_exports.hub.features import features

SPLIT = "train"
"""The split of each config: names of snapshots, with their hyphens, are no names of splits."""

WIDTH = 1 << 16
"""Columns of a line of YAML: names of columns stay on theirs."""

SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
"""Rows by which the Hub sorts datasets into categories of size, each ten times as many as the one before."""

LANGUAGE = re.compile(r"([a-z]{2,3})\b")
NO_LANGUAGE = frozenset(["mis", "mul", "und", "zxx"])
"""Codes of ISO 639 for texts of no, of several, or of an unknown language; the Hub lists languages alone."""

LICENSES = frozenset(
    [
        "apache-2.0",
        "cc0-1.0",
        "gfdl",
        "mit",
        *("cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-nd-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0"),
        *("cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-nd-3.0", "cc-by-nc-nd-4.0"),
        *("cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0"),
    ]
)
"""Licenses that the Hub knows, of those that pages are known by (https://huggingface.co/docs/hub/repositories-licenses)."""

UNKNOWN, OTHER = "unknown", "other"
"""What the Hub calls the license of a dataset that nobody has given one, and one that it does not know, or several."""


@dataclass(frozen=True, slots=True)
class Config:
    """A config of a dataset: its columns, its rows, their bytes as Arrow has them, and its files."""

    name: str
    schema: pa.Schema
    rows: int
    bytes: int
    files: tuple[StoredFile, ...]

    @property
    def pattern(self) -> str:
        """How the Hub finds its files."""
        return f"data/{self.name}-*"

    @property
    def stored(self) -> int:
        """The bytes of its files."""
        return sum(file.bytes for file in self.files)


def head(configs: Sequence[Config], languages: Collection[str], licenses: Collection[str]) -> list[str]:
    """Return lines of YAML for the head of a card; the first config is the default.

    `languages` and `licenses` are those of its documents; a license is "" of documents without one.
    """
    shown = {
        "language": list(languages_of(languages)),
        "license": license_of(licenses),
        "size_categories": [size_category(configs[0].rows)],
        "configs": [_config(config, is_default=config is configs[0]) for config in configs],
        "dataset_info": [_info(config) for config in configs],
    }
    dumped: str = yaml.safe_dump({name: value for name, value in shown.items() if value}, sort_keys=False, width=WIDTH)
    return dumped.splitlines()


def _config(config: Config, *, is_default: bool) -> dict[str, Any]:
    files = [{"split": SPLIT, "path": config.pattern}]
    return {"config_name": config.name, **({"default": True} if is_default else {}), "data_files": files}


def _info(config: Config) -> dict[str, Any]:
    return {
        "config_name": config.name,
        "features": features(config.schema),
        "splits": [{"name": SPLIT, "num_bytes": config.bytes, "num_examples": config.rows}],
        "download_size": config.stored,
        "dataset_size": config.bytes,
    }


def size_category(rows: int) -> str:
    """Return how the Hub calls so many rows."""
    rank = max(len(str(rows)) - 3, 0)  # of digits: the first size has four
    bounds = [*SIZES[max(rank - 1, 0) : rank], "n", *SIZES[rank : rank + 1]]
    return "<".join(bounds) if rank < len(SIZES) else f"n>{SIZES[-1]}"


def languages_of(names: Collection[str]) -> Iterator[str]:
    """Yield the codes of languages that the Hub lists, in order, each once."""
    codes = {match[1] for name in names if (match := LANGUAGE.match(name))}
    yield from sorted(codes - NO_LANGUAGE)


def license_of(names: Collection[str]) -> str:
    """Return the Hub's name of a license if all documents have one and the same."""
    given = {name.lower() for name in names}
    if given <= {""}:
        return UNKNOWN
    [first, *others] = given
    return first if not others and first in LICENSES else OTHER


def croissant(name: str, properties: Mapping[str, Any], configs: Sequence[Config]) -> Node:
    """Return the description of a folder: its files, and of each config the columns."""
    files = {each.name: [PublishedFile(file.path, file.bytes, file.sha256) for file in each.files] for each in configs}
    sets = [file_set(each.name, f"{each.rows:,} rows of config {each.name}.", files[each.name]) for each in configs]
    objects = [file_object(file) for own in files.values() for file in own]
    records = [record_set(node, config.schema) for node, config in zip(sets, configs, strict=True)]
    return dataset(name, properties, [*objects, *sets], records)
