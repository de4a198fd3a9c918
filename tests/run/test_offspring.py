"""Offspring are conserved: every text that rows bring becomes a row, which is kept, rejected or quarantined."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import RowsVanished, SchemaBroken
from pipeline_tasks.manifest import PARTITION, Manifest, dump, load
from pipeline_tasks.profiles.origins import generated_kept, generated_removed, sources_removed
from pipeline_tasks.recipe import ErrorBudget
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import check_conservation, quarantine, refine, seal
from pipeline_tasks.store.reading import read_manifest
from tests.offspring import JUDGE, UNFOLDER, WRITER, brought, documents, ids_of
from tests.refining import commit_parent, rows

pytestmark = pytest.mark.usefixtures("offspring")

IDS = ids_of(30)
BROUGHT = sum(map(brought, IDS))
THIRDS = sum(brought(row) == 3 for row in IDS)


@pytest.fixture
def parent(tmp_path: Path) -> str:
    """Three shards of documents that say how many texts they bring: 17, none, 13."""
    given = commit_parent(tmp_path, [documents(IDS[:17]), documents([]), documents(IDS[17:])])
    return refine(RefineRequest(str(tmp_path), WRITER, {}, given), LocalEngine).path


def run(root: Path, parent: str, *, span: tuple[int, int] | None = None, **params: Any) -> Manifest:
    return refine(
        RefineRequest(str(root), UNFOLDER, params, parent, span=span, error_budget=ErrorBudget(rows=100)), LocalEngine
    ).manifest


@pytest.mark.parametrize("keep", ["both", "generated"])
def test_every_offspring_is_a_row(tmp_path: Path, parent: str, keep: str) -> None:
    manifest = run(tmp_path, parent, keep=keep)
    assert read_manifest(str(tmp_path), parent).offspring == manifest.offspring_in == BROUGHT
    assert (manifest.rows_in, manifest.rows_due) == (30, 30 + BROUGHT)
    sources = {"toy_unfold:source": 30} if keep == "generated" else {}
    assert manifest.rejected == {"toy_unfold:third": THIRDS, **sources}
    assert manifest.rows == 30 + BROUGHT - THIRDS - sum(sources.values())
    assert generated_kept(manifest) == BROUGHT - THIRDS
    assert generated_removed(manifest) == {"toy_unfold:third": THIRDS}
    assert sources_removed(manifest) == sources
    kept = rows(tmp_path, manifest)
    assert {*kept["parent"].drop_null().to_pylist()} == {row for row in IDS if brought(row)}
    assert load(dump(manifest)) == manifest


@pytest.mark.parametrize("spans", [[(0, 1), (1, 2), (2, 3)], [(0, 0), (0, 2), (2, 3)]])
def test_partitions_are_the_whole_run(tmp_path: Path, parent: str, spans: list[tuple[int, int]]) -> None:
    parts = [run(tmp_path, parent, span=span) for span in spans]
    assert sum(part.offspring_in for part in parts) == BROUGHT
    sealed = seal(RefineRequest(str(tmp_path), UNFOLDER, {}, parent), spans)
    body = (tmp_path / sealed.path).read_bytes()
    (tmp_path / sealed.path).unlink()
    assert dump(run(tmp_path, parent)) == body


def test_a_partition_that_is_quarantined_brings_no_offspring(tmp_path: Path, parent: str) -> None:
    work = RefineRequest(str(tmp_path), UNFOLDER, {}, parent)
    lost = quarantine(replace(work, span=(0, 1))).manifest
    assert (lost.rows_in, lost.offspring_in, lost.quarantined) == (17, 0, {PARTITION: 17})
    run(tmp_path, parent, span=(1, 3))
    sealed = seal(work, [(0, 1), (1, 3)], [(0, 1)]).manifest
    assert sealed.offspring_in == sum(map(brought, IDS[17:]))
    assert sealed.rows_due == sealed.rows + sum(sealed.rejected.values()) + 17


def test_a_record_on_which_the_kernel_raises_costs_itself_and_its_offspring(tmp_path: Path) -> None:
    poisoned = next(row for row in IDS if brought(row) == 3)
    others = [row for row in IDS if row != poisoned]
    given = commit_parent(tmp_path, [documents([poisoned], "poison"), documents(others)])
    parent = refine(RefineRequest(str(tmp_path), WRITER, {}, given), LocalEngine).path
    manifest = run(tmp_path, parent, fault="raise")
    assert manifest.quarantined == {f"error:{UNFOLDER}": 1}
    assert manifest.offspring_in == sum(map(brought, others))
    assert poisoned not in {*rows(tmp_path, manifest)["parent"].to_pylist()}


@pytest.mark.parametrize("span", [None, (0, 3)])
def test_a_stage_that_loses_offspring_commits_nothing(
    tmp_path: Path, parent: str, span: tuple[int, int] | None
) -> None:
    with pytest.raises(RowsVanished, match=f"{30 + BROUGHT} rows and offspring came in and"):
        run(tmp_path, parent, span=span, fault="lose")


def test_a_stage_that_makes_nothing_of_what_it_reads_commits_nothing(tmp_path: Path, parent: str) -> None:
    with pytest.raises(RowsVanished, match=f"{30 + BROUGHT} rows and offspring came in and 30"):
        run(tmp_path, parent, fault="blind")


def test_a_stage_that_reads_no_number_of_offspring_is_refused(tmp_path: Path, parent: str) -> None:
    with pytest.raises(SchemaBroken, match="no kernel of it read `n_generated` of toy_write/"):
        run(tmp_path, parent, fault="unread")


def test_offspring_that_came_in_are_those_that_the_parent_counted(tmp_path: Path, parent: str) -> None:
    """Of a manifest that was made up rows may add up: another number of offspring than the parent's is found."""
    card, counted = stage_card(UNFOLDER), read_manifest(str(tmp_path), parent)
    manifest = run(tmp_path, parent)
    check_conservation(card, counted, manifest)
    forged = replace(manifest, offspring_in=BROUGHT - THIRDS, rejected={})
    assert forged.due("offspring", counted) == forged.accounted("offspring")
    with pytest.raises(RowsVanished):
        check_conservation(card, counted, forged)
    with pytest.raises(RowsVanished):
        check_conservation(
            card, counted, replace(manifest, offspring_in=BROUGHT + 1, rejected={"toy_unfold:third": THIRDS + 1})
        )


def test_documents_that_bring_nothing_are_rows_alone(tmp_path: Path) -> None:
    given = commit_parent(tmp_path, [documents(IDS)])
    parent = refine(RefineRequest(str(tmp_path), WRITER, {"nothing": True}, given), LocalEngine).path
    manifest = run(tmp_path, parent)
    assert (manifest.offspring_in, manifest.rows) == (0, 30)
    assert b"offspring_in" not in dump(manifest)


def test_an_offspring_on_which_a_kernel_raises_costs_itself_alone(tmp_path: Path, parent: str) -> None:
    """It has the record of its source and of its siblings, and another id."""
    made = refine(RefineRequest(str(tmp_path), UNFOLDER, {}, parent), LocalEngine)
    poisoned = next(row["id"] for row in rows(tmp_path, made.manifest).to_pylist() if row["parent"])
    work = RefineRequest(str(tmp_path), JUDGE, {"poison": poisoned}, made.path, error_budget=ErrorBudget(rows=100))
    judged = refine(work, LocalEngine).manifest
    assert judged.quarantined == {f"error:{JUDGE}": 1}
    assert rows(tmp_path, judged, "quarantine")["id"].to_pylist() == [poisoned]
    assert generated_kept(judged) == BROUGHT - THIRDS - 1
