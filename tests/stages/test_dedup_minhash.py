"""Near duplicates: every removal is proven, none is left in a band, and nothing but the set of documents matters."""

import gzip
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.text import minhash, shingles
from tests import refining
from tests.documents import documents

STAGE = "dedup_minhash"


def day(
    root: Path, table: pa.Table, snapshot: str = "d1", *, exact: Sequence[str] = (), buckets: int = 2
) -> tuple[str, Manifest]:
    """Bring a day's documents into home order."""
    at = table.schema.get_field_index("snapshot")
    named = table.set_column(at, "snapshot", pa.array([snapshot] * table.num_rows, pa.string()))
    given_ = refining.given(root, [named])
    return refining.refined(root, "dedup_exact", given_, {"buckets": buckets}, history=exact)


def removed(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    return [
        row | {"proof": json.loads(row["evidence"])} for row in refining.rows(root, manifest, "rejects").to_pylist()
    ]


def kept(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    return refining.rows(root, manifest).to_pylist()


def sets(texts: Sequence[str], n: int = 5) -> list[set[tuple[int, ...]]]:
    words = [[word for word, _ in shingles.words(text)] for text in texts]
    return [{tuple(one[at : at + n]) for at in range(len(one) - n + 1)} for one in words]


def similarity(one: set[Any], other: set[Any]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


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
        texts += [" ".join(one) for one in versions]
    return sorted(set(texts))


def test_known_pairs_are_found_and_nothing_else(tmp_path: Path, shared_data: Path) -> None:
    docs = read(shared_data / "truth/articles-100.docs.jsonl.gz")
    pairs = [json.loads(line) for line in (shared_data / "truth/articles-100.pairs.jsonl").read_text().splitlines()]
    table = documents([one["text"] for one in docs])
    home, _ = day(tmp_path, table)
    _, made = refining.refined(tmp_path, STAGE, home, {"buckets": 2})
    names = dict(zip(table.column("id").to_pylist(), (one["id"] for one in docs), strict=True))
    found = {frozenset((names[row["id"]], names[row["proof"]["winner"]])) for row in removed(tmp_path, made)}
    assert found == {frozenset((pair["a"], pair["b"])) for pair in pairs}
    assert made.rejected == {"dedup_minhash:near_duplicate": 5}


def test_versions_of_a_page_are_judged_as_brute_force_judges_them(tmp_path: Path, shared_data: Path) -> None:
    texts = sorted({one["text"] for one in read(shared_data / "truth/pep-versions.docs.jsonl.gz")})
    table = documents(texts)
    home, _ = day(tmp_path, table)
    _, made = refining.refined(tmp_path, STAGE, home, {"buckets": 2})
    hold_to_brute_force(tmp_path, made, table)


def hold_to_brute_force(root: Path, made: Manifest, table: pa.Table, threshold: float = 0.8) -> None:
    """Precision 1 against exact Jaccard; every survivor's band is free of its near duplicates."""
    ids, texts = table.column("id").to_pylist(), table.column("text").to_pylist()
    set_of = dict(zip(ids, sets(texts), strict=True))
    keys, _ = minhash.sign(pa.array(texts), minhash.Family())
    bands = dict(zip(ids, (set(one) for one in keys.to_pylist()), strict=True))
    alive, gone = {row["id"] for row in kept(root, made)}, removed(root, made)
    assert alive | {row["id"] for row in gone} == set(ids)
    for row in gone:
        proof = row["proof"]
        true = similarity(set_of[row["id"]], set_of[proof["near"]])
        assert true >= threshold
        assert proof["jaccard"] == round(true, 6)
        assert proof["bands"] == len(bands[row["id"]] & bands[proof["near"]]) > 0
        assert proof["winner"] in alive
    for one, other in itertools.combinations(sorted(alive), 2):
        assert not bands[one] & bands[other] or similarity(set_of[one], set_of[other]) < threshold


@settings(max_examples=8, deadline=None)
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
        home, _ = day(root, table)
        _, one = refining.refined(root, STAGE, home, {"buckets": 2})
        cut = refining.given(
            root,
            [
                mixed.slice(at * len(texts) // shards, (at + 1) * len(texts) // shards - at * len(texts) // shards)
                for at in range(shards)
            ],
        )
        spread, _ = refining.refined(root, "dedup_exact", cut, {"buckets": buckets})
        params = {"buckets": buckets, "edges_in_memory": edges_in_memory}
        _, two = refining.refined(root, STAGE, spread, params, batch_rows=batch_rows)
        assert proofs(root, one) == proofs(root, two)
        assert {row["id"] for row in kept(root, one)} == {row["id"] for row in kept(root, two)}
        hold_to_brute_force(root, two, table)


def proofs(root: Path, manifest: Manifest) -> dict[str, Mapping[str, Any]]:
    return {row["id"]: row["proof"] | {"snapshot": ""} for row in removed(root, manifest)}


def test_a_chain_is_one_cluster_in_memory_and_by_stars(tmp_path: Path) -> None:
    words = [f"w{n}" for n in range(400)]
    texts = [" ".join(words[at : at + 100]) for at in range(0, 300, 5)]
    home, _ = day(tmp_path, documents(texts))
    made = [
        refining.refined(tmp_path, STAGE, home, {"buckets": 2, "edges_in_memory": n, "bands": 40, "rows": 4})[1]
        for n in (10**6, 0)
    ]
    assert [one.rows for one in made] == [1, 1]
    assert proofs(tmp_path, made[0]) == proofs(tmp_path, made[1])
    assert [one.digest for one in made[0].shards] == [one.digest for one in made[1].shards]


def test_policy_says_who_stays(tmp_path: Path) -> None:
    base = [f"w{n}" for n in range(60)]
    texts = [" ".join(base), " ".join([*base, "one", "more"]), " ".join(base[:58])]
    table = documents(texts)
    dates = ["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", None]
    table = table.set_column(table.schema.get_field_index("crawled_at"), "crawled_at", pa.array(dates, pa.string()))
    home, _ = day(tmp_path, table)
    stays = {}
    for policy in (("oldest",), ("newest",), ("longest", "oldest"), ("lowest_id",)):
        _, made = refining.refined(tmp_path, STAGE, home, {"buckets": 2, "policy": list(policy)})
        (row,) = kept(tmp_path, made)
        stays[policy[0]] = row["id"]
        assert all(one["proof"]["policy"] == list(policy) for one in removed(tmp_path, made))
    ids = table.column("id").to_pylist()
    assert stays == {"oldest": ids[0], "newest": ids[1], "longest": ids[1], "lowest_id": min(ids)}


def test_earlier_winners_stay_and_later_near_duplicates_name_them(tmp_path: Path) -> None:
    draws = random.Random(7)
    pages = [[f"w{draws.randrange(10**6)}" for _ in range(80)] for _ in range(20)]
    days = [
        [" ".join(one) for one in pages[:10]],
        [" ".join([*one, "edited"]) for one in pages[5:15]],
        [" ".join(["again", *one]) for one in pages],
    ]
    texts = [text for one in days for text in one]
    whole, _ = day(tmp_path, documents(texts))
    _, batch = refining.refined(tmp_path, STAGE, whole, {"buckets": 2, "policy": ["lowest_id"]})
    exact: list[str] = []
    near: list[str] = []
    survivors, named = [], []
    for number, one in enumerate(days):
        home, _ = day(tmp_path, documents(one), f"d{number + 1}", exact=exact)
        path, made = refining.refined(tmp_path, STAGE, home, {"buckets": 2}, history=near, batch_rows=3)
        exact.append(home)
        near.append(path)
        survivors.append(made.rows)
        named.append(sorted(row["proof"]["snapshot"] for row in removed(tmp_path, made)))
    assert survivors == [10, 5, 5]
    assert sum(survivors) == batch.rows
    assert named == [[], ["d1"] * 5, ["d1"] * 10 + ["d2"] * 5]


def test_a_bridge_between_two_earlier_winners_leaves_both(tmp_path: Path) -> None:
    words = [f"w{n}" for n in range(130)]
    left, right, bridge = words[:100], words[24:124], words[12:112]
    first, _ = day(tmp_path, documents([" ".join(left), " ".join(right)]))
    params = {"buckets": 2, "threshold": 0.7, "bands": 40, "rows": 4}
    path, made = refining.refined(tmp_path, STAGE, first, params)
    assert made.rows == 2
    second, _ = day(tmp_path, documents([" ".join(bridge)]), "d2", exact=[first])
    _, made = refining.refined(tmp_path, STAGE, second, params, history=[path])
    assert made.rows == 0
    assert removed(tmp_path, made)[0]["proof"]["snapshot"] == "d1"


def test_short_documents_are_counted_and_kept(tmp_path: Path) -> None:
    table = documents(["only four words here", "only four words There !", "a text of more than five words"])
    home, _ = day(tmp_path, table)
    _, made = refining.refined(tmp_path, STAGE, home, {"buckets": 2})
    assert sorted(row["shingles"] for row in kept(tmp_path, made)) == [0, 0, 3]
    assert made.metrics["measures"]["shingles"]["bins"]["0"] == 2


def test_bands_left_over_when_the_rounds_end_are_counted(tmp_path: Path) -> None:
    common = [f"c{n}" for n in range(60)]
    texts = [" ".join([*common, *(f"x{n}y{m}" for m in range(40))]) for n in range(30)]
    home, _ = day(tmp_path, documents(texts))
    params = {"buckets": 2, "bands": 4, "rows": 1}
    settled = refining.refined(tmp_path, STAGE, home, params | {"rounds": 40})[1]
    hasty = refining.refined(tmp_path, STAGE, home, params | {"rounds": 1})[1]
    assert settled.rows == hasty.rows == 30
    assert settled.metrics["measures"]["unsettled_bands"]["sum"] == 0
    assert hasty.metrics["measures"]["unsettled_bands"]["sum"] > 0


def test_documents_that_are_not_at_home_are_refused(tmp_path: Path) -> None:
    table = documents(variants(3, 8)).sort_by("id")
    half = table.num_rows // 2
    twisted = refining.given(tmp_path, [table.slice(half), table.slice(0, half)])
    with pytest.raises(ContractError, match="run dedup_exact before"):
        refining.refined(tmp_path, STAGE, twisted, {"buckets": 2})
    backwards = refining.given(tmp_path, [table.sort_by([("id", "descending")])])
    with pytest.raises(ContractError, match="run dedup_exact before"):
        refining.refined(tmp_path, STAGE, backwards, {"buckets": 1})


def test_other_bucket_count_than_home_is_brought_home(tmp_path: Path) -> None:
    table = documents(variants(5, 8))
    homes = [day(tmp_path, table, buckets=n)[0] for n in (2, 5)]
    made = [refining.refined(tmp_path, STAGE, home, {"buckets": 2})[1] for home in homes]
    assert [one.digest for one in made[0].shards] == [one.digest for one in made[1].shards]


@pytest.mark.parametrize("change", [{"ngram": 4}, {"seed": 2}, {"buckets": 4}, {"buckets": 3}])
def test_memory_of_another_family_is_refused(tmp_path: Path, change: dict[str, int]) -> None:
    table = documents(variants(4, 5))
    home, _ = day(tmp_path, table)
    path, _ = refining.refined(tmp_path, STAGE, home, {"buckets": 2})
    again, _ = day(tmp_path, table, "d2", buckets=change.get("buckets", 2))
    with pytest.raises(ContractError, match="history"):
        refining.refined(tmp_path, STAGE, again, {"buckets": 2} | change, history=[path, path])


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    home, _ = day(tmp_path, documents(["one two three four five six"]))
    with pytest.raises(RecipeError, match="prettiest"):
        refining.refined(tmp_path, STAGE, home, {"buckets": 2, "policy": ["prettiest"]})


def test_no_documents_at_all(tmp_path: Path) -> None:
    home, _ = day(tmp_path, documents([]))
    _, made = refining.refined(tmp_path, STAGE, home, {"buckets": 2})
    assert made.rows == 0
