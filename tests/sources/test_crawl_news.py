"""News of a day: all of its files once the day is over, and no files of another day."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from refinery_sources.admission import admitted
from refinery_sources.common_crawl.news import CrawlNews
from refinery_sources.pull import Pull, landing_at, pull
from refinery_sources.source import Occasion

from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from tests.crawl_mirror import Mirror, archive
from tests.sources.pulling import on_loopback

NOW = datetime(2026, 12, 1, 6, tzinfo=UTC)


def path_of(day: str, number: int) -> str:
    return f"crawl-data/CC-NEWS/{day[:4]}/{day[4:6]}/CC-NEWS-{day}231502-{number:05}.warc.gz"


def add_month(mirror: Mirror, month: str, *paths: str) -> None:
    for path in paths:
        mirror.files[f"/{path}"] = archive(path, 20_000)
    mirror.list_paths(list(paths), "warc", f"CC-NEWS/{month}")


def names(mirror: Mirror, day: str, **query: object) -> list[str]:
    with on_loopback() as on:
        source = CrawlNews(day, address=mirror.address, **query).resolved(Occasion(on, "", NOW))  # type: ignore[arg-type]
        with admitted(source, on.gate):
            return [part.name for part in source.parts(on)]


def test_a_day_is_all_files_that_were_begun_on_it(mirror: Mirror, tmp_path: Path) -> None:
    paths = [path_of("20261124", 1), path_of("20261125", 2), path_of("20261125", 3), path_of("20261126", 4)]
    add_month(mirror, "2026/11", *paths)
    with on_loopback() as on:
        source = CrawlNews("2026-11-25", address=mirror.address).resolved(Occasion(on, "", NOW))
        landed = pull(source, landing_at(str(tmp_path), tmp_path), Pull(on, 2))
    assert (landed.snapshot, landed.files) == ("CC-NEWS-2026-11-25", 2)
    assert (tmp_path / paths[1].rpartition("/")[2]).read_bytes() == mirror.files[f"/{paths[1]}"]


def test_a_day_that_is_not_over_is_waited_for(mirror: Mirror) -> None:
    add_month(mirror, "2026/11", path_of("20261124", 1), path_of("20261125", 2))
    assert len(names(mirror, "2026-11-24")) == 1
    with pytest.raises(SnapshotIncomplete, match="2026-11-25"):
        names(mirror, "2026-11-25")


def test_the_last_day_of_a_month_is_over_when_the_next_month_has_begun(mirror: Mirror) -> None:
    add_month(mirror, "2026/11", path_of("20261129", 1), path_of("20261130", 2))
    with pytest.raises(SnapshotIncomplete):
        names(mirror, "yesterday")
    add_month(mirror, "2026/12", path_of("20261201", 3))
    assert names(mirror, "yesterday") == [path_of("20261130", 2).rpartition("/")[2]]


def test_a_day_without_files_is_no_empty_snapshot(mirror: Mirror) -> None:
    add_month(mirror, "2026/11", path_of("20261124", 1), path_of("20261126", 2))
    with pytest.raises(SnapshotIncomplete, match="2026-11-25"):
        names(mirror, "2026-11-25")


def test_a_damaged_file_may_be_left_out_by_its_name(mirror: Mirror) -> None:
    paths = [path_of("20261124", 1), path_of("20261124", 2), path_of("20261125", 3)]
    add_month(mirror, "2026/11", *paths)
    first, second, _ = (path.rpartition("/")[2] for path in paths)
    assert names(mirror, "2026-11-24", without=(first,)) == [second]
    with pytest.raises(RecipeError, match="other"):
        names(mirror, "2026-11-24", without=("other",))


@pytest.mark.parametrize("path", ["crawl-data/CC-NEWS/2026/10/CC-NEWS-20261031231502-00001.warc.gz", "etc/passwd"])
def test_a_list_that_leads_elsewhere_is_refused(mirror: Mirror, path: str) -> None:
    mirror.list_paths([path_of("20261124", 1), path], "warc", "CC-NEWS/2026/11")
    with pytest.raises(ContractError, match=path):
        names(mirror, "2026-11-24")


def test_what_is_no_day_is_refused(mirror: Mirror) -> None:
    for day in ("today", "2026-11-31", "26-11-2026"):
        with pytest.raises(RecipeError, match=day):
            names(mirror, day)
