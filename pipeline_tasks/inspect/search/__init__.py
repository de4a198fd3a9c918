"""Searches a snapshot's documents by a phrase of the text or by columns: those that were kept, then the rejected."""

import argparse
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.command import add_snapshot, number, print_result, version_of
from pipeline_tasks.inspect.conditions import FORM, HELP, Conditions, columns_read, conditions_of, has_columns, meets
from pipeline_tasks.inspect.document import KEPT, PARTS, TEXT
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.schema import Array
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.text.urls.takedown import URL, evidence, of_entries
from pipeline_tasks.text.urls.takedown_entries import valid_entries

pc: Any = pyarrow.compute

ID, TITLE = "id", "title"

AROUND = 120
"""Characters of a text that are shown on each side of the phrase."""

LIMIT = 20
"""Documents that are listed unless another number is named."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document whose text has the phrase; `match` is how it is written there, between the texts around it.

    The text is what `stage` kept, or what it rejected or quarantined for `reason`. Without a phrase there is no text.
    """

    id: str
    url: str
    stage: str
    outcome: str
    reason: str
    before: str
    match: str
    after: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """The rows with one outcome at a stage, and how many of them were searched."""

    stage: str
    outcome: str
    rows: int
    searched: int


@dataclass(frozen=True, slots=True)
class TextSearch:
    """Documents that were looked for, in the order of their parts; `[start, end)` are the rows that were searched.

    `read` are the bytes of their texts.
    """

    phrase: str
    hits: tuple[Hit, ...]
    parts: tuple[Part, ...]
    start: int
    end: int
    read: int = 0

    @property
    def rows(self) -> int:
        """The rows of all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def is_whole(self) -> bool:
        """Whether every row was searched."""
        return (self.start, self.end) == (0, self.rows)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a search begins, as a row of all parts, and ends: after so many hits or bytes of texts; 0: after all."""

    start: int = 0
    most_hits: int = 0
    most_bytes: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the phrase, the root, the snapshot, and how many documents are listed."""
    parser.add_argument(
        "phrase", help="words in a row, in any case and with any white space between them; '' with --where for any text"
    )
    add_snapshot(parser)
    parser.add_argument("--where", action="append", default=[], metavar=FORM, help=HELP)
    parser.add_argument(
        "--limit", type=number(int, 0), default=LIMIT, metavar="N", help=f"documents listed (default: {LIMIT}; 0: all)"
    )


def answer(options: argparse.Namespace) -> int:
    """Print the documents whose text has the phrase and whose columns meet the conditions, without texts."""
    bounds = Bounds(most_hits=options.limit)
    version = version_of(options)
    search = search_texts(options.root, version, options.phrase, bounds, where=options.where)
    looked(options, len(search.hits), [hit.id for hit in search.hits], version)
    facts = asdict(search)
    for hit in facts["hits"]:
        del hit["before"], hit["match"], hit["after"], hit["title"]
    print_result(options, facts, search_lines(search))
    return 0


def search_texts(
    root: str,
    version: Version,
    phrase: str,
    bounds: Bounds | None = None,
    *,
    where: Sequence[str] = (),
    kept_only: bool = False,
) -> TextSearch:
    """Return the documents of a version whose text has a phrase and whose columns meet conditions.

    `where` are conditions as `conditions_of` reads them, with which the phrase may be "", for any text. RecipeError for
    a build, a phrase without a word, and a column that the version's documents do not have. A row that was rejected
    before a column was written does not meet a condition on it.

    Kept documents are searched as the last stage left their texts, then the rows that each stage rejected or
    quarantined, the last stage first. Texts of stages before `scrub_pii` have personal data. With `kept_only` the
    rejected ones are no part of the search.
    """
    _require_documents(version)
    conditions = _conditions(root, version, where)
    if where and not phrase:
        return _searched(root, version, phrase, Wanted(ID, pc.is_valid, "", conditions, kept_only), bounds)
    pattern = _pattern(phrase)
    wanted = Wanted(TEXT, lambda texts: _matches(texts, pattern), pattern, conditions, kept_only)
    return _searched(root, version, phrase, wanted, bounds)


def search_urls(
    root: str,
    version: Version,
    url: str,
    bounds: Bounds | None = None,
    where: Sequence[str] = (),
    *,
    kept_only: bool = False,
) -> TextSearch:
    """Return the records of a version with a URL, however it is written, in the order of `search_texts`.

    Texts are not read, so that a hit has none. RecipeError for a build, for what is no URL, and for a condition that
    `search_texts` refuses.
    """
    _require_documents(version)
    taken, conditions = of_entries(valid_entries([(URL, url)])), _conditions(root, version, where)

    def is_wanted(urls: Array) -> Array:
        return pc.is_valid(evidence(taken, pa.record_batch({URL: urls})))

    wanted = Wanted(URL, is_wanted, "", conditions, kept_only)
    return _searched(root, version, url, wanted, bounds)


def _conditions(root: str, version: Version, where: Sequence[str]) -> Conditions:
    """Return the conditions; without any no manifest is read."""
    return conditions_of(where, dict(read_manifest(root, version.refined).schema)) if where else {}


class Wanted(NamedTuple):
    """What is searched: a column, which of its values are wanted, the pattern of a phrase ("": none), and conditions.

    With `kept_only` rows that a stage rejected are not searched.
    """

    column: str
    is_wanted: Callable[[Any], Any]
    pattern: str
    conditions: Conditions
    kept_only: bool = False

    def rows(self, batch: pa.RecordBatch) -> list[int]:
        """Return which rows of a batch are wanted."""
        if not has_columns(batch.schema.names, self.conditions):
            return []
        wanted = pc.and_(self.is_wanted(batch.column(self.column)), meets(batch, self.conditions))
        rows: list[int] = pc.indices_nonzero(wanted).to_pylist()
        return rows


def _require_documents(version: Version) -> None:
    if COMPOSE in version.manifests:
        message = f"{version.recipe} is a training dataset: search the snapshots that it was built from"
        raise RecipeError(message)


def _searched(root: str, version: Version, phrase: str, wanted: Wanted, bounds: Bounds | None) -> TextSearch:
    bounds = bounds or Bounds()
    shards = [place for place in _shards(root, version, wanted.column) if place[1] == KEPT or not wanted.kept_only]
    start = min(bounds.start, sum(shard.rows for _, _, shard in shards))
    hits, end, read = _hits(root, shards, wanted, bounds, start)
    return TextSearch(phrase, hits, tuple(_parts(shards, start, end)), start, end, read)


def _pattern(phrase: str) -> str:
    """Return the words of a phrase as a pattern that RE2 and Python's `re` read alike, any white space between them."""
    words = unicodedata.normalize("NFC", phrase.encode("utf-8", "replace").decode()).split()
    if not words:
        message = "name a phrase: one word or several in a row"
        raise RecipeError(message)
    return "[\\s\xa0]+".join(map(re.escape, words))


Place = tuple[str, str, Shard]
"""A stage, an outcome, and a shard of the rows that have it."""


def _shards(root: str, version: Version, column: str) -> Iterator[Place]:
    """Yield the shards of kept documents, then those of rows that stages did not keep, the last stage first.

    Texts are those of stages that give documents their ids; URLs are known before.
    """
    needed = {column} if column == URL else {ID, TEXT}
    manifests = [
        (stage, manifest)
        for stage, manifest in ordered_manifests(root, version).items()
        if needed <= set(dict(manifest.schema)) and not manifest.landed
    ][::-1]
    for stage, manifest in manifests[:1]:
        yield from ((stage, KEPT, shard) for shard in manifest.shards)
    for stage, manifest in manifests:
        for part, outcome in PARTS.items():
            if outcome != KEPT:
                yield from ((stage, outcome, shard) for shard in getattr(manifest, part))


def _hits(
    root: str, shards: Sequence[Place], wanted: Wanted, bounds: Bounds, start: int
) -> tuple[tuple[Hit, ...], int, int]:
    """Return the hits of the rows from `start` on, the first row that was not searched, and the bytes that were."""
    hits: list[Hit] = []
    end, read = start, 0
    columns = [(place[2], _columns(place, wanted)) for place in shards]
    for nth, first, batch in batches_from(root, columns, start):
        found = wanted.rows(batch)
        room = bounds.most_hits - len(hits) if bounds.most_hits else len(found)
        chosen = found[:room]
        hits += [_hit(shards[nth], row, wanted.pattern) for row in batch.take(pa.array(chosen, pa.int64())).to_pylist()]
        if bounds.most_hits and len(hits) == bounds.most_hits:
            return tuple(hits), first + chosen[-1] + 1, read + batch.column(wanted.column).nbytes
        end, read = first + batch.num_rows, read + batch.column(wanted.column).nbytes
        if bounds.most_bytes and read >= bounds.most_bytes:
            break
    return tuple(hits), end, read


def batches_from(
    root: str, shards: Iterable[tuple[Shard, Sequence[str] | None]], start: int
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Yield batches of shards from row `start` on, each with the numbers of its shard and of its first row.

    Of each shard some columns are read (None: all); shards before that row are not.
    """
    first = 0
    for nth, (shard, columns) in enumerate(shards):
        if first + shard.rows <= start:
            first += shard.rows
            continue
        for batch in read_shards(root, [shard], columns):
            if first + batch.num_rows > start:
                skipped = max(start - first, 0)
                yield nth, first + skipped, batch.slice(skipped)
            first += batch.num_rows


def _columns(place: Place, wanted: Wanted) -> list[str]:
    """Return the columns of rows with an outcome that a search reads."""
    reason = () if place[1] == KEPT else ("reason",)
    return [*dict.fromkeys((ID, URL, TITLE, wanted.column, *reason, *columns_read(wanted.conditions)))]


def _matches(texts: Array, pattern: str) -> Array:
    large = pc.cast(texts, pa.large_string())
    return pc.fill_null(pc.match_substring_regex(large, pattern=pattern, ignore_case=True), fill_value=False)


def _hit(place: Place, row: Mapping[str, Any], pattern: str) -> Hit:
    text = str(row[TEXT]) if pattern else ""
    spot = re.search(pattern, text, re.IGNORECASE)
    start, end = spot.span() if spot else (0, 0)  # letters whose case one of both engines does not know
    return Hit(
        id=str(row.get(ID) or ""),
        url=str(row[URL] or ""),
        stage=place[0],
        outcome=place[1],
        reason=row.get("reason") or "",
        before=text[max(start - AROUND, 0) : start],
        match=text[start:end],
        after=text[end : end + AROUND],
        title=str(row.get(TITLE) or ""),
    )


def _parts(shards: Sequence[Place], start: int, end: int) -> Iterator[Part]:
    """Yield the rows of each stage and outcome, with how many of them are in `[start, end)`."""
    ends = accumulate(shard.rows for _, _, shard in shards)
    rows: dict[tuple[str, str], list[int]] = {}
    for (stage, outcome, shard), last in zip(shards, ends, strict=True):
        searched = max(min(last, end) - max(last - shard.rows, start), 0)
        part = rows.setdefault((stage, outcome), [0, 0])
        part[0], part[1] = part[0] + shard.rows, part[1] + searched
    yield from (Part(stage, outcome, *counts) for (stage, outcome), counts in rows.items() if counts[0])


# --- Output ---------------------------------------------------------------------------------------------------------


def part_text(part: Part) -> str:
    """Return how much of a part was searched, for a person."""
    rows = f"{part.searched:,}" if part.searched == part.rows else f"{part.searched:,} of {part.rows:,}"
    return f"{rows} kept" if part.outcome == KEPT else f"{rows} {part.outcome} by {part.stage}"


def search_lines(search: TextSearch) -> Iterator[str]:
    """Yield a line per document, and what was searched."""
    for hit in search.hits:
        fate = KEPT if hit.outcome == KEPT else f"{hit.outcome} by {hit.stage}: {hit.reason}"
        yield f"{hit.id}  {fate}  {hit.url}".rstrip()
    searched = ", ".join(part_text(part) for part in search.parts if part.searched) or "none"
    yield f"{counted(len(search.hits), 'document')}; searched: {searched}"
    if search.end < search.rows:
        yield f"{search.rows - search.end:,} rows were not searched; --limit 0 searches all"
