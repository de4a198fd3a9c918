"""Mixing: exact plans spelled out, and totals that come out near them."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.planning import BINS, limit
from pipeline_tasks.stages.mix.shares import shares
from pipeline_tasks.text.base.sampling import DRAW_SPAN
from tests.refining import commit_parent, refined, rows

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("tokens", "params", "expected"),
    [
        ({"en": 90, "de": 10}, Params(), {"en": 1, "de": 1}),
        ({"en": 90, "de": 10}, Params(weights={"en": 0.5, "de": 0.5}), {"en": Fraction(1, 9), "de": 1}),
        ({"en": 90, "de": 10}, Params(weights={"en": 2, "de": 2}), {"en": Fraction(1, 9), "de": 1}),
        ({"en": 90, "de": 10, "fr": 5}, Params(weights={"en": 1}), {"en": 1}),
        ({"en": 90, "fr": 5}, Params(weights={"en": 1}, unlisted="keep"), {"en": 1, "fr": 1}),
        ({"en": 90}, Params(weights={"en": 0.5, "sv": 0.5}), {"en": 1}),
        ({"en": 90, "de": 10}, Params(weights={"en": 1, "de": 0}), {"en": 1, "de": 0}),
        ({"en": 90, "de": 10}, Params(budget_tokens=50), {"en": HALF, "de": HALF}),
        ({"en": 90, "de": 10}, Params(budget_tokens=500), {"en": 1, "de": 1}),
        ({"en": 90, "fr": 10}, Params(weights={"en": 1}, unlisted="keep", budget_tokens=50), {"en": HALF, "fr": HALF}),
        ({}, Params(weights={"en": 1}), {}),
        ({"en": 90, "de": 5, "fr": 5}, Params(temperature=2, epochs={"en": 2}), {"en": 2, "de": 1, "fr": 1}),
        ({"en": 90, "de": 5, "fr": 5}, Params(temperature=2, epochs={"en": 0}), {"en": 0, "de": 1, "fr": 1}),
        ({"en": 90, "de": 10}, Params(temperature=1, epochs={"en": 1}, budget_tokens=95), {"en": 1, "de": HALF}),
        ({"en": 90, "de": 10}, Params(temperature=1, epochs={"en": 2}, budget_tokens=45), {"en": HALF, "de": 0}),
    ],
)
def test_plans(tokens: dict[str, int], params: Params, expected: dict[str, Fraction]) -> None:
    assert shares(tokens, params) == expected


@given(
    tokens=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 10**12), max_size=4),
    weights=st.dictionaries(st.sampled_from("abcd"), st.floats(0, 100), max_size=4),
    budget=st.integers(0, 10**12),
)
def test_no_group_gives_more_than_it_has_and_the_budget_holds(
    tokens: dict[str, int], weights: dict[str, float], budget: int
) -> None:
    assume(not weights or any(weights.values()))
    kept = shares(tokens, Params(weights=weights, budget_tokens=budget))
    assert kept.keys() == (tokens.keys() & weights.keys() if weights else tokens.keys())
    assert [share for share in kept.values() if not 0 <= share <= 1] == []
    if budget:
        assert sum(share * tokens[group] for group, share in kept.items()) <= budget
    parts = {share * tokens[group] / Fraction(weights[group]) for group, share in kept.items() if weights.get(group)}
    assert len(parts) <= 1


def test_limits_never_give_more_than_the_share() -> None:
    bins = [10] * 512 + [0] * 511 + [30]
    assert [limit(bins, share) * BINS // DRAW_SPAN for share in (0, Fraction(10, 5150), Fraction(19, 5150))] == [
        0,
        1,
        1,
    ]
    assert [limit(bins, share) for share in (Fraction(5149, 5150), 1)] == [DRAW_SPAN // BINS * 1023, DRAW_SPAN]


def documents(counts: dict[str, int]) -> pa.Table:
    languages = [language for language, count in counts.items() for _ in range(count)]
    ids = [f"{rank:032x}" for rank in range(len(languages))]
    columns = {"id": ids, "language": languages, "source": ["crawl"] * len(ids), "n_tokens": [10] * len(ids)}
    return pa.table(columns)


def mixed(root: Path, shards: list[pa.Table], batch_rows: int = 4096, **params: Any) -> Any:
    return refined(root, "mix", commit_parent(root, shards), params, batch_rows=batch_rows)[1]


def test_without_weights_or_budget_everything_stays(tmp_path: Path) -> None:
    manifest = mixed(tmp_path, [documents({"en": 5})])
    assert (manifest.rows, dict(manifest.rejected)) == (5, {})


def test_weights_are_met_and_the_rest_is_accounted_for(tmp_path: Path) -> None:
    manifest = mixed(tmp_path, [documents({"en": 3000, "de": 1000, "fr": 10})], weights={"en": 0.5, "de": 0.5})
    kept = rows(tmp_path, manifest)["language"].to_pylist()
    assert kept.count("de") == 1000
    assert 990 <= kept.count("en") <= 1000  # at most the share, at least all but one range of draws
    assert manifest.rejected == {"mix:over_budget": 3000 - kept.count("en"), "mix:unlisted": 10}


def test_evidence_shows_draw_and_share(tmp_path: Path) -> None:
    manifest = mixed(tmp_path, [documents({"en": 50})], budget_tokens=250)
    proofs = [json.loads(proof) for proof in rows(tmp_path, manifest, "rejects")["evidence"].to_pylist()]
    assert len(proofs) == 25
    assert all(proof["draw"] >= proof["share"] > 0 and proof["group"] == "en" for proof in proofs)


def test_the_same_documents_stay_for_any_sharding_and_batch_size(tmp_path: Path) -> None:
    whole = documents({"en": 40, "de": 20})
    first = mixed(tmp_path / "one", [whole], budget_tokens=300)
    two = mixed(tmp_path / "two", [whole.slice(0, 7), whole.slice(7)], batch_rows=3, budget_tokens=300)
    assert rows(tmp_path / "one", first).equals(rows(tmp_path / "two", two))
    assert 0 < first.rows < 60


def test_a_bigger_budget_keeps_what_a_smaller_one_kept(tmp_path: Path) -> None:
    small, big = (
        set(rows(tmp_path, mixed(tmp_path, [documents({"en": 60})], budget_tokens=budget))["id"].to_pylist())
        for budget in (200, 400)
    )
    assert small < big


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"weights": {"en": -1.0}}, r"weights: en .*-1\.0"),
        ({"weights": {"en": 0.0}}, r"weights: \{'en': 0\.0\}"),
        ({"budget_tokens": -1}, "budget_tokens .*-1"),
    ],
)
def test_senseless_requests_are_refused(tmp_path: Path, params: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=f"mix: {named}"):
        mixed(tmp_path, [documents({"en": 1})], **params)


def test_a_missing_column_is_named_where_weights_need_it(tmp_path: Path) -> None:
    docs = documents({"en": 4}).drop_columns(["language"])
    assert mixed(tmp_path, [docs], budget_tokens=20).rows == 2
    with pytest.raises(RecipeError, match=r"mix.by: .*'language'"):
        mixed(tmp_path, [docs], weights={"en": 1.0})


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"by": "tokens", "epochs": {"1": 1}}, r"mix\.by: tokens .*list<"),
        ({"by": "source", "bands": {"source": [0.5]}}, r"mix\.bands: source .*string"),
        ({"by": "score", "bands": {"score": [0.5]}}, r"mix\.by: .*'score'"),
    ],
)
def test_columns_that_name_no_groups_are_refused(tmp_path: Path, params: dict[str, Any], named: str) -> None:
    table = documents({"en": 3}).append_column("tokens", pa.array([[1], [2], [3]], pa.list_(pa.int32())))
    with pytest.raises(RecipeError, match=named):
        mixed(tmp_path, [table], **params)
