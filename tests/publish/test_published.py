"""Published files: written again when they are damaged, never replaced by others, and read only as far as needed."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, DeterminismViolation, DigestMismatch
from pipeline_tasks.inspect.document.trace import trace
from pipeline_tasks.manifest import ABANDONED
from pipeline_tasks.publish.datasets.building import file_of
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.published import PublishedFile, publish_file, read_published_file
from pipeline_tasks.publish.superseded import read_superseded
from pipeline_tasks.sealed import path_of, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.upkeep.vacuum import find_orphans
from tests import small_build
from tests.chain import reply
from tests.refining import resealed
from tests.small_root import DAYS, RECIPE, SmallRoot, refine

NAMES = ("superseded.parquet",)


def flipped(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": flipped,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "removed": Path.unlink,
}


@pytest.fixture
def small(small_root: SmallRoot, tmp_path: Path) -> SmallRoot:
    """A copy of the small root."""
    return SmallRoot(str(shutil.copytree(small_root.root, tmp_path / "root")), small_root.landing)


def published(small: SmallRoot) -> version_log.Version:
    return version_log.current(small.root, RECIPE, DAYS[1])


@pytest.mark.slow
def test_a_version_names_every_file_that_was_published_with_it(small: SmallRoot) -> None:
    version = published(small)
    stored = sorted(Path(small.root, version.prefix).rglob("*"))
    assert [f"{small.root}/{file.path}" for file in version.files] == list(map(str, stored))
    assert {Path(file.path).name for file in version.files} == {*NAMES, Path(version.report).name}
    for file in version.files:
        assert sha256(read_published_file(small.root, file)) == file.digest
    for referred in (*version.manifests.values(), *version.verdicts.values()):
        body = Path(small.root, path_of(referred)).read_bytes()
        assert referred == f"{path_of(referred)}@sha256:{sha256(body)}"


@pytest.mark.slow
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_publishing_again_heals_damaged_files(small: SmallRoot, damage: str) -> None:
    version = published(small)
    bodies = {name: Path(small.root, version.file(name).path).read_bytes() for name in NAMES}
    for name in NAMES:
        DAMAGES[damage](Path(small.root, version.file(name).path))
        with pytest.raises(ContractError, match=re.escape(version.file(name).path) + f".* {DAYS[1]} of recipe small"):
            read_published_file(small.root, version.file(name), version.way_out)
    with pytest.raises(ContractError, match=rf"superseded\.parquet.* {DAYS[1]} "):
        list(read_superseded(small.root, RECIPE))
    assert refine(small, DAYS[1])["version"] == version.number
    assert {name: Path(small.root, version.file(name).path).read_bytes() for name in NAMES} == bodies


@pytest.mark.slow
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_damaged_report_is_written_again_or_published_in_a_new_version(small: SmallRoot, damage: str) -> None:
    version = published(small)
    report = Path(small.root, version.report)
    body = report.read_bytes()
    DAMAGES[damage](report)
    assert main(["look", "report", small.root, "--recipe", RECIPE, "--snapshot", DAYS[1]]) == ContractError.exit_code
    assert refine(small, DAYS[1])["version"] == version.number
    assert report.read_bytes() == body
    DAMAGES[damage](report)
    Path(small.root, "ledger.sqlite").unlink()  # with it the costs go, which a report shows
    assert refine(small, DAYS[1])["version"] == 5
    later = published(small)
    assert sha256(Path(small.root, later.report).read_bytes()) == later.file(Path(later.report).name).digest


@pytest.mark.slow
def test_nothing_that_a_version_names_is_vacuumed(small: SmallRoot) -> None:
    paths = [entry.path for entry, _ in find_orphans(small.root, grace=-1.0, expire=1e-9).files]
    version = published(small)
    named = {
        *map(path_of, (*version.manifests.values(), *version.verdicts.values())),
        *(file.path for file in version.files),
    }
    assert not named & set(paths)
    assert not [path for path in paths if path.startswith(("datasets/", "publish/"))]


@pytest.mark.slow
@pytest.mark.parametrize("left", [b"", None, ABANDONED])
def test_a_published_stage_whose_manifest_is_gone_is_not_vacuumed(small: SmallRoot, left: bytes | None) -> None:
    first = version_log.current(small.root, RECIPE, DAYS[0])
    path = Path(small.root, path_of(first.manifests["extract"]))
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    with pytest.raises(ContractError, match=re.escape(str(path.parent))):
        find_orphans(small.root, grace=-1.0)


# --- What the next day builds on ------------------------------------------------------------------------------------


def emptied_history(small: SmallRoot, first: version_log.Version) -> None:
    path = Path(small.root, path_of(first.manifests["dedup_exact"]))
    resealed(path, history={"documents": []})


def without_history(small: SmallRoot, first: version_log.Version) -> None:
    resealed(Path(small.root, path_of(first.manifests["dedup_exact"])), history={})


def removed_version(small: SmallRoot, first: version_log.Version) -> None:
    Path(small.root, version_log.version_path(RECIPE, first.number)).unlink()


def removed_last(small: SmallRoot, _: version_log.Version) -> None:
    Path(small.root, version_log.version_path(RECIPE, 4)).unlink()


def other_snapshot(small: SmallRoot, first: version_log.Version) -> None:
    resealed(Path(small.root, version_log.version_path(RECIPE, first.number)), snapshot="2027-01-01")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (emptied_history, "dedup_exact/"),
        (without_history, "dedup_exact/"),
        (removed_version, version_log.version_path(RECIPE, 1)),
        (removed_last, version_log.version_path(RECIPE, 4)),
        (other_snapshot, version_log.version_path(RECIPE, 2)),  # it names the digest of the one before
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_next_day_does_not_build_on_what_was_changed(
    small: SmallRoot, change: Callable[[SmallRoot, version_log.Version], None], named: str
) -> None:
    change(small, version_log.current(small.root, RECIPE, DAYS[0]))
    with pytest.raises(ContractError, match=re.escape(f"{small.root}/{named}")):
        _read_earlier(small.root)


def _read_earlier(root: str) -> None:
    """Find what is earlier, and read the manifests of a stage as it does."""
    for referred in reply("history", root=root, recipe=RECIPE, snapshot=DAYS[2])["history"]["dedup_exact"]:
        read_manifest(root, referred)


def test_a_file_that_a_version_names_is_not_replaced_by_another(any_root: str, tmp_path: Path) -> None:
    local, other = tmp_path / "one", tmp_path / "two"
    local.write_bytes(b"one")
    other.write_bytes(b"two")
    file = publish_file(any_root, "publish/ab/x", local, {})
    assert file == PublishedFile("publish/ab/x", 3, sha256(b"one"))
    with pytest.raises(DeterminismViolation, match=re.escape(f"{any_root}/{file.path}: ")):
        publish_file(any_root, "publish/ab/x", other, {file.path: file})
    assert storage.connect(any_root).read("publish/ab/x") == b"one"
    publish_file(any_root, "publish/ab/x", other, {})  # no version names it
    with pytest.raises(DigestMismatch, match=re.escape(f"{any_root}/{file.path}: ")):
        read_published_file(any_root, file)
    assert publish_file(any_root, "publish/ab/x", local, {file.path: file}) == file
    assert read_published_file(any_root, file) == b"one"


# --- Tokens of a training dataset -----------------------------------------------------------------------------------


@pytest.fixture
def dataset(small: SmallRoot) -> version_log.Version:
    """A training dataset that was built from the small root."""
    small_build.build(small)
    return version_log.current(small.root, small_build.DATASET)


@pytest.mark.slow
def test_a_trace_reads_one_sequence_and_its_lineage(
    small: SmallRoot, dataset: version_log.Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = type(storage.connect(small.root))
    whole, read = [], store.read
    monkeypatch.setattr(store, "read", lambda self, path: (whole.append(path), read(self, path))[1])
    assert trace(small.root, dataset, 5).position == 5
    assert whole
    assert not [path for path in whole if path.endswith((".bin", ".lineage.parquet"))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bin", "lineage"])
def test_tokens_of_another_size_are_refused(small: SmallRoot, dataset: version_log.Version, kind: str) -> None:
    file = file_of(open_build(small.root, dataset).index["shards"][0][kind])
    path = Path(small.root, file.path)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ContractError, match=re.escape(f"{path} ") + rf".* {file.bytes};"):
        trace(small.root, dataset, 0)
