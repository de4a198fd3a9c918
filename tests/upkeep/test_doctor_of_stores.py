"""`refinery setup doctor` says what a store promises by trying it, and refuses one that promises less."""

import itertools
from collections.abc import Iterator

import pytest

from pipeline_tasks.store import storage
from pipeline_tasks.store.clouds import store as cloud_store
from pipeline_tasks.store.clouds.store import CloudStore
from pipeline_tasks.store.local_store import LocalStore
from pipeline_tasks.store.protocol import Entry
from pipeline_tasks.upkeep import doctor


def of_stores(root: str) -> dict[str, bool]:
    return {
        check.name: check.ok for check in doctor.checks(root) if check.name in ("storage", "put-if-absent", "listing")
    }


def test_what_a_store_promises_is_tried_and_nothing_of_it_stays(any_root: str) -> None:
    assert of_stores(any_root) == {"storage": True, "put-if-absent": True, "listing": True}
    assert list(storage.connect(any_root).list("")) == []


@pytest.mark.parametrize("any_bucket", ["gs", "az"], indirect=True)
def test_a_bucket_without_put_if_absent_is_refused(any_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_store, "IF_ABSENT", {"use_multipart": False})
    [refused] = [check for check in doctor.checks(any_bucket) if not check.ok]
    assert any_bucket in refused.message
    assert "put-if-absent" in refused.message


@pytest.mark.parametrize("lie", ["late", "in no order", "removed ones"])
def test_a_store_whose_lists_are_not_to_be_planned_on_is_refused(
    lie: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, kept = LocalStore.list, list[Entry]()

    def listed(store: LocalStore, prefix: str) -> Iterator[Entry]:
        now = list(honest(store, prefix))
        if lie == "late":
            yield from itertools.islice(now, 1)
        elif lie == "in no order":
            yield from reversed(now)
        else:
            kept.extend(now)
            yield from kept

    monkeypatch.setattr(LocalStore, "list", listed)
    root = str(tmp_path_factory.mktemp("root"))
    assert of_stores(root) == {"storage": True, "put-if-absent": True, "listing": False}


def test_a_place_without_a_bucket_is_one_check_that_fails(az_root: str) -> None:
    missing = f"az://refinery-nobody-made-this/{az_root.rpartition('/')[2]}"
    assert isinstance(storage.connect(missing), CloudStore)
    assert of_stores(missing) == {"storage": False}
