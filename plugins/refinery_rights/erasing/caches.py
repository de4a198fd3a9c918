"""Finds what caches keep of documents: a cache knows a text by its bytes, and no document.

So a segment is asked for the texts that tables have of the documents, and for what was made of them. One that has any
is removed as a whole, with the object that names it: what it had of others is computed again where a run needs it. So
are all parts of tasks that run, or were killed: what these wrote of a document is in no table yet.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.run.tasks.row_cache import CACHE, KEY, UNREADABLE, is_part, named_shard
from pipeline_tasks.store.protocol import Entry
from pipeline_tasks.store.shards.table import open_table, own_rows
from pipeline_tasks.text.base.hashed import text_keys
from pipeline_tasks.upkeep.rewriting.rows import has_words


def is_cached(path: str) -> bool:
    """Return whether an object is below the caches of a root."""
    return path.startswith(f"{CACHE}/")


def keys_of(*texts: str) -> set[str]:
    """Return the keys by which caches know texts."""
    return set(text_keys(pa.array(texts, pa.large_string())).to_pylist())


def names_of(root: str, entries: list[Entry]) -> dict[str, str]:
    """Return the objects that name the segments of caches, by the paths of these; damaged ones name none."""
    names = {}
    for entry in entries:
        try:
            names[named_shard(root, entry.path).path] = entry.path
        except UNREADABLE:
            continue
    return names


def count(root: str, path: str, keys: set[str]) -> int:
    """Return how many rows of a segment have something of texts with these keys, or may have it."""
    table = open_table(root, path)
    if is_part(path):
        return table.shard.rows
    said = [column.name for column in table.schema if column.name != KEY and has_words(column)]
    wanted, rows = pa.array(sorted(keys), pa.string()), 0
    for batch in own_rows(root, table, [KEY, *said]) if said and KEY in table.schema.names else ():
        masks = [pc.is_in(batch[KEY].cast(pa.string()), value_set=wanted)]
        masks += [pa.array([bool(keys & keys_of(*said_in(row))) for row in batch[name].to_pylist()]) for name in said]
        for mask in masks[1:]:
            masks[0] = pc.or_(masks[0], mask)
        rows += pc.sum(masks[0]).as_py() or 0
    return rows


def said_in(value: object) -> Iterator[str]:
    """Yield the texts in a value of a column: itself, or those of a list of generated ones."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list):
        yield from (text for each in value for text in said_in(each))
    elif isinstance(value, dict):
        yield from (text for each in ([value["text"]] if "text" in value else value.values()) for text in said_in(each))
