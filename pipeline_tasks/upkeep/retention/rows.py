"""Blanks rejected and quarantined rows that expire: place, reason and numbers stay; texts and addresses go.

So it is clear what was rejected, where it came from and why, and other bounds can still be tried on it.
"""

from collections.abc import Mapping

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import Erased
from pipeline_tasks.store.shards.table import open_table, own_rows
from pipeline_tasks.upkeep.rewriting.rows import ADDRESS, EVIDENCE, REASON, blanked, compares, has_words
from pipeline_tasks.upkeep.rewriting.tables import rewritten

NAMES = frozenset(["rule", "bound", "kind", "benchmark", "part", "field", "by", "below", "language", "policy"])
"""Keys of evidence whose words are those of rules, bounds, benchmarks and languages, and of no document."""


def expire(root: str, path: str, rows: int) -> Erased | None:
    """Store a shard of so many rejected rows again beside itself, blank; None if its rows have said nothing before."""
    table = open_table(root, path)
    erased = rewritten(root, table, map(expired_rows, own_rows(root, table)), rows)
    return None if erased.after is not None and erased.after.path == path else erased


def expired_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that say where they came from, why they were rejected, and numbers."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    going = [column.name for column in batch.schema if _goes(column)]
    if going:
        everywhere = pa.array([{"url": None}] * batch.num_rows, ADDRESS)
        columns |= dict(zip(going, blanked(batch.select(going), everywhere).columns, strict=True))
    if EVIDENCE in columns:
        named = compares(columns[REASON]).to_pylist()
        pairs = zip(columns[EVIDENCE].to_pylist(), named, strict=True)
        kept = [said if is_named else _scrubbed(said) for said, is_named in pairs]
        columns[EVIDENCE] = pa.array(kept, columns[EVIDENCE].type)
    return pa.RecordBatch.from_arrays([columns[name] for name in batch.schema.names], schema=batch.schema)


def _scrubbed(evidence: str | None) -> str | None:
    """Return evidence without the words of a document: numbers, and the names of rules and the like, stay."""
    if evidence is None:
        return None
    try:
        said = orjson.loads(evidence)
    except orjson.JSONDecodeError:
        return None
    return str(orjson.dumps(_numbers(said, is_name=False), option=orjson.OPT_SORT_KEYS), "utf-8")


def _numbers(said: object, *, is_name: bool) -> object:
    if isinstance(said, Mapping):
        return {key: _numbers(value, is_name=key in NAMES) for key, value in said.items()}
    if isinstance(said, list):
        return [_numbers(value, is_name=is_name) for value in said]
    return "" if isinstance(said, str) and not is_name else said


def says(root: str, path: str) -> bool:
    """Return whether rows of a shard say more than `expired_rows` leaves them."""
    with storage.connect(root).open(path) as stream:
        file = pq.ParquetFile(stream)
        names = [column.name for column in file.schema_arrow if _goes(column) or column.name in (REASON, EVIDENCE)]
        return any(not expired_rows(batch).equals(batch) for batch in file.iter_batches(columns=names))


def content_bytes(root: str, path: str) -> int:
    """Return the stored bytes of the columns that would be blank, from the footer of a shard alone."""
    with storage.connect(root).open(path) as stream:
        file = pq.ParquetFile(stream)
        going, total = {column.name for column in file.schema_arrow if _goes(column)}, 0
        for rank in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(rank)
            chunks = (group.column(at) for at in range(group.num_columns))
            total += sum(
                chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema.partition(".")[0] in going
            )
    return total


def _goes(column: pa.Field) -> bool:
    return column.name not in (REASON, EVIDENCE) and has_words(column)
