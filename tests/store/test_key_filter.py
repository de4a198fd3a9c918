"""Keys that a segment does not have cost no page: its filter says so, and never of a key that it has."""

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import DigestMismatch
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.store.shards import segment
from pipeline_tasks.store.shards.segment import Segment
from pipeline_tasks.text.base.key_filter import blocks_of, filter_of, key_hashes, may_have
from tests.store.test_segment import of, stored, table

KEYS = 40_000


def drawn(seed: int, count: int) -> list[str]:
    draws = random.Random(seed)
    return [f"{draws.getrandbits(128):032x}" for _ in range(count)]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.lists(st.text()), st.lists(st.binary(min_size=16, max_size=16)))
def test_a_filter_never_denies_a_key_that_is_there(numbers: list[int], texts: list[str], ids: list[bytes]) -> None:
    kinds = [(numbers, pa.int64()), (texts, pa.string()), (ids, pa.binary()), (ids, pa.binary(16))]
    for keys in (pa.array(values, kind) for values, kind in kinds):
        hashes = key_hashes(keys)
        assert may_have(blocks_of(filter_of(hashes)), hashes).all()
        assert filter_of(hashes) == filter_of(hashes[::-1])


@pytest.mark.parametrize("kind", ["numbers", "texts"])
@pytest.mark.parametrize("buckets", [1, 16])
def test_of_other_keys_one_in_a_hundred_passes_at_most(kind: str, buckets: int) -> None:
    """A segment has the keys of one bucket. In one of 16, nearly all other numbers passed."""
    count = 2 * KEYS * buckets
    keys = pa.array(range(count)) if kind == "numbers" else pa.array(drawn(1, count))
    hashes = key_hashes(keys.filter(pa.array(bucket_of(keys, buckets) == 0)))
    passed = may_have(blocks_of(filter_of(hashes[::2])), hashes[1::2])
    assert np.mean(passed) <= 0.01
    assert passed.any(), "a filter without room for a mistake would have too many bits"


def test_new_keys_cost_the_filter_once(tmp_path: Path) -> None:
    """Each asked every segment for its page: a day of new keys read most pages of all earlier days."""
    known, new = drawn(2, KEYS), drawn(3, KEYS)
    rows = table(known, pa.string())
    shard = stored(tmp_path, rows)
    segment._FILTERS.clear()
    for kept in (0, 1):
        reader = Segment(str(tmp_path), shard)
        found = reader.rows(pa.array([*new[kept::2], known[7]]))
        assert found.combine_chunks().equals(of(rows, [known[7]]))
        pages = KEYS * 0.01 / 2 + 5
        assert reader.cost["pages"] <= pages
        assert reader.cost["requests"] <= pages
    again = Segment(str(tmp_path), shard)
    again.rows(pa.array(new[:50]))
    assert again.cost["requests"] <= 2, "the root, and hardly a page: the filter is known"


def test_few_keys_are_looked_up_without_the_filter(tmp_path: Path) -> None:
    shard = stored(tmp_path, table(drawn(2, KEYS), pa.string()))
    segment._FILTERS.clear()
    reader = Segment(str(tmp_path), shard)
    reader.rows(pa.array(drawn(3, 3)))
    assert reader.root.filter is not None
    assert reader.cost["bytes"] < reader.root.filter[1]
    assert not segment._FILTERS.has((str(tmp_path), reader.root.filter[2]))


def test_a_changed_filter_is_named(tmp_path: Path) -> None:
    shard = stored(tmp_path, table(drawn(2, KEYS), pa.string()))
    segment._FILTERS.clear()
    found = Segment(str(tmp_path), shard).root.filter
    assert found is not None
    path = tmp_path / shard.path
    body = bytearray(path.read_bytes())
    body[found[0] + 9] ^= 1
    path.write_bytes(body)
    with pytest.raises(DigestMismatch, match="filter"):
        Segment(str(tmp_path), shard).rows(pa.array(drawn(3, KEYS)))


def test_a_segment_of_a_few_pages_has_no_filter(tmp_path: Path) -> None:
    assert Segment(str(tmp_path), stored(tmp_path, table(range(100)))).root.filter is None


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.float64()])
def test_keys_of_other_types_are_looked_up_without_a_filter(tmp_path: Path, kind: pa.DataType) -> None:
    keys = pa.array(range(KEYS), pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    rows = table(range(KEYS)).set_column(0, "key", keys)
    shard = stored(tmp_path, rows)
    reader = Segment(str(tmp_path), shard)
    assert reader.root.filter is None
    assert reader.rows(keys[7:9]).num_rows == 2
