"""Objects of every kind are damaged: `verify` notices what the table of kinds says, and nothing else."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.kinds import COPY, FOLLOWS, NAMED, SEALED, Kind, kind_of, kind_rows, kinds
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.sealed import SEAL, canonical, seal, sha256
from pipeline_tasks.store.erasures import CERTIFICATES, certificates
from tests import full_root
from tests.mutations import changed
from tests.small_root import SmallRoot

pytestmark = pytest.mark.slow

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("log entry", "log head", "manifest", "verdict", "Data Docs page", "partition", "receipt", "shard"),
            *("rejected rows", "quarantined rows", "published file", "compaction", "compacted segment"),
        ),
        "tests/faults/test_mutations.py",
    ),
    **dict.fromkeys(
        ("tokenizer pin", "tokenizer definition", "file of a published shard"), "tests/faults/test_build_mutations.py"
    ),
    **dict.fromkeys(("exported file", "file list of an export"), "tests/publish/test_export_formats.py"),
    "list of takedowns": "tests/publish/test_cut_logs.py",
    "segment of takedowns": "tests/publish/test_held_takedowns.py",
    "receipt of an export": "tests/engines/test_whole_root.py",
    "log page": "tests/store/test_log_chain.py",
    "ledger": "tests/publish/test_ledger.py",
    "shuffled rows": "tests/run/test_scratch.py",
    "probe": "tests/upkeep/test_doctor_of_stores.py",
}
"""Where the damages of kinds are that are not damaged here."""

HERE = tuple(dict.fromkeys(kind.noun for kind in kinds() if kind.noun not in ELSEWHERE))


@pytest.fixture(scope="module")
def root(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> str:
    return full_root.build(small_root, tmp_path_factory.mktemp("full"))


def by_kind(root: str) -> dict[Kind | None, list[Path]]:
    """The objects of a root by their kinds."""
    found: dict[Kind | None, list[Path]] = {}
    for path in sorted(path for path in Path(root).rglob("*") if path.is_file()):
        found.setdefault(kind_of(str(path.relative_to(root))), []).append(path)
    return found


def damaged(root: str) -> dict[str, tuple[Path, str]]:
    """An object of each kind that is damaged here, and what is noticed of it."""
    objects = {kind: paths for kind, paths in by_kind(root).items() if kind and kind.noun in HERE}
    # the object that names a segment is another one's: of a damaged one nothing more is read
    return {kind.noun: (paths[-(kind.noun == "cache segment")], kind.notices) for kind, paths in objects.items()}


def test_every_object_is_of_a_kind_and_every_kind_is_damaged(root: str) -> None:
    objects = by_kind(root)
    assert objects.get(None, []) == []
    assert {kind.noun for kind in objects if kind} >= set(HERE)
    assert ELSEWHERE.keys() <= {kind.noun for kind in kinds()}
    assert [name for name in set(ELSEWHERE.values()) if not Path(name).is_file()] == []
    report = verify(root)
    assert report.findings.problems == []
    assert [note for note in report.findings.notes if "no such object" in note] == []


def test_an_object_of_no_kind_is_noted(root: str) -> None:
    path = Path(root, "datasets", "a file of nobody")
    path.write_text("x")
    assert [note for note in verify(root).findings.notes if note.startswith(f"{path}: ")] != []
    path.unlink()


def flipped(body: bytes) -> bytes:
    return bytes([*body[: len(body) // 2], body[len(body) // 2] ^ 0x10, *body[len(body) // 2 + 1 :]])


def forged(body: bytes) -> bytes:
    """Change the last field of a sealed object, and seal it anew; of another object, flip a bit."""
    try:
        fields = {name: value for name, value in json.loads(body).items() if name != SEAL}
    except ValueError:
        return flipped(body)
    if body != seal(fields):
        return canonical(fields | {max(fields): changed(fields[max(fields)])})
    return seal(fields | {max(fields): changed(fields[max(fields)])})


DAMAGES: Mapping[str, tuple[Callable[[bytes], bytes] | None, tuple[str, ...]]] = {
    "flip": (flipped, (NAMED, FOLLOWS, SEALED)),
    "empty": (lambda _: b"", (NAMED,)),
    "delete": (None, (NAMED,)),
    "sealed edit": (forged, (NAMED, FOLLOWS)),
}
"""Damages, and the kinds of which each is noticed."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_notices_of_each_kind_what_the_table_says(damage: str, root: str) -> None:
    """All of them at once: each is an object of its own."""
    change, noticed_of = DAMAGES[damage]
    objects = damaged(root)
    bodies = {path: path.read_bytes() for path, _ in objects.values()}
    for path, body in bodies.items():
        if change is None:
            path.unlink()
        else:
            path.write_bytes(change(body))
    try:
        problems = verify(root).findings.problems
    finally:
        for path, body in bodies.items():
            path.write_bytes(body)
    named = {problem.object for problem in problems}
    expected = {noun for noun, (_, notices) in objects.items() if notices in noticed_of}
    noticed = {noun for noun, (path, _) in objects.items() if str(path) in named}
    assert noticed - ({"cache segment", "look"} if damage == "empty" else set()) == expected, (
        "most empty objects are no commit"
    )
    assert named <= {str(path) for path, _ in objects.values()}, "and nothing else"
    assert [problem for problem in problems if not problem.heal] == []
    assert {notices for _, notices in objects.values()} == {NAMED, FOLLOWS, SEALED, COPY}


def test_a_damaged_certificate_is_refused_and_certified_anew(root: str) -> None:
    [path] = Path(root, CERTIFICATES).iterdir()
    body = path.read_bytes()
    path.write_bytes(forged(body))
    assert main(["erase", root, "--by", "a steward"]) == ContractError.exit_code
    path.unlink()
    [problem] = verify(root).findings.problems
    assert "remove it, and run `refinery erase` again" in problem.heal
    assert main(["erase", root, "--by", "another"]) == 0
    assert verify(root).findings.problems == []
    named = certificates(root)
    assert named == {str(path.relative_to(root)): sha256(path.read_bytes())}
    assert main(["erase", root, "--by", "a third"]) == 0
    assert certificates(root) == named, "nothing new is certified"


def test_what_was_published_and_is_in_no_log_is_named_when_no_run_can_be_at_work_on_it(root: str) -> None:
    path = Path(root, "publish", "0123456789abcdef01234567", "dataset.json")
    path.parent.mkdir()
    path.write_text("{}")
    assert verify(root).findings.problems == []
    os.utime(path, (path.stat().st_mtime - 8 * 86_400,) * 2)
    assert [problem.object for problem in verify(root).findings.problems] == [str(path.parent)]
    shutil.rmtree(path.parent)


def test_the_page_of_formats_has_each_kind() -> None:
    page = Path("docs/reference/formats.md").read_text()
    table = page.partition("## Kinds of objects")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert [tuple(row) for row in rows] == kind_rows()
