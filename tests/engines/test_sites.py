"""The sites that a manifest names, and the verdict that follows from them, are the same on every engine."""

from pathlib import Path

import pytest

from pipeline_tasks.gate.verdicts import judge
from pipeline_tasks.profiles.removals import LARGEST, arrivals
from pipeline_tasks.store.reading import read_manifest
from tests.documents import documents
from tests.refining import commit_parent, refined

pytestmark = pytest.mark.slow

SITES = {f"site{rank:02d}": 3 + 40 // (rank + 1) for rank in range(30)}


def day(root: Path, number: int, on: tuple[str, str], **sites: int) -> str:
    """Refine a day of documents in three shards; return the path of its manifest."""
    urls = [f"https://{site}.org/{number}/{page}" for site, count in sites.items() for page in range(count)]
    table = documents([f"the text of {url}" for url in urls], urls)
    third = table.num_rows // 3
    tables = [table.slice(0, third), table.slice(third, third), table.slice(2 * third)]
    engine, address = on
    return refined(root, "dedup_exact", commit_parent(root, tables), {"buckets": 2}, on=engine, address=address)[0]


@pytest.mark.parametrize("name", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_a_flood_has_the_same_verdict(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    verdicts = []
    for engine, address in (("local", ""), (name, request.getfixturevalue(name))):
        root = tmp_path / engine
        root.mkdir()
        days = [day(root, number, (engine, address), **SITES) for number in range(3)]
        flooded = day(root, 9, (engine, address), **SITES, flood=200)
        verdicts.append(judge(str(root), flooded, trailing_paths=days))
    local, other = verdicts
    assert other == local
    assert "site_rise_max" in {failure.column for failure in local.failures}


def test_a_manifest_names_the_largest_sites_of_all_partitions(tmp_path: Path) -> None:
    manifest = read_manifest(str(tmp_path), day(tmp_path, 0, ("local", ""), **SITES))
    named = {name: count for name, count in arrivals(manifest.metrics).items() if name.startswith("site ")}
    largest = sorted(SITES, key=lambda site: (-SITES[site], site))[:LARGEST]
    assert named == {f"site {site}.org": SITES[site] for site in largest}
