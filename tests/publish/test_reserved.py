"""Records that reserve their address: the newest of each counts, by tables on disk as by a dict of all addresses."""

from collections.abc import Iterator, Sequence
from functools import partial
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refinery_rights import opted_out as of_rights
from refinery_rights.opted_out import KEYS, RESERVED, newer_than, reserved_by

from pipeline_tasks.stage import Shard
from pipeline_tasks.text.base.key_pages import KeyedFile
from pipeline_tasks.text.base.timestamps import sortable_timestamps
from pipeline_tasks.text.urls.takedown import URL, keys_of

Known = tuple[str, int, bool]
"""A record: the letter of its address, when it was crawled, and whether a signal of it rejects."""


@example(records=[("a", 1, True), ("a", 1, False), ("b", 1, True), ("b", 2, False)], size=1, run_bytes=1)
@given(
    records=st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 4), st.booleans())),
    size=st.integers(1, 4),
    run_bytes=st.sampled_from([1, 1 << 20]),
)
def test_the_newest_record_of_an_address_counts(records: list[Known], size: int, run_bytes: int) -> None:
    """As by a dict of all addresses; of records of one moment those that reject."""
    newest: dict[str, tuple[int, bool]] = {}
    for name, moment, rejects in records:
        newest[name] = max(newest.get(name, (0, False)), (moment, rejects))
    expected = {url(name): moment for name, (moment, rejects) in newest.items() if rejects}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_rights, "BATCH_ROWS", size)
        patch.setattr(of_rights, "RUN_BYTES", run_bytes)
        found = reserved_by(signaled(records), partial(freed, records, size, folder), folder)
        keys = keys_of((URL, url(name)) for name in "abcde")
        rows = KeyedFile(f"{folder}/{found.path}").rows(pa.array(keys)).to_pylist()
    assert {row["value"]: row["moment"] for row in rows} == {name: sort(moment) for name, moment in expected.items()}


def url(name: str) -> str:
    return f"https://{name}.example/"


def at(moment: int) -> str:
    return f"2026-11-{moment:02}T00:00:00Z"


def sort(moment: int) -> int:
    number: int = sortable_timestamps(pa.array([at(moment)]))[0].as_py()
    return number


def signaled(records: Sequence[Known]) -> Iterator[pa.RecordBatch]:
    for name, moment, rejects in records:
        row = {"key": keys_of([(URL, url(name))])[0], "moment": sort(moment), "signal": "noai", "value": url(name)}
        yield pa.RecordBatch.from_pylist([row] if rejects else [], RESERVED)


def freed(records: Sequence[Known], size: int, folder: str, known: Shard) -> Iterator[pa.RecordBatch]:
    for keys in newer_than(KeyedFile(f"{folder}/{known.path}"), dated(records, size)):
        yield pa.record_batch([keys], schema=KEYS)


def dated(records: Sequence[Known], size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(records), size):
        rows = [{"url": url(name), "crawled_at": at(moment)} for name, moment, _ in records[start : start + size]]
        yield pa.RecordBatch.from_pylist(rows, pa.schema([("url", pa.string()), ("crawled_at", pa.string())]))
