"""Whatever is changed in a root, `refinery verify` names the changed object and no other: every kind, every change."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.inspect.verify.verification import verify
from tests.mutations import CHECKS, EDITED, SHORT, Mutation, misnamed, mutations, objects, shortened
from tests.small_root import SmallRoot

pytestmark = pytest.mark.slow

KINDS = tuple(kind for kinds in CHECKS.values() for kind in kinds)

FIRST = [kinds[0] for kinds in CHECKS.values()]

UNNAMED: Mapping[tuple[str, str], str] = {
    ("log head", "delete"): "the last head may be missing after a crash: a note",
    ("compaction", "delete"): "a cache: its parts are read instead",
    ("compaction", "empty"): "an empty object is no commit",
    ("partition", "delete"): "read only by the run that seals, which makes it again",
    ("partition", "empty"): "an empty object is no commit",
    ("receipt", "delete"): "read only by a run that lacks the manifest, which makes it again",
    ("receipt", "empty"): "an empty object is no commit",
    ("landed file", "delete"): "landed files may go when they are refined: a note",
}
"""Changes that take nothing away, and why: `verify` names nothing. After every other it names the changed object."""

IDENTITY = frozenset({"format", "stage", "version", "fingerprint", "params", "parents", "resources"})
"""Fields of a manifest from which its fingerprint follows, and so its path; of `writer` its feature release alone."""

COMPARED: Mapping[str, frozenset[str]] = {
    "compaction": IDENTITY
    | {"covers", "parent_digests", "rows_in", "history", "shards", "schema", "below", "rejects", "quarantine"},
    "partition": IDENTITY
    | {"covers", "parent_digests", "rows_in", "shards", "rejected", "quarantined", "below", "rejects", "quarantine"},
    "receipt": frozenset({"key", "below", "rejects", "quarantine"}),
}
"""Fields whose change is found under a new seal too, of kinds that no digest names; of all other kinds every field."""


@pytest.fixture(scope="module")
def root(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    copy = tmp_path_factory.mktemp("mutated") / "root"
    return replace(small_root, root=str(shutil.copytree(small_root.root, copy)))


def is_unnamed(mutation: Mutation) -> bool:
    kind, name, path = mutation.kind, mutation.name, mutation.path
    if kind == "log head" and path.name != max(head.name for head in path.parent.iterdir()):
        return False
    unread = name == "sealed edit" and kind in COMPARED and mutation.field not in COMPARED[kind]
    return (kind, name) in UNNAMED or unread


def test_every_kind_of_object_is_mutated(root: SmallRoot) -> None:
    assert sorted(objects(root)) == sorted(KINDS)
    assert verify(root.root).findings.problems == []
    stored = {file.relative_to(root.root).parts[0] for file in Path(root.root).rglob("*") if file.is_file()}
    known = {
        path.relative_to(root.root).parts[0]
        for paths in objects(root).values()
        for path in paths
        if path.is_relative_to(root.root)
    }
    elsewhere = {"access": "test_access_log.py", "ledger.sqlite": "test_rebuilding.py"}  # where their damages are
    assert stored - known <= elsewhere.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_verify_names_the_changed_object_and_no_other(kind: str, root: SmallRoot) -> None:
    """One flip of every kind; one cut, removal, swap and edit of the first kind of every check."""
    paths = objects(root)[kind]
    tried = shortened(mutations(kind, paths), first=kind in FIRST)
    names = [name for name in SHORT if (name != "swap" or paths[1:]) and (name != "sealed edit" or kind in EDITED)]
    assert {mutation.name for mutation in tried} == set(names if kind in FIRST else SHORT[:1])
    assert misnamed(root.root, tried, is_unnamed) == []


def test_verify_names_a_partition_that_lacks_a_shard_below_its_layers(root: SmallRoot) -> None:
    """The run that seals takes what a vacuum keeps from there."""
    (partition, *_) = objects(root)["partition"]
    tried = [
        edit for edit in mutations("partition", [partition]) if (edit.name, edit.field) == ("sealed edit", "below")
    ]
    assert len(tried) == 1
    assert misnamed(root.root, tried, is_unnamed) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_verify_names_the_changed_object_and_no_other_after_every_mutation(kind: str, root: SmallRoot) -> None:
    tried = list(mutations(kind, objects(root)[kind]))
    assert len(tried) >= (20 if kind in EDITED else 8)
    assert misnamed(root.root, tried, is_unnamed) == []
