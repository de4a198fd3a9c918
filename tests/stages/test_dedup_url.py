"""One document per URL: the newest stays, the rest say which, and what it supersedes on earlier days is on record."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.text.base.timestamps import sortable_timestamps
from pipeline_tasks.text.urls.keys import keys
from pipeline_tasks.text.urls.sites import sites
from tests import refining
from tests.examples import fewest_examples

STAGE = "dedup_url"
NOON = "2026-11-20T12:00:00Z"


def page(url: str | None, text: str, offset: int, day: str = "d1", crawled_at: str | None = NOON) -> dict[str, object]:
    return {
        "source": "crawl",
        "snapshot": day,
        "file": "a.warc",
        "offset": offset,
        "length": 10,
        "record_id": f"{day}:{offset}",
        "url": url,
        "crawled_at": crawled_at,
        "payload_digest": None,
        "id": f"{text:0>32}",
        "text": text,
        "title": None,
        "chars": len(text),
    }


def tables(pages: Sequence[dict[str, object]], shards: int = 1) -> list[pa.Table]:
    return [pa.Table.from_pylist(list(pages[start::shards]), schema=DOCUMENT) for start in range(shards)]


def dedup(
    root: Path, pages: Sequence[dict[str, object]], history: Sequence[str] = (), **params: Any
) -> tuple[str, Manifest]:
    return refining.refined(
        root, STAGE, refining.commit_parent(root, tables(pages)), params, history=history, batch_rows=2
    )


def offsets(root: Path, manifest: Manifest) -> list[int]:
    return sorted(refining.rows(root, manifest).column("offset").to_pylist())


def proofs(root: Path, manifest: Manifest) -> dict[int, tuple[str, dict[str, Any]]]:
    rows = refining.rows(root, manifest, "rejects").to_pylist()
    return {row["offset"]: (row["reason"], json.loads(row["evidence"])["winner"]) for row in rows}


def superseded(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    rows = refining.rows(root, manifest, "superseded").to_pylist()
    return sorted(rows, key=lambda row: str(row["offset"]))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/a", "example.org/a"),
        ("http://Example.ORG:80/a/#part", "example.org/a"),
        ("https://example.org:443/a//", "example.org/a"),
        ("https://example.org:8443/a", "example.org:8443/a"),
        ("http://example.org:443/a", "example.org:443/a"),
        ("https://example.org./a?utm_source=x&UTM_Medium=y&fbclid", "example.org/a"),
        ("https://example.org/a?b=1&utm_x=2&utm_y=3&B=4&gclid=5", "example.org/a?b=1&B=4"),
        ("https://example.org/a?&&gclidx=1&", "example.org/a?gclidx=1"),
        ("https://www.example.org/A", "www.example.org/A"),
        ("ftp://example.org/a", "ftp://example.org/a"),
        (" no url ", "no url"),
        ("https://пример.рф/ä?ö=ü#x", "xn--e1afmkfd.xn--p1ai/%C3%A4?%C3%B6=%C3%BC"),
        ("https://u:p@EXAMPLE.org/%7Ea/../b", "example.org/b"),
        ("https://example.org/a?b=http://c.org/?d#e", "example.org/a?b=http://c.org/?d"),
        ("  ", None),
        (None, None),
    ],
)
def test_a_url_has_one_key_however_it_is_written(url: str | None, expected: str | None) -> None:
    normalized = keys(pa.array([url], pa.string()), ("utm_*", "gclid", "fbclid")).to_pylist()
    assert normalized == [expected]


def test_names_of_parameters_are_no_patterns() -> None:
    urls = pa.array(["https://e.org/?a.b=1&axb=2&a|c=3", "https://e.org/?a=1"])
    assert keys(urls, ("a.b", "a|c")).to_pylist() == ["e.org?axb=2", "e.org?a=1"]


def test_sites_are_what_somebody_registered() -> None:
    urls = ["https://news.bbc.co.uk/x", "http://1.2.3.4:80/", "http://[::1]/", "https://me@localhost:1/", "x", None]
    assert sites(pa.array(urls)).to_pylist() == ["bbc.co.uk", "1.2.3.4", "[::1]", "localhost", None, None]


def test_dates_compare_as_time_does() -> None:
    dates = ["2026-11-20T12:00:00Z", "20261120", "2026-11-20T12:00:00.123Z", "", None]
    assert sortable_timestamps(pa.array(dates)).to_pylist() == [20261120120000, 20261120000000, 20261120120000, 0, 0]


def test_the_newest_stays_and_the_others_say_so(tmp_path: Path) -> None:
    pages = [
        page("https://example.org/a", "one", 1, crawled_at="2026-11-20T01:00:00Z"),
        page("http://EXAMPLE.org/a/?utm_source=mail", "two", 2, crawled_at="2026-11-20T03:00:00Z"),
        page("https://example.org/a#top", "three", 3, crawled_at=None),
        page("https://example.org/a", "four", 4, crawled_at="2026-11-20T03:00:00Z"),
        page("https://example.org/b", "one", 5),
    ]
    _, manifest = dedup(tmp_path, pages)
    assert offsets(tmp_path, manifest) == [2, 5]
    assert manifest.rejected == {"dedup_url:older": 3}
    assert {at: winner["offset"] for at, (_, winner) in proofs(tmp_path, manifest).items()} == {1: 2, 3: 2, 4: 2}
    assert proofs(tmp_path, manifest)[1][1]["url"] == "http://EXAMPLE.org/a/?utm_source=mail"
    assert refining.rows(tmp_path, manifest).schema.names == DOCUMENT.names


def test_documents_without_a_url_all_stay(tmp_path: Path) -> None:
    _, manifest = dedup(tmp_path, [page(None, "x", 1), page("", "x", 2), page(" ", "y", 3)])
    assert offsets(tmp_path, manifest) == [1, 2, 3]
    assert sum(shard.rows for shard in manifest.history_shards) == 0


def test_a_recipe_says_which_parameters_count(tmp_path: Path) -> None:
    pages = [page("https://example.org/?v=1", "x", 1), page("https://example.org/?v=2", "y", 2)]
    assert dedup(tmp_path, pages)[1].rows == 2
    assert dedup(tmp_path, pages, tracking=["v"])[1].rows == 1


def test_a_newer_page_supersedes_the_one_of_an_earlier_day(tmp_path: Path) -> None:
    first, manifest = dedup(tmp_path, [page("https://example.org/a", "one", 1), page("https://example.org/b", "b", 2)])
    assert superseded(tmp_path, manifest) == []
    later = [
        page("http://example.org/a", "two", 1, "d2", "2026-11-21T12:00:00Z"),
        page("http://example.org/b/", "b", 2, "d2", "2026-11-21T12:00:00Z"),
        page("https://example.org/c", "c", 3, "d2", "2026-11-21T12:00:00Z"),
    ]
    second, manifest = dedup(tmp_path, later, [first])
    assert offsets(tmp_path, manifest) == [1, 3]
    assert manifest.rejected == {"dedup_url:seen_before": 1}
    assert proofs(tmp_path, manifest)[2][1]["snapshot"] == "d1"
    (over,) = superseded(tmp_path, manifest)
    assert (over["snapshot"], over["offset"], over["by_snapshot"]) == ("d1", 1, "d2")
    assert (over["id"], over["by_id"]) == (f"{'one':0>32}", f"{'two':0>32}")
    late = [
        page("https://example.org/a", "zero", 7, "d3", "2026-11-19T12:00:00Z"),
        page("https://example.org/b", "b2", 8, "d3", "2026-11-22T12:00:00Z"),
        page("https://example.org/c", "c2", 9, "d3", "2026-11-21T12:00:00Z"),
    ]
    _, manifest = dedup(tmp_path, late, [first, second])
    assert proofs(tmp_path, manifest)[7][1] | {"url": ""} == {
        "id": f"{'two':0>32}", "snapshot": "d2", "file": "a.warc", "offset": 1, "record_id": "d2:1",
        "url": "", "crawled_at": "2026-11-21T12:00:00Z",
    }  # fmt: skip
    assert [(row["snapshot"], row["offset"]) for row in superseded(tmp_path, manifest)] == [("d1", 2), ("d2", 3)]


def test_a_history_of_another_bucket_count_gives_the_same(tmp_path: Path) -> None:
    """`buckets` had to stay the same as long as there was history: another number was refused."""
    path, _ = dedup(tmp_path, [page(f"https://example.org/{n}", "x", n) for n in range(40)], buckets=8)
    second = [page(f"https://example.org/{n}", "xy"[n % 2], n, "d2") for n in range(20, 60)]
    days = [dedup(tmp_path, second, [path], buckets=buckets)[1] for buckets in (8, 1, 3, 4, 32)]
    assert days[0].rejected == {"dedup_url:seen_before": 10}
    for manifest in days:
        assert manifest.rejected == days[0].rejected
        assert sorted(map(str, superseded(tmp_path, manifest))) == sorted(map(str, superseded(tmp_path, days[0])))


PAGES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "a?utm_x=1", "b#f", ""]), st.sampled_from("xyz"), st.integers(0, 3)),
    max_size=25,
)


@fewest_examples
@given(
    drawn=PAGES,
    earlier=PAGES,
    shards=st.integers(1, 3),
    batch_rows=st.sampled_from([1, 7, 10_000]),
    shuffled=st.randoms(use_true_random=False),
)
def test_cutting_and_order_change_nothing(
    drawn: list[tuple[str, str, int]],
    earlier: list[tuple[str, str, int]],
    shards: int,
    batch_rows: int,
    shuffled: random.Random,
) -> None:
    days = [
        [
            page(f"https://e.org/{path}" if path else None, text, n, day, f"2026-11-2{hour}")
            for n, (path, text, hour) in enumerate(of)
        ]
        for day, of in (("d1", earlier), ("d2", drawn))
    ]
    mixed = list(days[1])
    shuffled.shuffle(mixed)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        before, _ = refining.refined(root, STAGE, refining.commit_parent(root, tables(days[0])), {"buckets": 2})
        _, whole = refining.refined(
            root, STAGE, refining.commit_parent(root, tables(days[1])), {"buckets": 2}, history=[before]
        )
        _, cut = refining.refined(
            root,
            STAGE,
            refining.commit_parent(root, tables(mixed, shards)),
            {"buckets": 2},
            history=[before],
            batch_rows=batch_rows,
        )
        assert refining.row_digests(root, whole.shards) == refining.row_digests(root, cut.shards)
        assert [shard.digest for shard in whole.history_shards] == [shard.digest for shard in cut.history_shards]
        assert whole.rows + sum(whole.rejected.values()) == len(drawn)
        urls = keys(refining.rows(root, whole).column("url").combine_chunks(), ("utm_*",)).drop_null().to_pylist()
        assert len(urls) == len(set(urls))


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_every_engine_stores_the_same(cluster: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    draws = random.Random(7)
    days = [
        [page(f"https://e.org/{draws.randrange(30)}", draws.choice("xyz"), n, day, f"{day}{draws.randrange(9)}") for n in range(60)]
        for day in ("2026-11-1", "2026-11-2")
    ]  # fmt: skip
    stored = []
    for on, address in (("local", ""), (cluster, request.getfixturevalue(cluster))):
        root, history = tmp_path / on, list[str]()
        for day in days:
            parent = refining.commit_parent(root, tables(day, 3))
            path, manifest = refining.refined(
                root, STAGE, parent, {"buckets": 4}, history=history, on=on, address=address
            )
            history.append(path)
        assert manifest.rejected.keys() == {"dedup_url:older", "dedup_url:seen_before"}
        assert len(superseded(root, manifest)) > 9
        stored.append([(root / path).read_bytes() for path in history])
    assert stored[0] == stored[1]
