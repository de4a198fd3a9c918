"""Lines that a host repeats at the sides of its pages are cut, what is between stays, over days and in any partitioning."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.cut_templates import SECTION
from tests import refining
from tests.documents import documents
from tests.examples import fewest_examples

STAGE = "cut_templates"
HEAD = ["Small. Fast. Reliable.", "Choose any three."]
TAIL = ["See also", "Part of the git(1) suite"]


def page(number: int, *, head: list[str] | None = None, tail: list[str] | None = None, body: str = "") -> str:
    own = [f"Page {number}", "SYNOPSIS", f"    run --page {number}", "", body or f"It says {number} " * 20, "}"]
    return "\n".join([*(HEAD if head is None else head), *own, *(TAIL if tail is None else tail)])


def cut(
    root: Path,
    table: pa.Table,
    history: Sequence[str] = (),
    shards: int = 1,
    on: str = "local",
    address: str = "",
    batch_rows: int = 4096,
    **params: Any,
) -> tuple[str, Manifest]:
    ends = [table.num_rows * part // shards for part in range(shards + 1)]
    parent = refining.commit_parent(root, [table.slice(at, end - at) for at, end in pairwise(ends)])
    exact, _ = refining.refined(root, "dedup_exact", parent, {"buckets": 2})
    how = {"history": history, "on": on, "address": address, "batch_rows": batch_rows}
    return refining.refined(root, STAGE, exact, {"buckets": 2, **params}, **how)  # type: ignore[arg-type]


def texts(root: Path, manifest: Manifest) -> dict[str, str]:
    return {row["url"]: row["text"] for row in refining.rows(root, manifest).to_pylist()}


def of_host(pages: list[str], host: str = "a.org", first: int = 0) -> pa.Table:
    return documents(pages, [f"https://{host}/{number}" for number in range(first, first + len(pages))])


def test_repeated_lines_at_the_sides_are_cut_and_headings_between_stay(tmp_path: Path) -> None:
    pages = [page(number) for number in range(5)]
    _, manifest = cut(tmp_path, of_host(pages))
    bare = [page(number, head=[], tail=[]) for number in range(5)]
    assert sorted(texts(tmp_path, manifest).values()) == bare
    assert manifest.rows == 5
    assert manifest.rejected == {}
    for row in refining.rows(tmp_path, manifest).to_pylist():
        whole = next(text for text in pages if row["text"] in text)
        gone = {at for span in row["template_spans"] for at in range(span["start"], span["end"])}
        assert "".join(letter for at, letter in enumerate(whole) if at not in gone) == row["text"]
        assert len(row["template_spans"]) == 2
        assert (row["template_chars"], row["chars"]) == (len(gone), len(row["text"]))


def test_four_pages_or_another_host_are_too_few(tmp_path: Path) -> None:
    pages = [page(number) for number in range(4)]
    both = pa.concat_tables([of_host(pages), of_host([page(9)], "b.org")])
    _, manifest = cut(tmp_path, both)
    assert sorted(texts(tmp_path, manifest).values()) == sorted([*pages, page(9)])
    _, fewer = cut(tmp_path, both, documents=4)
    assert sorted(texts(tmp_path, fewer).values()) == sorted(
        [*(page(at, head=[], tail=[]) for at in range(4)), page(9)]
    )


def test_a_single_line_at_the_head_and_brackets_at_the_end_stay(tmp_path: Path) -> None:
    pages = [page(number, head=["SYNOPSIS"], tail=[]) for number in range(6)]
    _, manifest = cut(tmp_path, of_host(pages))
    assert sorted(texts(tmp_path, manifest).values()) == pages


def test_a_text_that_is_mostly_template_stays_whole(tmp_path: Path) -> None:
    pages = [page(number, body="short") for number in range(6)]
    _, manifest = cut(tmp_path, of_host(pages), most=0.1)
    assert sorted(texts(tmp_path, manifest).values()) == pages
    assert {row["template_chars"] for row in refining.rows(tmp_path, manifest).to_pylist()} == {0}


PROSE_TAIL = "The above expression can be tailored by adding restrictions, which many applications have of their own."


@pytest.mark.parametrize("tail", [PROSE_TAIL, "上記の正規表現は、アプリケーションに固有の制限を加えることで、さらに厳密なものにすることができる場合があります。", "Weight\t12 kg", "</form>"])  # fmt: skip
def test_prose_rows_and_code_are_never_cut(tail: str, tmp_path: Path) -> None:
    pages = [page(number, head=[], tail=[tail], body=f"It says {number} " * 60) for number in range(6)]
    _, manifest = cut(tmp_path, of_host(pages))
    assert sorted(texts(tmp_path, manifest).values()) == pages


def test_editions_of_a_page_are_one_page_of_one_site(tmp_path: Path) -> None:
    tongues = ["en", "de", "fr", "pt-br", "ja"]
    editions = [f"https://www.a.org/doc/faq.{tongue}.html" for tongue in tongues]
    sites = [f"https://{tongue}.b.org/{at}" for at, tongue in enumerate(tongues)]
    versions = [f"https://c.org/{at}.{at}/guide" for at in range(5)]
    pages = [page(at) for at in range(15)]
    _, manifest = cut(tmp_path, documents(pages, [*editions, *sites, *versions]))
    left = texts(tmp_path, manifest)
    assert [left[url] for url in (*editions, *versions)] == [*pages[:5], *pages[10:]]
    assert [left[url] for url in sites] == [page(at, head=[], tail=[]) for at in range(5, 10)]


def test_a_list_goes_as_a_whole_or_stays(tmp_path: Path) -> None:
    rest, more = ["Further reading", "- Characters", "  - Languages"], "- Only here"
    pages = [page(at, tail=[*rest, *([f"{more} {at}"] if at > 5 else [])], head=[]) for at in range(8)]
    pages[7] = page(7, tail=[rest[0], f"{more} 7", *rest[1:]], head=[])
    _, manifest = cut(tmp_path, of_host(pages))
    assert sorted(texts(tmp_path, manifest).values()) == [*(page(at, head=[], tail=[]) for at in range(6)), *pages[6:]]


def test_last_lines_that_differ_in_a_version_are_one_and_headlines_stay(tmp_path: Path) -> None:
    pages = [
        page(
            at,
            head=[*HEAD, f"Release 3.{at}.1 of the mill"],
            tail=["<< Back to the index", f"Mill - Guide v2.24.{at}."],
        )
        for at in range(6)
    ]
    pages[5] = pages[5].replace("Guide", "Rare essay")
    _, manifest = cut(tmp_path, of_host(pages), most=0.5)
    bare = [page(at, head=[f"Release 3.{at}.1 of the mill"], tail=[]) for at in range(6)]
    assert sorted(texts(tmp_path, manifest).values()) == bare


def test_a_heading_of_a_list_that_is_cut_goes_too(tmp_path: Path) -> None:
    pages = [page(at, head=[], tail=[f"Read on about {at}", "- Characters", "- Languages"]) for at in range(5)]
    _, manifest = cut(tmp_path, of_host(pages))
    rows = refining.rows(tmp_path, manifest).to_pylist()
    assert sorted(row["text"] for row in rows) == [page(at, head=[], tail=[]) for at in range(5)]
    assert {span["kind"] for row in rows for span in row["seam_spans"]} == {"heading"}
    assert {row["chars"] - len(row["text"]) for row in rows} == {0}


def test_pages_of_earlier_snapshots_count(tmp_path: Path) -> None:
    first, _ = cut(tmp_path, of_host([page(number) for number in range(3)]))
    _, alone = cut(tmp_path, of_host([page(number) for number in range(3, 5)], first=3))
    assert page(3) in texts(tmp_path, alone).values()
    _, second = cut(tmp_path, of_host([page(number) for number in range(3, 5)], first=3), [first])
    assert sorted(texts(tmp_path, second).values()) == [page(3, head=[], tail=[]), page(4, head=[], tail=[])]


def test_batches_of_any_size_save_the_same_lines(tmp_path: Path) -> None:
    """Both buckets have pages with each line: its two rows come in one batch, or in two."""
    stored = []
    for batch_rows in (4096, 1):
        path, manifest = cut(
            tmp_path / str(batch_rows), of_host([page(number) for number in range(8)]), batch_rows=batch_rows
        )
        stored.append((tmp_path / str(batch_rows) / path).read_bytes())
        lines = refining.rows(tmp_path / str(batch_rows), manifest, SECTION).group_by(["hash", "check"])
        assert {*lines.aggregate([("page", "count_distinct")]).column("page_count_distinct").to_pylist()} == {5}
    assert stored[0] == stored[1]


def test_documents_without_an_address_are_compared_with_none(tmp_path: Path) -> None:
    pages = [page(number) for number in range(6)]
    _, manifest = cut(tmp_path, documents([*pages, ""], [None] * 7))
    assert sorted(row["text"] for row in refining.rows(tmp_path, manifest).to_pylist()) == sorted([*pages, ""])


@fewest_examples
@given(
    lines=st.lists(
        st.lists(st.sampled_from(["one two", "three", "four x", "}", "", "five"]), max_size=6), min_size=1, max_size=12
    ),
    shards=st.integers(1, 3),
)
def test_any_partitioning_cuts_the_same_and_what_is_cut_was_at_a_side(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]], shards: int
) -> None:
    root = tmp_path_factory.mktemp("any")
    pages = ["\n".join([*some, f"page {at}", *reversed(some)]) for at, some in enumerate(lines)]
    table = of_host(pages)
    _, one = cut(root, table, documents=2, most=1)
    _, other = cut(root, table.take(list(reversed(range(len(pages))))), shards=shards, documents=2, most=1)
    assert texts(root, one) == texts(root, other)
    for at, text in enumerate(pages):
        left = texts(root, one)[f"https://a.org/{at}"]
        assert left in text
        assert f"page {at}" in left


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["spark", "ray"])
def test_every_engine_cuts_the_same(cluster: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    table = of_host([page(number) for number in range(8)])
    local, _ = cut(tmp_path / "local", table, shards=3)
    other, manifest = cut(tmp_path / cluster, table, shards=3, on=cluster, address=request.getfixturevalue(cluster))
    assert (tmp_path / cluster / other).read_bytes() == (tmp_path / "local" / local).read_bytes()
    assert manifest.metrics["kept"]["template_chars"]["sum"] > 0
