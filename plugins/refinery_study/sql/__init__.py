"""Queries by SQL the verified rows of a version: kept, rejected and quarantined ones, stages, verdicts, lineage."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_chosen, chosen_of, default_root, outside, print_lines
from pipeline_tasks.inspect.expired import expired_in
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.inspect.unpublished import say
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.access_log import NAMED
from pipeline_tasks.store.storage import require_root
from refinery_study.sql.querying import MEMORY, SECONDS, Answer, Limits, described, queried
from refinery_study.sql.writing import FORMATS, JSONL, PARQUET, TABLE, read_text, write

MOST = 1_000_000
"""Characters of a query."""

STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the query, the version, and where and how the answer is written."""
    add_chosen(parser)
    parser.set_defaults(requires_root=False)  # a word alone is the query, of the usual root
    parser.add_argument(
        "query", nargs="?", default="", metavar="QUERY", help=f"a SELECT; {STDIN}: from stdin; none: list the views"
    )
    parser.add_argument(
        "--file", default="", metavar="FILE", help=f"read the query from this file; {STDIN}: from stdin"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="",
        help=f"how rows are written (default: as the name of TO ends, or {TABLE})",
    )
    parser.add_argument("--to", default="", metavar="FILE", help="a new file to write to, outside of ROOT")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"stop the query after so many seconds (default: {SECONDS:g})"
    )
    parser.add_argument(
        "--memory", type=float, default=MEMORY, metavar="GB", help=f"memory that it may take (default: {MEMORY:g} GB)"
    )


def answer(options: argparse.Namespace) -> int:
    """Print or write the rows that the query gives; without a query, the views and their columns."""
    _place_words(options)
    require_root(options.root)
    options.query = _query(options)
    to, format_ = _target(options)
    version = chosen_of(options)
    if not options.query.strip():
        columns = described(options.root, version)
        print_lines(view_lines(columns))
        return 0
    with TemporaryDirectory(prefix=".refinery-sql-", dir=to.parent if to else None) as folder:
        draft = Path(folder) / "rows"
        with _looked_at(options, version) as (given, looking):
            schema, batches = given.read()
            rows = write(draft, format_, schema, looking.over(batches))
        if to:
            draft.rename(to)
            say(f"{counted(rows, 'row')}: {to}")
        else:
            sys.stdout.writelines(read_text(draft))
            sys.stdout.flush()
    return 0


def table(
    root: str, version: Version, query: str, purpose: str = "", *, seconds: float = SECONDS, memory: float = MEMORY
) -> pa.Table:
    """Return all rows that a query gives over a version; it is logged as a look, as that of the command is.

    RecipeError for a query that is none, or takes more `seconds`; NoMemory for one that takes more than `memory` (GB);
    ContractError for a shard that is damaged, LookRefused without a purpose where one is needed.
    """
    how = {"seconds": seconds, "memory": memory}
    options = argparse.Namespace(root=root, command="sql", query=query, purpose=purpose, **how)
    with _looked_at(options, version) as (given, looking):
        schema, batches = given.read()
        rows = list(looking.over(batches))
    return pa.Table.from_batches(rows, schema)


# --- Options ------------------------------------------------------------------------------------------------------


def _place_words(options: argparse.Namespace) -> None:
    """Take a single word for the query of the usual root, unless the query comes from a file."""
    if not (options.query or options.file) and (options.root == STDIN or any(map(str.isspace, options.root.strip()))):
        options.query, options.root = options.root, default_root()


def _query(options: argparse.Namespace) -> str:
    """Return the query; RecipeError for two, and for what cannot be read."""
    if options.query and options.file:
        message = f"--file {options.file} has a query, and {options.query[:40]!r} is another; leave one out"
        raise RecipeError(message)
    place = options.file or (STDIN if options.query == STDIN else "")
    text = _read(place) if place else str(options.query)
    if len(text) > MOST:
        message = f"the query has more than {MOST:,} characters; write a shorter one"
        raise RecipeError(message)
    if place and not text.strip():
        message = f"{'stdin' if place == STDIN else place} has no query; write one SELECT"
        raise RecipeError(message)
    return text


def _read(place: str) -> str:
    if place == STDIN:
        return sys.stdin.read(MOST + 1)
    try:
        with Path(place).open(encoding="utf-8") as stream:
            return stream.read(MOST + 1)
    except (OSError, UnicodeDecodeError) as error:
        message = f"--file {place} cannot be read ({error}); name a file with a query in UTF-8"
        raise RecipeError(message) from error


def _target(options: argparse.Namespace) -> tuple[Path | None, str]:
    """Return the file to write to, and the format; RecipeError for a file that is there, or cannot be."""
    to = Path(outside(options.to, options.root, "--to")) if options.to else None
    suffix = to.suffix.removeprefix(".") if to else ""
    format_ = options.format or (JSONL if options.json else suffix if suffix in FORMATS else TABLE)
    if format_ == PARQUET and to is None:
        message = "--format parquet writes bytes; name a file with --to"
        raise RecipeError(message)
    if to and to.exists():
        message = f"{to} is there already; name a new file with --to"
        raise RecipeError(message)
    if to and not to.parent.is_dir():
        message = f"{to.parent} is no folder; name a file in one with --to"
        raise RecipeError(message)
    return to, format_


# --- Looks --------------------------------------------------------------------------------------------------------


class _Looking:
    """Counts the rows of an answer, and notes the documents in it."""

    def __init__(self) -> None:
        self.rows = 0
        self.documents: list[str] = []

    def over(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches."""
        for batch in batches:
            self.rows += batch.num_rows
            if "id" in batch.schema.names and len(self.documents) < NAMED:
                self.documents += filter(None, map(str, batch.slice(0, NAMED)["id"].to_pylist()))
            yield batch


@contextmanager
def _looked_at(options: argparse.Namespace, version: Version) -> Iterator[tuple[Answer, _Looking]]:
    """Compute the query of options; log the look when its rows are known, and before any of them is shown.

    An answer that ends in an error is logged, too: what DuckDB says of a value may have words of a document.
    """
    looking = _Looking()
    with queried(options.root, version, options.query, Limits(options.seconds, options.memory)) as given:
        try:
            yield given, looking
        finally:
            if given.shows_documents:
                looked(options, looking.rows, looking.documents, version)
    if given.shows_rejects:
        say(expired_in(options.root, version.manifests))
    if given.hidden.rows:
        say(f"left out: {counted(given.hidden.rows, 'row')} of documents that are taken down")


def view_lines(columns: dict[str, pa.Schema]) -> Iterator[str]:
    """Yield a line per view with its columns."""
    for name, schema in columns.items():
        yield f"{name:<11} {', '.join(schema.names)}"
