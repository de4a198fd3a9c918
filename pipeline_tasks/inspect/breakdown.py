"""Breaks a snapshot's documents down by a column: how many were kept, rejected for which reason, and of which sites."""

import argparse
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.command import add_snapshot, number, print_result, version_of
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.stage import Shard
from pipeline_tasks.stages import enrich
from pipeline_tasks.store.reading import read_manifest, read_shards

USUAL = (enrich.TYPE, "topic", enrich.LEVEL, enrich.NOTICE, "language", "extractor", "source")
"""Columns that are asked for most; the first is the default."""

UNSAID = "(not said)"
"""The group of documents of which no stage has written the column."""

NO_SITE = "(no site)"
KEPT = ""
"""What stands in place of a reason of a document that was kept."""


@dataclass(frozen=True, slots=True)
class Group:
    """The documents with one value of the column: how many were kept, or rejected by reason, and both by site."""

    name: str
    kept: int
    rejected: Mapping[str, int]
    sites: Mapping[str, int]

    @property
    def documents(self) -> int:
        """All documents of the group."""
        return self.kept + sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The groups of a version's documents by a column, the largest first; `rows` were read of all `total`."""

    column: str
    groups: Sequence[Group]
    rows: int
    total: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, the column, and how many sites and reasons are shown."""
    add_snapshot(parser)
    parser.add_argument(
        "--by",
        default=USUAL[0],
        metavar="COLUMN",
        help="such as topic, language, extractor (default: document_type)",
    )
    parser.add_argument("--sites", type=number(int, 0), default=3, metavar="N", help="largest sites of each value (3)")
    parser.add_argument("--reasons", type=number(int, 0), default=3, metavar="N", help="reasons of each value (3)")


def answer(options: argparse.Namespace) -> int:
    """Print the table."""
    groups = breakdown(options.root, version_of(options), options.by).groups
    facts = {"by": options.by, "groups": [_facts(group, int(options.sites)) for group in groups]}
    print_result(options, facts, lines(options.by, groups, int(options.sites), int(options.reasons)))
    return 0


def breakdown(root: str, version: Version, column: str, most_bytes: int = 0) -> Breakdown:
    """Return a version's documents by a column.

    Reads all that were kept, and all that a stage rejected or quarantined; with `most_bytes`, shards in the order of
    their digests, which is none of time or site, until one would be read beyond that. The type of a
    document is said of all that have a text, whether the recipe has `enrich` or not; any other column is of the
    documents that reached the stage that writes it. RecipeError if no document has the column.
    """
    counts: Counter[tuple[str, str]] = Counter()
    sites: defaultdict[str, Counter[str]] = defaultdict(Counter)
    shards = _shards(root, version)
    read = _within(shards, most_bytes)
    for batch, is_kept in ((batch, is_kept) for shard, is_kept in read for batch in read_shards(root, [shard])):
        names = _names(batch, column)
        reasons = pa.array([KEPT] * batch.num_rows) if is_kept else batch["reason"]
        counts.update(zip(names.to_pylist(), reasons.to_pylist(), strict=True))
        for name, site in zip(names.to_pylist(), _sites(batch), strict=True):
            sites[name][site] += 1
    names = {name for name, _ in counts}
    if names <= {UNSAID}:
        message = f"{root}: no document of version {version.number} has a column {column!r}; name one of its stages'"
        raise RecipeError(message)
    groups = [_group(name, counts, sites[name]) for name in names]
    groups.sort(key=lambda group: (-group.documents, group.name))
    return Breakdown(column, groups, *(sum(shard.rows for shard, _ in some) for some in (read, shards)))


def _group(name: str, counts: Mapping[tuple[str, str], int], sites: Counter[str]) -> Group:
    of_name = Counter({reason: rows for (own, reason), rows in counts.items() if own == name})
    kept = of_name.pop(KEPT, 0)
    return Group(name, kept, dict(_largest(of_name)), dict(_largest(sites)))


def _largest(counts: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _shards(root: str, version: Version) -> list[tuple[Shard, bool]]:
    """Return the shards of the rows that were kept, and of those that each stage did not keep, by their digests."""
    shards = [(shard, True) for shard in read_manifest(root, version.refined).shards]
    for manifest in ordered_manifests(root, version).values():
        shards += [(shard, False) for shard in (*manifest.rejects, *manifest.quarantine)]
    return sorted(shards, key=lambda entry: entry[0].digest)


def _within(shards: Sequence[tuple[Shard, bool]], most_bytes: int) -> Sequence[tuple[Shard, bool]]:
    """Return the first shards that have no more bytes, at least one; all without a bound."""
    through = list(accumulate(shard.weight for shard, _ in shards))
    return shards[: max(bisect_right(through, most_bytes), 1)] if most_bytes else shards


def _names(batch: pa.RecordBatch, column: str) -> Any:  # noqa: ANN401 -- an Arrow array of text
    """Return the value of the column of each row as text."""
    if column in batch.schema.names:
        values = batch[column]
        if pa.types.is_nested(values.type):
            message = f"--by: {column} is a column of {values.type}; name one of texts, whole numbers or booleans"
            raise RecipeError(message)
        return pc.fill_null(values.cast(pa.string()), UNSAID)
    if column == enrich.TYPE and {"text", "url"} <= {*batch.schema.names}:
        known = batch.select([name for name in ("text", "url", "language") if name in batch.schema.names])
        [typed] = enrich.enrich(iter([known]))
        return pc.if_else(pc.is_valid(batch["text"]), typed[column], UNSAID)
    return pa.array([UNSAID] * batch.num_rows, pa.string())


def _sites(batch: pa.RecordBatch) -> list[str]:
    """Return the registered domain of each row's URL."""
    from pipeline_tasks.text.urls.keys import sites

    if "url" not in batch.schema.names:
        return [NO_SITE] * batch.num_rows
    found: list[str] = pc.fill_null(sites(batch["url"]), NO_SITE).to_pylist()
    return found


def _facts(group: Group, most_sites: int) -> dict[str, Any]:
    sites = dict([*group.sites.items()][:most_sites])
    counts = {"documents": group.documents, "kept": group.kept, "rejected": dict(group.rejected)}
    return {"name": group.name, **counts, "sites": sites, "other_sites": max(len(group.sites) - most_sites, 0)}


def lines(column: str, groups: Sequence[Group], sites: int, reasons: int) -> Iterator[str]:
    """Yield a line for each group, with the reasons and the sites that most of its documents have."""
    width = max(len(column), *(len(group.name) for group in groups))
    yield f"{column:<{width}}{'documents':>12}{'kept':>12}{'':>8}  rejected for; largest sites"
    for group in groups:
        share = f"{group.kept / group.documents:.1%}"
        yield f"{group.name:<{width}}{group.documents:>12,}{group.kept:>12,}{share:>8}".rstrip()
        for counts, most in ((group.rejected, reasons), (group.sites, sites)):
            shown = [f"{name} {rows:,}" for name, rows in [*counts.items()][:most]]
            more = [f"{len(counts) - most} more"] if len(counts) > most > 0 else []
            if shown:
                yield f"{'':<{width}}    {', '.join([*shown, *more])}"
