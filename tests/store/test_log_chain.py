"""A log's entries hang together by their digests: what is appended is read back, and what was changed is named."""

import json
from pathlib import Path

import pytest

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import seal
from pipeline_tasks.store import log_chain
from pipeline_tasks.store.local_store import LocalStore
from pipeline_tasks.store.log_chain import Log, append, page_faults, read_chain
from pipeline_tasks.store.storage import connect

LOG = Log("notes", {"kind": "note"}, "note {number}", "write it again")


def write(root: Path, count: int) -> None:
    """Append entries, each with its place as a field."""
    for place in range(count):
        assert append(str(root), LOG, read_chain(str(root), LOG), {"place": place})


@pytest.mark.parametrize("change", [{"number": 7}, {"kind": "letter"}, {"previous": "0" * 64}, {"place": 9}])
def test_an_entry_that_was_replaced_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    """An entry whose fields are only its own is noticed by the next one, which names its digest."""
    write(tmp_path, 3)
    path = tmp_path / LOG.entry_path(2)
    fields = {key: value for key, value in json.loads(path.read_bytes()).items() if key != "sha256"}
    path.write_bytes(seal({**fields, **change}))
    named = 3 if "place" in change else 2
    with pytest.raises(ContractError, match=LOG.entry_path(named)):
        read_chain(str(tmp_path), LOG)


def test_a_long_log_is_read_by_pages_and_entries_of_a_damaged_one_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_chain, "PAGE", 4)
    write(tmp_path, 11)
    pages = [tmp_path / LOG.page_path(number) for number in (4, 8)]
    assert all(page.exists() for page in pages)
    whole = read_chain(str(tmp_path), LOG)
    assert [entry.fields["place"] for entry in whole] == list(range(11))
    assert _reads(tmp_path, monkeypatch) == {*(f"pages/{number:012d}" for number in (4, 8)), *_entries(9, 10, 11)}
    pages[0].write_bytes(pages[0].read_bytes()[:-9])
    pages[1].unlink()
    assert _reads(tmp_path, monkeypatch) == {"pages/000000000004", *_entries(*range(1, 12))}
    assert read_chain(str(tmp_path), LOG) == whole


def test_an_entry_that_is_in_a_page_and_gone_or_changed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_chain, "PAGE", 4)
    write(tmp_path, 5)
    entry = tmp_path / LOG.entry_path(2)
    body = entry.read_bytes()
    for damage in (b"", body[:-5], body + b" "):
        entry.write_bytes(damage)
        with pytest.raises(ContractError, match=LOG.entry_path(2)):
            read_chain(str(tmp_path), LOG)
    entry.unlink()
    with pytest.raises(ContractError, match=LOG.entry_path(2)):
        read_chain(str(tmp_path), LOG)


def test_a_page_with_other_entries_is_not_believed_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_chain, "PAGE", 4)
    write(tmp_path, 5)
    whole = read_chain(str(tmp_path), LOG)
    assert list(page_faults(connect(str(tmp_path)), LOG)) == []
    page = tmp_path / LOG.page_path(4)
    bodies = json.loads(page.read_bytes())["entries"]
    changed = json.loads(bodies[1])
    bodies[1] = seal({**{name: value for name, value in changed.items() if name != "sha256"}, "place": 7}).decode()
    page.write_bytes(seal({"entries": bodies}))
    assert read_chain(str(tmp_path), LOG) == whole
    assert list(page_faults(connect(str(tmp_path)), LOG)) == [LOG.page_path(4)]


def test_a_log_that_was_long_before_it_had_pages_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 11)
    monkeypatch.setattr(log_chain, "PAGE", 2)
    for count in (4, 6):
        write(tmp_path, 1)
        assert len(list((tmp_path / "notes" / "pages").iterdir())) == count
    assert [entry.number for entry in read_chain(str(tmp_path), LOG)] == list(range(1, 14))


def _entries(*numbers: int) -> set[str]:
    return {f"{number:012d}.json" for number in numbers}


def _reads(root: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the objects of the log that reading its chain reads, but for heads."""
    read, seen = LocalStore.read, set()

    def watched(store: LocalStore, path: str) -> bytes:
        seen.add(path.removeprefix(f"{LOG.folder}/"))
        return read(store, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "read", watched)
        patch.setattr(log_chain, "_KNOWN", {})  # as another process, which has read nothing
        read_chain(str(root), LOG)
    return {name for name in seen if not name.startswith("heads/")}
