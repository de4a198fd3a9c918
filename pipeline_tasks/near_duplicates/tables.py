"""The tables that kernels pass to each other: one schema each, with what a row is. All are hashes and ids."""

import pyarrow as pa

from pipeline_tasks.stage import QUICK, Batches
from pipeline_tasks.text.near.ranking import NODE

SIGNATURES = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("node", NODE),
        pa.field("keys", pa.list_(pa.int64())),  # one per band
        pa.field("compared", pa.large_binary()),  # a set as of `text.near.shingle_sets`, or a vector
        pa.field("size", pa.int64()),  # number of shingles, or of a vector's numbers
        pa.field("history_version", pa.int64()),
    ],
    metadata=QUICK,
)
"""One row per document, in the order of documents. Keys and what is compared are empty if nothing can be compared."""

OUTLINES = pa.schema([SIGNATURES.field(name) for name in ("id", "node", "keys", "size")], metadata=QUICK)
"""Signatures without what is compared: a tenth of the bytes."""

MEMBER_SIGNATURES = pa.schema([SIGNATURES.field(name) for name in ("id", "keys", "compared", "history_version")])
"""What the comparison of documents reads of their signatures."""

BANDS = pa.schema([pa.field("key", pa.int64()), pa.field("node", NODE)], metadata=QUICK)
"""One row per band of each document."""

MEMBERS = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("node", NODE),
        pa.field("label", pa.string()),  # of a known member: id of its cluster's winner when it was saved
    ]
)
"""Members of bands that can give a pair, sorted by key and node."""

MEMBER_IDS = pa.schema([pa.field("id", pa.string())])
"""Ids of new members of bands that can give a pair."""

PAIRS = pa.schema(
    [
        pa.field("member", pa.string()),
        pa.field("member_node", NODE),
        pa.field("center", pa.string()),
        pa.field("center_node", NODE),
        pa.field("key", pa.int64()),
        pa.field("member_at", pa.int32()),  # places in the band
        pa.field("center_at", pa.int32()),
    ]
)
"""Pairs to compare, once per band that proposes them. A member is new; a center may be known from history."""

PROPOSALS = {"keys": "key", "members_at": "member_at", "centers_at": "center_at"}
"""What is of each band that proposes a pair: the column of all of them, and that of one."""

DISTINCT_PAIRS = pa.schema(
    [
        *(field for field in PAIRS if field.name not in PROPOSALS.values()),
        *(pa.field(name, pa.list_(PAIRS.field(one).type)) for name, one in PROPOSALS.items()),
    ]
)
"""Pairs to compare, with all bands that propose them."""

RESULTS = pa.schema(
    [
        *(PAIRS.field(name) for name in PROPOSALS.values()),
        pa.field("similarity", pa.float64()),
        pa.field("passed", pa.bool_()),
    ],
    metadata=QUICK,
)
"""Results of comparisons, once per band that proposed them, by places in it; sorted by key."""

UNSETTLED = pa.schema([pa.field("id", pa.string()), pa.field("key", pa.int64())])
"""New members of bands that were not compared with all that they are not connected to."""

SIGNED_PAIRS = pa.schema(
    [
        *DISTINCT_PAIRS,
        pa.field("compared", pa.large_binary()),  # of the member
        pa.field("bands", pa.list_(pa.int64())),
    ]
)
"""Pairs on their way to the bucket of the center."""

VERIFIED_PAIRS = pa.schema(
    [
        *DISTINCT_PAIRS,
        pa.field("label", NODE),  # of a known center: its cluster's winner when it was saved
        pa.field("similarity", pa.float64()),
        pa.field("shared_bands", pa.int64()),
        pa.field("passed", pa.bool_()),
    ]
)
"""Pairs with their exact similarity; those that passed are edges."""

EDGES = pa.schema(
    [
        pa.field("id", pa.string()),  # of `node`
        pa.field("node", NODE),
        pa.field("other", NODE),
        pa.field("near", NODE),  # compared with `via`; on the side of `other`
        pa.field("via", pa.string()),  # on the side of `node`
        pa.field("similarity", pa.float64()),
        pa.field("shared_bands", pa.int64()),
    ]
)
"""Edges of the graph, each from both ends. New documents are themselves, known ones their clusters' winners."""

LINKS = pa.schema([pa.field("id", pa.string()), pa.field("node", NODE), pa.field("other", NODE)])
"""Nodes tied to others of their cluster; `id` is that of `node`. Of a finished cluster: each node to the first one."""

LOSERS = pa.schema([pa.field("id", pa.string()), pa.field("node", NODE), pa.field("winner", NODE)])
"""Documents that are not the first of their cluster, and the first."""

LOST_BANDS = pa.schema([*BANDS, pa.field("label", pa.string())])
"""One row per band of each of `LOSERS`, with the id of its cluster's winner."""

STRONGEST = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("near", pa.string()),  # compared with `via`, which is on the side of `id`
        pa.field("via", pa.string()),
        pa.field("similarity", pa.float64()),
        pa.field("shared_bands", pa.int64()),
    ]
)
"""The strongest edge of each document."""

OPEN_BANDS = pa.schema([pa.field("id", pa.string()), pa.field("bands", pa.int64())])
"""Number of unsettled bands of each document that has any."""

KNOWN_BANDS = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("rank", pa.large_string()),  # of the node, in plain columns: sections are sorted by plain columns
        pa.field("id", pa.large_string()),
        pa.field("snapshot", pa.large_string()),
        pa.field("label", pa.string()),  # id of its cluster's winner
        pa.field("history_version", pa.int64()),
    ]
)
"""One row per band of each signed document."""

KNOWN_SIGNATURES = pa.schema(
    [
        *(SIGNATURES.field(name) for name in ("id", "node", "keys", "compared")),
        pa.field("winner", NODE),
        pa.field("history_version", pa.int64()),
    ]
)
"""Signatures of documents that can be compared, with the winner of their cluster.

History has `compared` by the name that the stage gives it (`known_signatures`).
"""

SUPERSEDED = pa.schema(
    [
        pa.field("id", pa.string()),  # of `node`
        pa.field("node", NODE),
        pa.field("winner", NODE),
        pa.field("near", pa.string()),  # compared with `via`, which is of the cluster of `node`
        pa.field("via", pa.string()),
        pa.field("similarity", pa.float64()),
        pa.field("shared_bands", pa.int64()),
    ]
)
"""Winners of earlier snapshots that lost to another document, with the strongest edge that tied them."""

KNOWN_EDGES = pa.schema(
    [
        pa.field("id", pa.string()),  # of `label`
        pa.field("label", NODE),  # winner of the center's cluster when the center was saved
        pa.field("member", pa.string()),
        pa.field("member_node", NODE),
        pa.field("center", pa.string()),
        pa.field("center_node", NODE),
        pa.field("similarity", pa.float64()),
        pa.field("shared_bands", pa.int64()),
    ]
)
"""Edges from a new document to a known one."""

WINNERS = pa.schema([pa.field("id", pa.string()), pa.field("node", NODE)])
"""Winners of earlier snapshots, once each."""

MOVES = pa.schema([*WINNERS, pa.field("winner", NODE)])
"""Winners of earlier snapshots, and the one that superseded them."""


def known_signatures(compared: str) -> pa.Schema:
    """Return `KNOWN_SIGNATURES` as history has them, with the stage's name of what is compared."""
    return pa.schema([field.with_name(compared) if field.name == "compared" else field for field in KNOWN_SIGNATURES])


def as_grouped(rows: Batches) -> Batches:
    """Yield rows of these tables in the order that `group` gives."""
    for batch in rows:
        yield batch.replace_schema_metadata(QUICK)
