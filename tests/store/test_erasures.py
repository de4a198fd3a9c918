"""The log of erasures says what each object became, from the first that erased it to what is stored now."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import reference
from pipeline_tasks.store import erasures
from pipeline_tasks.store.erasures import LOG, Erased, Erasure, Stored
from pipeline_tasks.store.log_chain import append, read_chain

AT = "2026-11-30T12:00:00+00:00"


def stored(path: str) -> Stored:
    return Stored(path, len(path), f"{path}-digest", f"{path}-index")


A, B, C, GONE, OLD, KEPT, LEFT = map(stored, ("a", "b", "c", "gone", "old", "kept", "left"))

LOGGED = [
    Erasure(1, (), 3, AT, "me"),
    Erasure(2, (Erased(A, B, 2, ((5, 9),)), Erased(GONE, None, 4)), 3, AT, "me"),
    Erasure(3, (), 0, AT, "me", certificate=reference("erasures/certificates/2", 64 * "c")),
    Erasure(4, (Erased(OLD, None, 7), Erased(KEPT, LEFT, 1)), 0, "2026-12-01", "me", retention="rejects"),
    Erasure(5, (Erased(B, C, 1, ((0, 2), (20, 21))),), 5, AT, "you"),
    Erasure(6, (), 6, AT, "you"),
]
"""Two takedowns, of which the second rewrites what came in the place of an object, an expiry, and one that has begun."""


def log(root: Path, *entries: Erasure) -> str:
    for erasure in entries:
        fields = {name: value for name, value in erasure.stored.items() if name != "number"}
        assert append(str(root), LOG, read_chain(str(root), LOG), fields)
    return str(root)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return log(tmp_path, *LOGGED)


def test_what_is_logged_is_read_back(root: str) -> None:
    assert erasures.erasures(root) == LOGGED
    assert erasures.newest(root) == 6
    assert (erasures.begun(root), erasures.completed(root)) == (6, 5)
    assert erasures.certificates(root) == {"erasures/certificates/2": 64 * "c"}


def test_an_object_is_followed_to_what_is_stored_now(root: str) -> None:
    assert [erasures.current(root, path) for path in ("a", "b", "c", "gone", "old", "kept", "other")] == [
        *("c", "c", "c", "", "", "left", "other")
    ]
    whole = erasures.erased(root, "a", A.digest)
    assert whole == Erased(A, C, 3, ((0, 2), (5, 9), (20, 21)))
    assert erasures.erased(root, "gone", GONE.digest) == Erased(GONE, None, 4)
    assert erasures.erased(root, "a", B.digest) is None, "an object of the same path with other bytes was not erased"
    assert erasures.erased(root, "c", C.digest) is None
    assert erasures.after_paths(root) == {"b", "c", "left"}


def test_an_object_that_is_gone_says_by_what(root: str) -> None:
    assert "a document that was taken down" in str(erasures.removed(root, "gone"))
    assert "expired on 2026-12-01 by the retention policy rejects" in str(erasures.removed(root, "old"))
    assert set(erasures.expired(root)) == {"old", "kept", "left"}


def test_what_an_erasure_leaves_of_an_expired_object_is_expired_and_the_object_is_erased(root: str) -> None:
    log(Path(root), Erasure(7, (Erased(LEFT, stored("rest"), 1),), 7, AT, "me"))
    assert set(erasures.expired(root)) == {"old", "kept", "rest"}
    assert erasures.current(root, "kept") == "rest"


def test_the_newest_entry_counts_before_it_has_its_head(root: str) -> None:
    Path(root, LOG.head_path(6)).unlink()
    assert erasures.newest(root) == 6


def test_one_entry_is_enough(tmp_path: Path) -> None:
    root = log(tmp_path, replace(LOGGED[3], number=1))
    assert erasures.current(root, "kept") == "left"
    assert set(erasures.expired(root)) == {"old", "kept", "left"}


def test_a_root_without_erasures_has_none(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert (erasures.newest(root), erasures.begun(root), erasures.completed(root)) == (0, 0, 0)
    assert erasures.erased(root, "a", A.digest) is None
    assert (erasures.current(root, "a"), erasures.expired(root), erasures.after_paths(root)) == ("a", {}, frozenset())


def test_an_entry_of_another_form_is_named(tmp_path: Path) -> None:
    fields = {**replace(LOGGED[1], number=1).stored, "objects": [{"before": {}}]}
    append(str(tmp_path), LOG, [], fields)
    with pytest.raises(ContractError, match=rf"^{tmp_path}/{LOG.entry_path(1)} is no erasure of this release .*backup"):
        erasures.erasures(str(tmp_path))
