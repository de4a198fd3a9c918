"""Near-duplicate removal where others die: a huge template, a long chain, a band that half of the corpus shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks import planted
from pipeline_tasks.engines.choose import engine
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.stage import Kernel, Shards
from tests import refining
from tests.documents import documents

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BUCKETS = 8


def sizes(short: int, long: int) -> pytest.MarkDecorator:
    """How many pages: so many that all pairs would be ten times what is allowed; nightly as many as in a crawl."""
    return pytest.mark.parametrize("count", [short, pytest.param(long, marks=pytest.mark.nightly)])


@dataclass(slots=True)
class Shuffled:
    """How many rows an engine's `group` was given."""

    rows: int = 0

    def watched(self, on: str, address: str) -> Any:
        """The factory of an engine whose shuffles are counted here."""

        def make(*arguments: Any) -> Any:
            built = engine(on, address)(*arguments)
            group = built.group

            def counted(kernel: Kernel, rows: Shards, **how: Any) -> Shards:
                self.rows += sum(shard.rows for shard in rows)
                shards: Shards = group(kernel, rows, **how)
                return shards

            built.group = counted
            return built

        return make


@pytest.fixture
def on(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Name and address of the engine."""
    return request.param, request.getfixturevalue("spark") if request.param == "spark" else ""


def deduplicated(
    root: Path, texts: list[str], on: tuple[str, str], params: Mapping[str, Any]
) -> tuple[Manifest, Shuffled]:
    parent = refining.commit_parent(root, [documents(texts)])
    exact, _ = refining.refined(root, "dedup_exact", parent, {"buckets": BUCKETS})
    shuffled = Shuffled()
    work = RefineRequest(str(root), "dedup_minhash", {"buckets": BUCKETS, **params}, exact)
    _, manifest, _ = refine(work, shuffled.watched(*on))
    return manifest, shuffled


@pytest.mark.parametrize("on", ["local", "spark"], indirect=True)
@sizes(5_000, 100_000)
def test_a_template_leaves_one_page_and_never_pairs_them_all(tmp_path: Path, on: tuple[str, str], count: int) -> None:
    manifest, shuffled = deduplicated(tmp_path, planted.template(count), on, {})
    assert manifest.rows == 1
    assert manifest.rejected == {"dedup_minhash:near_duplicate": count - 1}
    assert manifest.metrics["kept"]["unsettled_bands"]["sum"] == 0
    assert shuffled.rows < 100 * count  # all pairs would be half of `count` per page


@pytest.mark.parametrize("on", ["local", pytest.param("spark", marks=pytest.mark.nightly)], indirect=True)
@sizes(2_000, 10_000)
def test_a_chain_of_near_duplicates_comes_together(tmp_path: Path, on: tuple[str, str], count: int) -> None:
    texts = planted.chain(count)
    memory, shuffled = deduplicated(tmp_path / "memory", texts, on, {})
    assert memory.rows < count / 100
    assert memory.metrics["kept"]["unsettled_bands"]["sum"] == 0
    assert shuffled.rows < 100 * count
    if on[0] != "local":
        return
    stars, _ = deduplicated(tmp_path / "stars", texts, on, {"edges_in_memory": 0})
    assert [shard.digest for shard in stars.shards] == [shard.digest for shard in memory.shards]
    assert [shard.digest for shard in stars.rejects] == [shard.digest for shard in memory.rejects]


@pytest.mark.parametrize("on", ["local", pytest.param("spark", marks=pytest.mark.nightly)], indirect=True)
@sizes(4_000, 20_000)
def test_a_passage_that_half_of_the_pages_bear_removes_none_of_them(
    tmp_path: Path, on: tuple[str, str], count: int
) -> None:
    manifest, shuffled = deduplicated(tmp_path, planted.boilerplate(count), on, {"rows": 4})
    assert manifest.rows == count
    assert shuffled.rows < 100 * count
