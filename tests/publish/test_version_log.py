"""The dataset's log: a chain of sealed entries, of which none can be removed, changed or replaced unnoticed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import seal, sha256
from pipeline_tasks.store.log_chain import dataset_log, entry_path, head_path, read_chain
from tests.refining import resealed

RECIPE = "web"


def published(root: Path, *snapshots: str) -> None:
    for snapshot in snapshots:
        facts = {"recipe": RECIPE, "snapshot": snapshot, "landing": "", "manifests": {}, "verdicts": {}, "prefix": "p"}
        version_log.append(str(root), {**facts, "documents": 1, "tokens": 0, "sequences": 0})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with three versions and a retraction."""
    published(tmp_path, "2026-11-01", "2026-11-02", "2026-11-03")
    version_log.retract(str(tmp_path), RECIPE, "2026-11-02", "spam")
    return tmp_path


def entry(root: Path, number: int) -> Path:
    return root / entry_path(RECIPE, number)


def head(root: Path, number: int) -> Path:
    return root / head_path(RECIPE, number)


def test_each_entry_names_the_digest_of_the_one_before(root: Path) -> None:
    chain = read_chain(str(root), dataset_log(RECIPE))
    assert [link.number for link in chain] == [1, 2, 3, 4]
    previous = [json.loads(entry(root, number).read_bytes())["previous"] for number in range(1, 5)]
    assert previous == ["", *(link.digest for link in chain[:-1])]
    assert [head(root, link.number).read_text() for link in chain] == [f"{link.digest}\n" for link in chain]
    assert [type(item).__name__ for item in version_log.log(str(root), RECIPE)] == [*["Version"] * 3, "Retraction"]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_removed_entry_is_named(root: Path, number: int) -> None:
    entry(root, number).unlink()
    with pytest.raises(ContractError, match=re.escape(f"{entry(root, number)}: version {number} of recipe web ")):
        version_log.latest_by_snapshot(str(root), RECIPE)
    with pytest.raises(ContractError, match=re.escape(f"{entry(root, number)}: version {number} of recipe web ")):
        published(root, "2026-11-04")


def flipped(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


EDITS: dict[str, Callable[[Path], None]] = {
    "flipped": flipped,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "not JSON": lambda path: path.write_bytes(b"\xff\xfe"),
    "nested too deeply": lambda path: path.write_bytes(b"[" * 100_000),
    "a list": lambda path: path.write_bytes(b"[]\n"),
    "edited": lambda path: path.write_bytes(path.read_bytes().replace(b'"recipe":"web"', b'"recipe":"wet"')),
    "edited and sealed again": lambda path: resealed(path, landing="elsewhere", reason="none"),
    "of an earlier release": lambda path: path.write_bytes(b'{"number":1,"recipe":"web"}'),
}


@pytest.mark.parametrize("edit", sorted(EDITS))
@pytest.mark.parametrize("number", [1, 3, 4])
def test_a_changed_entry_is_named(root: Path, number: int, edit: str) -> None:
    EDITS[edit](entry(root, number))
    with pytest.raises(ContractError, match=rf"datasets/web/.*{number + (edit.endswith('again') and number < 4)}\b.*"):
        version_log.log(str(root), RECIPE)


def test_an_entry_in_the_place_of_another_is_named(root: Path) -> None:
    entry(root, 2).write_bytes(entry(root, 1).read_bytes())
    with pytest.raises(ContractError, match=re.escape(f"{entry(root, 2)}: number ") + ".*1 .* 2\\b"):
        version_log.log(str(root), RECIPE)


def test_an_entry_of_another_recipe_is_named(root: Path) -> None:
    entry(root, 1).parent.rename(root / "datasets/other")
    with pytest.raises(ContractError, match=r"datasets/other/000000000001\.json: recipe .*'web' .*'other'"):
        version_log.log(str(root), "other")


def test_a_crash_before_the_head_is_healed_by_the_next_entry(root: Path) -> None:
    body = head(root, 4).read_bytes()
    for left in (None, b""):
        head(root, 4).unlink(missing_ok=True)
        if left is not None:
            head(root, 4).write_bytes(left)
        assert len(version_log.log(str(root), RECIPE)) == 4
    published(root, "2026-11-04")
    assert head(root, 4).read_bytes() == body
    assert head(root, 5).is_file()


def test_a_changed_head_is_named(root: Path) -> None:
    head(root, 4).write_text("0" * 64)
    with pytest.raises(ContractError, match=re.escape(f"{head(root, 4)} ")):
        version_log.log(str(root), RECIPE)


@pytest.mark.parametrize("changes", [{"files": 7}, {"extra": 1}, {"files": [{"path": "a"}]}])
def test_an_entry_with_other_fields_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    published(tmp_path, "2026-11-01")
    head(tmp_path, 1).unlink()
    resealed(entry(tmp_path, 1), **changes)
    with pytest.raises(ContractError, match=re.escape(f"{entry(tmp_path, 1)} ")):
        version_log.log(str(tmp_path), RECIPE)


def test_what_is_no_entry_is_not_read(root: Path) -> None:
    (root / "datasets/web/notes.json").write_bytes(seal({"a": 1}))
    (root / "datasets/.DS_Store").write_bytes(b"")
    assert len(version_log.log(str(root), RECIPE)) == 4
    assert version_log.recipes(str(root)) == [RECIPE]


def test_racing_writers_append_each_once(tmp_path: Path) -> None:
    published(tmp_path, "2026-11-01")
    chain = read_chain(str(tmp_path), dataset_log(RECIPE))
    published(tmp_path, "2026-11-02")
    from pipeline_tasks.store.log_chain import append

    assert not append(str(tmp_path), dataset_log(RECIPE), chain, {"snapshot": "2026-11-03"})
    published(tmp_path, "2026-11-03")
    assert [item.snapshot for item in version_log.log(str(tmp_path), RECIPE)] == [
        f"2026-11-0{day}" for day in (1, 2, 3)
    ]


def files(prefix: str, *names: str) -> tuple[version_log.PublishedFile, ...]:
    return tuple(version_log.PublishedFile(f"{prefix}/{name}", len(name), sha256(name.encode())) for name in names)


def append(root: Path, snapshot: str, prefix: str, *names: str) -> version_log.Version:
    facts = {"recipe": RECIPE, "snapshot": snapshot, "landing": "", "manifests": {}, "verdicts": {}, "prefix": prefix}
    counts = {"documents": 1, "tokens": 0, "sequences": 0, "files": files(prefix, *names)}
    return version_log.append(str(root), {**facts, **counts})


def test_files_are_promised_below_the_prefix_of_their_version(tmp_path: Path) -> None:
    append(tmp_path, "2026-11-01", "publish/a", "tokens.bin", "report-1.html")
    append(tmp_path, "2026-11-02", "publish/b", "tokens.bin")
    assert sorted(version_log.promised_files(str(tmp_path), RECIPE, "publish/a")) == [
        "publish/a/report-1.html",
        "publish/a/tokens.bin",
    ]
    assert version_log.promised_files(str(tmp_path), RECIPE, "publish/c") == {}


def test_the_same_data_with_another_report_is_the_same_version(tmp_path: Path) -> None:
    first = append(tmp_path, "2026-11-01", "publish/a", "tokens.bin", "report-1.html")
    (tmp_path / "publish/a").mkdir(parents=True)
    (tmp_path / "publish/a/report-1.html").write_bytes(b"report-1.html")
    assert append(tmp_path, "2026-11-01", "publish/a", "tokens.bin", "report-2.html").number == first.number
    (tmp_path / "publish/a/report-1.html").unlink()
    assert append(tmp_path, "2026-11-01", "publish/a", "tokens.bin", "report-2.html").number == first.number + 1


def test_a_snapshot_that_was_never_published_is_named_beside_those_that_were(root: Path) -> None:
    with pytest.raises(RecipeError, match=r"2026-12-01 of recipe web .*: 2026-11-01, 2026-11-03\)"):
        version_log.current(str(root), RECIPE, "2026-12-01")
    with pytest.raises(RecipeError, match=r"2026-11-02 of recipe web .*: spam; `refinery retract --undo 2026-11-02 "):
        version_log.current(str(root), RECIPE, "2026-11-02")
    with pytest.raises(RecipeError, match=r"recipe other .*: web\)"):
        version_log.current(str(root), "other")
