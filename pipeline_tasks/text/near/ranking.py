"""Ranks documents by an ordered list of preferences, as text that sorts the better document first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute

POLICIES = ("quality", "newest", "oldest", "longest", "source", "lowest_id")
DIGITS = 16
"""Hex digits of each rank: a whole 64-bit number, so that ranks sort as text."""

SEPARATOR = "\t"
_WORST = np.uint64(0xFFFFFFFFFFFFFFFF)
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class Policy:
    """Preferences, most important first; the last tie is always broken by id.

    `quality` prefers the highest value of the column `quality`, `newest` and `oldest` go by crawl date, `longest` by
    characters, `source` by the first entry of `sources` that is the document's source or the end of its host.
    """

    order: tuple[str, ...]
    sources: tuple[str, ...] = ()
    quality: str = "score"


def nodes(batch: pa.RecordBatch, policy: Policy) -> pa.Array:
    """Return rank, id and snapshot of each document, tab-separated: the better document's text sorts first.

    A document without a date, score or listed source ranks last in that preference. KeyError names a column that a
    preference needs and the batch lacks.
    """
    ranks = [_hex(_rank(batch, one, policy)) for one in policy.order if one != "lowest_id"]
    rank = pc.binary_join_element_wise(*ranks, "") if ranks else pa.array([""] * batch.num_rows, pa.string())
    snapshots = pc.replace_substring(batch.column("snapshot").fill_null(""), SEPARATOR, " ")
    joined = pc.binary_join_element_wise(rank, batch.column("id"), snapshots, SEPARATOR)
    return joined.cast(pa.large_string())


def part(found: pa.Array, at: int) -> pa.Array:
    """Return the rank (0), id (1) or snapshot (2) of nodes."""
    return pc.list_element(pc.split_pattern(found, SEPARATOR), at).cast(pa.string())


def decided(better: str, worse: str, order: Sequence[str]) -> str:
    """Return the first preference in which two nodes differ: why the one won."""
    ranked = [one for one in order if one != "lowest_id"]
    for at, one in enumerate(ranked):
        span = slice(at * DIGITS, (at + 1) * DIGITS)
        if better[span] != worse[span]:
            return one
    return "lowest_id"


def _rank(batch: pa.RecordBatch, preference: str, policy: Policy) -> npt.NDArray[np.uint64]:
    if preference == "longest":
        return _down(batch.column("chars").fill_null(0))
    if preference == "source":
        return _listed(batch, policy.sources)
    if preference == "quality":
        return _scores(batch.column(policy.quality))
    dates = _dates(batch.column("crawled_at"))
    ranks = _numbers(dates) if preference == "oldest" else _down(dates)
    return np.where(_numbers(dates) == 0, _WORST, ranks)


def _numbers(column: pa.Array) -> npt.NDArray[np.uint64]:
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.uint64)


def _down(column: pa.Array) -> npt.NDArray[np.uint64]:
    return _WORST - _numbers(column)


def _dates(column: pa.Array) -> pa.Array:
    """Return YYYYMMDDhhmmss of each date, zeros for what it leaves out; 0 where there is none."""
    digits = pc.replace_substring_regex(column.fill_null(""), r"\D", "")
    whole = pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, 14), 14, "0").cast(pa.int64())
    return pc.if_else(pc.equal(digits, ""), 0, whole)


def _scores(column: pa.Array) -> npt.NDArray[np.uint64]:
    """Return ranks that sort the highest number first and none last: IEEE 754 bits sort as their numbers do."""
    values = np.asarray(column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)) + 0.0
    bits = np.ascontiguousarray(values).view(np.uint64)
    ascending = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return np.where(np.isnan(values), _WORST, _WORST - ascending)


def _listed(batch: pa.RecordBatch, sources: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return the place of each document's source or host in the list, past its end where neither is listed."""
    source = batch.column("source").fill_null("")
    found = pc.extract_regex(
        batch.column("url").fill_null(""), r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?P<host>[^/?#:]*)"
    )
    host = pc.binary_join_element_wise(".", pc.utf8_lower(pc.struct_field(found, ["host"])).fill_null(""), "")
    ranks = np.full(batch.num_rows, len(sources), np.uint64)
    for at in reversed(range(len(sources))):
        named = pc.or_(pc.equal(source, sources[at]), pc.ends_with(host, f".{sources[at].lower()}"))
        ranks[named.to_numpy(zero_copy_only=False)] = at
    return ranks


def _hex(ranks: npt.NDArray[np.uint64]) -> pa.Array:
    """Return each number as 16 hex digits, which sort as the numbers do."""
    digits = ranks.astype(">u8").tobytes().hex().encode()
    offsets = np.arange(len(ranks) + 1, dtype=np.int32) * DIGITS
    return pa.StringArray.from_buffers(len(ranks), pa.py_buffer(offsets.tobytes()), pa.py_buffer(digits))
