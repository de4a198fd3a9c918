"""Turns a manifest into one row of facts that a gate can bound: shares, quantiles, drift; never a value of a record."""

from collections.abc import Iterable, Iterator, Mapping
from math import log
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.manifest import Manifest, Tally, load, manifest_path
from pipeline_tasks.profiles.columns import quantile
from pipeline_tasks.profiles.removals import bins_of, losses
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.stage import Shard, Stage
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_shards

Facts = dict[str, float | None]
"""Name -> number; None where there is nothing to measure or to compare with."""

SAMPLE_BYTES = 64 * 1024 * 1024
"""Whole shards of at most this many bytes together, in the order of their digests, are read for the identity checks."""

RECORD = ("source", "snapshot", "file", "offset")
"""Columns that no two rows of a table of documents share."""

UNCOUNTED = ("ingest:not_page", "ingest:revisit", "ingest:unchanged")
"""Reasons of records that were never pages to refine; they are left out of `page_retention`."""

NOTHING: Mapping[str, Any] = {"count": 0}

FACTS: Mapping[str, str] = {
    "rows_in": "rows of the parent (of `ingest`: landed records)",
    "rows": "rows kept",
    "bytes": "bytes of the kept shards",
    "bytes_per_row": "bytes per kept row",
    "rejected": "rows rejected",
    "rejected_share": "share of the rows that came in",
    "quarantined": "rows quarantined",
    "quarantined_share": "share of the rows that came in",
    "retention": "share of the rows that were kept; none for stages that conserve tokens",
    "page_retention": "as `retention`, without records that were never pages",
    "rows_unaccounted": "rows that are neither kept, rejected nor quarantined",
    "rejects_unstored": "rejected and quarantined rows that are in no shard",
    "reason_share.<reason>": "share of the rows that were rejected for this reason",
    "reason_share_max": "the largest of them",
    "silent_reasons": "reasons of enabled rules that rejected no row",
    "columns_missing": "columns that the stage promises and did not write",
    "version_gap": "version of the stage now - version that wrote the manifest",
    "<column>_p05, <column>_p50, <column>_p95": "quantiles of a profiled column of numbers",
    "<column>_mean, <column>_sum": "its mean and sum",
    "<column>_psi": "population stability index of a profiled column against the previous snapshot",
    "language_share.<code>": "share of the kept documents in this language",
    "language_retention.<code>": "share of the language's documents that were kept, from 100 documents up",
    "language_retention_min": "the smallest of them",
    "source_loss_max, site_loss_max": "largest share of the documents of a source or site that deduplication removed",
    "source_own_loss_max, site_own_loss_max": "the same, removed in favor of documents of the same snapshot",
    "cluster_share_max": "share of the rows that are in the largest cluster",
    "unverified_edges": "removed rows without a similarity of at least the threshold",
    "similarity_p05, similarity_p50": "quantiles of the similarity of removed rows",
    "unsigned": "documents too short to be signed",
    "bypassed": "those of them that `dedup_exact` did not compare either",
    "duplicate_records": "rows of the sample that share a landed record",
    "duplicate_ids": "rows of the sample that share an id",
    "tokens_lost": "tokens of the parent that are missing, for stages that reject no row",
    "chars_per_token": "code points of the parent per token",
    "fill": "share of the positions of packed sequences that hold a token",
    "compared_rows": "rows of the smaller of this and the previous snapshot",
    "<fact>_change": "relative change of rows, retention, a mean or a sum against the previous snapshot",
    "reasons_psi": "population stability index of reasons and kept rows against the previous snapshot",
}
"""What each fact means; `<...>` stands for a name. `docs/reference/gates.md` is generated from it."""

TENTHS = tuple(tenth / 10 for tenth in range(1, 10))


def measure(root: str, made: Manifest, previous: Manifest | None = None) -> Facts:
    """Return the facts of a committed manifest, against the same stage's `previous` manifest if there is one.

    Shares are 0-1 of the rows that came in, changes are relative to the previous value, and `*_psi` are population
    stability indices (below 0.1 steady, above 0.25 moved). `FACTS` names them all.
    """
    card = stage_card(made.stage)
    facts: Facts = {}
    facts |= _flow(made)
    facts |= _reasons(card, made)
    facts |= _schema(card, made)
    facts |= _shapes(card, made)
    facts |= _languages(made)
    facts |= _removals(root, card, made)
    facts |= _identity(root, made)
    facts |= _against_parent(root, made)
    facts |= _drift(card, made, facts, previous)
    return facts


def share(part: float, whole: float) -> float | None:
    """Return part / whole, None of nothing."""
    return part / whole if whole else None


def _measures(made: Manifest) -> Mapping[str, Any]:
    found: Mapping[str, Any] = made.metrics.get("kept", {})
    return found


def _flow(made: Manifest) -> Facts:
    rejected, quarantined = sum(made.rejected.values()), sum(made.quarantined.values())
    pages = made.rows_in - sum(made.rejected.get(why, 0) for why in UNCOUNTED)
    by_rows = stage_card(made.stage).conserves == "rows"
    return {
        "rows_in": made.rows_in,
        "rows": made.rows,
        "bytes": made.bytes,
        "rejected": rejected,
        "quarantined": quarantined,
        "retention": share(made.rows, made.rows_in) if by_rows else None,
        "page_retention": share(made.rows, pages) if by_rows else None,
        "rejected_share": share(rejected, made.rows_in),
        "quarantined_share": share(quarantined, made.rows_in),
        "rows_unaccounted": made.rows_in - made.rows - rejected - quarantined if by_rows else None,
        "rejects_unstored": rejected + quarantined - _rows(made.rejects) - _rows(made.quarantine),
        "bytes_per_row": share(made.bytes, made.rows),
    }


def _rows(shards: Iterable[Shard]) -> int:
    return sum(shard.rows for shard in shards)


def _reasons(card: Stage[Any], made: Manifest) -> Facts:
    """Return the share of every reason that the stage can give or gave, and how many enabled ones gave nothing."""
    tally: Tally = {**made.rejected, **made.quarantined}
    facts: Facts = {f"reason_share.{why}": share(tally.get(why, 0), made.rows_in) for why in (*card.reasons, *tally)}
    shares = [tally.get(why, 0) / made.rows_in for why in tally] if made.rows_in else []
    silent = [why for why in card.reasons if _enabled(why, card, made) and not tally.get(why)]
    return facts | {"reason_share_max": max(shares, default=0.0), "silent_reasons": len(silent)}


def _enabled(why: str, card: Stage[Any], made: Manifest) -> bool:
    """Tell whether a reason's rule was asked for: a stage of several filters names them in its `profiles`."""
    rule = why.partition(":")[0]
    return rule in (card.name, *made.params.get("profiles", (rule,)))


def _schema(card: Stage[Any], made: Manifest) -> Facts:
    there = dict(made.schema)
    wrong = [one.name for one in card.writes if made.schema and there.get(one.name) != str(one.type)]
    return {"columns_missing": len(wrong), "version_gap": card.version - made.version}


def _shapes(card: Stage[Any], made: Manifest) -> Facts:
    """Return sum, mean and quantiles of every column of numbers that the card measures; None where no row was kept."""
    facts: Facts = {}
    for name in card.profiled:
        column = _measures(made).get(name, {"kind": _kind(card, name), "count": 0})
        if column["kind"] == "name":
            continue
        some = column["count"] > 0
        for at in (0.05, 0.5, 0.95):
            facts[f"{name}_p{round(at * 100):02d}"] = quantile(column, at) if some else None
        facts[f"{name}_mean"] = mean(column) if some else None
        facts[f"{name}_sum"] = column.get("sum")
    return facts


def _kind(card: Stage[Any], name: str) -> str:
    return "name" if name not in card.writes.names or pa.types.is_string(card.writes.field(name).type) else "number"


def mean(column: Mapping[str, Any]) -> float | None:
    """Return the mean of a profiled column: exact for whole numbers, from the middle of its bins for ratios."""
    if "sum" in column:
        return share(column["sum"], column["count"])
    total = sum((int(key) + 0.5) * count for key, count in column["bins"].items())
    return share(total / 100, column["count"])


def _languages(made: Manifest) -> Facts:
    """Return each kept language's share, and the retention of those of which at least 100 documents came in."""
    kept = _measures(made).get("language", {}).get("bins", {})
    lost = made.metrics.get("rejects", {}).get("language", {}).get("bins", {})
    total = sum(kept.values())
    facts: Facts = {f"language_share.{code}": share(count, total) for code, count in kept.items()}
    came = {code: count + lost.get(code, 0) for code, count in kept.items()}
    stayed = {code: kept[code] / count for code, count in came.items() if count >= 100}  # noqa: PLR2004 -- as documented
    facts |= {f"language_retention.{code}": value for code, value in stayed.items()}
    return facts | {"language_retention_min": min(stayed.values(), default=None)}


# --- Removals: what deduplication took away -----------------------------------------------------------------------


def _removals(root: str, card: Stage[Any], made: Manifest) -> Facts:
    """Return the worst loss of a source and a site, the largest cluster's share, and removals without proof.

    `own` losses are those to documents of the same snapshot. Sources and sites count from 1,000 documents up.
    """
    facts: Facts = {}
    if "origins" in card.profiled:
        for kind in ("source", "site"):
            for own in (False, True):
                found = losses(made.metrics, kind, own=own)
                facts[f"{kind}_{'own_' if own else ''}loss_max"] = max(found.values(), default=None)
    if "clusters" in card.profiled:
        largest = max(bins_of(made.metrics, "rejects", "clusters").values(), default=0)
        facts["cluster_share_max"] = share(largest + 1, made.rows_in) if largest else 0.0
    if "similarity" in card.profiled:
        facts |= _proof(made) | _short(root, made)
    return facts


def _proof(made: Manifest) -> Facts:
    """Return the rows that were removed without a similarity of at least the threshold, and how similar the rest was.

    Similarities are counted by hundredths, so a threshold between two of them is judged by the lower.
    """
    column = made.metrics.get("rejects", {}).get("similarity", {"kind": "ratio", "count": 0, "bins": {}})
    threshold = float(made.params.get("threshold", 0))
    least = int(threshold * 100 + 1e-9)
    proven = sum(count for key, count in column["bins"].items() if threshold > 0 and int(key) >= least)
    facts: Facts = {"unverified_edges": sum(made.rejected.values()) - proven}
    for at in (0.05, 0.5):
        facts[f"similarity_p{round(at * 100):02d}"] = quantile(column, at) if column["count"] else None
    return facts


def _short(root: str, made: Manifest) -> Facts:
    """Return the documents too short to be signed, and those that no comparison of whole texts saw either."""
    profiles = [made.metrics.get(key, {}).get("shingles") for key in ("kept", "rejects")]
    if not any(profiles):
        return {"unsigned": None, "bypassed": None}
    unsigned = sum(one["bins"].get("0", 0) for one in profiles if one)
    return {"unsigned": unsigned, "bypassed": 0 if not unsigned or _follows(root, made, "dedup_exact") else unsigned}


def _follows(root: str, made: Manifest, stage: str) -> bool:
    """Tell whether `stage` is among the manifests that a manifest was made from."""
    parent = parent_of(root, made)
    return parent is not None and (parent.stage == stage or _follows(root, parent, stage))


# --- Identity: the only facts that look at rows, and only at their locators ---------------------------------------


def _identity(root: str, made: Manifest) -> Facts:
    """Count rows that share a record or an id, over a hashed sample of whole shards."""
    names = [name for name, _ in made.schema]
    wanted = [name for name in (*RECORD, "id") if name in names]
    facts: Facts = {"duplicate_records": None, "duplicate_ids": None}
    if not set(RECORD) <= set(wanted):
        return facts
    sample = tuple(sampled(made.shards, SAMPLE_BYTES))
    if not sample:
        return facts
    table = pa.Table.from_batches(list(read_shards(root, sample, wanted)))
    facts["duplicate_records"] = _repeats(table, RECORD)
    if "id" in wanted:
        facts["duplicate_ids"] = _repeats(table, ("id",))
    return facts


def sampled(shards: Iterable[Shard], most: int) -> Iterator[Shard]:
    """Yield shards in the order of their digests while together they stay within `most` bytes."""
    spent = 0
    for shard in sorted(shards, key=lambda one: one.digest):
        spent += shard.bytes
        if spent > most:
            return
        yield shard


def _repeats(table: pa.Table, columns: Iterable[str]) -> int:
    return int(table.num_rows - table.group_by(list(columns)).aggregate([]).num_rows)


# --- Against the parent and against the previous snapshot ---------------------------------------------------------


def _against_parent(root: str, made: Manifest) -> Facts:
    """Return what only the parent's manifest can tell: tokens lost, fill of sequences, characters per token."""
    tokens = _measures(made).get("n_tokens", {}).get("sum")
    if tokens is None:
        return {}
    parent = parent_of(root, made)
    came = _measures(parent) if parent else {}
    length = made.params.get("length")
    whole = not stage_card(made.stage).reasons  # a stage that sets nothing aside keeps every token
    return {
        "tokens_lost": came["n_tokens"]["sum"] - tokens if whole and "n_tokens" in came else None,
        "chars_per_token": share(came["chars"]["sum"], tokens) if "chars" in came else None,
        "fill": share(tokens, made.rows * length) if made.stage == "pack" and length else None,
    }


def parent_of(root: str, made: Manifest) -> Manifest | None:
    """Return the manifest that a stage refined, looked for under the stages before it; None when it is gone."""
    if not made.parents:
        return None
    store = storage.connect(root)
    earlier = STAGES[: STAGES.index(made.stage)] if made.stage in STAGES else STAGES
    for stage in (*reversed(earlier), "land"):
        path = manifest_path(stage, made.parents[0])
        if store.size(path) is not None:
            return load(store.read(path), f"{root}/{path}")
    return None


def _drift(card: Stage[Any], made: Manifest, facts: Facts, previous: Manifest | None) -> Facts:
    """Compare retention and every profiled column with the previous manifest of the same stage; None without one."""
    before: Facts = _flow(previous) | _shapes(card, previous) if previous else {}
    drift: Facts = {"compared_rows": min(made.rows, previous.rows) if previous else None}
    sizes = (name for name in facts if name.endswith(("_mean", "_sum")))
    for name in ("rows_in", "rows", "retention", "page_retention", *sizes):
        drift[f"{name}_change"] = _change(facts.get(name), before.get(name))
    old = _measures(previous) if previous else {}
    for name in card.profiled:
        drift[f"{name}_psi"] = psi(_measures(made).get(name, NOTHING), old.get(name, NOTHING))
    drift["reasons_psi"] = _psi(_ends(made), _ends(previous)) if previous else None
    return drift


def _ends(made: Manifest) -> Tally:
    return {**made.rejected, "kept": made.rows}


def _change(now: float | None, before: float | None) -> float | None:
    return now / before - 1 if now is not None and before else None


def psi(now: Mapping[str, Any], before: Mapping[str, Any]) -> float | None:
    """Return the population stability index of two profiles: sum of (p - q) ln(p / q) over names or tenths of `before`.

    Half a row is added to every bin, so that an empty one does not make it infinite.
    """
    if not now["count"] or not before["count"]:
        return None
    if now["kind"] == "name":
        return _psi(now["bins"], before["bins"])
    edges = np.unique([_edge(before, at) for at in TENTHS])
    return _psi(_into(edges, now), _into(edges, before))


def _edge(column: Mapping[str, Any], at: float) -> int:
    value = quantile(column, at)
    return round(value * 100) if column["kind"] == "ratio" else int(value)


def _into(edges: "np.ndarray[Any, Any]", column: Mapping[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key, count in column["bins"].items():
        tenth = str(int(np.searchsorted(edges, int(key), side="left")))
        counts[tenth] = counts.get(tenth, 0) + count
    return counts


def _psi(now: Tally, before: Tally) -> float:
    names = sorted({*now, *before})
    p, q = (_smoothed(names, counts) for counts in (now, before))
    return sum((a - b) * log(a / b) for a, b in zip(p, q, strict=True))


def _smoothed(names: list[str], counts: Tally) -> list[float]:
    total = sum(counts.values()) + 0.5 * len(names)
    return [(counts.get(name, 0) + 0.5) / total for name in names]
