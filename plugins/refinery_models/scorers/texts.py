"""Reads texts by which scorers are checked and trained: of JSON lines, Parquet, or the documents of a root."""

import heapq
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from pipeline_tasks.cards import added_by, known_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.unpublished import current_version
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.sealed import split_reference
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import digest_of_named, localize
from pipeline_tasks.store.reading import parent_of, read_shards, sampled
from pipeline_tasks.text.base.sampling import uniform_draws
from pipeline_tasks.text.page.identity import identity
from pipeline_tasks.text.urls.sites import sites

KIND = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.large_string()),
        ("language", pa.string()),
        ("language_score", pa.float64()),
        ("source", pa.string()),
        ("type", pa.string()),
        ("label", pa.float64()),
    ]
)
"""Columns of texts: `source` is the site of the URL unless it is named, "" where it is unknown; so are the others."""

PARQUET, LINES = (".parquet", ".pq"), (".jsonl", ".ndjson")
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")

MOST_BYTES = 1 << 31
"""Bytes of the shards of a version that are read: whole shards in the order of their digests."""

ROWS = 1_024
MAX_RECORD = 1 << 26
"""Bytes of the longest line of JSON."""


def read_texts(named: Sequence[str], most: int, seed: int = 1) -> tuple[pa.Table, dict[str, str]]:
    """Return at most `most` texts that a seed draws, by their id, and the digest of each input by its name.

    An input is a file of records with `text` (`.jsonl`, `.parquet`), or `ROOT`, `ROOT@SNAPSHOT` or
    `ROOT@RECIPE:SNAPSHOT`. Each text counts once. RecipeError for an input that is neither, or has no text.
    """
    drawn: list[tuple[int, str, dict[str, Any]]] = []
    held: set[str] = set()
    inputs = {}
    for name in named:
        rows, digest = _opened(name)
        inputs[name if Path(name).name in inputs else Path(name).name] = digest
        for row in rows:
            key = row["id"]
            if key in held or not row["text"].strip():
                continue
            rank = -int(uniform_draws(pa.array([key]), seed)[0])
            if len(drawn) < most:
                heapq.heappush(drawn, (rank, key, row))
            elif rank <= drawn[0][0]:
                continue
            else:
                held.discard(heapq.heapreplace(drawn, (rank, key, row))[1])
            held.add(key)
    if not drawn:
        message = f"{', '.join(named)}: no text was found; name files of records with `text`, or a root"
        raise RecipeError(message)
    return _table(row for _, _, row in sorted(drawn, key=lambda entry: entry[1])), inputs


def _table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{name: row.get(name) for name in KIND.names} for row in rows], KIND)


def _opened(name: str) -> tuple[Iterator[dict[str, Any]], str]:
    """Return the rows of an input, and its digest."""
    bare = name.removesuffix(Path(name).suffix) if name.endswith(COMPRESSED) else name
    if not (name.endswith(PARQUET) or bare.endswith(LINES)):
        return _of_root(name)
    digest = digest_of_input(name)
    return _prepared(records_of(name, digest, {*KIND.names, "url"}), name), digest


def records_of(
    name: str, digest: str, wanted: Collection[str], at_once: int = ROWS
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Return the numbered records of Parquet or JSON lines, of Parquet the `wanted` columns, so many rows at once."""
    path = localize(name, digest)
    return _of_parquet(path, wanted, at_once) if name.endswith(PARQUET) else _of_lines(path)


def digest_of_input(path: str) -> str:
    """Return the SHA-256 of a file; RecipeError if it cannot be read."""
    try:
        return digest_of_named(path)
    except OSError as error:
        message = f"cannot read {path} ({error.strerror or error}); correct the path"
        raise RecipeError(message) from error


def _prepared(records: Iterable[tuple[int, Mapping[str, Any]]], path: str) -> Iterator[dict[str, Any]]:
    """Yield records in batches as rows; the site of the URL is the source of one that names none."""
    batch: list[dict[str, Any]] = []
    for number, record in records:
        batch.append(_row(record, f"{path}:{number}"))
        if len(batch) == ROWS:
            yield from _with_sites(batch)
            batch = []
    yield from _with_sites(batch)


def _with_sites(batch: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    own_sites = sites(pa.array([row["url"] for row in batch], pa.string())).to_pylist()
    for row, site in zip(batch, own_sites, strict=True):
        yield {**row, "source": row["source"] or site or ""}


def _row(record: Mapping[str, Any], where: str) -> dict[str, Any]:
    text = record.get("text")
    if not isinstance(text, str):
        message = f"{where} has no `text`; name files of records with one"
        raise RecipeError(message)
    label = record.get("label")
    if isinstance(label, bool):
        label = float(label)
    if label is not None and not isinstance(label, int | float):
        message = f"{where}: label {str(label)[:40]!r} is no number; write how good the text is, such as 0 to 1"
        raise RecipeError(message)
    words = {name: str(record.get(name) or "") for name in ("url", "language", "source", "type")}
    score = record.get("language_score")
    return {
        **words,
        "id": identity(text),
        "text": text,
        "language_score": float(score) if isinstance(score, int | float) else None,
        "label": None if label is None else float(label),
    }


def _of_parquet(path: str, wanted: Collection[str], at_once: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in wanted]
            number = 0
            for batch in file.iter_batches(at_once, columns=columns):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read {path} as Parquet ({str(error)[:200]})"
        raise RecipeError(message) from error


def _of_lines(path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with pa.input_stream(path, compression="detect") as stream, io.BufferedReader(stream) as lines:
            number = 0
            while line := lines.readline(MAX_RECORD):
                number += 1
                if line.strip():
                    yield number, _parsed(line, f"{path}:{number}")
    except (OSError, EOFError) as error:
        if isinstance(error, RecipeError):
            raise
        message = f"cannot read {path}: {error}"
        raise RecipeError(message) from error


def _parsed(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        message = f"{where} is no JSON ({error}) or longer than {MAX_RECORD:,} bytes"
        raise RecipeError(message) from error
    if not isinstance(record, dict):
        message = f"{where} is no object; write one record a line"
        raise RecipeError(message)
    return record


# --- Roots ----------------------------------------------------------------------------------------------------


def _of_root(name: str) -> tuple[Iterator[dict[str, Any]], str]:
    """Return the documents that `score_quality` got in a version, else those that the version has, and their digest."""
    root, _, version_name = name.partition("@")
    storage.require_root(root)
    recipe, colon, snapshot = version_name.partition(":")
    if not colon:
        recipe, snapshot = _only_recipe(root), version_name
    version = current_version(root, recipe, snapshot)
    manifest = _before_scores(root, version)
    return _documents(root, manifest), manifest.fingerprint


def _only_recipe(root: str) -> str:
    names = [recipe for recipe in version_log.recipes(root) if not version_log.is_build(root, recipe)]
    if len(names) != 1:
        known = ", ".join(names) or "none"
        message = f"{root} has recipes {known}; write ROOT@RECIPE:SNAPSHOT, or run a recipe first"
        raise RecipeError(message)
    return names[0]


def _before_scores(root: str, version: Version) -> Manifest:
    manifests = ordered_manifests(root, version)
    judged = next((manifest for stage, manifest in manifests.items() if _scores(stage)), None)
    parent = parent_of(root, judged) if judged else None
    if parent:
        return parent
    stage = split_reference(version.refined)[0].partition("/")[0]
    return manifests[stage]


def _scores(stage: str) -> bool:
    card = known_card(stage)
    return card is not None and "score" in added_by(card)


def _documents(root: str, manifest: Manifest) -> Iterator[dict[str, Any]]:
    shards = list(sampled(manifest.shards, MOST_BYTES)) or list(manifest.shards[:1])
    names = [name for name in ("id", "text", "url", "language", "language_score") if name in dict(manifest.schema)]
    for batch in read_shards(root, shards, names):
        rows = [{"url": "", "language": "", "source": "", "type": "", **row} for row in batch.to_pylist()]
        yield from _with_sites([{**row, "language": row["language"] or ""} for row in rows if row["text"]])
