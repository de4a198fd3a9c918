"""Vacuum removes what was written to be published and no version names, and no file that one names."""

import shutil
from pathlib import Path

import pytest
from refinery_exports.described import Target
from refinery_exports.place import CLAIM, FILES
from refinery_exports.versions import export_in_root

from pipeline_tasks.engines.each import HERE
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import dataset_log
from pipeline_tasks.upkeep.vacuum import find_orphans, remove
from tests.small_build import DATASET, build, copied
from tests.small_root import RECIPE, SmallRoot

pytestmark = pytest.mark.slow

EVERYTHING = -3600.0
"""A grace by which a file that was just written is old."""


@pytest.fixture(scope="module")
def whole(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A root with a training dataset that is exported, which a vacuum has left alone."""
    small = copied(small_root, tmp_path_factory.mktemp("vacuum"))
    build(small)
    export_in_root(small.root, version_log.current(small.root, DATASET), Target("numpy"), HERE)
    remove(small.root, find_orphans(small.root, EVERYTHING), limit=1.0)
    return small.root


@pytest.fixture
def root(whole: str, tmp_path: Path) -> str:
    return str(shutil.copytree(whole, tmp_path / "root"))


def orphans(root: str, grace: float = EVERYTHING) -> list[str]:
    return sorted(entry.path for entry, _ in find_orphans(root, grace).files)


def test_what_versions_name_and_complete_exports_stay(root: str) -> None:
    assert list(Path(root, "publish").rglob(FILES)), "the export is complete"
    assert orphans(root) == []
    assert verify(root).findings.problems == []


def test_what_no_version_names_goes_when_it_is_old(root: str) -> None:
    """Shards of a build that was refused, the files beside them, and a report that was written twice."""
    prefix = version_log.current(root, RECIPE).prefix
    lost = ["publish/shards/00.bin", "publish/unpublished/dataset.json", f"{prefix}/report-00.html"]
    for path in lost:
        storage.connect(root).create(path, b"nobody's")
    assert orphans(root, grace=3600.0) == []
    assert orphans(root) == sorted(lost)
    remove(root, find_orphans(root, EVERYTHING), limit=1.0)
    assert [path for path in lost if Path(root, path).exists()] == []
    assert verify(root).findings.problems == []


def test_an_export_that_was_never_completed_goes(root: str) -> None:
    folder = f"{version_log.current(root, DATASET).prefix}/exports/mds"
    for name in (CLAIM, "data/00.mds"):
        storage.connect(root).create(f"{folder}/{name}", b"half")
    assert orphans(root) == [f"{folder}/data/00.mds", f"{folder}/{CLAIM}"]


def test_receipts_of_work_that_is_done_or_was_killed_go(root: str) -> None:
    folder = f"{version_log.current(root, DATASET).prefix}/exports/numpy"
    paths = [f"{folder}/receipts/shards/00.json", "requests/verify-00/rows/00.json"]
    for path in paths:
        storage.connect(root).create(path, b"{}")
    assert orphans(root, grace=3600.0) == []
    assert orphans(root) == sorted(paths)


def test_a_version_that_is_published_after_the_search_keeps_its_files(root: str) -> None:
    path = "publish/shards/00.bin"
    storage.connect(root).create(path, b"just in time")
    found = find_orphans(root, EVERYTHING)
    version = version_log.current(root, RECIPE)
    fields = {name: getattr(version, name) for name in ("recipe", "landing", "manifests", "verdicts", "prefix")}
    sizes = {"documents": 1, "tokens": 0, "sequences": 0}
    named = (PublishedFile(path, 12, "0" * 64),)
    version_log.append(root, {**fields, **sizes, "snapshot": "2026-12-01", "files": named})
    remove(root, found, limit=1.0)
    assert Path(root, path).exists()


@pytest.mark.parametrize(
    ("recipe", "again"),
    [(RECIPE, "every snapshot again in order"), (DATASET, f"`refinery build .* --recipe {DATASET}`")],
)
def test_the_files_of_a_log_that_was_removed_are_no_orphans(recipe: str, again: str, root: str) -> None:
    shutil.rmtree(Path(root, dataset_log(recipe).folder))
    with pytest.raises(ContractError, match=f"{root}/datasets/{recipe} was removed or cut.* then {again}"):
        find_orphans(root, EVERYTHING)


def test_what_was_made_of_versions_whose_log_was_removed_names_the_log(root: str) -> None:
    shutil.rmtree(Path(root, dataset_log(RECIPE).folder))
    made = [problem for problem in verify(root).findings.problems if "was made with" in problem.problem]
    assert {(problem.heal, f"{root}/compose/" in problem.object) for problem in made} == {
        ("restore that log from a backup", True)
    }
