"""Runs exact and near deduplication day by day, each with all days before as history, as the product does."""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.dedup_minhash.params import Params
from pipeline_tasks.store.reading import read_history
from pipeline_tasks.text.near import minhash, ranking, shingles
from tests import refining

NEAR = "dedup_minhash"


@dataclass(slots=True)
class Days:
    """What each day kept and superseded, and what the dataset has after it, as ids."""

    root: Path
    params: Mapping[str, Any]
    on: tuple[str, str] = ("local", "")
    partitions: int = 1
    stage: str = NEAR
    exact: list[str] = field(default_factory=list)
    near: list[str] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    dataset: set[str] = field(default_factory=set)

    def add(self, name: str, table: pa.Table) -> Manifest:
        """Refine one day with all that were added before as history."""
        at = table.schema.get_field_index("snapshot")
        named = table.set_column(at, "snapshot", pa.array([name] * table.num_rows, pa.string()))
        ends = [named.num_rows * part // self.partitions for part in range(self.partitions + 1)]
        parent = refining.commit_parent(self.root, [named.slice(at, end - at) for at, end in itertools.pairwise(ends)])
        buckets = {"buckets": self.params.get("buckets", 2)}
        how = {"on": self.on[0], "address": self.on[1]}
        documents, _ = refining.refined(self.root, "dedup_exact", parent, buckets, history=self.exact, **how)  # type: ignore[arg-type]
        path, manifest = refining.refined(
            self.root,
            self.stage,
            documents,
            {**buckets, **self.params},
            history=self.near,
            **how,  # type: ignore[arg-type]
        )
        self.exact.append(documents)
        self.near.append(path)
        self.manifests.append(manifest)
        self.dataset |= kept(self.root, manifest)
        lost_ids = {row["id"] for row in superseded(self.root, manifest)}
        assert lost_ids <= self.dataset, "only documents of the dataset can be superseded"
        self.dataset -= lost_ids
        return manifest


def refined(
    root: Path,
    days: Iterable[pa.Table],
    params: Mapping[str, Any],
    on: tuple[str, str] = ("local", ""),
    partitions: int = 1,
    stage: str = NEAR,
) -> Days:
    """Refine days in the order in which they come, each in so many shards."""
    run = Days(root, params, on, partitions, stage)
    for number, table in enumerate(days):
        run.add(f"d{number + 1}", table)
    return run


def kept(root: Path, manifest: Manifest) -> set[str]:
    return set(refining.rows(root, manifest).column("id").to_pylist())


def removed(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """Rejected rows, with their evidence as `proof`."""
    return [
        row | {"proof": json.loads(row["evidence"])} for row in refining.rows(root, manifest, "rejects").to_pylist()
    ]


def superseded(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """The winners of earlier days that a day superseded, as its history has them."""
    return [row for batch in read_history(str(root), manifest, "superseded") for row in batch.to_pylist()]


def unsettled(manifest: Manifest) -> int:
    """Unsettled bands, summed over documents."""
    return sum(manifest.metrics[part].get("unsettled_bands", {}).get("sum", 0) for part in ("kept", "rejects"))


# --- The oracle -----------------------------------------------------------------------------------------------


def sets(texts: Sequence[str], n: int) -> list[set[tuple[int, ...]]]:
    words = [[word for word, _ in shingles.words(text)] for text in texts]
    return [{tuple(text[at : at + n]) for at in range(len(text) - n + 1)} for text in words]


def similarity(left: set[Any], right: set[Any], kind: str = "jaccard") -> float:
    whole = len(left | right) if kind == "jaccard" else min(len(left), len(right))
    return len(left & right) / whole if whole else 0.0


def edges(table: pa.Table, params: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Every pair of documents that shares a band and is similar enough, by comparing all with all."""
    family = minhash.Family(*(params.get(name, default) for name, default in FAMILY))
    texts, ids = table.column("text").to_pylist(), table.column("id").to_pylist()
    shingled = sets(texts, family.ngram)
    bands = [set(keys) for keys in minhash.sign(pa.array(texts, pa.large_string()), family)[0].to_pylist()]
    kind, threshold = params.get("similarity", "jaccard"), params.get("threshold", 0.8)
    return {
        (ids[a], ids[b])
        for a, b in itertools.combinations(range(len(ids)), 2)
        if bands[a] & bands[b] and similarity(shingled[a], shingled[b], kind) >= threshold
    }


FAMILY = (("ngram", 5), ("bands", 14), ("rows", 8), ("seed", 1))


def clusters(ids: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    """The connected components of documents under pairs."""
    cluster_of = {id_: {id_} for id_ in ids}
    for left, right in pairs:
        if cluster_of[left] is not cluster_of[right]:
            cluster_of[left] |= cluster_of[right]
            for id_ in cluster_of[right]:
                cluster_of[id_] = cluster_of[left]
    return list({id(cluster): cluster for cluster in cluster_of.values()}.values())


def winners(
    table: pa.Table,
    params: Mapping[str, Any],
    pairs: Callable[[pa.Table, Mapping[str, Any]], set[tuple[str, str]]] = edges,
) -> set[str]:
    """What one deduplication of everything must keep: the first by policy of every component under `pairs`."""
    policy = ranking.Policy(
        tuple(params.get("policy", Params().policy)),
        tuple(params.get("sources", ())),
        params.get("quality", "score"),
        ranking.preferred(params.get("prefer", {})),
    )
    nodes = [node for batch in table.to_batches() for node in ranking.nodes(batch, policy).to_pylist()]
    order = {node["id"]: (node["rank"], node["id"]) for node in nodes}
    return {min(cluster, key=order.__getitem__) for cluster in clusters(order, pairs(table, params))}
