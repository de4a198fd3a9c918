"""`refinery annotations` writes what versions decided on each record, to be joined with Common Crawl's index."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.inspect.command import (
    EVERY,
    add_snapshot,
    number,
    on_of,
    outside,
    print_result,
    recipe_of,
    versions_of,
)
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.ledger.lost_log import require_takedowns
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from refinery_exports.annotations.places import Listed
from refinery_exports.annotations.writing import export_of
from refinery_exports.exporting import processes, run
from refinery_exports.options import add_place, add_workers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the versions, the place, where records are in the crawl, and by how many processes."""
    add_snapshot(parser, f"{EVERY} that is current")
    parser.add_argument("--version", type=number(int, 1), default=0, dest="chosen", metavar="N", help="a version alone")
    add_place(parser)
    parser.add_argument(
        "--places",
        action="append",
        default=[],
        metavar="FILE",
        help="where records are in the crawl: its warc.paths.gz, or _records.parquet of a landing; may be repeated",
    )
    add_workers(parser)


def answer(options: argparse.Namespace) -> int:
    """Log that the addresses of versions leave the root, write their annotations, and print the files."""
    to = outside(options.to, options.root, "--to")
    versions = _versions(options)
    require_takedowns(options.root)
    export = export_of(options.root, versions, [Listed.at(place) for place in options.places])
    parts = [part for job in export.shards.items for part in job.parts]
    for version in versions:
        records = sum(part.records for part in parts if part.by.version == version.number)
        looked(options, records, version=version)
    listed = run(export, to, on_of("export", versions[0].recipe, options, processes(options.workers)))
    print_result(options, {"to": to, **listed}, _lines(to, listed, options.places))
    return 0


def _versions(options: argparse.Namespace) -> list[Version]:
    """Return the versions that the options name; RecipeError if one is of no snapshot."""
    if options.chosen and options.snapshot:
        message = f"--version {options.chosen} names its snapshot; leave --snapshot {options.snapshot} out"
        raise RecipeError(message)
    if version_log.is_build(options.root, recipe_of(options)):
        message = (
            f"{recipe_of(options)} is a training dataset, and no record landed for it; name the recipe of a snapshot"
        )
        raise RecipeError(message)
    if options.chosen:
        return [chosen_version(options.root, recipe_of(options), str(options.chosen))]
    return versions_of(options)


def _lines(to: str, listed: Mapping[str, Any], places: Sequence[str]) -> Iterator[str]:
    parts = [file for file in listed["files"] if file["path"].endswith(".parquet")]
    yield from (f"{file['bytes']:>15,}  {to}/{file['path']}" for file in parts)
    kept, rejected, quarantined, rows, left = (
        listed.get(name, 0) for name in ("kept", "rejected", "quarantined", "rows", "left_out")
    )
    records = counted(kept + rejected + quarantined, "record")
    yield f"{records} = {kept:,} kept + {rejected:,} rejected + {quarantined:,} quarantined"
    yield f"{counted(rows, 'row')} in {counted(len(parts), 'file')}; {left:,} left out, as they are taken down"
    if not places:
        yield "warc_filename is the name of the landed file; --places gives the path that the index has"
