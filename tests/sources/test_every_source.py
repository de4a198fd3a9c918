"""Every kind of source lands whole, the same each time, or not at all: a new kind is asked by itself."""

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from refinery_sources.common_crawl.news import CrawlNews
from refinery_sources.common_crawl.records import CrawlRecords
from refinery_sources.recipe import SEAM
from refinery_sources.source import Source
from refinery_sources.testing import check_source

from pipeline_tasks.seams import own_parts
from tests.crawl_index import add_crawl, crawled
from tests.crawl_mirror import CRAWL, Mirror, archive
from tests.sources.api_pulls import query_of as api_query
from tests.sources.api_server import Api, items, paged
from tests.sources.pulling import query_of

OWN_FILES = {
    "addresses": ("test_lists_of_addresses", "test_it_keeps_what_every_source_promises"),
    "common_crawl": ("test_whole_pull", "test_a_crawl_keeps_what_every_source_promises"),
    "delta": ("test_delta", "test_it_keeps_what_every_source_promises"),
    "git": ("test_git_repositories", "test_it_keeps_what_every_source_promises"),
    "hugging_face": ("test_hugging_face", "test_it_keeps_what_every_source_promises"),
    "iceberg": ("test_iceberg", "test_it_keeps_what_every_source_promises"),
}
"""Kinds that are asked beside the servers and tables that their own tests make: the file and its test."""


def an_api(request: pytest.FixtureRequest, _: Path) -> tuple[Source, Source | None]:
    api: Api = request.getfixturevalue("api")
    paged(api, items(30), total=30)
    return query_of({"api": api_query(api, total="meta.total")}), query_of({"api": api_query(api, total="meta.next")})


def files(_: pytest.FixtureRequest, folder: Path) -> tuple[Source, Source | None]:
    rows = [json.dumps({"text": f"The ferry number {number} leaves the harbor."}) for number in range(200)]
    for name in ("a", "b"):
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    return query_of({"files": {"place": str(folder), "format": "jsonl"}}), None


def news(request: pytest.FixtureRequest, _: Path) -> tuple[Source, Source | None]:
    mirror: Mirror = request.getfixturevalue("mirror")
    paths = [f"crawl-data/CC-NEWS/2025/11/CC-NEWS-2025112{day}231502-0000{day}.warc.gz" for day in (5, 6, 7, 8)]
    for path in paths:
        mirror.files[f"/{path}"] = archive(path, 20_000)
    mirror.files[f"/{paths[1]}"] = mirror.files[f"/{paths[1]}"][:-100]
    mirror.list_paths(paths, "warc", "CC-NEWS/2025/11")
    whole, cut = (CrawlNews(f"2025-11-2{day}", address=mirror.address) for day in (5, 6))
    return whole, cut


def records(request: pytest.FixtureRequest, _: Path) -> tuple[Source, Source | None]:
    mirror: Mirror = request.getfixturevalue("mirror")
    add_crawl(mirror, crawled(60))
    german = "content_languages = 'deu' AND fetch_status = 200"
    return CrawlRecords(CRAWL, address=mirror.address, where=german), None


MADE: Mapping[str, Callable[[pytest.FixtureRequest, Path], tuple[Source, Source | None]]] = {
    "api": an_api,
    "common_crawl_news": news,
    "common_crawl_records": records,
    "files": files,
}
"""A query of each other kind, and one whose data is not whole, if parts promise nothing."""


@pytest.mark.parametrize("kind", own_parts(SEAM))
def test_every_kind_keeps_what_every_source_promises(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if kind in OWN_FILES:
        file, test = OWN_FILES[kind]
        pytest.importorskip("deltalake") if kind == "delta" else None
        assert hasattr(importlib.import_module(f"tests.sources.{file}"), test)
        return
    assert kind in MADE, f"give a query of {kind} to `check_source` here"
    check_source(*MADE[kind](request, tmp_path))
