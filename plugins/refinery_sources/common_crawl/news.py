"""Common Crawl's news of one day: all its files by the lists of their months, once a later day has begun.

Files have names of the moment at which they were begun (`CC-NEWS-20261125231502-00042.warc.gz`, UTC), and are listed by
month. A list says nothing of whether a day is over: that a file of a later day is listed does.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline_tasks.constraints import Anywhere
from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from refinery_sources.common_crawl.files import ADDRESS, TERMS, listed_paths, path_name
from refinery_sources.download import download
from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.web import Web, require_address

YESTERDAY = "yesterday"

_PATH = re.compile(r"crawl-data/CC-NEWS/(\d{4})/(\d\d)/CC-NEWS-(\d{8})\d{6}-\d+\.warc\.gz")


@dataclass(frozen=True, slots=True)
class CrawlNews:
    """A query of one day, as `2026-11-25`, or `yesterday` by the moment of the pull. `without` are files left out."""

    day: str = YESTERDAY
    without: tuple[str, ...] = ()
    address: Anywhere = ADDRESS

    @property
    def snapshot(self) -> str:
        return f"CC-NEWS-{self.day}"

    @property
    def cursor(self) -> str:
        return self.day

    @property
    def terms(self) -> Terms:
        return TERMS

    @property
    def typical_bytes(self) -> int:
        return 1_073_741_824

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "common_crawl_news",
            "address": self.address,
            "day": self.day,
            "without": sorted(self.without),
        }

    def resolved(self, occasion: Occasion) -> "CrawlNews":
        """Return a query that names its day; RecipeError for what is no day."""
        require_address(self.address)
        if self.day == YESTERDAY:
            return replace(self, day=(occasion.moment - timedelta(days=1)).date().isoformat())
        try:
            return replace(self, day=datetime.strptime(self.day, "%Y-%m-%d").date().isoformat())  # noqa: DTZ007 -- a day
        except ValueError as error:
            message = f"day {self.day[:100]!a}: name a day, as 2026-11-25, or yesterday"
            raise RecipeError(message) from error

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        return download(web, part, partial, flow)

    def parts(self, web: Web) -> Sequence[Part]:
        """Return the files of the day; SnapshotIncomplete before the day is over, or if it has none."""
        day = date.fromisoformat(self.day)
        paths = self._listed(web, day)
        if not any(begun > day for begun in paths.values()):
            paths = {**paths, **self._listed_next(web, day)}
        if not any(begun > day for begun in paths.values()):
            message = (
                f"{self.snapshot}: no file of a later day is listed, so more of this day may come; try again later"
            )
            raise SnapshotIncomplete(message)
        chosen = [path for path, begun in paths.items() if begun == day]
        if not chosen:
            message = f"{self.address} lists no file of {self.day}; name another day"
            raise SnapshotIncomplete(message)
        unknown = set(self.without) - set(map(path_name, chosen))
        if unknown:
            message = f"{self.snapshot} has no file {min(unknown)!a}; correct `without`"
            raise RecipeError(message)
        return [
            Part(path_name(path), f"{self.address}/{path}") for path in chosen if path_name(path) not in self.without
        ]

    def _listed(self, web: Web, day: date) -> dict[str, date]:
        """Return the days on which the files of a month were begun; ContractError for a path of another place."""
        url = f"{self.address}/crawl-data/CC-NEWS/{day:%Y/%m}/warc.paths.gz"
        paths = {}
        for path in listed_paths(web, url):
            match = _PATH.fullmatch(path)
            if match is None or (match[1], match[2]) != (f"{day:%Y}", f"{day:%m}"):
                message = f"{url} has {path[:200]!a}, which is no file of news of {day:%Y-%m}; tell who made it"
                raise ContractError(message)
            paths[path] = date.fromisoformat(match[3])
        return paths

    def _listed_next(self, web: Web, day: date) -> dict[str, date]:
        """Return the files of the next month, where the day is the last of its own; none where it has no list yet."""
        next_month = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        if next_month - timedelta(days=1) != day:
            return {}
        try:
            return self._listed(web, next_month)
        except SnapshotIncomplete:
            return {}


SOURCE = CrawlNews
