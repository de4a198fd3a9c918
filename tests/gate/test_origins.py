"""Facts of generated documents: retention counts them as rows, and a snapshot's as no pages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.facts.snapshots import compute_snapshot_facts
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.store.reading import read_manifest
from tests.gate.samples import healthy
from tests.offspring import UNFOLDER, WRITER, brought, documents, ids_of
from tests.refining import commit_parent, made_up_shard

pytestmark = pytest.mark.usefixtures("offspring")

IDS = ids_of(300)
BROUGHT = sum(map(brought, IDS))
THIRDS = sum(brought(row) == 3 for row in IDS)


def unfolded(root: Path, **params: Any) -> list[Manifest]:
    """The manifests of documents, of the stage that says what they bring, and of the one that makes rows of it."""
    given = commit_parent(root, [documents(IDS)])
    work = RefineRequest(str(root), WRITER, {}, given)
    written = refine(work, LocalEngine)
    done = refine(replace(work, stage=UNFOLDER, params=params, parent=written.path), LocalEngine)
    return [read_manifest(str(root), given), written.manifest, done.manifest]


def values(facts: Any, *names: str) -> list[float | None]:
    return [None if facts[name] is None else facts[name].value for name in names]


NAMES = ("retention", "rejected_share", "rows_unaccounted", "generated", "generated_retention", "source_retention")


def test_a_stage_that_makes_rows_keeps_no_more_than_all(tmp_path: Path) -> None:
    made = unfolded(tmp_path)[-1]
    facts, due = compute_facts(str(tmp_path), made), 300 + BROUGHT
    kept = BROUGHT - THIRDS
    expected = [(due - THIRDS) / due, THIRDS / due, 0, kept, kept / BROUGHT, 1]
    assert values(facts, *NAMES) == pytest.approx(expected)
    assert values(facts, "reason_share.toy_unfold:third") == pytest.approx([THIRDS / due])
    lost = replace(made, shards=made.shards[:-1])
    assert compute_facts(str(tmp_path), lost)["rows_unaccounted"].value == made.shards[-1].rows  # type: ignore[union-attr]


def test_offspring_of_a_record_are_no_repeats_of_it(tmp_path: Path) -> None:
    made = unfolded(tmp_path)[-1]
    facts = compute_facts(str(tmp_path), made)
    assert values(facts, "duplicate_records", "duplicate_ids") == [0, 0]
    twice = compute_facts(str(tmp_path), replace(made, shards=made.shards * 2))
    assert values(twice, "duplicate_records", "duplicate_ids") == [made.rows, made.rows]


def day(tmp_path: Path, **params: Any) -> list[Manifest]:
    """The manifests of a snapshot: 400 records, of which 300 became documents, which bring texts."""
    ingest, (_, written, made) = healthy("ingest", 400), unfolded(tmp_path, **params)
    return [
        replace(ingest, shards=(made_up_shard("data", 400),), rejected={}, rejects=()),
        replace(healthy("extract", 400), shards=(made_up_shard("data", 300),), rejected={"extract:empty": 100}),
        written,
        made,
    ]


SNAPSHOT = ("documents", "generated", "retention", "text_retention", "record_retention")


def test_offspring_are_no_pages(tmp_path: Path) -> None:
    facts = compute_snapshot_facts(day(tmp_path))
    assert values(facts, *SNAPSHOT) == pytest.approx([300, BROUGHT - THIRDS, 0.75, 1, 0.75])


def test_a_source_that_its_offspring_replace_is_not_lost(tmp_path: Path) -> None:
    facts = compute_snapshot_facts(day(tmp_path, keep="generated"))
    assert values(facts, *SNAPSHOT) == pytest.approx([300, BROUGHT - THIRDS, 0.75, 1, 0.75])


def test_sources_whose_offspring_are_lost_are_lost(tmp_path: Path) -> None:
    """So many sources are replaced as there are offspring, at most."""
    manifests = day(tmp_path, keep="generated")
    nothing = replace(manifests[-1], shards=(made_up_shard("data", 0),), metrics={"kept": {}, "rejects": {}})
    assert values(compute_snapshot_facts([*manifests[:-1], nothing]), *SNAPSHOT) == [0, 0, 0, 0, 0]


def test_a_generated_copy_is_no_copy_of_a_page(tmp_path: Path) -> None:
    manifests = day(tmp_path)
    made = manifests[-1]
    profile = {"origin": {"kind": "name", "count": 40, "bins": {"generated dedup_exact:duplicate": 30, "source x": 10}}}
    kept = {"origin": {"kind": "name", "count": 0, "bins": {"source": 290, "generated": BROUGHT - THIRDS - 30}}}
    copies = replace(
        healthy("dedup_exact", made.rows),
        shards=(made_up_shard("data", made.rows - 40),),
        rejected={"dedup_exact:duplicate": 40},
        metrics={"kept": kept, "rejects": profile},
    )
    facts = compute_snapshot_facts([*manifests, copies])
    assert values(facts, "copies", *SNAPSHOT) == pytest.approx([10, 290, BROUGHT - THIRDS - 30, 0.75, 1, 0.725])
