"""The crawl of `benchmarks/scale.py`: real pages with other words, and nothing else changed."""

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.landing import formats

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
LETTERS = re.compile(r"[^\W\d_]")


@pytest.fixture(scope="module")
def varied_crawl() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("varied_crawl")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(folder, ["2026-11-19"], files=1, scale=0.1)
    return folder / "2026-11-19"


@pytest.fixture(scope="module")
def source(varied_crawl: Any, snapshot: Path) -> Any:
    return varied_crawl.read_source(snapshot)


def bodies(varied_crawl: Any, source: Any, copies: int) -> list[dict[str, bytes]]:
    pages = varied_crawl.exchanges(source, 0)
    taken = [islice(pages, len(source.pages)) for _ in range(copies)]
    return [{page.url.partition(".")[2]: page.body for page in copy} for copy in taken]


def test_the_same_arguments_give_the_same_bytes(varied_crawl: Any, source: Any, tmp_path: Path) -> None:
    for name in ("first", "second"):
        varied_crawl.write(
            tmp_path / name, varied_crawl.exchanges(source, 7), varied_crawl.Volume(2_000_000, 1_500_000)
        )
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second
    assert len(first) == 2
    varied_crawl.write(tmp_path / "other", varied_crawl.exchanges(source, 8), varied_crawl.Volume(2_000_000, 1_500_000))
    assert (tmp_path / "other" / "varied-00000.warc.gz").read_bytes() != first["varied-00000.warc.gz"]


def test_copies_have_the_form_of_the_page_and_other_words(varied_crawl: Any, source: Any) -> None:
    first, second = bodies(varied_crawl, source, 2)
    assert first.keys() == second.keys()
    forms = [{url: LETTERS.sub("x", body.decode()) for url, body in copy.items()} for copy in (first, second)]
    assert forms[0] == forms[1]
    changed = sum(first[url] != second[url] for url in first)
    assert changed > 0.9 * len(first)


def test_words_change_one_to_one_and_the_frequent_ones_stay(varied_crawl: Any, source: Any) -> None:
    vocabulary = source.vocabulary(0, 3)
    for members in source.classes:
        own = Counter(source.words[number].encode() for number in members.tolist())
        assert Counter(vocabulary[members].tolist()) == own
    number = source.words.index("the")
    assert vocabulary[number] == b"the"


def test_every_file_is_read_without_damage(varied_crawl: Any, source: Any, tmp_path: Path) -> None:
    varied_crawl.write(tmp_path / "crawl", varied_crawl.exchanges(source, 0), varied_crawl.Volume(1 << 60, 1, files=5))
    files = sorted((tmp_path / "crawl").iterdir())
    assert len(files) == 5
    for path in files:
        with path.open("rb") as stream:
            rows = [row for batch in formats.read_records(path.name, stream, snapshot="s") for row in batch.to_pylist()]
        assert [row["kind"] for row in rows] == ["warcinfo", "request", "response"]
        assert not any(row["error"] for row in rows)
