"""`refinery export` writes what is published in the format of others, into a folder or to S3."""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.inspect.command import add_dataset, built_version, on_of, outside, print_result
from pipeline_tasks.inspect.looks import looked, names_of
from pipeline_tasks.inspect.search.find import uses
from pipeline_tasks.inspect.unpublished import current_version
from pipeline_tasks.ledger.lost_log import require_takedowns
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, MOST_SHARD_BYTES, export_names
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.training.named import LATEST
from refinery_exports.described import NO_REJECTS, REASONS, TEXTS, Target
from refinery_exports.exporting import processes, run
from refinery_exports.format import DATA
from refinery_exports.formats import format_of
from refinery_exports.options import add_place, add_workers
from refinery_exports.text.text_files import TableFormat
from refinery_exports.versions import export_of

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the dataset, the format, the place, and how to cut and by how many processes."""
    add_dataset(parser)
    parser.add_argument("--format", required=True, choices=export_names(), help="what the files are to be")
    add_place(parser)
    parser.add_argument(
        "--shard-size",
        type=_bytes,
        default=0,
        metavar="SIZE",
        help="most bytes of a shard's ids as the dataset stores them, or of text, as 256MiB (default: the format's)",
    )
    parser.add_argument(
        "--snapshot", default="", metavar="S", help="of a recipe that refines: this snapshot alone (default: all)"
    )
    parser.add_argument(
        "--rejects",
        choices=(NO_REJECTS, REASONS, TEXTS),
        default=REASONS,
        help=f"what `hub` writes of rows that were not kept (default: {REASONS}: all but what their pages said)",
    )
    add_workers(parser)


def answer(options: argparse.Namespace) -> int:
    """Log that the texts of a version leave the root, export it, and print the files."""
    to = outside(options.to, options.root, "--to")
    target = Target(options.format, options.shard_size, rejects=options.rejects)
    versions = _versions(options)
    require_takedowns(options.root)
    for version in versions:
        if COMPOSE in version.manifests:
            _refuse_taken_down(options.root, version)
    export = export_of(options.root, versions, target)
    rows = next(export.expected[name] for name in ("documents", "sequences", "rows") if name in export.expected)
    looked(options, rows, version=_named(versions), format=options.format)
    listed = run(export, to, on_of("export", versions[0].recipe, options, processes(options.workers)))
    print_result(options, {"to": to, **listed}, _lines(to, listed))
    return 0


def _versions(options: argparse.Namespace) -> list[Version]:
    """Return the version of a training dataset, or in a format of all rows those of a recipe's snapshots.

    These are the newest of every snapshot, of the named one, or the version of a number.
    """
    recipe, _, number = options.recipe.partition("@")
    root, refines = options.root, version_log.recipes(options.root)
    is_of_tables = isinstance(format_of(options.format), TableFormat)
    if not is_of_tables or recipe not in refines or version_log.is_build(root, recipe):
        if options.snapshot:
            message = (
                f"--snapshot {options.snapshot} is of a recipe that refines, and in a format of all rows; leave it out"
            )
            raise RecipeError(message)
        return [built_version(root, options.recipe)]
    if number and options.snapshot:
        message = f"--recipe {options.recipe} names a version by itself; leave --snapshot {options.snapshot} out"
        raise RecipeError(message)
    if number not in ("", LATEST):
        return [chosen_version(root, recipe, number)]
    if options.snapshot:
        return [chosen_version(root, recipe, options.snapshot)]
    return version_log.latest_by_snapshot(root, recipe) or [current_version(root, recipe)]


def _named(versions: Sequence[Version]) -> dict[str, str]:
    """Return what a look at versions is of."""
    names = [names_of(version) for version in versions]
    return {key: ", ".join(dict.fromkeys(each[key] for each in names)) for key in names[0]}


def _refuse_taken_down(root: str, version: Version) -> None:
    """Raise RecipeError if a version has a document that was taken down since it was built."""
    taken = taken_down(root)
    held = None if taken.is_empty else next(uses(root, [version], taken), None)
    if held:
        message = (
            f"version {version.number} of {version.recipe} has document {held.id} of {held.url}, which was taken down; "
            f"export one without it: {version.recipe}@{LATEST} if it is newer, else the next that "
            f"`refinery build {root} --recipe {version.recipe}` publishes"
        )
        raise RecipeError(message)


def _bytes(text: str) -> int:
    """Return the bytes that a text such as `256MiB` or `1000000` says."""
    match = re.fullmatch(r"(\d{1,12}) ?([kMG]?i?)B?", text)
    size = int(match[1]) * UNITS.get(match[2], 0) if match else 0
    if not 0 < size <= MOST_SHARD_BYTES:
        message = f"{text!r} is no size from 1 to {MOST_SHARD_BYTES >> 30}GiB; write it as 256MiB or 500MB"
        raise argparse.ArgumentTypeError(message)
    return size


def _lines(to: str, listed: Mapping[str, Any]) -> Iterator[str]:
    shards = [file for file in listed["files"] if file["path"].startswith(f"{DATA}/")]
    yield from (f"{file['bytes']:>15,}  {to}/{file['path']}" for file in shards)
    nouns = [noun for noun in ("sequence", "document", "reject", "token") if f"{noun}s" in listed]
    counts = ", ".join(counted(listed[f"{noun}s"], noun) for noun in nouns)
    yield f"{counted(len(shards), 'file')}: {counts}; {to}/README.md says how to read them"
    if listed.get("rejected") == TEXTS:
        yield "texts of rejects are as their stages got them: look for personal data before you publish them"
