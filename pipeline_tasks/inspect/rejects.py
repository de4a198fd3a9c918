"""Reads back what a stage set aside: how much of which language, and the documents themselves, a file per language."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.text.words.language_codes import parse_language

UNNAMED = "und"
"""The file of documents without a language."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rows: only of these reasons (`other` or `filter_language:other`) and languages; none named: all."""

    reasons: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


def made_by(root: str, version: version_log.Version, stage: str) -> Manifest:
    """Return the manifest of a version's stage; RecipeError if it has none."""
    path = version.manifests.get(stage)
    if path is None:
        there = ", ".join(version.manifests)
        message = f"version {version.number} of recipe {version.recipe} has no stage {stage!r}; it has {there}"
        raise RecipeError(message)
    return read_manifest(root, path)


def counts(made: Manifest) -> dict[str, dict[str, int]]:
    """Return rows set aside by reason, and by language where the stage knows it; read from the manifest alone."""
    languages = made.metrics.get("rejects", {}).get("language", {}).get("bins", {})
    return {"reasons": _ordered(made.rejected), "languages": _ordered(languages)}


def told(made: Manifest) -> Iterator[str]:
    """Yield the counts as lines for a person."""
    for what, found in counts(made).items():
        for name, count in found.items():
            yield f"{what[:-1]:<10}{name:<40}{count:>12,}"


def rows(root: str, made: Manifest, choice: Choice) -> Iterator[pa.RecordBatch]:
    """Yield the chosen rows with all their columns, `reason` and `evidence` among them."""
    reasons = [why if ":" in why else f"{made.stage}:{why}" for why in choice.reasons]
    unknown = [why for why in reasons if why not in made.rejected]
    if unknown:
        message = f"{made.stage} set nothing aside for {', '.join(unknown)}; its reasons are {', '.join(made.rejected)}"
        raise RecipeError(message)
    wanted = {"reason": reasons, "language": [parse_language(name).language for name in choice.languages]}
    for batch in read_shards(root, made.rejects):
        for column, values in wanted.items():
            if values:
                batch = batch.filter(pc.is_in(_column(batch, column), value_set=pa.array(values)))  # noqa: PLW2901
        if batch.num_rows:
            yield batch


def write(root: str, made: Manifest, choice: Choice, folder: Path) -> dict[str, int]:
    """Write the chosen rows to `folder`, one Parquet file per language; return the rows of each.

    The folder is then a snapshot that `refinery run --input` takes. RecipeError if there is something in it already.
    """
    if folder.exists() and any(folder.iterdir()):
        message = f"{folder} is not empty; name a new folder with --to"
        raise RecipeError(message)
    folder.mkdir(parents=True, exist_ok=True)
    written: Counter[str] = Counter()
    with TemporaryDirectory(dir=folder, prefix=".aside-") as name:
        with ExitStack() as stack:
            writers: dict[str, Any] = {}
            for batch in rows(root, made, choice):
                for language, part in _by_language(batch):
                    if language not in writers:
                        target = f"{name}/{language}.parquet"
                        writers[language] = stack.enter_context(pq.ParquetWriter(target, batch.schema))
                    writers[language].write_batch(part)
                    written[language] += part.num_rows
        for language in written:
            (Path(name) / f"{language}.parquet").rename(folder / f"{language}.parquet")
    return _ordered(written)


def _by_language(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    languages = pc.fill_null(_column(batch, "language"), UNNAMED)
    for language in sorted(pc.unique(languages).to_pylist()):
        yield quote(language, safe=""), batch.filter(pc.equal(languages, language))


def _column(batch: pa.RecordBatch, name: str) -> Any:  # noqa: ANN401 -- an Arrow array of text
    """Return a column of text; nulls where stages before this one did not write it."""
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())


def _ordered(found: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))
