"""Whatever is changed in a root is found by `refinery verify`: every kind of object, every kind of change."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.inspect.verify import objects as verified_objects
from pipeline_tasks.inspect.verify.verification import Scope, verify
from tests.mutations import applied, mutations, objects
from tests.small_root import SmallRoot

pytestmark = pytest.mark.slow

KINDS = (
    "log entry",
    "log head",
    "manifest of land",
    "manifest of ingest",
    "manifest of extract",
    "manifest of dedup_exact",
    "manifest of dedup_minhash",
    "manifest of tokenize",
    "manifest of shuffle",
    "manifest of pack",
    "kept shard",
    "history",
    "rejects",
    "quarantine",
    "verdict",
    "Data Docs page",
    "tokens.bin",
    "tokens.json",
    "tokens.idx",
    "lineage.parquet",
    "tokenizer.json",
    "superseded.parquet",
    "report",
    "compaction",
    "compacted segment",
    "partition",
    "receipt",
    "tokenizer pin",
    "tokenizer definition",
    "landed file",
)
"""A literal list, so that a kind that no root has any more is noticed."""

NOT_MISSED = {
    ("log head", "delete"): "the last head may be missing after a crash: a note",
    ("log head", "empty"): "an empty object is no commit",
    ("compaction", "delete"): "a cache: its parts are read instead",
    ("compaction", "empty"): "an empty object is no commit",
    ("partition", "delete"): "read only by the run that seals, which makes it again",
    ("partition", "empty"): "an empty object is no commit",
    ("receipt", "delete"): "read only by a run that lacks the manifest, which makes it again",
    ("receipt", "empty"): "an empty object is no commit",
    ("compaction", "sealed edit"): "no digest names it; its parents, parts and rows are compared, the rest is not read",
    ("partition", "sealed edit"): "no digest names it; what it covers and stored is compared",
    ("receipt", "sealed edit"): "no digest names it; nothing that is committed reads it",
    ("tokenizer pin", "sealed edit"): "its digest is compared with the versions; nothing names its description",
    ("landed file", "delete"): "landed files may go when they are refined: a note",
}
"""Changes that take nothing away, and why: `verify` need not report them, and nothing reads the object."""

TABLE: Counter[tuple[str, str, str]] = Counter()


@pytest.fixture(scope="module")
def root(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    copy = tmp_path_factory.mktemp("mutated") / "root"
    return replace(small_root, root=str(shutil.copytree(small_root.root, copy)))


@pytest.fixture(autouse=True)
def _in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `verify` read with one thread: to hand these hundreds of tiny objects around takes longer than to read them."""
    monkeypatch.setattr(verified_objects, "THREADS", 1)


def test_every_kind_of_object_is_mutated(root: SmallRoot) -> None:
    assert tuple(objects(root)) == KINDS
    assert verify(root.root).findings.problems == []
    stored = {file.relative_to(root.root).parts[0] for file in Path(root.root).rglob("*") if file.is_file()}
    known = {
        path.relative_to(root.root).parts[0]
        for paths in objects(root).values()
        for path in paths
        if path.is_relative_to(root.root)
    }
    assert stored - known == {"ledger.sqlite"}, "the ledger is a copy; test_rebuilding.py has its damages"


@pytest.mark.parametrize("kind", KINDS)
def test_verify_finds_every_mutation(kind: str, root: SmallRoot) -> None:
    silent = []
    for mutation in mutations(kind, objects(root)[kind]):
        with applied(mutation):
            problems = verify(root.root, Scope(full=True)).findings.problems
        named = any(str(mutation.path) in problem.object for problem in problems)
        outcome = "named" if named else "found" if problems else "silent"
        TABLE[kind, mutation.name, outcome] += 1
        assert all(problem.heal or problem.object.startswith("version") for problem in problems), problems
        if outcome == "silent" and (kind, mutation.name) not in NOT_MISSED:
            silent.append(mutation.name)
    assert silent == []


def test_there_are_enough_mutations(capsys: pytest.CaptureFixture[str]) -> None:
    """Print the table; it is complete when the whole file runs."""
    with capsys.disabled():
        print()
        for (kind, name, outcome), count in sorted(TABLE.items()):
            print(f"{kind:<26}{name:<14}{outcome:<8}{count:>4}")
        totals = Counter(dict.fromkeys(("named", "found", "silent"), 0))
        for (_, _, outcome), count in TABLE.items():
            totals[outcome] += count
        print(dict(totals))
    if len({kind for kind, _, _ in TABLE}) == len(KINDS):
        assert sum(TABLE.values()) >= 300
