"""A sorted stream is read once, forward, as keys are looked up."""

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.lookup import Lookup

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])


def stream(keys: list[str], size: int) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pylist([], SCHEMA)
    for at in range(0, len(keys), size):
        rows = [{"key": key, "value": int(key)} for key in keys[at : at + size]]
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)


@given(st.sets(st.integers(0, 50)), st.lists(st.integers(0, 50), max_size=20), st.integers(1, 7), st.integers(1, 5))
def test_rows(stored: set[int], sought: list[int], size: int, step: int) -> None:
    keys, sought = [f"{key:02}" for key in sorted(stored)], sorted(sought)
    lookup = Lookup(stream(keys, size), "key")
    values = []
    for at in range(0, len(sought), step):
        part = [f"{key:02}" for key in sought[at : at + step] if key not in sought[:at]]
        values += lookup.rows(pa.array(part, pa.string())).column("value").to_pylist()
    assert values == sorted(stored & set(sought))
    assert lookup.finish() == lookup.read == len(keys)
