"""Pulls a snapshot from a source into a folder or bucket, from which `refinery run` refines it."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pipeline_tasks.binding import bind_fields
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.listing import PROMISE
from pipeline_tasks.shipped import state_folder
from pipeline_tasks.store import storage
from pipeline_tasks.yaml_file import parse_yaml
from refinery_sources.addresses.source import KIND, Addresses
from refinery_sources.admission import admitted
from refinery_sources.budget import SLOWEST, Rate
from refinery_sources.commands.pull_progress import Progress
from refinery_sources.common_crawl.files import KINDS, CommonCrawl
from refinery_sources.common_crawl.records import CrawlRecords
from refinery_sources.plan import Plan, plan
from refinery_sources.pull import Landed, Pull, landing_at, pull
from refinery_sources.recipe import MOST_WORKERS, SourceRecipe, load_source, reopen_hosts, resolve, resolved
from refinery_sources.source import Occasion, Source
from refinery_sources.web import Web, web

CC = "cc"
"""The name of Common Crawl whose query is written as options, and not in a recipe."""

SNAPSHOTS = ("{snapshot}", "{crawl}")
"""What of `--to` becomes the name of the snapshot, so that each `latest` has a landing of its own."""

QUERY = ("crawl", "kind", "segments", "sample", "files", "seed", "without", "address")
"""Options that are the query of files of `refinery pull cc`."""

RECORDS = ("crawl", "where", "records", "index", "sample", "seed", "address")
"""Options that are the query of records: those that meet `--where`, or a number of them."""

OPTIONS = tuple(dict.fromkeys([*QUERY, *RECORDS]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the source, what to take of it, where to, and how fast."""
    parser.add_argument(
        "source",
        help="a recipe of a source, by name or path; cc: Common Crawl by these options; addresses: those of --list",
    )
    parser.add_argument("--list", metavar="FILE", help="a list of addresses, as `refinery look cut` prints it")
    to = (
        "where to land: for cc and addresses a new folder or s3://bucket/prefix, for a recipe that of all landings "
        "(REFINERY_LANDING)"
    )
    parser.add_argument("--to", default="", metavar="URI", help=to)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another value of the recipe's query, as in YAML",
    )
    _add_crawl(parser.add_argument_group("Common Crawl (cc)"))
    parser.add_argument("--rate", type=float, metavar="N", help="requests per second (the recipe's; cc: 2)")
    parser.add_argument("--bytes-per-second", type=float, metavar="N", help="bytes per second (the recipe's; no bound)")
    parser.add_argument("--workers", type=int, metavar="N", help="files at once (the recipe's; cc: 4)")
    parser.add_argument("--spool", default="", metavar="DIR", help="folder of partial files, if --to is a bucket")
    parser.add_argument("--again", action="store_true", help="send requests although the source has refused them")
    parser.add_argument("--dry-run", action="store_true", help="print what it would take, and write nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_crawl(group: argparse._ArgumentGroup) -> None:
    """Add the options of a query of Common Crawl; None for one that is not given."""
    group.add_argument("--crawl", metavar="ID", help="a crawl, as CC-MAIN-2026-45, or latest")
    group.add_argument("--kind", choices=tuple(KINDS), help="kind of files (warc)")
    group.add_argument("--segments", metavar="N-M", help="segments by number, as 0-3 or 0,5,7-9")
    group.add_argument("--sample", type=float, metavar="SHARE", help="a share of the files, or records")
    group.add_argument("--files", type=int, metavar="N", help="this many files")
    group.add_argument("--where", metavar="SQL", help="records by a condition on the crawl's index, and no whole files")
    group.add_argument("--records", type=int, metavar="N", help="this many of these records")
    group.add_argument("--index", metavar="N-M", help="files of the index to ask, by number (all)")
    group.add_argument("--seed", type=int, metavar="N", help="which --sample, --files and --records take (0)")
    group.add_argument("--without", action="append", metavar="NAME", help="a file to leave out")
    group.add_argument("--from", dest="address", metavar="URL", help="the source, or a mirror of it")


def answer(options: argparse.Namespace) -> int:
    """Pull, or plan to; print what has landed and how it is refined."""
    by_options = {CC: _crawl, KIND: _addresses}
    recipe = _with_bounds(by_options.get(options.source, _recipe)(options), options)
    progress = Progress()
    with web(recipe.rate, recipe.workers) as on:
        if options.again:
            reopen_hosts(recipe.source, on)
        source, to = _place(recipe, options.to, on)
        landing = landing_at(to, Path(options.spool or state_folder() / "pulls"))
        with admitted(source, on.gate):
            flow = progress.flow(source.typical_bytes)
        by = Pull(on, recipe.workers, flow, recipe.name, recipe.rights)
        if options.dry_run:
            _print_plan(plan(source, landing, by), landing.uri, as_json=options.json)
        else:
            _print_landed(pull(source, landing, by), to, as_json=options.json)
    return 0


def _crawl(options: argparse.Namespace) -> SourceRecipe:
    """Return the query of Common Crawl that the options are, as a recipe without a name."""
    if options.crawl is None or not options.to:
        message = "refinery pull cc needs --crawl ID, such as CC-MAIN-2026-45 or latest, and --to URI"
        raise RecipeError(message)
    if options.set:
        message = "--set changes the query of a recipe; that of cc is --crawl, --files and the other options"
        raise RecipeError(message)
    given = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
    given |= {"address": given["address"].rstrip("/")} if "address" in given else {}
    if not given.keys() & {"where", "records", "index"}:
        return SourceRecipe("", "common_crawl", CommonCrawl(**given | {"without": tuple(given.get("without", ()))}))
    other = next((name for name in given if name not in RECORDS), "")
    if other:
        message = f"--{other} chooses whole files, and --where, --records and --index choose records; leave one out"
        raise RecipeError(message)
    return SourceRecipe("", "common_crawl_records", CrawlRecords(**given))


def _addresses(options: argparse.Namespace) -> SourceRecipe:
    """Return the query of a list of addresses as a recipe without a name."""
    if not options.list or not options.to:
        message = "refinery pull addresses needs --list FILE, as `refinery look cut` prints it, and --to URI"
        raise RecipeError(message)
    given = [name for name in OPTIONS if getattr(options, name) is not None]
    if given or options.set:
        message = f"--{'set' if options.set else given[0]} is no option of a list of addresses; leave it out"
        raise RecipeError(message)
    return SourceRecipe("", KIND, bind_fields(Addresses, {"list": options.list}, f"refinery pull {KIND}"))


def _recipe(options: argparse.Namespace) -> SourceRecipe:
    if options.list:
        message = f"--list is an option of `refinery pull {KIND}`; for a recipe write --set list=FILE"
        raise RecipeError(message)
    given = [name for name in OPTIONS if getattr(options, name) is not None]
    if given:
        option = "from" if given[0] == "address" else given[0]
        message = f"--{option} is an option of `refinery pull cc`; for a recipe write --set {given[0]}=VALUE"
        raise RecipeError(message)
    return load_source(options.source, settings(options.set))


def settings(written: Sequence[str]) -> dict[str, Any]:
    """Return KEY=VALUE as the fields of a query; a value is YAML, as in the recipe."""
    fields: dict[str, Any] = {}
    for setting in written:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip() or key.strip() in fields:
            message = f"--set {setting[:100]!r}: write KEY=VALUE, each key once"
            raise RecipeError(message)
        said = parse_yaml(value.encode(), f"--set {key.strip()}")
        fields[key.strip()] = said.isoformat() if isinstance(said, date) else said  # sources take dates as text
    return fields


def _with_bounds(recipe: SourceRecipe, options: argparse.Namespace) -> SourceRecipe:
    """Return a recipe at the rate that the options name; RecipeError for one that makes no sense."""
    requests = recipe.rate.requests if options.rate is None else options.rate
    size = recipe.rate.bytes if options.bytes_per_second is None else options.bytes_per_second
    workers = recipe.workers if options.workers is None else options.workers
    wrong = {
        f"--rate {requests}: name {SLOWEST} requests per second or more": not requests >= SLOWEST,
        f"--bytes-per-second {size}: name a number above 0": not size >= 0,
        f"--workers {workers}: name 1 to {MOST_WORKERS}": not 1 <= workers <= MOST_WORKERS,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise RecipeError(message)
    return replace(recipe, rate=Rate(requests, size), workers=workers)


def _place(recipe: SourceRecipe, to: str, on: Web) -> tuple[Source, str]:
    """Return the query as it is asked now, and where it lands."""
    now = datetime.now(UTC)
    if not recipe.name:
        source = resolve(recipe, Occasion(on, "", now))
        return source, _named(to, dict.fromkeys(SNAPSHOTS, source.snapshot))
    landings = landings_of(to)
    source = resolved(recipe, landings, on, now)
    return source, f"{landings}/{source.snapshot}"


def _named(to: str, names: Mapping[str, str]) -> str:
    for word, name in names.items():
        to = to.replace(word, name)
    return to


def landings_of(to: str) -> str:
    """Return the folder of all landings that `--to`, else `REFINERY_LANDING`, names; `{snapshot}` may end it.

    The snapshots of a recipe are side by side, as a pull goes on where the newest of them ends.
    """
    to = (to or os.environ.get("REFINERY_LANDING", "")).rstrip("/")
    folder = next((to.removesuffix(f"/{word}") for word in SNAPSHOTS if to.endswith(f"/{word}")), to)
    if not folder or any(word in folder for word in SNAPSHOTS):
        message = (
            f"--to {to!r}: name the folder or s3://bucket/prefix of all landings, below which each snapshot of a "
            "recipe has a folder of its own; or set REFINERY_LANDING"
        )
        raise RecipeError(message)
    return folder


def _print_landed(landed: Landed, to: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({**asdict(landed), "to": to}) + "\n")
        return
    if not landed.files:
        sys.stdout.write(f"{landed.snapshot}: {_nothing_new(to)}\n")
        return
    found = f", {landed.found:,} of them were there already" if landed.found else ""
    when = "" if landed.is_new else ", before: nothing is new"
    stay = f"; {landed.in_place:,} of them stay in their store, and are read there" if landed.in_place else ""
    sys.stdout.write(
        f"{landed.snapshot} has landed whole in {to}: {counted(landed.files, 'file')}, {landed.bytes:,} bytes"
        f"{found if landed.is_new else when}{stay}\nrefine it: refinery run ROOT --input {to}\n"
    )


def _nothing_new(to: str) -> str:
    """Return what came of a pull without a new record: nothing has landed, or what the source has deleted."""
    if storage.connect(to).size(PROMISE) is None:
        return "nothing is new, and nothing has landed"
    return (
        f"no record is new; what the source has deleted has landed in {to}\n"
        f"take it down: refinery takedown ROOT --landing {to}"
    )


def _print_plan(planned: Plan, to: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({**asdict(planned), "to": to}) + "\n")
        return
    free = "free space of a bucket is not known" if planned.free is None else f"{planned.free / 1e9:,.1f} GB are free"
    sys.stdout.write(
        f"{planned.snapshot}: {counted(planned.files, 'file')}, {planned.complete:,} of them complete in {to}\n"
        f"to download: about {planned.bytes / 1e9:,.1f} GB ({planned.estimate}); {free}\n"
        f"time: {planned.seconds / 60:,.1f} minutes at the rate of this command, or longer by the network\n"
    )
