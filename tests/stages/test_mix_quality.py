"""Mixing by quality: bands are exact quantiles within each group, planned and taken to the token, on every engine."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.stages.mix.quality import Curve, Quality
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_history
from tests.examples import few_examples
from tests.refining import commit_parent, refined, rows

NAN = float("nan")


def documents(scores: Sequence[float | None], tokens: list[int] | None = None, **columns: list[Any]) -> pa.Table:
    ids = [f"{(rank * 7919) % 100_003:032x}" for rank in range(len(scores))]
    given_columns = {"language": ["en"] * len(ids), "n_tokens": tokens or [10] * len(ids)} | columns
    return pa.table({"id": ids, "score": pa.array(scores, pa.float64()), **given_columns})


def mixed(root: Path, table: pa.Table, on: tuple[str, str] = ("local", ""), parts: int = 2, **params: Any) -> Manifest:
    size = max(1, -(-table.num_rows // parts))
    cuts = [table.slice(at, size) for at in range(0, max(1, table.num_rows), size)]
    return refined(root, "mix", commit_parent(root, cuts), params, on=on[0], address=on[1], batch_rows=7)[1]


def section(root: Path, manifest: Manifest, name: str) -> list[dict[str, Any]]:
    return [row for batch in read_history(str(root), manifest, name) for row in batch.to_pylist()]


def bands_of(root: Path, manifest: Manifest) -> dict[str, int | None]:
    """The band of every document, of those that were rejected too."""
    parts = [rows(root, manifest, part) for part in ("shards", "rejects")]
    pairs = [
        zip(*(part[name].to_pylist() for name in ("id", "quality_band")), strict=True) for part in parts if len(part)
    ]
    return {id_: band for part in pairs for id_, band in part}


def uses_of(root: Path, manifest: Manifest) -> dict[str, int]:
    kept = rows(root, manifest)
    uses = kept["copies"].to_pylist() if "copies" in kept.schema.names else [1] * kept.num_rows
    return dict(zip(kept["id"].to_pylist(), uses, strict=True))


def expected_bands(table: pa.Table, bands: int, measure: str) -> dict[str, int | None]:
    """The bands by the rule as it is said: the place of a document's first token among those of its group."""
    found: dict[str, int | None] = {}
    everything = table.to_pylist()
    for language in {row["language"] for row in everything}:
        own = [row for row in everything if row["language"] == language]
        found |= {row["id"]: None for row in own}
        scored = [row for row in own if row["score"] is not None and row["score"] == row["score"]]
        weights = [row["n_tokens"] if measure == "tokens" else 1 for row in scored]
        order = sorted(range(len(scored)), key=lambda at: (scored[at]["score"], scored[at]["id"]))
        total, through = sum(weights), 0
        for at in order:
            place = Fraction(through * bands, total) if total else Fraction(0)
            found[scored[at]["id"]] = min(int(place) + 1, bands)
            through += weights[at]
    return found


@st.composite
def corpora(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 60))
    value = st.sampled_from([0.0, -0.0, 0.5, 0.5000001, 1e300, -1e-300, float("inf"), NAN]) | st.floats(-1, 1)
    scores = draw(st.lists(value | st.none(), min_size=count, max_size=count))
    tokens = draw(st.lists(st.integers(0, 400), min_size=count, max_size=count))
    languages = draw(st.lists(st.sampled_from(["de", "en"]), min_size=count, max_size=count))
    return documents(scores, tokens, language=languages)


@settings(few_examples, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(corpora(), st.integers(1, 25), st.sampled_from(["tokens", "documents"]), st.integers(1, 5))
@example(documents([0.5] * 40), 20, "documents", 3)
@example(documents([0.5, 0.5, 0.1], [0, 0, 0]), 20, "tokens", 3)
@example(documents([0.1, 0.9], [1, 1000]), 20, "tokens", 1)
def test_bands_are_exact_quantiles_of_each_group_however_it_is_cut(
    table: pa.Table, bands: int, measure: str, parts: int
) -> None:
    quality = {"bands": bands, "measure": measure}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        manifest = mixed(root, table, parts=parts, quality=quality)
        found, planned = bands_of(root, manifest), section(root, manifest, "bands")
    assert found == expected_bands(table, bands, measure)
    by_id = {row["id"]: row for row in table.to_pylist()}
    have: Counter[tuple[str, int]] = Counter()
    for id_, band in found.items():
        have[by_id[id_]["language"], band or 0] += by_id[id_]["n_tokens"]
    assert {(row["group"], row["band"]): row["tokens"] for row in planned if row["tokens"]} == +have
    for row in planned:
        own = [document for document in by_id.values() if document["language"] == row["group"]]
        scores = [document["score"] for document in own if found[document["id"]] == row["band"]]
        assert row["documents"] == len(scores) or row["band"] == 0
        assert row["up_to"] is None or not scores or max(scores) == row["up_to"]


@settings(few_examples, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(corpora(), st.lists(st.floats(0, 8), min_size=1, max_size=6), st.sampled_from([{}, {"budget_tokens": 900}]))
def test_the_plan_is_what_is_taken_of_each_band(table: pa.Table, factors: list[float], how: dict[str, Any]) -> None:
    quality = {"bands": len(factors), "factors": factors, "unscored": 0.5}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        manifest = mixed(root, table, quality=quality, **how)
        found, uses = bands_of(root, manifest), uses_of(root, manifest)
        planned, groups = section(root, manifest, "bands"), section(root, manifest, "plan")
    taken: Counter[tuple[str, int]] = Counter()
    for row in table.to_pylist():
        taken[row["language"], found[row["id"]] or 0] += uses.get(row["id"], 0) * row["n_tokens"]
    assert {(row["group"], row["band"]): row["taken"] for row in planned if row["taken"]} == +taken
    assert sum(row["taken"] for row in planned) == sum(row["taken"] for row in groups)
    assert sum(row["documents"] for row in planned) == table.num_rows
    assert [row["up_to"] for row in planned if row["band"] == 0] == [None] * sum(not row["band"] for row in planned)


def test_the_best_are_used_seven_times_and_the_group_keeps_its_tokens(tmp_path: Path) -> None:
    table = documents([rank / 20_000 for rank in range(20_000)])
    manifest = mixed(tmp_path, table, quality={"upsample": {"drop": 0.4, "most": 7, "mean": 1}})
    planned = section(tmp_path, manifest, "bands")
    assert [row["tokens"] for row in planned] == [10_000] * 20
    taken = [row["taken"] for row in planned]
    assert taken[:8] == [0] * 8
    assert taken == sorted(taken)
    assert 60_000 < taken[-1] < 70_000
    assert sum(taken) == pytest.approx(200_000, rel=0.01)
    assert manifest.rejected["mix:over_budget"] >= 8000
    assert '"band":1' in rows(tmp_path, manifest, "rejects")["evidence"][0].as_py()


def test_borders_are_within_each_group(tmp_path: Path) -> None:
    """German pages score lower as a whole; by bounds of the score alone none of them would stay."""
    scores = [rank / 1000 for rank in range(100)] + [0.5 + rank / 1000 for rank in range(100)]
    table = documents(scores, language=["de"] * 100 + ["en"] * 100)
    manifest = mixed(tmp_path, table, quality={"bands": 2, "factors": [0, 1]})
    kept = rows(tmp_path, manifest)
    assert Counter(kept["language"].to_pylist()) == {"de": 50, "en": 50}
    assert {row["group"]: row["up_to"] for row in section(tmp_path, manifest, "bands") if row["band"] == 1} == {
        "de": pytest.approx(0.049),
        "en": pytest.approx(0.549),
    }


def test_a_group_with_fewer_documents_than_bands_has_empty_ones(tmp_path: Path) -> None:
    manifest = mixed(tmp_path, documents([0.3, 0.1, 0.2]), quality={"bands": 20})
    planned = section(tmp_path, manifest, "bands")
    assert [row["band"] for row in planned if row["documents"]] == [1, 7, 14]
    assert len(planned) == 20


def test_a_field_of_a_struct_and_two_columns_of_groups(tmp_path: Path) -> None:
    signals = pa.array([{"grade": rank} for rank in range(40)])
    table = documents([None] * 40, source=["a", "b"] * 20).append_column("signals", signals)
    manifest = mixed(
        tmp_path, table, by="language+source", quality={"column": "signals.grade", "bands": 2, "factors": [0, 2]}
    )
    assert {row["group"]: row["up_to"] for row in section(tmp_path, manifest, "bands") if row["band"] == 1} == {
        "en+a": 18.0,
        "en+b": 19.0,
    }
    assert set(uses_of(tmp_path, manifest).values()) == {2}


@pytest.mark.slow
@pytest.mark.parametrize("on", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_engines_store_the_same_bands(on: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    table = documents(
        [None if rank % 17 == 0 else (rank % 13) / 13 for rank in range(300)],
        [rank % 40 for rank in range(300)],
        language=["en", "de", "fr"] * 100,
    )
    quality = {"bands": 7, "upsample": {"drop": 0.3, "most": 4, "mean": 1}}
    here, there = tmp_path / "here", tmp_path / "there"
    mixed(here, table, quality=quality)
    mixed(there, table, (on, request.getfixturevalue(on)), quality=quality)
    stores = [storage.connect(str(root)) for root in (here, there)]
    kept = [{entry.path: store.read(entry.path) for entry in store.list("mix")} for store in stores]
    assert kept[0] == kept[1] != {}


def test_a_curve_rises_and_has_the_mean_it_is_given() -> None:
    for drop, most, mean in [(0.4, 7.0, 1.0), (0.0, 3.0, 3.0), (0.9, 10.0, 0.25), (0.37, 2.0, 1.2)]:
        factors = Curve(drop, most, mean).factors(20)
        assert float(sum(factors) / 20) == pytest.approx(mean, abs=1e-5)
        assert all(low <= high for low, high in pairwise(factors))
        assert factors[-1] <= most
        assert all(not factor for factor in factors[: int(drop * 20)])


@pytest.mark.parametrize(
    ("quality", "named"),
    [
        ({"column": "grade"}, r"mix\.quality: .*'grade'"),
        ({"column": "language"}, r"mix\.quality: language .*string"),
        ({"column": "score.x"}, r"mix\.quality: score .*'x'"),
        ({"bands": 0}, "quality: bands .*0"),
        ({"bands": 3, "factors": [1, 2]}, "quality: 2 factors .*3 bands"),
        ({"bands": 1, "factors": [1], "upsample": {}}, "quality: `upsample` .*`factors`"),
        ({"upsample": {"drop": 0.9, "most": 2}}, r"quality: upsample: mean: 1 .*0\.2"),
        ({"curve": {}}, "quality: unknown key 'curve'"),
    ],
)
def test_qualities_that_make_no_sense_are_refused(tmp_path: Path, quality: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        mixed(tmp_path, documents([0.1, 0.2]), quality=quality)


def test_a_missing_column_of_groups_is_named_where_quality_needs_it(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"mix.by: .*'language'"):
        mixed(tmp_path, documents([0.1]).drop_columns(["language"]), quality={})


def test_documents_repeat_only_where_a_factor_is_above_one() -> None:
    assert not Params(quality=Quality()).repeats
    assert not Params(quality=Quality(bands=2, factors=(0.0, 1.0))).repeats
    assert Params(quality=Quality(upsample=Curve())).repeats
    assert Params(quality=Quality(unscored=2.0)).repeats
