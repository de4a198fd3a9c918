"""Groups of rows end where the definition says, however the rows are batched and whether or not they are weighed."""

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.store.shards.row_groups import RowGroups

SCHEMA = pa.schema(
    [
        pa.field("text", pa.large_string()),
        pa.field("flags", pa.list_(pa.bool_())),
        pa.field("node", pa.struct([pa.field("id", pa.string())])),
    ]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | st.text("aß", max_size=400),
            "flags": st.none() | st.lists(st.booleans(), max_size=40),
            "node": st.none() | st.fixed_dictionaries({"id": st.none() | st.text("b", max_size=40)}),
        }
    ),
    min_size=1,
    max_size=40,
)


def weight(row: dict[str, object]) -> int:
    """A byte, the bytes of texts, and four bytes for each element of a list."""
    text, flags, node = row["text"], row["flags"], row["node"]
    inner = node["id"] if isinstance(node, dict) else None
    texts = [value for value in (text, inner) if isinstance(value, str)]
    return 1 + sum(len(value.encode()) for value in texts) + (4 * len(flags) if isinstance(flags, list) else 0)


def plainly(rows: list[dict[str, object]], most: int, heaviest: int) -> Iterator[list[dict[str, object]]]:
    """The groups, row by row."""
    group: list[dict[str, object]] = []
    for row in rows:
        group.append(row)
        if len(group) == most or sum(map(weight, group)) >= heaviest:
            yield group
            group = []
    if group:
        yield group


@given(
    rows=ROWS, sizes=st.lists(st.integers(1, 12), min_size=1), most=st.integers(1, 12), heaviest=st.integers(1, 9000)
)
def test_groups_are_those_of_the_definition(
    rows: list[dict[str, object]], sizes: list[int], most: int, heaviest: int
) -> None:
    whole = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    groups, collected, start = RowGroups(most, heaviest), [], 0
    while start < whole.num_rows:
        size = sizes[start % len(sizes)]
        collected += list(groups.add(whole.slice(start, size)))
        start += size
    collected += list(groups.rest())
    got = [[row for batch in group for row in batch.to_pylist()] for group in collected]
    assert got == list(plainly(rows, most, heaviest))
