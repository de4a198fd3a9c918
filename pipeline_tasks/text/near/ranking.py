"""Encode the keep policy as a sort key; the document to keep sorts first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import Array
from pipeline_tasks.text.base.tables import combined
from pipeline_tasks.text.base.timestamps import sortable_timestamps
from pipeline_tasks.text.urls.keys import hosts, keys
from pipeline_tasks.text.urls.tracking import TRACKING

pc: Any = pyarrow.compute

POLICIES = ("url", "quality", "newest", "oldest", "longest", "source", "lowest_id")
DIGITS = 16
"""Hex digits of each preference in a rank: a whole 64-bit number, so that ranks sort as text."""

NODE = pa.struct(
    [
        pa.field("rank", pa.large_string()),  # one number per preference, in hex: the document to keep sorts first
        pa.field("id", pa.large_string()),  # breaks ties of rank, and is unique among all nodes
        pa.field("snapshot", pa.large_string()),
        pa.field("known", pa.bool_()),  # read from history: an earlier snapshot saved it
    ]
)
"""A document in the graph of near duplicates. Arrow sorts a struct by its fields in order: by rank, then id."""

_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)
_SIGN = np.uint64(1 << 63)
_LONGEST = np.uint64(0xFFFE)


Preferred = tuple[tuple[str, tuple[str, ...]], ...]
"""A column with its values, the best first; none if no column comes before the preferences of a policy."""


def preferred(prefer: Mapping[str, Sequence[str]]) -> Preferred:
    """Return a param `prefer` as a policy has it."""
    return tuple((column, tuple(values)) for column, values in prefer.items())


def require_policy(
    stage: str, policy: Sequence[str], sources: Sequence[str], prefer: Mapping[str, Sequence[str]]
) -> None:
    """Raise RecipeError for a preference that is unknown, `source` without `sources` or the reverse, a vague `prefer`.

    A mapping has no order, so `prefer` names one column; a value that is there twice has no one place.
    """
    for preference in policy:
        if preference not in POLICIES:
            message = f"{stage}: policy {preference!r} is not one of {', '.join(POLICIES)}"
            raise RecipeError(message)
    if len(prefer) > 1 or any(len(set(values)) < max(len(values), 1) for values in prefer.values()):
        message = f"{stage}: `prefer` names one column with its values, the best first and each once; correct it"
        raise RecipeError(message)
    if ("source" in policy) != bool(sources):
        message = f"{stage}: `sources` (a list, the best first) and the policy `source` need each other"
        raise RecipeError(message)


@dataclass(frozen=True, slots=True)
class Policy:
    """Preferences, most important first; the last tie is always broken by id.

    `url` prefers the shortest address, which all states of a page share (`text.urls.keys`); `newest` after it decides
    between them. `quality` prefers the highest value of the column `quality`, `newest` and `oldest` go by crawl date,
    `longest` by characters, `source` by the first entry of `sources` that is the document's source or the end of its
    host. Before all of them comes the column of `prefer`, by the place of its value among those that are named.
    """

    order: tuple[str, ...]
    sources: tuple[str, ...] = ()
    quality: str = "score"
    prefer: Preferred = ()


RANKED = {
    "url": ("url",),
    "newest": ("crawled_at",),
    "oldest": ("crawled_at",),
    "longest": ("chars",),
    "source": ("source", "url"),
}
"""The columns that a preference compares; `quality` compares the one that the policy names."""


def columns_ranked(order: Sequence[str], quality: str, prefer: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the columns of documents that `nodes` reads for the preferences of `order`, and for `prefer`."""
    compared = {"quality": (quality,), **RANKED}
    ranked = (name for preference in order for name in compared.get(preference, ()))
    return ("id", "snapshot", *dict.fromkeys((*prefer, *ranked)))


def nodes(batch: pa.RecordBatch, policy: Policy) -> pa.StructArray:
    """Return the `NODE` of each document of a batch, none of them known from history.

    A document without a date, score, listed source or preferred value ranks last in that preference. KeyError names a
    column that a preference needs and the batch lacks.
    """
    ranks = [_hex(place_of(batch.column(column), values)) for column, values in policy.prefer]
    ranks += [_hex(_rank(batch, preference, policy)) for preference in policy.order if preference != "lowest_id"]
    rank = pc.binary_join_element_wise(*ranks, "") if ranks else pa.array([""] * batch.num_rows, pa.string())
    snapshot = batch.column("snapshot").fill_null("")
    return _struct(rank, batch.column("id"), snapshot, known=False)


def known_nodes(rank: Array, ids: Array, snapshot: Array) -> pa.StructArray:
    """Return nodes of an earlier snapshot from their columns."""
    return _struct(rank, ids, snapshot, known=True)


def as_known(nodes_: Array) -> pa.StructArray:
    """Return nodes without nulls as later snapshots see them."""
    return known_nodes(*(pc.struct_field(nodes_, name) for name in ("rank", "id", "snapshot")))


def _struct(rank: Array, ids: Array, snapshot: Array, *, known: bool) -> pa.StructArray:
    texts = [combined(column).cast(pa.large_string()) for column in (rank, ids, snapshot)]
    return pa.StructArray.from_arrays([*texts, pa.repeat(known, len(texts[0]))], fields=list(NODE))


def node_ids(nodes_: Array) -> Array:
    """Return the document ids of nodes, as documents have them (`string`); null for a null node."""
    return pc.struct_field(nodes_, "id").cast(pa.string())


def is_known(nodes_: Array) -> Array:
    """Return for each node whether it was read from history."""
    return pc.struct_field(nodes_, "known")


def precedes(nodes_: Array, others: Array) -> Array:
    """Return for each pair of nodes whether the first is to be kept before the second."""
    (rank, id_), (other_rank, other_id) = (
        [pc.struct_field(side, name) for name in ("rank", "id")] for side in (nodes_, others)
    )
    return pc.or_(pc.less(rank, other_rank), pc.and_(pc.equal(rank, other_rank), pc.less(id_, other_id)))


def deciding_preference(better: str, worse: str, order: Sequence[str]) -> str:
    """Return the first preference in which two ranks differ."""
    ranked = [preference for preference in order if preference != "lowest_id"]
    for place, preference in enumerate(ranked):
        digits = slice(place * DIGITS, (place + 1) * DIGITS)
        if better[digits] != worse[digits]:
            return preference
    return "lowest_id"


def _rank(batch: pa.RecordBatch, preference: str, policy: Policy) -> npt.NDArray[np.uint64]:
    if preference == "longest":
        return _descending(batch.column("chars").fill_null(0))
    if preference == "source":
        return _place_in(batch, policy.sources)
    if preference == "url":
        return _addresses(batch.column("url"))
    if preference == "quality":
        return _scores(batch.column(policy.quality))
    dates = sortable_timestamps(batch.column("crawled_at"))
    ranks = _numbers(dates) if preference == "oldest" else _descending(dates)
    return np.where(_numbers(dates) == 0, _LAST, ranks)


def _numbers(column: Array) -> npt.NDArray[np.uint64]:
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.uint64)


def _descending(column: Array) -> npt.NDArray[np.uint64]:
    return _LAST - _numbers(column)


def _scores(column: Array) -> npt.NDArray[np.uint64]:
    """Return ranks that sort the highest number first and none last: IEEE 754 bits sort as their numbers do."""
    values = np.asarray(column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)) + 0.0
    bits = np.ascontiguousarray(values).view(np.uint64)
    ascending = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return np.where(np.isnan(values), _LAST, _LAST - ascending)


def _addresses(urls: pa.Array) -> npt.NDArray[np.uint64]:
    """Return ranks that sort short addresses first, those of equal length by their hash, and none last.

    A rank is the length in 16 bits, then 48 bits of the hash.
    """
    from pipeline_tasks.text.base.hashed import hash_texts

    addresses = keys(urls, TRACKING)
    lengths = np.minimum(_numbers(pc.fill_null(pc.binary_length(addresses), 0)), _LONGEST)
    ranks = (lengths << np.uint64(48)) | (hash_texts(addresses.fill_null("")) >> np.uint64(16))
    return np.where(addresses.is_null().to_numpy(zero_copy_only=False), _LAST, ranks)


def place_of(column: pa.Array, values: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return the place of each value in the list; the length of the list if it is not listed."""
    return _numbers(pc.fill_null(pc.index_in(column.cast(pa.string()), pa.array(values, pa.string())), len(values)))


def _place_in(batch: pa.RecordBatch, sources: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return the place of each document's source or host in the list; the length of the list if neither is listed."""
    source = batch.column("source").fill_null("")
    host = pc.binary_join_element_wise(".", hosts(batch.column("url")).fill_null(""), "")
    ranks = np.full(batch.num_rows, len(sources), np.uint64)
    for place in reversed(range(len(sources))):
        listed = pc.or_(pc.equal(source, sources[place]), pc.ends_with(host, f".{sources[place].lower()}"))
        ranks[listed.to_numpy(zero_copy_only=False)] = place
    return ranks


def _hex(ranks: npt.NDArray[np.uint64]) -> pa.Array:
    """Return each number as 16 hex digits, which sort as the numbers do."""
    digits = ranks.astype(">u8").tobytes().hex().encode()
    offsets = np.arange(len(ranks) + 1, dtype=np.int32) * DIGITS
    return pa.StringArray.from_buffers(len(ranks), pa.py_buffer(offsets.tobytes()), pa.py_buffer(digits))
