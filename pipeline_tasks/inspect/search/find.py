"""Finds every place where a document, URL or site is used in training datasets."""

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_dataset, built_version, number, print_result
from pipeline_tasks.inspect.conditions import FORM, HELP
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.publish.datasets.building import file_of
from pipeline_tasks.publish.datasets.published_shards import open_build, open_lineage
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import PublishedFile, require_size
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.store.shards.name_index import NameIndex
from pipeline_tasks.store.shards.names import asked_names
from pipeline_tasks.text.base.key_filter import has_hashes
from pipeline_tasks.text.urls.takedown import DOC, SITE, URL, Entry, TakenDown, evidence, of_entries
from pipeline_tasks.text.urls.takedown_entries import valid_entries

pc: Any = pyarrow.compute

MOST_BYTES = 1_000_000_000
"""Bytes of texts that a search for a phrase reads, unless more are asked for."""


@dataclass(frozen=True, slots=True)
class Use:
    """A stretch of a document in a sequence of a training dataset."""

    recipe: str
    version: int
    shard: int
    sequence: int
    start: int
    length: int
    copy: int
    id: str
    url: str
    snapshot: str


SHOWN = tuple(column.name for column in fields(Use)[3:])
"""Columns of a lineage that a use has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, and what to find."""
    add_dataset(parser)
    add_documents(parser)
    parser.add_argument("--where", action="append", default=[], metavar=FORM, help=f"of published snapshots {HELP}")
    parser.add_argument(
        "--most-bytes",
        type=number(float, 0),
        default=MOST_BYTES,
        metavar="N",
        help=f"bytes of texts that --text PHRASE reads at most (default: {MOST_BYTES:.0e}; 0: all)",
    )


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Add `--url`, `--site`, `--document` and `--text`, which `named_entries` reads."""
    more: dict[str, Any] = {"action": "append", "default": [], "metavar": "X"}
    parser.add_argument("--url", **more, help="a URL, however it is written; may be repeated, as the others")
    parser.add_argument("--site", **more, help="a host, with all hosts below it")
    parser.add_argument(
        "--document", "--doc", dest="doc", **more, help="the id of a document: its text, wherever it is found"
    )
    text = "a file with the text of a document, as `extract` found it; of `find` also a phrase, if no file is called so"
    parser.add_argument("--text", **more, help=text)


def answer(options: argparse.Namespace) -> int:
    """Print every use in the current version of the named dataset, or of all."""
    phrases = [text for text in options.text if not os.path.exists(text)]  # noqa: PTH110 -- a Path raises for a long phrase
    options.text = [text for text in options.text if text not in phrases]
    entries = valid_entries(named_entries(options))
    if not entries and not phrases and not options.where:
        message = "name what to find with --url, --site, --document, --text or --where"
        raise RecipeError(message)
    if entries and (phrases or options.where):
        asked = f"--text {phrases[0]!r} is no file, so it is a phrase to search texts for" if phrases else "--where"
        what = "the documents of snapshots, and --url, --site and --document of uses in training datasets"
        message = f"{asked}; it asks for {what}: ask for it alone"
        raise RecipeError(message)
    if phrases or options.where:
        return _answer_phrases(options, phrases or [""])
    found = list(find(options.root, current_versions(options.root, options.recipe), entries))
    looked(options, len(found), [use.id for use in found])
    lines = [*use_lines(found), *_why_lines(options.root, entries, found)]
    print_result(options, [asdict(use) for use in found], lines)
    return 0


def _why_lines(root: str, entries: Sequence[Entry], found: Sequence[Use]) -> Iterator[str]:
    """Yield what says why no dataset has a page, as `find` looks at datasets alone."""
    asked = next((value for kind, value in entries if kind != SITE), "")
    if asked and not found:
        yield f"no training dataset has it: `refinery why {shlex.quote(asked)} {root}` says what became of it"


def _answer_phrases(options: argparse.Namespace, phrases: Sequence[str]) -> int:
    """Print the published documents with a phrase or by conditions, without texts, and how much was read."""
    from pipeline_tasks.inspect.search.phrases import phrase_facts, phrase_lines, search_phrase

    most = int(options.most_bytes)
    searches = [
        search_phrase(options.root, options.recipe, phrase, most_bytes=most, where=options.where) for phrase in phrases
    ]
    hits = [found for search in searches for found in search.found]
    looked(options, len(hits), [found.hit.id for found in hits])
    lines = [line for search in searches for line in phrase_lines(search)]
    print_result(options, [phrase_facts(search) for search in searches], lines)
    return 0


def named_entries(options: argparse.Namespace) -> list[Entry]:
    """Return the URLs, sites and documents that the options of `add_documents` name."""
    named = [(kind, value) for kind in (URL, SITE, DOC) for value in getattr(options, kind)]
    return [*named, *((DOC, id_of(Path(file))) for file in options.text)]


def current_versions(root: str, recipe: str = "") -> list[Version]:
    """Return the newest version of a dataset, or of all; RecipeError if the named one has none."""
    if recipe:
        return [built_version(root, recipe)]
    return version_log.built_versions(root)


def id_of(file: Path) -> str:
    """Return the id of the document with the text of a file."""
    from pipeline_tasks.text.page.identity import identity

    try:
        return identity(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        message = f"--text {file} cannot be read ({error}); name a file with UTF-8 text"
        raise RecipeError(message) from error


@dataclass(frozen=True, slots=True)
class Reach:
    """The shards of versions, in their order, that are looked at: `[start, end)` of `total`, by the bytes of lineages.

    `read` are the bytes of these, and `bytes` those of all.
    """

    start: int
    end: int
    total: int
    read: int
    bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether every shard is looked at."""
        return (self.start, self.end) == (0, self.total)


def reach_of(root: str, versions: Sequence[Version], start: int, most_bytes: int) -> Reach:
    """Return which shards from `start` on have lineages of so many bytes together; at least one, if any is left.

    Only the indexes of the versions are read.
    """
    sizes = [file.bytes for version in versions for file in _lineages(root, version)]
    first = min(start, len(sizes))
    ends = [at for at, read in enumerate(accumulate(sizes[first:]), first + 1) if read <= most_bytes]
    end = max(ends, default=min(first + 1, len(sizes)))
    return Reach(first, end, len(sizes), sum(sizes[first:end]), sum(sizes))


def find(root: str, versions: Sequence[Version], entries: Sequence[Entry], reach: Reach | None = None) -> Iterator[Use]:
    """Yield the uses of what entries name, as `uses`; rows are compared with the entries as takedowns are."""
    return uses(root, versions, of_entries(entries), reach)


def uses(root: str, versions: Sequence[Version], taken: TakenDown, reach: Reach | None = None) -> Iterator[Use]:
    """Yield the uses of what is taken down, by version, shard, sequence and start.

    Of a shard the lineage is read, if it may have one. With `reach` only its shards are looked at.
    """
    first, asked = 1, asked_names(taken) if has_hashes(pa.string()) else None
    for version in versions:
        files = dict(enumerate(_lineages(root, version), first))
        near = {at: file for at, file in files.items() if reach is None or reach.start < at <= reach.end}
        near = {at: require_size(root, file, version.way_out) for at, file in near.items()}
        index = NameIndex(root, {file.path: file.bytes for file in near.values()})
        having = index.paths if asked is None else index.having(asked)
        for at in [at for at, file in near.items() if file.path in having]:
            for row in _rows(root, version, near[at], taken):
                yield Use(recipe=version.recipe, version=version.number, shard=at - first, **row)
        first += len(files)


def _lineages(root: str, version: Version) -> list[PublishedFile]:
    return [file_of(entry["lineage"]) for entry in open_build(root, version).index["shards"]]


def _rows(root: str, version: Version, file: PublishedFile, taken: TakenDown) -> Iterator[dict[str, Any]]:
    with open_lineage(root, file, version.way_out) as lineage:
        for batch in lineage.iter_batches(columns=[*dict.fromkeys((*SHOWN, *KNOWN_BY))]):
            yield from batch.filter(pc.is_valid(evidence(taken, batch))).select(SHOWN).to_pylist()


def use_lines(found: Sequence[Use]) -> Iterator[str]:
    """Yield a line per use, and how many there are."""
    for use in found:
        copy = f", use {use.copy + 1}" if use.copy else ""
        yield (
            f"{use.recipe} version {use.version}  shard {use.shard:,}  sequence {use.sequence:,}  tokens {use.start:,} "
            f"to {use.start + use.length:,}  {use.id} of {use.snapshot}{copy}  {use.url}"
        )
    documents, tokens = len({use.id for use in found}), sum(use.length for use in found)
    yield f"{counted(len(found), 'place')} of {counted(documents, 'document')}, {counted(tokens, 'token')}"
