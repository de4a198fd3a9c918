"""Removals of deduplication, counted by origin, cluster and similarity, are the same for any batches."""

import json
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.inspect.funnel import funnel_lines
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.removals import (
    DERIVED,
    LARGEST,
    MEASURED,
    arrivals,
    clusters,
    losses,
    notable,
    origins,
    similarity,
)
from pipeline_tasks.profiles.sums import SITE_COVERAGES
from tests.documents import documents


def removed(*evidence: str | None, urls: list[str | None] | None = None) -> pa.Table:
    table = documents([f"text {n}" for n in range(len(evidence))], urls)
    return table.append_column("evidence", pa.array(evidence, pa.string()))


def winner_evidence(**winner: Any) -> str:
    return json.dumps({"winner": winner}, sort_keys=True, separators=(",", ":"))


def test_losses_to_earlier_snapshots_are_counted_apart() -> None:
    own, other = (
        winner_evidence(snapshot="2026-11-20", url='x"snapshot":"2026-11-19"'),
        winner_evidence(snapshot="2026-11-19"),
    )
    table = removed(own, other, None, urls=["https://a.b.co.uk/", "http://www.c.org:80/x", "no url"])
    counted = profile(table, ["origins"])["origins"]["bins"]
    assert counted == {
        "source crawl": 3, "own source crawl": 2, "site b.co.uk": 1, "own site b.co.uk": 1, "site c.org": 1,
    }  # fmt: skip
    kept = profile(documents(["x"], ["https://c.org/"]), ["origins"])["origins"]["bins"]
    assert kept == {"source crawl": 1, "site c.org": 1}


def test_the_winner_is_found_in_any_evidence() -> None:
    table = removed(
        json.dumps({"near": "n", "snapshot": "s", "winner": "w"}, separators=(",", ":")),
        winner_evidence(id="u", snapshot="s", url="https://e.org/}"),
        winner_evidence(file="f", snapshot="s"),
    )
    assert clusters(table).to_pylist() == ["w", "u", table.column("id")[2].as_py()]


def test_the_similarity_is_found_under_either_measure() -> None:
    table = removed('{"jaccard":0.8125,"near":"n"}', '{"bands":3,"containment":1.0}', '{"winner":"w"}')
    assert similarity(table).to_pylist() == [0.8125, 1.0, None]


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_rows_that_are_no_documents_have_no_removals(name: str) -> None:
    assert profile(pa.table({"url": ["https://e.org/"], "evidence": [None]}), [name]) == {}
    kept = profile(documents(["x"]).slice(0, 0), [name])[name]
    assert (kept["count"], kept["bins"]) == (0, {})


def test_counts_do_not_depend_on_batches() -> None:
    table = removed(*[winner_evidence(snapshot="2026-11-20")] * 10, urls=[f"https://{n % 3}.org/" for n in range(10)])
    whole = profile(table, list(DERIVED))
    assert merge(profile(table.slice(start, 3), list(DERIVED)) for start in range(0, 10, 3)) == whole
    assert len(origins(table)) == 40


def test_the_funnel_names_who_lost_most() -> None:
    step = {"stage": "dedup_exact", "rows_in": 2600, "rows": 1501, "rejected": {"dedup_exact:duplicate": 1099}}
    step |= {"offspring_in": 0, "generated": 0}
    losses_ = [{"origin": "site bad.example", "rows_in": 1100, "lost": 1099 / 1100}]
    step |= {"quarantined": {}, "idle": [], "losses": losses_, "sites": {"bad.example": 1100 / 2600}}
    step |= {"coverage": {"lost.example": 0.125}}
    lines = list(funnel_lines([step]))
    later = list(funnel_lines([step, {**step, "stage": "dedup_minhash"}]))
    assert sum("are of site" in line for line in later) == 1
    assert lines[-1].split() == ["42.3%", "of", "the", "rows", "are", "of", "site", "bad.example"]
    assert lines[-2].strip() == "12.5% of the sentences on pages of site lost.example are in their texts"
    assert lines[-3].split() == ["99.9%", "of", "1,100", "of", "site", "bad.example"]


def test_a_manifest_contains_large_origins_and_clusters_only() -> None:
    small_sites = {f"site {n:02d}": 500 - n for n in range(20)}
    origins_ = {"site a": 400, "site b": 10, "site c": 600, "source feed": 40, **small_sites}
    metrics = {
        "kept": {"origins": {"kind": "name", "count": 1010, "bins": origins_}},
        "rejects": {
            "origins": {"kind": "name", "count": 900, "bins": {"site a": 600, "own site a": 500, "site c": 300}},
            "clusters": {"kind": "name", "count": 400, "bins": {f"w{n:02d}": n // 2 for n in range(40)}},
        },
    }
    small = notable(metrics)
    largest = {f"site {n:02d}": 500 - n for n in range(LARGEST - 2)}
    assert arrivals(small) == {"site a": 1000, "site c": 900, **largest}
    assert losses(small, "site", own=False) == {"a": 0.6}
    assert losses(small, "site", own=True) == {"a": 0.5}
    assert losses(small, "source", own=True) == {}
    assert sorted(small["rejects"]["clusters"]["bins"]) == [f"w{n:02d}" for n in range(40 - LARGEST, 40)]
    assert metrics["kept"]["origins"]["bins"]["site b"] == 10


def covered(**sites: list[float | None]) -> pa.Table:
    """Return documents with their coverage by the names of their sites."""
    urls: list[str | None] = [
        f"https://www.{site}.org/{at}" for site, shares in sites.items() for at in range(len(shares))
    ]
    shares = [share for site in sites.values() for share in site]
    table = documents([f"text {at}" for at in range(len(urls))], urls)
    return table.append_column("coverage", pa.array(shares, pa.float64()))


def test_coverage_is_summed_by_site_whatever_the_batches() -> None:
    table = covered(a=[0.5, 0.25, None], b=[1.0], c=[None])
    whole = profile(table, SITE_COVERAGES)
    assert [column["bins"] for column in whole.values()] == [
        {"a.org": 2, "b.org": 1, "c.org": 0},
        {"a.org": 750_000, "b.org": 1_000_000, "c.org": 0},
        {"a.org": 312_500, "b.org": 1_000_000, "c.org": 0},
    ]
    assert merge(profile(table.slice(at, 2), SITE_COVERAGES) for at in range(0, 5, 2)) == whole


def test_a_manifest_has_the_coverage_of_the_sites_with_most_pages() -> None:
    """Those of rejected texts count: a site of which no text is kept has lost all."""
    kept = profile(covered(**{f"s{at:02d}": [0.5] * (1 + at) for at in range(MEASURED + 9)}), SITE_COVERAGES)
    rejects = profile(covered(s00=[0.0] * 99), SITE_COVERAGES)
    small = notable({"kept": kept, "rejects": rejects})
    named = {"s00.org", *(f"s{at:02d}.org" for at in range(10, MEASURED + 9))}
    assert [{*column["bins"]} for column in small["kept"].values()] == [named] * len(SITE_COVERAGES)
    assert small["rejects"] == rejects
