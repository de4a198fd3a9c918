"""Equal texts: one stays, the rest say which, on one day and across days, however the rows are cut."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import DOCUMENT
from tests import refining
from tests.examples import few_examples


def document(
    text: str, day: str = "d1", offset: int = 0, crawled_at: str | None = "2026-11-20T00:00:00Z"
) -> dict[str, object]:
    return {
        "source": "crawl",
        "snapshot": day,
        "file": "a.warc",
        "offset": offset,
        "length": 10,
        "record_id": f"{day}:{offset}",
        "url": f"https://example.org/{offset}",
        "crawled_at": crawled_at,
        "payload_digest": f"sha1:{text}",
        "id": hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
        "text": text,
        "title": None,
        "chars": len(text),
    }


def tables(docs: Sequence[dict[str, object]], shards: int = 1) -> list[pa.Table]:
    return [pa.Table.from_pylist(list(docs[start::shards]), schema=DOCUMENT) for start in range(shards)]


def evidence(root: Path, manifest: Manifest) -> list[dict[str, Any]]:
    return [json.loads(row["evidence"]) for row in refining.rows(root, manifest, "rejects").to_pylist()]


def test_oldest_stays_and_the_others_name_it(tmp_path: Path) -> None:
    docs = [
        document("same", offset=5, crawled_at="2026-11-20T09:00:00Z"),
        document("same", offset=9, crawled_at="2026-11-20T08:00:00Z"),
        document("other", offset=7),
    ]
    _, manifest = refining.refined(tmp_path, "dedup_exact", refining.commit_parent(tmp_path, tables(docs)))
    kept = refining.rows(tmp_path, manifest)
    assert sorted(kept.column("offset").to_pylist()) == [7, 9]
    assert kept.schema == DOCUMENT
    assert manifest.rejected == {"dedup_exact:duplicate": 1}
    (proof,) = evidence(tmp_path, manifest)
    assert proof["winner"]["offset"] == 9
    assert proof["same_payload"] is True


@pytest.mark.parametrize(
    ("digests", "same"), [(("sha1:A", "sha1:B"), False), ((None, None), False), (("x", "x"), True)]
)
def test_evidence_says_whether_the_payloads_were_the_same(
    tmp_path: Path, digests: tuple[str | None, str | None], same: bool
) -> None:
    docs = [document("same", offset=at) | {"payload_digest": digest} for at, digest in enumerate(digests)]
    _, manifest = refining.refined(tmp_path, "dedup_exact", refining.commit_parent(tmp_path, tables(docs)))
    (proof,) = evidence(tmp_path, manifest)
    assert proof["same_payload"] is same


def test_newest_may_stay_instead(tmp_path: Path) -> None:
    docs = [
        document("same", offset=1, crawled_at="2026-11-20T09:00:00Z"),
        document("same", offset=2, crawled_at="2026-11-21T08:00:00Z"),
        document("same", offset=3, crawled_at=None),
    ]
    _, manifest = refining.refined(
        tmp_path, "dedup_exact", refining.commit_parent(tmp_path, tables(docs)), {"keep": "newest"}
    )
    kept = refining.rows(tmp_path, manifest)
    assert kept.column("offset").to_pylist() == [2]
    assert kept.schema == DOCUMENT


@pytest.mark.parametrize("keep", ["oldest", "newest"])
def test_a_preferred_value_goes_before_age(tmp_path: Path, keep: str) -> None:
    kinds = {5: "pdf", 6: "html", 7: None, 8: "html"}
    days = {5: "2026-11-19", 6: "2026-11-20", 7: "2026-11-18", 8: "2026-11-21"}
    docs = [
        document("same", offset=at, crawled_at=f"{days[at]}T09:00:00Z") | {"type": kind} for at, kind in kinds.items()
    ]
    table = pa.Table.from_pylist(docs, pa.schema([*DOCUMENT, pa.field("type", pa.string())]))
    params = {"keep": keep, "prefer": {"type": ["html", "pdf"]}}
    _, manifest = refining.refined(tmp_path, "dedup_exact", refining.commit_parent(tmp_path, [table]), params)
    kept = refining.rows(tmp_path, manifest)
    assert kept["offset"].to_pylist() == [{"oldest": 6, "newest": 8}[keep]]
    assert kept.schema == table.schema


def test_bucket_order_is_one_sorted_shard_per_bucket(tmp_path: Path) -> None:
    docs = [document(f"text {n}", offset=n) for n in range(200)]
    _, manifest = refining.refined(
        tmp_path, "dedup_exact", refining.commit_parent(tmp_path, tables(docs, 3)), {"buckets": 4}
    )
    assert len(manifest.shards) == 4
    for shard in manifest.shards:
        ids = refining.rows(tmp_path, replace(manifest, shards=(shard,))).column("id").to_pylist()
        assert ids
        assert ids == sorted(ids)
    assert manifest.rows == 200


def test_earlier_snapshots_win_and_are_named(tmp_path: Path) -> None:
    first = [document("a", "d1", 1), document("b", "d1", 2)]
    second = [document("b", "d2", 1), document("c", "d2", 2), document("c", "d2", 3)]
    third = [document("a", "d3", 1), document("b", "d3", 2), document("c", "d3", 3), document("d", "d3", 4)]
    history: list[str] = []
    kept, proofs = [], []
    for day in (first, second, third):
        path, manifest = refining.refined(
            tmp_path, "dedup_exact", refining.commit_parent(tmp_path, tables(day)), history=history, batch_rows=1
        )
        history.append(path)
        kept += refining.rows(tmp_path, manifest).select(["snapshot", "offset"]).to_pylist()
        proofs.append(evidence(tmp_path, manifest))
    assert {(row["snapshot"], row["offset"]) for row in kept} == {("d1", 1), ("d1", 2), ("d2", 2), ("d3", 4)}
    assert sorted(proof["winner"]["snapshot"] for proof in proofs[2]) == ["d1", "d1", "d2"]


def test_a_history_of_another_bucket_count_rejects_the_same(tmp_path: Path) -> None:
    """`buckets` had to stay the same as long as there was history: another number was refused."""
    docs = [document(f"text {n}", offset=n) for n in range(50)]
    parent = refining.commit_parent(tmp_path, tables(docs))
    days = {n: refining.refined(tmp_path, "dedup_exact", parent, {"buckets": n})[0] for n in (1, 3, 8, 32)}
    again = refining.commit_parent(tmp_path, tables([document(f"text {n}", "d2", n) for n in range(20, 80)]))
    outcomes = []
    for buckets, same in days.items():
        for path in {same, days[8]}:
            _, manifest = refining.refined(tmp_path, "dedup_exact", again, {"buckets": buckets}, history=[path])
            assert manifest.rejected == {"dedup_exact:seen_before": 30}
            proofs = sorted(map(str, evidence(tmp_path, manifest)))
            outcomes.append((proofs, refining.rows(tmp_path, manifest).sort_by("id").to_pylist()))
    assert outcomes == [outcomes[0]] * 7


@few_examples
@given(
    texts=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30),
    shards=st.integers(1, 3),
    batch_rows=st.sampled_from([1, 7, 10_000]),
    shuffled=st.randoms(use_true_random=False),
)
def test_cutting_and_order_change_nothing(
    texts: list[str], shards: int, batch_rows: int, shuffled: random.Random
) -> None:
    docs = [document(text, offset=n) for n, text in enumerate(texts)]
    mixed = list(docs)
    shuffled.shuffle(mixed)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        _, whole = refining.refined(root, "dedup_exact", refining.commit_parent(root, tables(docs)), {"buckets": 2})
        _, cut = refining.refined(
            root,
            "dedup_exact",
            refining.commit_parent(root, tables(mixed, shards)),
            {"buckets": 2},
            batch_rows=batch_rows,
        )
        assert [shard.digest for shard in whole.shards] == [shard.digest for shard in cut.shards]
        assert whole.rows == len(set(texts))
        assert whole.rows + sum(whole.rejected.values()) == len(texts)
