"""Checks that nothing that was stored since an erasure has what it erased.

A run that was killed behind its own write, or a backup that was copied back, leaves what no commit looks at.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import FOLDER as ERASURES
from pipeline_tasks.store.erasures import begun, erased_by_path, erasures
from pipeline_tasks.store.shards.layer_columns import CHANGED
from pipeline_tasks.store.shards.name_index import NameIndex
from pipeline_tasks.store.shards.names import asked_names
from pipeline_tasks.store.shards.rows import ShardRows
from pipeline_tasks.store.shards.table import open_table, own_rows
from pipeline_tasks.store.taken_down import FOLDER as TAKEDOWNS
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.text.urls.takedown import TakenDown, address_of, evidence
from pipeline_tasks.upkeep.followers import follower_prefixes

SAYS = ("text", "title", "payload", "tokens", "url")
"""Columns that have what a document said, and its address."""

LINEAGE = f"{PUBLISH}/shards/"
"""Where lineages of packed shards are, which have its address."""

SKEW = 60.0
"""Seconds by which the clocks of the store and of who erases may differ."""


def check_erased(root: str, findings: Findings) -> None:
    """Look for erased documents in all tables that were stored since the newest takedown was erased.

    A fast verification asks the filters of tables, and reads those that may have one.
    """
    try:
        until = begun(root)
        at = next((entry.at for entry in erasures(root) if until and entry.takedown == until), "")
        taken = replace(taken_down(root), until=until)
    except ContractError:  # a damaged log is a problem of its own
        return
    if not at:
        return
    since, gone = datetime.fromisoformat(at).timestamp() - SKEW, erased_by_path(root)
    stored = [each for each in storage.connect(root).list("") if each.modified >= since and each.path not in gone]
    sizes = {entry.path: entry.bytes for entry in stored if entry.bytes and _is_table(entry.path)}
    having = sizes.keys() if findings.full else NameIndex(root, sizes).having(asked_names(taken))
    for path in [path for path in sizes if path in having]:
        _check_table(root, path, taken, findings)


def _is_table(path: str) -> bool:
    other = path.startswith((*follower_prefixes(), f"{TAKEDOWNS}/", f"{ERASURES}/"))
    is_row_table = not path.startswith(f"{PUBLISH}/") or path.startswith(LINEAGE)
    return is_row_table and not other and path.endswith((".parquet", ".segment"))


def _check_table(root: str, path: str, taken: TakenDown, findings: Findings) -> None:
    heal = "run `refinery erase` again: it erases the document there, too"
    with findings.guarded(f"{root}/{path}", heal):
        findings.count("tables since an erasure")
        rows = _of_lineage(root, path, taken) if path.startswith(LINEAGE) else _of_table(root, path, taken)
        if any(rows):
            findings.add(Problem(f"{root}/{path}", "has a document that was erased", heal=heal))


def _of_lineage(root: str, path: str, taken: TakenDown) -> Iterator[bool]:
    """Yield for each piece of a document that is taken down whether it has more of its address than the takedown."""
    with storage.connect(root).open(path) as stream:
        for batch in pq.ParquetFile(stream, page_checksum_verification=True).iter_batches(columns=list(KNOWN_BY)):
            yield from _have_addresses(batch, _proofs(taken, batch))


def _of_table(root: str, path: str, taken: TakenDown) -> Iterator[bool]:
    """Yield whether each row of a document that is taken down says something of it, by the table's own columns.

    What it rests on is a table of its own, or landed. A rejected row may have its address: it is the evidence.
    """
    table = open_table(root, path)
    names = set(table.schema.names)
    says = [name for own in SAYS for name in (own, f"{CHANGED}{own}") if name in names]
    says = [name for name in says if not (name.endswith("url") and "reason" in names)]
    found, start = [pa.nulls(0, pa.string())], 0
    found += [_proofs(taken, batch) for batch in ShardRows(root, table.shard, columns=KNOWN_BY)] if says else []
    proofs = pa.chunked_array(found)
    if proofs.null_count < len(proofs):
        for batch in own_rows(root, table, says):
            left = proofs.slice(start, batch.num_rows)
            start += batch.num_rows
            for row, proof in zip(batch.filter(left.is_valid()).to_pylist(), left.drop_null().to_pylist(), strict=True):
                yield any(_has_content(said) and said != address_of(proof) for said in row.values())


def _proofs(taken: TakenDown, batch: pa.RecordBatch) -> pa.Array:
    """Return the entry by which each row is taken down, null for none."""
    proofs = evidence(taken, batch)
    return proofs.combine_chunks() if isinstance(proofs, pa.ChunkedArray) else proofs


def _have_addresses(batch: pa.RecordBatch, proofs: pa.Array) -> Iterator[bool]:
    """Yield for each row that is taken down whether it has another address than the one that an erasure leaves."""
    is_taken = proofs.is_valid()
    urls = batch.column("url").filter(is_taken).to_pylist() if "url" in batch.schema.names else []
    left = map(address_of, proofs.drop_null().to_pylist())
    yield from (bool(url) and url != address for url, address in zip(urls, left, strict=False))


def _has_content(value: object) -> bool:
    """Return whether a value is none of those that an erasure leaves: null, an empty text, zeros."""
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else None
    return bool(value) if parts is None else any(map(_has_content, parts))
