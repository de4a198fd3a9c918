"""Near duplicates: every removal is proven, and nothing but the set of documents matters."""

import gzip
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.near_duplicates.history import lost_bands, save_bands
from pipeline_tasks.near_duplicates.signing import spread_bands
from pipeline_tasks.near_duplicates.tables import KNOWN_BANDS, LOSERS, OUTLINES
from pipeline_tasks.stages.dedup_minhash.params import Params, likeness_of
from pipeline_tasks.text.base.tables import in_order
from pipeline_tasks.text.near import minhash
from tests import days, refining
from tests.documents import documents
from tests.examples import fewest_examples

STAGE = "dedup_minhash"
LIKENESS = replace(likeness_of(Params()), history_version=7)


def day(
    root: Path, table: pa.Table, snapshot: str = "d1", *, exact: Sequence[str] = (), buckets: int = 2
) -> tuple[str, Manifest]:
    """Group a day's documents by id, as `dedup_exact` does."""
    at = table.schema.get_field_index("snapshot")
    named = table.set_column(at, "snapshot", pa.array([snapshot] * table.num_rows, pa.string()))
    parent = refining.commit_parent(root, [named])
    return refining.refined(root, "dedup_exact", parent, {"buckets": buckets}, history=exact)


def removed(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    return [
        row | {"proof": json.loads(row["evidence"])} for row in refining.rows(root, manifest, "rejects").to_pylist()
    ]


def kept(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    return refining.rows(root, manifest).to_pylist()


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def variants(seed: int, families: int, size: int = 60) -> list[str]:
    """Texts in families: copies of a text with a few words changed, some of them of copies."""
    draws, texts = random.Random(seed), []
    for _ in range(families):
        versions = [[f"w{draws.randrange(10**6)}" for _ in range(size)]]
        for _ in range(draws.randrange(5)):
            copy = list(draws.choice(versions))
            for _ in range(draws.randrange(4)):
                copy[draws.randrange(size)] = f"w{draws.randrange(10**6)}"
            versions.append(copy)
        texts += [" ".join(words) for words in versions]
    return sorted(set(texts))


def test_known_pairs_are_found_and_nothing_else(tmp_path: Path, shared_data: Path) -> None:
    docs = read(shared_data / "truth/articles-100.docs.jsonl.gz")
    pairs = [json.loads(line) for line in (shared_data / "truth/articles-100.pairs.jsonl").read_text().splitlines()]
    table = documents([document["text"] for document in docs])
    exact, _ = day(tmp_path, table)
    _, manifest = refining.refined(tmp_path, STAGE, exact, {"buckets": 2})
    names = dict(zip(table.column("id").to_pylist(), (document["id"] for document in docs), strict=True))
    removed_pairs = {
        frozenset((names[row["id"]], names[row["proof"]["winner"]])) for row in removed(tmp_path, manifest)
    }
    assert removed_pairs == {frozenset((pair["a"], pair["b"])) for pair in pairs}
    assert manifest.rejected == {"dedup_minhash:near_duplicate": 5}


def test_versions_of_a_page_are_judged_as_brute_force_judges_them(tmp_path: Path, shared_data: Path) -> None:
    texts = sorted({document["text"] for document in read(shared_data / "truth/pep-versions.docs.jsonl.gz")})
    table = documents(texts)
    exact, _ = day(tmp_path, table)
    _, manifest = refining.refined(tmp_path, STAGE, exact, {"buckets": 2})
    hold_to_brute_force(tmp_path, manifest, table)


def hold_to_brute_force(root: Path, manifest: Manifest, table: pa.Table, threshold: float = 0.8) -> None:
    """Every removal is proven, and the first of every connected component stays."""
    ids, texts = table.column("id").to_pylist(), table.column("text").to_pylist()
    set_of = dict(zip(ids, days.sets(texts, 5), strict=True))
    keys, _ = minhash.sign(pa.array(texts), minhash.Family())
    bands = dict(zip(ids, (set(band_keys) for band_keys in keys.to_pylist()), strict=True))
    alive, gone = {row["id"] for row in kept(root, manifest)}, removed(root, manifest)
    assert alive | {row["id"] for row in gone} == set(ids)
    for row in gone:
        proof = row["proof"]
        true = days.similarity(set_of[row["id"]], set_of[proof["near"]])
        assert true >= threshold
        assert proof["jaccard"] == round(true, 6)
        assert proof["bands"] == len(bands[row["id"]] & bands[proof["near"]]) > 0
        assert proof["winner"] in alive
    assert alive == days.winners(table, {"threshold": threshold})


@fewest_examples
@given(
    seed=st.integers(0, 10**6),
    shards=st.integers(1, 3),
    buckets=st.sampled_from([1, 3]),
    batch_rows=st.sampled_from([1, 7, 10_000]),
    edges_in_memory=st.sampled_from([0, 10**6]),
)
def test_only_the_set_of_documents_matters(
    seed: int, shards: int, buckets: int, batch_rows: int, edges_in_memory: int
) -> None:
    texts = variants(seed, 6)
    table = documents(texts)
    mixed = table.take(random.Random(seed).sample(range(len(texts)), len(texts)))
    with TemporaryDirectory() as folder:
        root = Path(folder)
        exact, _ = day(root, table)
        _, whole = refining.refined(root, STAGE, exact, {"buckets": 2})
        cut = refining.commit_parent(
            root,
            [
                mixed.slice(at * len(texts) // shards, (at + 1) * len(texts) // shards - at * len(texts) // shards)
                for at in range(shards)
            ],
        )
        spread, _ = refining.refined(root, "dedup_exact", cut, {"buckets": buckets})
        params = {"buckets": buckets, "edges_in_memory": edges_in_memory}
        _, split = refining.refined(root, STAGE, spread, params, batch_rows=batch_rows)
        assert proofs(root, whole) == proofs(root, split)
        assert {row["id"] for row in kept(root, whole)} == {row["id"] for row in kept(root, split)}
        hold_to_brute_force(root, split, table)


def proofs(root: Path, manifest: Manifest) -> dict[str, Mapping[str, Any]]:
    return {row["id"]: row["proof"] | {"snapshot": ""} for row in removed(root, manifest)}


def test_a_chain_is_one_cluster_in_memory_and_by_stars(tmp_path: Path) -> None:
    words = [f"w{n}" for n in range(400)]
    texts = [" ".join(words[at : at + 100]) for at in range(0, 300, 5)]
    exact, _ = day(tmp_path, documents(texts))
    manifests = [
        refining.refined(tmp_path, STAGE, exact, {"buckets": 2, "edges_in_memory": n, "bands": 40, "rows": 4})[1]
        for n in (10**6, 0)
    ]
    assert [manifest.rows for manifest in manifests] == [1, 1]
    assert proofs(tmp_path, manifests[0]) == proofs(tmp_path, manifests[1])
    assert [shard.digest for shard in manifests[0].shards] == [shard.digest for shard in manifests[1].shards]


def test_policy_says_who_stays(tmp_path: Path) -> None:
    base = [f"w{n}" for n in range(60)]
    texts = [" ".join(base), " ".join([*base, "one", "more"]), " ".join(base[:58])]
    urls = ["https://example.org/1", None, "https://www.Example.net:80/2"]
    table = documents(texts, urls, score=pa.array([0.5, -1.0, None], pa.float64()))
    dates = ["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", None]
    table = table.set_column(table.schema.get_field_index("crawled_at"), "crawled_at", pa.array(dates, pa.string()))
    exact, _ = day(tmp_path, table)
    stays = {}
    policies = (("oldest",), ("newest",), ("longest", "oldest"), ("lowest_id",), ("source", "newest"), ("quality",))
    for policy in policies:
        sources = {"sources": ["books", "example.net"]} if policy[0] == "source" else {}
        _, manifest = refining.refined(tmp_path, STAGE, exact, {"buckets": 2, "policy": list(policy)} | sources)
        (row,) = kept(tmp_path, manifest)
        stays[policy[0]] = row["id"]
        proofs_ = [row["proof"] for row in removed(tmp_path, manifest)]
        assert [(proof["policy"], proof["by"]) for proof in proofs_] == [(list(policy), policy[0])] * 2
    ids = table.column("id").to_pylist()
    best = {"oldest": ids[0], "newest": ids[1], "longest": ids[1], "source": ids[2], "quality": ids[0]}
    assert stays == best | {"lowest_id": min(ids)}


def test_a_new_document_that_joins_two_clusters_supersedes_the_worse_winner(tmp_path: Path) -> None:
    """The case of docs/decisions/0009: the bridge is like both, they are not like each other."""
    words = [f"w{n}" for n in range(130)]
    table = documents([" ".join(words[:100]), " ".join(words[24:124]), " ".join(words[12:112])])
    left, right, bridge = table.column("id").to_pylist()
    params = {"buckets": 2, "threshold": 0.7, "bands": 40, "rows": 4, "policy": ["longest", "lowest_id"]}
    run = days.Days(tmp_path, params)
    assert run.add("d1", table.slice(0, 2)).rows == 2
    second = run.add("d2", table.slice(2))
    ranked = sorted(
        [left, right, bridge], key=lambda id_: (-table.column("chars")[[left, right, bridge].index(id_)].as_py(), id_)
    )
    assert run.dataset == {ranked[0]}
    rows = days.superseded(tmp_path, second)
    assert [row["id"] for row in rows] == sorted({left, right} & set(ranked[1:]))
    for row in rows:
        assert row["winner"]["id"] == ranked[0]
        assert {row["via"], row["near"]} == {row["id"], bridge}
        assert row["similarity"] == pytest.approx(84 / 108)
    assert second.rows == (ranked[0] == bridge)


def test_a_document_may_join_a_cluster_through_a_loser(tmp_path: Path) -> None:
    words = [f"w{n:03}" for n in range(140)]
    first, loser, newcomer = (" ".join(words[at : at + 100]) for at in (0, 12, 24))
    table = documents([first + " and two more words", loser, newcomer])
    params = {"buckets": 2, "threshold": 0.7, "bands": 40, "rows": 4, "policy": ["longest"]}
    run = days.Days(tmp_path, params)
    assert run.add("d1", table.slice(0, 2)).rows == 1
    manifest = run.add("d2", table.slice(2))
    (row,) = removed(tmp_path, manifest)
    assert manifest.rows == 0
    assert row["proof"]["winner"] == table.column("id")[0].as_py()
    assert row["proof"]["near"] == table.column("id")[1].as_py()
    assert row["proof"]["snapshot"] == "d1"


def test_short_documents_are_counted_and_kept(tmp_path: Path) -> None:
    table = documents(["only four words here", "only four words There !", "a text of more than five words"])
    exact, _ = day(tmp_path, table)
    _, manifest = refining.refined(tmp_path, STAGE, exact, {"buckets": 2})
    assert sorted(row["shingles"] for row in kept(tmp_path, manifest)) == [0, 0, 3]
    assert manifest.metrics["kept"]["shingles"]["bins"]["0"] == 2


def test_shingles_may_be_of_characters(tmp_path: Path) -> None:
    pages = ["".join(chr(0x4E00 + (seed + n * n) % 900) for n in range(120)) for seed in (0, 500)]
    texts = [pages[0], f"{pages[0]}完", pages[1], "short"]
    exact, _ = day(tmp_path, documents(texts))
    params = {"buckets": 2, "ngram": 8, "policy": ["longest"]}
    _, manifest = refining.refined(tmp_path, STAGE, exact, {**params, "shingle": "char"})
    (row,) = removed(tmp_path, manifest)
    assert row["text"] == texts[0]
    assert row["proof"]["jaccard"] == round(113 / 114, 6)
    assert sorted(row["shingles"] for row in kept(tmp_path, manifest)) == [0, 113, 114]
    assert manifest.metrics["kept"]["shingles"]["bins"]["0"] == 1


def test_bands_left_over_when_the_rounds_end_are_counted(tmp_path: Path) -> None:
    common = [f"c{n}" for n in range(60)]
    texts = [" ".join([*common, *(f"x{n}y{m}" for m in range(40))]) for n in range(30)]
    exact, _ = day(tmp_path, documents(texts))
    params = {"buckets": 2, "bands": 4, "rows": 1, "similarity": "containment"}
    settled = [
        refining.refined(tmp_path, STAGE, exact, params | how)[1]
        for how in ({}, {"pairs": 1, "rounds": 40}, {"rounds": 2})
    ]
    hasty = refining.refined(tmp_path, STAGE, exact, params | {"pairs": 100, "rounds": 2})[1]
    assert [manifest.rows for manifest in settled] == [30] * 3
    assert [days.unsettled(manifest) for manifest in settled] == [0] * 3
    assert hasty.rows == 30
    assert days.unsettled(hasty) > 0


def test_distances_prove_pairs_apart_without_comparing_them(tmp_path: Path) -> None:
    texts = variants(11, 4, 120)
    exact, _ = day(tmp_path, documents(texts))
    params = {"buckets": 1, "bands": 8, "rows": 1, "pairs": 40, "rounds": 4}
    _, manifest = refining.refined(tmp_path, STAGE, exact, params)
    assert {row["id"] for row in kept(tmp_path, manifest)} == days.winners(documents(texts), params)


def test_documents_out_of_bucket_order_are_refused(tmp_path: Path) -> None:
    table = documents(variants(3, 8)).sort_by("id")
    half, ids = table.num_rows // 2, table.column("id").to_pylist()
    twisted = refining.commit_parent(tmp_path, [table.slice(half), table.slice(0, half)])
    with pytest.raises(ContractError, match="|".join(ids)):
        refining.refined(tmp_path, STAGE, twisted, {"buckets": 2})
    backwards = refining.commit_parent(tmp_path, [table.sort_by([("id", "descending")])])
    with pytest.raises(ContractError, match=f"{ids[-2]}.*{ids[-1]}"):
        refining.refined(tmp_path, STAGE, backwards, {"buckets": 1})
    ordered = refining.commit_parent(tmp_path, [table])
    assert refining.refined(tmp_path, STAGE, ordered, {"buckets": 1})[1].rows_in == len(ids)


def test_documents_of_another_bucket_count_are_grouped_again(tmp_path: Path) -> None:
    table = documents(variants(5, 8))
    parents = [day(tmp_path, table, buckets=n)[0] for n in (2, 5)]
    manifests = [refining.refined(tmp_path, STAGE, parent, {"buckets": 2})[1] for parent in parents]
    first, second = (refining.row_digests(tmp_path, manifest.shards) for manifest in manifests)
    assert first == second


@pytest.mark.parametrize(
    "change",
    [{"ngram": 4}, {"seed": 2}, {"policy": ["newest"]}, {"threshold": 0.7}],
    ids=str,
)
def test_history_of_other_params_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    table = documents(variants(4, 5))
    exact, _ = day(tmp_path, table)
    path, _ = refining.refined(tmp_path, STAGE, exact, {"buckets": 2})
    again, _ = day(tmp_path, table, "d2")
    with pytest.raises(ContractError, match=STAGE):
        refining.refined(tmp_path, STAGE, again, {"buckets": 2} | change, history=[path, path])


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    exact, _ = day(tmp_path, documents(["one two three four five six"]))
    with pytest.raises(RecipeError, match="prettiest"):
        refining.refined(tmp_path, STAGE, exact, {"buckets": 2, "policy": ["prettiest"]})


@pytest.mark.parametrize(
    ("params", "named"),
    [({"policy": ["quality"]}, "'score'"), ({"policy": ["source"]}, "`sources`"), ({"sources": ["a"]}, "`source`")],
)
def test_a_policy_that_lacks_its_column_is_refused(tmp_path: Path, params: dict[str, Any], named: str) -> None:
    exact, _ = day(tmp_path, documents(["one two three four five six"]))
    with pytest.raises(RecipeError, match=named):
        refining.refined(tmp_path, STAGE, exact, {"buckets": 2} | params)


def test_containment_finds_what_a_longer_document_holds(tmp_path: Path) -> None:
    words = [f"w{n}" for n in range(120)]
    table = documents([" ".join(words), " ".join(words[:70])])
    exact, _ = day(tmp_path, table)
    params = {"buckets": 2, "bands": 40, "rows": 2, "policy": ["longest"]}
    assert refining.refined(tmp_path, STAGE, exact, params)[1].rows == 2
    _, manifest = refining.refined(tmp_path, STAGE, exact, params | {"similarity": "containment"})
    (row,) = removed(tmp_path, manifest)
    assert row["id"] == table.column("id")[1].as_py()
    assert row["proof"]["containment"] == 1.0


def test_a_document_of_the_history_is_refused(tmp_path: Path) -> None:
    table = documents(variants(4, 5))
    path, _ = refining.refined(tmp_path, STAGE, day(tmp_path, table)[0], {"buckets": 2})
    again, _ = day(tmp_path, table, "d2")
    with pytest.raises(ContractError, match="|".join(table.column("id").to_pylist())):
        refining.refined(tmp_path, STAGE, again, {"buckets": 2}, history=[path])


@given(
    keys=st.lists(st.lists(st.integers(0, 9), max_size=4, unique=True), min_size=1, max_size=20),
    winners=st.lists(st.none() | st.integers(0, 19), min_size=20, max_size=20),
    rows=st.sampled_from([1, 3, 100]),
)
def test_bands_are_saved_with_the_winner_of_their_document(
    keys: list[list[int]], winners: list[int | None], rows: int
) -> None:
    nodes = [
        {"rank": str(place % 3), "id": f"d{place:02}", "snapshot": "s", "known": False} for place in range(len(keys))
    ]
    outlined = [
        {"id": node["id"], "node": node, "keys": each, "size": 1} for node, each in zip(nodes, keys, strict=True)
    ]
    outlines = pa.Table.from_pylist(outlined, schema=OUTLINES)
    lost = {node["id"]: nodes[winner % len(nodes)] for node, winner in zip(nodes, winners, strict=False) if winner}
    losing = [{"id": node["id"], "node": node, "winner": lost[node["id"]]} for node in nodes if node["id"] in lost]
    losers = pa.Table.from_pylist(losing, schema=LOSERS)

    def batches(table: pa.Table) -> Any:
        return iter(table.to_batches(max_chunksize=rows) or [pa.RecordBatch.from_pylist([], table.schema)])

    grouped = [
        in_order(pa.Table.from_batches(list(kernel)), "key", "node")
        for kernel in (spread_bands(batches(outlines)), lost_bands(batches(outlines), batches(losers)))
    ]
    saved = pa.Table.from_batches(list(save_bands(*map(batches, grouped), likeness=LIKENESS)), schema=KNOWN_BANDS)
    expected = [
        {"key": key, **{name: node[name] for name in ("rank", "id", "snapshot")}, "label": label, "history_version": 7}
        for node, each in zip(nodes, keys, strict=True)
        for label in [lost.get(node["id"], node)["id"]]
        for key in each
    ]
    assert saved.to_pylist() == sorted(expected, key=lambda row: (row["key"], row["rank"], row["id"]))
    if losing and any(outlined[nodes.index(row["node"])]["keys"] for row in losing):
        others = grouped[0].filter(pa.array([row["id"] not in lost for row in grouped[0].column("node").to_pylist()]))
        missing = sum(len(outlined[nodes.index(row["node"])]["keys"]) for row in losing)
        with pytest.raises(ContractError, match=f" {missing} "):
            list(save_bands(batches(others), batches(grouped[1]), likeness=LIKENESS))


def of_types(texts: Sequence[str]) -> pa.Table:
    """Documents, longer ones as PDFs: most clusters have both, or several of one type."""
    types = ["html" if number % 3 else "pdf" for number in range(len(texts))]
    return documents(texts, type=pa.array(types))


@pytest.mark.parametrize("prefer", [{}, {"type": ["html", "pdf"]}, {"type": ["pdf"]}], ids=["none", "pages", "files"])
def test_the_preferred_type_of_a_cluster_is_kept(tmp_path: Path, prefer: Mapping[str, Sequence[str]]) -> None:
    table = of_types(variants(3, families=12))
    exact, _ = day(tmp_path, table)
    params = {"buckets": 2, "policy": ["lowest_id"], "prefer": prefer}
    _, manifest = refining.refined(tmp_path, STAGE, exact, params)
    assert {row["id"] for row in kept(tmp_path, manifest)} == days.winners(table, params)
    type_of = dict(zip(table["id"].to_pylist(), table["type"].to_pylist(), strict=True))
    names: list[str] = [*prefer.get("type", ())]

    def rank(name: str) -> int:
        return names.index(name) if name in names else len(names)

    proofs = [row["proof"] | {"lost": rank(row["type"])} for row in removed(tmp_path, manifest)]
    for proof in proofs:
        won = rank(type_of[proof["winner"]])
        assert won <= proof["lost"]
        assert proof["by"] == ("type" if won < proof["lost"] else "lowest_id")
    assert ("type" in {proof["by"] for proof in proofs}) == bool(prefer)


@pytest.mark.parametrize("prefer", [{"type": []}, {"type": ["html", "html"]}, {"type": ["html"], "language": ["de"]}])
def test_a_vague_preference_is_refused(prefer: Mapping[str, Sequence[str]]) -> None:
    with pytest.raises(RecipeError, match="`prefer` names one column"):
        Params(prefer={column: tuple(values) for column, values in prefer.items()})


def test_history_is_as_before_without_a_preference_and_another_with_one() -> None:
    assert likeness_of(Params()).history_version == likeness_of(Params(prefer={})).history_version
    versions = {likeness_of(Params(prefer={"type": names})).history_version for names in (("html",), ("pdf",))}
    assert len(versions | {likeness_of(Params()).history_version}) == 3
