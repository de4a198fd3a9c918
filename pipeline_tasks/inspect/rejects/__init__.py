"""Counts the rows that a stage rejected or quarantined, by reason and language, and exports them as Parquet."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_tasks.cards import adds
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_snapshot, committed_of, print_result
from pipeline_tasks.inspect.expired import expired_note
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.inspect.unpublished import UnpublishedRun, say, title_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.text.words.language_codes import parse_language

UNNAMED = "und"
"""The file of documents without a language."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rows: only of these reasons (`other` or `filter_language:other`) and languages; none named: all."""

    reasons: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, the stage, and what to export."""
    add_snapshot(parser)
    parser.add_argument(
        "--stage", default="", help="the stage (default: that of --reason, else of languages, else what rejected most)"
    )
    parser.add_argument("--reason", action="append", default=[], metavar="WHY", help="only these; may be repeated")
    parser.add_argument("--language", action="append", default=[], metavar="CODE", help="only these; may be repeated")
    parser.add_argument("--to", default="", metavar="FOLDER", help="a new folder to write to; `run --input` takes it")


def answer(options: argparse.Namespace) -> int:
    """Print the counts; with `--to`, export the chosen rows and print the files."""
    known = committed_of(options)
    if known.run and not known.version:
        say(f"{title_of(known.run)}: {known.run.account}")
    stage = options.stage or usual_stage(options.root, known.shown, options.reason)
    manifest = stage_manifest(options.root, known.shown, stage)
    say(expired_note(options.root, [manifest]))
    choice = Choice(tuple(options.reason), tuple(options.language))
    if not options.to:
        rows = counts(manifest) if choice == Choice() else chosen_counts(options.root, manifest, choice)
        print_result(options, rows, count_lines(manifest.stage, rows))
        return 0
    known_reasons = reasons_of(manifest)
    most = sum(known_reasons.get(reason, 0) for reason in _reasons_chosen(manifest, choice) or known_reasons)
    looked(options, most, recipe=known.shown.recipe, snapshot=known.shown.snapshot, stage=manifest.stage)
    written = export(options.root, manifest, choice, Path(options.to))
    lines = (f"{rows:>12,}  {Path(options.to) / name}.parquet" for name, rows in written.items())
    print_result(options, written, lines)
    return 0


def usual_stage(root: str, of: Version | UnpublishedRun, reasons: Sequence[str] = ()) -> str:
    """Return the stage whose rejects are read if none is named: one that rejected for one of the reasons.

    Without reasons, or if none did, it is that of languages, unless that rejected nothing, or a training dataset has
    none: then it is what rejected most.
    """
    rejected = {stage: reasons_of(read_manifest(root, path)) for stage, path in of.manifests.items()}
    wanted = tuple(reason if ":" in reason else f":{reason}" for reason in reasons)
    usual = next(filter(partial(adds, "language"), rejected), "")
    if wanted:
        named = [stage for stage, found in rejected.items() if any(reason.endswith(wanted) for reason in found)]
        return next(iter(named), usual or next(iter(rejected), "any"))
    if rejected.get(usual):
        return usual
    rows = {stage: sum(found.values()) for stage, found in rejected.items()}
    return max(rows, key=rows.__getitem__, default="any")  # of equal ones the first


def stage_manifest(root: str, of: Version | UnpublishedRun, stage: str) -> Manifest:
    """Return the manifest of a stage of a version or a run; RecipeError if it has none."""
    path = of.manifests.get(stage)
    if path is None:
        meant = nearest(stage, of.manifests)
        message = f"{root}: {title_of(of)}, has no stage {stage!r}{meant}; it has {', '.join(of.manifests) or 'none'}"
        raise RecipeError(message if isinstance(of, Version) else f"{message}: {of.account}")
    return read_manifest(root, path)


def counts(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Return rejected rows by reason, and by language where the stage knows it; read from the manifest alone."""
    languages = manifest.metrics.get("rejects", {}).get("language", {}).get("bins", {})
    return {"reasons": _by_count(reasons_of(manifest)), "languages": _by_count(languages)}


def reasons_of(manifest: Manifest) -> dict[str, int]:
    """Return the rows that a stage rejected or quarantined, by reason."""
    return {**manifest.rejected, **manifest.quarantined}


def chosen_counts(root: str, manifest: Manifest, choice: Choice) -> dict[str, dict[str, int]]:
    """Return what `counts` does, of the chosen rows only; reads the rejects."""
    reasons: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    for batch in read_rejects(root, manifest, choice):
        reasons.update(batch.column("reason").to_pylist())
        languages.update(language for language in _column(batch, "language").to_pylist() if language)
    return {"reasons": _by_count(reasons), "languages": _by_count(languages)}


def count_lines(stage: str, rows: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield counts by reason and language as lines for a person."""
    if not rows["reasons"]:
        yield f"{stage} rejected no such row"
    for kind, by_name in rows.items():
        for name, count in by_name.items():
            yield f"{kind.removesuffix('s'):<10}{name:<40}{count:>12,}"


def _reasons_chosen(manifest: Manifest, choice: Choice) -> list[str]:
    """Return the named reasons as manifests write them."""
    return [why if ":" in why else f"{manifest.stage}:{why}" for why in choice.reasons]


def read_rejects(root: str, manifest: Manifest, choice: Choice) -> Iterator[pa.RecordBatch]:
    """Yield the chosen rows with all their columns, `reason` and `evidence` among them.

    RecipeError if the stage rejected no row for a named reason.
    """
    reasons = _reasons_chosen(manifest, choice)
    unknown = [reason for reason in reasons if reason not in reasons_of(manifest)]
    if unknown:
        known = ", ".join(reasons_of(manifest)) or "none"
        message = f"{manifest.stage} rejected no row for {', '.join(unknown)}; its reasons are {known}"
        raise RecipeError(message)
    languages = [parse_language(name).language for name in choice.languages]
    for batch in read_shards(root, (*manifest.rejects, *manifest.quarantine)):
        chosen = _where(_where(batch, "reason", reasons), "language", languages)
        if chosen.num_rows:
            yield chosen


def _where(batch: pa.RecordBatch, column: str, values: Sequence[str]) -> pa.RecordBatch:
    """Return the rows whose `column` is one of `values`; all rows if there are no values."""
    return batch.filter(pc.is_in(_column(batch, column), value_set=pa.array(values))) if values else batch


def export(root: str, manifest: Manifest, choice: Choice, folder: Path) -> dict[str, int]:
    """Write the chosen rows to `folder`, one Parquet file per language; return the rows of each.

    The folder is then a snapshot that `refinery run --input` takes. RecipeError if it is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        message = f"{folder} is not empty; name a new folder with --to"
        raise RecipeError(message)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix=".rejects-") as draft:
        written = _write_languages(read_rejects(root, manifest, choice), Path(draft))
        for language in written:
            (Path(draft) / f"{language}.parquet").rename(folder / f"{language}.parquet")
    return _by_count(written)


def _write_languages(batches: Iterable[pa.RecordBatch], folder: Path) -> Mapping[str, int]:
    """Write one file per language, and one more for each other set of columns: quarantined rows may have fewer."""
    rows: Counter[str] = Counter()
    schemas: list[pa.Schema] = []
    with ExitStack() as stack:
        writers: dict[str, Any] = {}
        for batch in batches:
            if batch.schema not in schemas:
                schemas.append(batch.schema)
            other = schemas.index(batch.schema)
            for language, part in _by_language(batch):
                name = f"{language}-{other + 1}" if other else language
                if name not in writers:
                    writer = pq.ParquetWriter(folder / f"{name}.parquet", batch.schema)
                    writers[name] = stack.enter_context(writer)
                writers[name].write_batch(part)
                rows[name] += part.num_rows
    return rows


def _by_language(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each language under a name that is safe for a file."""
    languages = pc.fill_null(_column(batch, "language"), UNNAMED)
    for language in sorted(pc.unique(languages).to_pylist()):
        yield quote(language, safe=""), batch.filter(pc.equal(languages, language))


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column of text; nulls if no earlier stage wrote it."""
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())


def _by_count(rows: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(rows.items(), key=lambda pair: (-pair[1], pair[0])))
