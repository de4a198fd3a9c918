"""Documents that say the same: every removal is proven, and neither engine, cut, order nor batch matters over days."""

import itertools
import json
import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.verdicts import judge
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.run.idle_parts import idle_parts
from pipeline_tasks.run.recipe_faults import policy_faults
from pipeline_tasks.stages.dedup_semantic.params import Params
from pipeline_tasks.text.near.vectors import band_keys, cosine, packed, unpacked
from tests import days, refining
from tests.documents import documents
from tests.examples import few_examples

STAGE = "dedup_semantic"
PARAMS: dict[str, Any] = {"buckets": 2, "threshold": 0.9, "bands": 24}


def with_vectors(vectors: np.ndarray, model: str = "m", card: str | None = None) -> pa.Table:
    """One document per vector; those of NaN have none. They are in four languages, whose texts are as near."""
    count = len(vectors)
    return documents(
        [f"text {number}" for number in range(count)],
        language=pa.array([("en", "de", "sr-Cyrl", None)[number * 7 % 11 % 4] for number in range(count)], pa.string()),
        embedding=packed(vectors),
        embedding_model=pa.array([model] * count, pa.string()),
        embedding_languages=pa.array([card] * count, pa.string()),
    )


def compared(table: pa.Table, params: Mapping[str, Any]) -> pa.Table:
    """The documents with a vector in a language that the params name, else the model's card."""
    card = table.column("embedding_languages")[0].as_py()
    named = params.get("languages") or (card.split(",") if card else [])
    codes = {{"srp": "sr"}.get(code, code) for code in named}
    kept = [
        bool(row["embedding"])
        and (not codes or row["language"] in codes or (row["language"] or "").partition("-")[0] in codes)
        for row in table.select(["embedding", "language"]).to_pylist()
    ]
    return table.filter(pa.array(kept))


def clustered(seed: int, centers: int, count: int, spread: float, dimensions: int = 24) -> np.ndarray:
    """Vectors around few directions, some on the way between two."""
    draws = np.random.default_rng(seed)
    middle = draws.normal(size=(centers, dimensions))
    chosen, other = draws.integers(0, centers, (2, count))
    mixed = np.where(draws.random(count) < 0.3, draws.random(count), 0.0)[:, None]
    vectors = middle[chosen] * (1 - mixed) + middle[other] * mixed + draws.normal(size=(count, dimensions)) * spread
    vectors[draws.random(count) < 0.05] = np.nan
    return vectors


def pairs(table: pa.Table, params: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Every pair of documents that shares a band and is similar enough, by comparing all with all."""
    known = compared(table, params)
    how = Params(**{name: value for name, value in params.items() if name in ("threshold", "bands", "recall", "seed")})
    stored = known.column("embedding").combine_chunks()
    keys = band_keys(unpacked(stored), how.bands, how.rows, how.seed)
    ids = known.column("id").to_pylist()
    first, second = (np.array(side, np.int64) for side in zip(*itertools.combinations(range(len(ids)), 2), strict=True))
    shared = (keys[first] == keys[second]).any(axis=1)
    near = cosine(stored.take(pa.array(first)), stored.take(pa.array(second))) >= how.threshold
    return {(ids[a], ids[b]) for a, b in zip(first[shared & near], second[shared & near], strict=True)}


@few_examples
@given(
    seed=st.integers(0, 999),
    count=st.integers(1, 4),
    cut=st.randoms(use_true_random=False),
    how=st.sampled_from([{}, {"edges_in_memory": 0}, {"pairs": 2, "rounds": 60}, {"buckets": 3}, {"threshold": 0.97}]),
    policy=st.sampled_from([("lowest_id",), ("longest",), ("oldest", "longest")]),
    languages=st.sampled_from([(), ("de",), ("srp", "en"), ("sr-Cyrl",)]),
    card=st.sampled_from([None, "en", "de,sr"]),
)
def test_days_in_any_cut_keep_what_one_batch_keeps(
    seed: int,
    count: int,
    cut: random.Random,
    how: dict[str, Any],
    policy: tuple[str, ...],
    languages: tuple[str, ...],
    card: str | None,
) -> None:
    table = with_vectors(clustered(seed, 4, 24, 0.1), card=card)
    params = PARAMS | {"policy": list(policy), "languages": list(languages)} | how
    parts = [cut.randrange(count) for _ in range(table.num_rows)]
    order = cut.sample(range(table.num_rows), table.num_rows)
    with TemporaryDirectory() as folder:
        split = [
            table.take(pa.array([row for row in order if parts[row] == part], pa.int64())) for part in range(count)
        ]
        run = days.refined(Path(folder), split, params, stage=STAGE)
        assert run.dataset == days.winners(table, params, pairs)
        rows_in = sum(manifest.rows_in for manifest in run.manifests)
        assert rows_in == sum(manifest.rows + sum(manifest.rejected.values()) for manifest in run.manifests)


def test_every_removal_has_its_similarity_and_pairs_that_are_near_are_found(tmp_path: Path) -> None:
    vectors = clustered(5, 40, 400, 0.04)
    table = with_vectors(vectors)
    run = days.refined(tmp_path, [table], {**PARAMS, "threshold": 0.95}, stage=STAGE)
    of = dict(zip(table.column("id").to_pylist(), table.column("embedding").to_pylist(), strict=True))
    removed = days.removed(tmp_path, run.manifests[0])
    assert len(removed) > 150
    for row in removed:
        proof = row["proof"]
        sides = (pa.array([of[name]], pa.large_binary()) for name in (row["id"], proof["near"]))
        assert proof["cosine"] == pytest.approx(cosine(*sides)[0], abs=1e-6)
        assert proof["cosine"] >= 0.95
        assert proof["bands"] >= 1
    every = {**PARAMS, "threshold": 0.95, "bands": 1024}
    assert len(run.dataset) <= 1.05 * len(days.winners(table, every, pairs))
    assert {row["id"] for row in removed}.isdisjoint(row for row, body in of.items() if not body)


def test_vectors_of_two_models_are_never_compared(tmp_path: Path) -> None:
    one, other = with_vectors(clustered(1, 2, 6, 0.0)), with_vectors(clustered(1, 2, 9, 0.0), "other")
    run = days.Days(tmp_path, PARAMS, stage=STAGE)
    run.add("d1", one)
    with pytest.raises(ContractError, match="model"):
        run.add("d2", other.slice(6))
    mixed = pa.concat_tables([one, other.slice(6)])
    with pytest.raises(ContractError, match="vectors of m and of other"):
        days.refined(tmp_path / "mixed", [mixed], PARAMS, stage=STAGE)


def test_two_stages_that_supersede_have_one_order_of_documents() -> None:
    """A by MinHash superseded by B, and B by meaning rejected for A: neither would stay."""

    def faults(**semantic: object) -> list[str]:
        stages = {
            "ingest": {},
            "extract": {},
            "dedup_exact": {},
            "dedup_minhash": {"policy": ["longest"]},
            "dedup_semantic": semantic,
        }
        recipe = parse_recipe({"name": "two", "title": "Two", "stages": stages}, "two.yaml")
        return [fault.where for fault in policy_faults(recipe)]

    assert faults(policy=["lowest_id"]) == [STAGE]
    assert faults(policy=["longest"]) == []


def test_documents_in_other_languages_are_neither_removed_nor_kept_for_others(tmp_path: Path) -> None:
    """All have one vector: one of those in Serbian is left, and each of the others."""
    table = with_vectors(np.ones((44, 8)))
    run = days.refined(tmp_path, [table.slice(0, 20), table.slice(20)], {**PARAMS, "languages": ["srp"]}, stage=STAGE)
    of = dict(zip(table.column("id").to_pylist(), table.column("language").to_pylist(), strict=True))
    serbian = {id_ for id_, language in of.items() if language == "sr-Cyrl"}
    gone = [row for manifest in run.manifests for row in days.removed(tmp_path, manifest)]
    assert len(run.dataset) == len(of) - len(serbian) + 1
    assert {row[end] if end in row else row["proof"][end] for row in gone for end in ("id", "winner")} <= serbian
    kept = refining.rows(tmp_path, run.manifests[0])
    numbers = zip(kept["language"].to_pylist(), kept["embedding_numbers"].to_pylist(), strict=True)
    assert {(language == "sr-Cyrl", number) for language, number in numbers} == {(True, 8), (False, 0)}


def test_other_languages_than_those_of_history_are_refused(tmp_path: Path) -> None:
    table = with_vectors(np.ones((24, 8)), card="en")
    run = days.Days(tmp_path, PARAMS, stage=STAGE)
    run.add("d1", table.slice(0, 12))
    run.params = {**PARAMS, "languages": ["de", "en"]}
    with pytest.raises(ContractError, match="other params"):
        run.add("d2", table.slice(12))
    run.params = {**PARAMS, "languages": ["eng"]}
    assert run.add("d3", table.slice(12)).rejected


def test_languages_need_the_column(tmp_path: Path) -> None:
    table = with_vectors(np.ones((4, 8))).drop_columns(["language"])
    with pytest.raises(RecipeError, match="filter_language"):
        days.refined(tmp_path, [table], {**PARAMS, "languages": ["en"]}, stage=STAGE)
    assert len(days.refined(tmp_path, [table], PARAMS, stage=STAGE).dataset) == 1
    stages = {"ingest": {}, "extract": {}, "embed": {"model": "m"}, STAGE: {"languages": ["en"]}}
    with pytest.raises(RecipeError, match="put filter_language before dedup_semantic"):
        parse_recipe({"name": "none", "title": "None", "stages": stages}, "none.yaml")


def test_a_language_without_a_document_is_idle(tmp_path: Path) -> None:
    table = with_vectors(clustered(3, 4, 12, 0.1), card="fi")
    manifest = days.refined(tmp_path / "card", [table], PARAMS, stage=STAGE).manifests[0]
    assert [part.lacks for part in idle_parts(manifest)] == [
        "no document in fi; most are in en (4 documents), de (3 documents), sr-Cyrl (3 documents)"
    ]
    named = days.refined(tmp_path / "named", [table], {**PARAMS, "languages": ["sr", "fi"]}, stage=STAGE).manifests[0]
    assert not idle_parts(named)


def test_the_gate_sees_a_small_language_that_is_wiped_out(tmp_path: Path) -> None:
    """Forty documents of one direction in a language that the model does not know, among a thousand others."""
    apart = np.random.default_rng(2).normal(size=(1_000, 96))
    table = with_vectors(np.concatenate([apart, np.ones((40, 96))]))
    languages = pa.array(["en"] * 500 + ["de"] * 500 + ["el"] * 40, pa.string())
    table = table.set_column(table.schema.get_field_index("language"), "language", languages)
    run = days.refined(tmp_path, [table], PARAMS, stage=STAGE)
    verdict = judge(str(tmp_path), run.near[0])
    assert ("language_own_loss_max", "critical") in {(each.column, each.severity) for each in verdict.failures}
    few = days.refined(tmp_path / "few", [table.slice(0, 1_002)], PARAMS, stage=STAGE)
    assert {each.column for each in judge(str(few.root), few.near[0]).failures} == set()


def rows_of(run: days.Days) -> list[Any]:
    return [
        [
            *refining.row_digests(run.root, manifest.shards),
            *sorted(refining.row_digests(run.root, manifest.rejects)),
            *(shard.digest for shard in manifest.history_shards),
        ]
        for manifest in run.manifests
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark", pytest.param("ray", marks=pytest.mark.nightly)])
def test_every_engine_and_partitioning_removes_the_same(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Only this runs the stage on Spark and Ray, over two days in three partitions: two dozen verbs, half a minute."""
    table = with_vectors(clustered(9, 12, 160, 0.08))
    split = [table.slice(0, 70), table.slice(70)]
    params = {**PARAMS, "languages": ["en", "sr", "de"]}
    calm = days.refined(tmp_path / "calm", split, params, stage=STAGE)
    there = (name, request.getfixturevalue(name))
    run = days.refined(tmp_path / name, split, params, on=there, partitions=3, stage=STAGE)
    assert any(days.superseded(run.root, manifest) for manifest in run.manifests)
    assert rows_of(run) == rows_of(calm)
    assert json.dumps(days.removed(run.root, run.manifests[1]), default=str, sort_keys=True)
