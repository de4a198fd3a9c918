"""Sizes of clusters: each record of the selected snapshots counts once, for the document that the dataset keeps."""

import json
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.cluster_sizes import sizes_of
from pipeline_tasks.publish.superseded import superseded_by
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import days
from tests.documents import documents
from tests.examples import fewest_examples

CHAINS = {"buckets": 2, "ngram": 2, "bands": 6, "rows": 1, "threshold": 0.5}
"""Params under which short texts over few words form bands, chains and bridges."""

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""Each example runs a refinery of several days."""

Run = days.Days


@st.composite
def records(draw: st.DrawFn) -> list[str]:
    """Texts over a tiny alphabet, windows of one long text; some occur several times."""
    words = draw(st.lists(st.sampled_from("abcdef"), min_size=30, max_size=40))
    starts = draw(st.lists(st.integers(0, 24), min_size=2, max_size=30))
    return [" ".join(words[at : at + 4 + at % 5]) for at in starts]


def cut(texts: list[str], count: int, chance: random.Random) -> list[pa.Table]:
    table, parts = documents(texts), [chance.randrange(count) for _ in texts]
    return [
        table.take(pa.array([row for row, at in enumerate(parts) if at == day], pa.int64())) for day in range(count)
    ]


def sizes(run: Run, chosen: set[str]) -> dict[str, int]:
    root = str(run.root)
    moves = (batch for manifest in run.manifests for batch in superseded_by(root, [manifest]))
    selected = [day for day in range(len(run.near)) if f"d{day + 1}" in chosen]
    exact = [read_manifest(root, run.exact[day]) for day in selected]
    rows = sizes_of(root, exact, run.manifests, moves, pa.array(chosen, pa.string())).to_pylist()
    return {row["id"]: row["cluster_size"] for row in rows}


@settings(fewest_examples, phases=NO_SHRINKING)
@given(
    texts=records(),
    chance=st.randoms(use_true_random=False),
    count=st.integers(1, 4),
    policy=st.sampled_from(["lowest_id", "longest"]),
)
def test_over_all_days_a_size_is_the_number_of_records_of_the_cluster(
    texts: list[str], chance: random.Random, count: int, policy: str
) -> None:
    params = CHAINS | {"policy": [policy]}
    with TemporaryDirectory() as folder:
        run = days.refined(Path(folder), cut(texts, count, chance), params)
        counted = sizes(run, {f"d{day + 1}" for day in range(count)})
        known = documents(sorted(set(texts)))
        copies = Counter(documents(texts)["id"].to_pylist())
        for cluster in days.clusters(known["id"].to_pylist(), days.edges(known, params)):
            [kept] = cluster & run.dataset
            assert counted.pop(kept, 1) == sum(copies[id_] for id_ in cluster)
        assert not counted.keys() & run.dataset


def rejects(run: Run, manifest: Manifest) -> list[dict[str, str]]:
    return [row for batch in read_shards(str(run.root), manifest.rejects) for row in batch.to_pylist()]


def walked(run: Run, chosen: set[str]) -> Counter[str]:
    """Count record by record, along the line of winners, for the last document that a chosen day kept."""
    winner: dict[str, str] = {}
    kept_on: dict[str, str] = {}
    for day, manifest in enumerate(run.manifests):
        kept_on |= dict.fromkeys(days.kept(run.root, manifest), f"d{day + 1}")
        winner |= {row["id"]: json.loads(row["evidence"])["winner"] for row in rejects(run, manifest)}
        winner |= {row["id"]: row["winner"]["id"] for row in days.superseded(run.root, manifest)}
    counted: Counter[str] = Counter()
    for day in range(len(run.manifests)):
        if f"d{day + 1}" not in chosen:
            continue
        arrived = [*days.kept(run.root, run.manifests[day]), *(row["id"] for row in rejects(run, run.manifests[day]))]
        arrived += [row["id"] for row in rejects(run, read_manifest(str(run.root), run.exact[day]))]
        for id_ in arrived:
            line = [id_]
            while line[-1] in winner:
                line.append(winner[line[-1]])
            standing = [node for node in line if kept_on.get(node) in chosen]
            counted.update(standing[-1:])
    return counted


@settings(fewest_examples, phases=NO_SHRINKING)
@given(
    texts=records(), chance=st.randoms(use_true_random=False), chosen=st.sets(st.sampled_from(["d1", "d2", "d3", "d4"]))
)
def test_over_a_selection_each_record_counts_for_the_document_that_stays(
    texts: list[str], chance: random.Random, chosen: set[str]
) -> None:
    with TemporaryDirectory() as folder:
        run = days.refined(Path(folder), cut(texts, 4, chance), CHAINS | {"policy": ["longest"]})
        chosen_days = [manifest for day, manifest in enumerate(run.manifests) if f"d{day + 1}" in chosen]
        kept = {id_ for manifest in chosen_days for id_ in days.kept(run.root, manifest)}
        counted = {id_: size for id_, size in sizes(run, chosen).items() if id_ in kept}
        assert counted == {id_: size for id_, size in walked(run, chosen).items() if size > 1}
