"""Values are numbered by first occurrence and counted, however many there are."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.numbering import number_distinct, numbering_table


def check(values: list[int], table_rows: int) -> None:
    table, numbers = numbering_table(table_rows), np.empty(len(values), np.int32)
    distinct = list(dict.fromkeys(values))
    assert number_distinct(np.array(values, np.uint64), len(values), table, numbers) == len(distinct)
    assert numbers.tolist() == [distinct.index(value) for value in values]
    assert table.counts[: len(distinct)].tolist() == [Counter(values)[value] for value in distinct]


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5) | st.sampled_from([64, 128, 1 << 40]), max_size=60))
def test_few_values(values: list[int]) -> None:
    check(values, len(values))


def test_a_table_grows_and_is_used_again() -> None:
    values = [(step * step) % 997 << 8 for step in range(3000)]
    check(values, len(values))
    table, numbers = numbering_table(3000), np.empty(3000, np.int32)
    many = number_distinct(np.array(values, np.uint64), 3000, table, numbers)
    few = number_distinct(np.array([7, 7, 9], np.uint64), 3, table, numbers)
    assert (many, few, table.counts[:2].tolist()) == (len(set(values)), 2, [2, 1])
