"""Factors of a mixture: rehydration by cluster size and sampling by quality, resolved exactly before data moves."""

from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.planning import BINS
from pipeline_tasks.store.reading import read_history
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws
from tests.examples import few_examples
from tests.refining import commit_parent, refined, rows

REHYDRATION = {"cluster_size": {"1": 1, "2": 2, "5": 3, "100": 1, "1000": 0}}


def documents(sizes: list[int | None], **columns: list[Any]) -> pa.Table:
    ids = [f"{rank:032x}" for rank in range(len(sizes))]
    given_columns = {"language": ["en"] * len(ids), "n_tokens": [10] * len(ids)} | columns
    return pa.table({"id": ids, "cluster_size": pa.array(sizes, pa.int64()), **given_columns})


def mixed(root: Path, table: pa.Table, **params: Any) -> Manifest:
    cuts = [table.slice(0, table.num_rows // 3), table.slice(table.num_rows // 3)]
    return refined(root, "mix", commit_parent(root, cuts), params, batch_rows=7)[1]


def copies(root: Path, manifest: Manifest) -> dict[str, int]:
    kept = rows(root, manifest)
    ids = kept["id"].to_pylist()
    return dict(zip(ids, kept["copies"].to_pylist() if "copies" in kept.schema.names else [1] * len(ids), strict=True))


def plan_of(root: Path, manifest: Manifest) -> dict[str, dict[str, Any]]:
    found = [row for batch in read_history(str(root), manifest, "plan") for row in batch.to_pylist()]
    return {row["group"]: row for row in found}


def test_documents_are_repeated_by_the_size_of_their_cluster(tmp_path: Path) -> None:
    table = documents([1, 2, 4, 5, 99, 100, 999, 1000, 5000, None, 0])
    manifest = mixed(tmp_path, table, factors=REHYDRATION)
    used = copies(tmp_path, manifest)
    assert [used.get(id_, 0) for id_ in table["id"].to_pylist()] == [1, 2, 2, 3, 3, 1, 1, 0, 0, 1, 1]
    assert manifest.rejected == {"mix:over_budget": 2}
    assert manifest.uses == 15
    [row] = plan_of(tmp_path, manifest).values()
    assert (row["documents"], row["available"], row["wanted"], row["taken"]) == (11, 150, 150, 150)
    evidence = rows(tmp_path, manifest, "rejects")["evidence"].to_pylist()
    assert '"factor":0.0' in evidence[0]


def test_what_a_group_has_is_counted_after_its_factors(tmp_path: Path) -> None:
    """German pages have ten times the tokens, once repeated; so they are what limits equal weights."""
    table = documents([5] * 100 + [1] * 600, language=["de"] * 100 + ["en"] * 600)
    manifest = mixed(tmp_path, table, factors=REHYDRATION, weights={"de": 1, "en": 1})
    planned = plan_of(tmp_path, manifest)
    assert planned["de"]["available"] == planned["de"]["taken"] == 3000
    assert 2980 < planned["en"]["taken"] <= 3000
    assert set(copies(tmp_path, manifest).values()) == {1, 3}


@pytest.mark.parametrize(
    ("how", "shares"),
    [
        ({}, (0.5, 1, 2)),
        ({"budget_tokens": 22_500}, (0.25, 0.5, 1)),
        ({"epochs": {"en": 3}}, (1.5, 3, 6)),
    ],
    ids=str,
)
def test_better_documents_are_used_more_often(tmp_path: Path, how: dict[str, Any], shares: tuple[float, ...]) -> None:
    scores = [rank / 4000 for rank in range(4000)]
    table = documents([1] * 4000, score=scores)
    manifest = mixed(tmp_path, table, factors={"score": {"0": 0.5, "0.25": 1, "0.75": 2}}, **how)
    used = copies(tmp_path, manifest)
    bands: Counter[int] = Counter()
    for id_, score in zip(table["id"].to_pylist(), scores, strict=True):
        bands[(score >= 0.25) + (score >= 0.75)] += used.get(id_, 0)
    means = [bands[0] / 1000, bands[1] / 2000, bands[2] / 1000]
    assert means == pytest.approx(shares, abs=0.005)


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[pa.Table, dict[str, Any]]:
    count = draw(st.integers(1, 60))
    lists = {
        name: st.lists(values, min_size=count, max_size=count)
        for name, values in (
            ("language", st.sampled_from(["de", "en"])),
            ("n_tokens", st.integers(0, 500)),
            ("score", st.floats(0, 1) | st.none()),
        )
    }
    table = documents(
        draw(st.lists(st.integers(1, 2000) | st.none(), min_size=count, max_size=count)),
        **{name: draw(values) for name, values in lists.items()},
    )
    table = table.set_column(table.schema.get_field_index("score"), "score", table["score"].cast(pa.float64()))
    times = st.floats(0, 4)
    factors = {
        "cluster_size": dict(zip(["1", "3", "50"], draw(st.tuples(times, times, times)), strict=True)),
        "score": dict(zip(["0.2", "0.6"], sorted(draw(st.tuples(times, times))), strict=True)),
    }
    weighted = {"weights": {"de": 1, "en": 2}, "max_epochs": 2}
    wished = [{"epochs": {"de": 1.5}}, weighted, {"tokens": {"en": 700}, "unlisted": "keep"}, {"temperature": 2.0}]
    how = draw(st.sampled_from([{}, {"budget_tokens": 900}, *wished]))
    return table, {"factors": factors, **how}


@settings(few_examples, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(mixtures())
def test_the_plan_is_what_is_taken_and_each_band_has_its_share(mixture: tuple[pa.Table, dict[str, Any]]) -> None:
    table, params = mixture
    with TemporaryDirectory() as folder:
        manifest = mixed(Path(folder), table, **params)
        used, planned = copies(Path(folder), manifest), plan_of(Path(folder), manifest)
    assert planned.keys() == set(table["language"].to_pylist())
    for group, row in planned.items():
        own = [document for document in table.to_pylist() if document["language"] == group]
        factor_of = {document["id"]: factor(document, params) for document in own}
        assert row["documents"] == len(own)
        assert row["taken"] == sum(used.get(document["id"], 0) * document["n_tokens"] for document in own)
        assert row["available"] == int(sum(factor_of[document["id"]] * document["n_tokens"] for document in own))
        assert row["taken"] <= row["wanted"] or "temperature" in params  # which shares what others cannot give
        assert row["limited_by"] or row["wanted"] - row["taken"] <= most_short(own, params)
        assert [id_ for id_ in used if factor_of.get(id_) == 0] == []


def bands(document: dict[str, Any], params: dict[str, Any]) -> list[tuple[str, str]]:
    """The band of each column of factors that a document is in: its lower bound, "" below all."""
    reached = []
    for column, table in params["factors"].items():
        value = document[column]
        reached.append(
            (column, [low for low in ["", *table] if not low or (value is not None and value >= float(low))][-1])
        )
    return reached


def factor(document: dict[str, Any], params: dict[str, Any]) -> Fraction:
    product = Fraction(1)
    for column, low in bands(document, params):
        product *= Fraction(params["factors"][column].get(low, 1))
    return product


def most_short(own: list[dict[str, Any]], params: dict[str, Any]) -> int:
    """Tokens that a plan may be short by: a range of draws of each factor, and a part of a token."""
    draws = uniform_draws(pa.array([document["id"] for document in own], pa.string()), 0) // (DRAW_SPAN // BINS)
    ranges: dict[Fraction, Counter[int]] = defaultdict(Counter)
    for document, draw in zip(own, draws.tolist(), strict=True):
        ranges[factor(document, params)][draw] += document["n_tokens"]
    return 1 + sum(max(tokens.values()) for tokens in ranges.values())


def test_groups_that_factors_leave_next_to_nothing_of_are_not_taken(tmp_path: Path) -> None:
    manifest = mixed(tmp_path, documents([100, 200]), factors={"cluster_size": {"1": 1e-107}}, temperature=2.0)
    assert manifest.rows == 0
    assert sum(manifest.rejected.values()) == 2


@pytest.mark.parametrize(
    ("factors", "named"),
    [
        ({"size": {"1": 1}}, r"mix\.factors: .*'size'"),
        ({"language": {"1": 1}}, r"mix\.bands: language .*string"),
        ({"cluster_size": {}}, "mix: factors: cluster_size "),
        ({"cluster_size": {"2": 1, "1": 1}}, "mix: factors: cluster_size "),
        ({"cluster_size": {"1": 1, "1.0": 2}}, "mix: factors: cluster_size "),
        ({"cluster_size": {"few": 1}}, "mix: factors: cluster_size: 'few'"),
        ({"cluster_size": {"nan": 1}}, "mix: factors: cluster_size: 'nan'"),
        ({"cluster_size": {"1": -1}}, "mix: factors: cluster_size: 1 .*-1"),
        ({"cluster_size": {"1": 101}}, "mix: factors: cluster_size: 1 .*101"),
    ],
)
def test_factors_that_make_no_sense_are_refused(tmp_path: Path, factors: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        mixed(tmp_path, documents([1, 2]), factors=factors)


def test_a_mixture_repeats_only_if_a_document_may_be_used_twice() -> None:
    table = {"score": {"0": 0.5, "0.5": 1.0}}
    assert not Params(factors=table).repeats
    assert Params(factors={"score": {"0": 1.5}}).repeats
    assert Params(factors=table, epochs={"en": 2}).repeats
