"""Pulls a snapshot from a source into a folder or bucket, from which `refinery run` refines it."""

import argparse
import json
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pipeline_tasks.counted import counted
from pipeline_tasks.embedded.airflow_home import state_folder
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.sources.budget import SLOWEST, Rate
from pipeline_tasks.sources.common_crawl import ADDRESS, KINDS, CommonCrawl
from pipeline_tasks.sources.plan import Plan, plan
from pipeline_tasks.sources.pull import Landed, Pull, landing_at, pull
from pipeline_tasks.sources.source import Flow, Occasion
from pipeline_tasks.sources.web import Web, web

SOURCES = ("cc",)

CRAWL = "{crawl}"
"""What of `--to` becomes the id of the crawl, so that each `latest` has a landing of its own."""

MOST_WORKERS = 32

REPORTED = 10.0
"""Seconds between two lines of progress."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the source, what to take of it, where to, and how fast."""
    parser.add_argument("source", choices=SOURCES, help="cc: Common Crawl")
    parser.add_argument("--crawl", required=True, metavar="ID", help="a crawl, as CC-MAIN-2026-45, or latest")
    parser.add_argument("--to", required=True, metavar="URI", help="where to land: a new folder or s3://bucket/prefix")
    parser.add_argument("--kind", choices=tuple(KINDS), default="warc", help="kind of files (%(default)s)")
    parser.add_argument("--segments", default="", metavar="N-M", help="segments by number, as 0-3 or 0,5,7-9")
    parser.add_argument("--sample", type=float, default=1.0, metavar="SHARE", help="a share of the files")
    parser.add_argument("--files", type=int, default=0, metavar="N", help="this many files")
    parser.add_argument("--seed", type=int, default=0, help="which files --sample and --files take (%(default)s)")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="a file to leave out")
    parser.add_argument("--from", dest="address", default=ADDRESS, metavar="URL", help="the source, or a mirror of it")
    parser.add_argument("--rate", type=float, default=2.0, metavar="N", help="requests per second (%(default)s)")
    parser.add_argument("--bytes-per-second", type=float, default=0.0, metavar="N", help="bytes per second (no bound)")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="files at once (%(default)s)")
    parser.add_argument("--spool", default="", metavar="DIR", help="folder of partial files, if --to is a bucket")
    parser.add_argument("--again", action="store_true", help="send requests although the source has refused them")
    parser.add_argument("--dry-run", action="store_true", help="print what it would take, and write nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def answer(options: argparse.Namespace) -> int:
    """Pull, or plan to; print what has landed and how it is refined."""
    _require_bounds(options)
    progress = _Progress()
    with web(Rate(options.rate, options.bytes_per_second), options.workers) as on:
        source = _source(on, options)
        to = options.to.replace(CRAWL, source.crawl)
        landing = landing_at(to, Path(options.spool or state_folder() / "pulls"))
        by = Pull(on, options.workers, Flow(on_bytes=progress.add))
        if options.dry_run:
            _print_plan(plan(source, landing, by), landing.uri, as_json=options.json)
        else:
            _print_landed(pull(source, landing, by), to, as_json=options.json)
    return 0


def _require_bounds(options: argparse.Namespace) -> None:
    """Raise RecipeError for a rate or a number of workers that makes no sense."""
    wrong = {
        f"--rate {options.rate}: name {SLOWEST} requests per second or more": not options.rate >= SLOWEST,
        f"--bytes-per-second {options.bytes_per_second}: name a number above 0": not options.bytes_per_second >= 0,
        f"--workers {options.workers}: name 1 to {MOST_WORKERS}": not 1 <= options.workers <= MOST_WORKERS,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise RecipeError(message)


def _source(on: Web, options: argparse.Namespace) -> CommonCrawl:
    query = CommonCrawl(
        crawl=options.crawl,
        kind=options.kind,
        segments=options.segments,
        sample=options.sample,
        files=options.files,
        seed=options.seed,
        without=tuple(options.without),
        address=options.address.rstrip("/"),
    )
    if options.again:
        for url in (query.listing, query.crawls):
            on.budget(url).reopen()
    return query.resolved(Occasion(on, "", datetime.now(UTC)))


@dataclass(slots=True)
class _Progress:
    """Bytes that have arrived, in a line on stderr every few seconds."""

    begun: float = field(default_factory=time.monotonic)
    bytes: int = 0
    shown: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, size: int) -> None:
        with self.lock:
            self.bytes += size
            seconds = time.monotonic() - self.begun
            if seconds - self.shown < REPORTED:
                return
            self.shown = seconds
            megabytes = self.bytes / 1e6
        sys.stderr.write(f"{seconds:8.1f} s  {megabytes:,.0f} MB, {megabytes / seconds:.1f} MB/s, now {name}\n")


def _print_landed(landed: Landed, to: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({**asdict(landed), "to": to}) + "\n")
        return
    found = f", {landed.found:,} of them were there already" if landed.found else ""
    sys.stdout.write(
        f"{landed.snapshot} has landed whole in {to}: {counted(landed.files, 'file')}, {landed.bytes:,} bytes{found}\n"
        f"refine it: refinery run --input {to} --output ROOT\n"
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
