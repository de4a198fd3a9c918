"""Stages that judge by stored measures compute nothing again when a bound changes, and decide as a fresh root does."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import JobLost
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import Refined, refine
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.upkeep import vacuum
from tests.documents import documents
from tests.refining import commit_parent

ENGLISH = (
    "The river rises in the hills above the town, and flows for forty miles before it meets the sea. "
    "Fishermen have worked its banks for centuries. Their boats are painted blue and white."
)
GERMAN = (
    "Der Fluss entspringt in den Hügeln oberhalb der Stadt und fließt vierzig Meilen weit bis zum Meer. "
    "Seit Jahrhunderten arbeiten Fischer an seinen Ufern. Ihre Boote sind blau und weiß gestrichen."
)
MENU = (
    "Menu\nHome\nThe council met on Tuesday to discuss the new bridge. Members voted for the cheaper plan.\nContact us"
)
TEXTS = (ENGLISH, GERMAN, MENU, "word " * 20)

CHANGES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "filter_quality": (
        {"edit": True, "limits": {"gopher_quality": {"min_doc_words": 5}, "c4": {"min_num_sentences": 1}}},
        {"edit": True, "limits": {"gopher_quality": {"min_doc_words": 33}, "c4": {"min_num_sentences": 3}}},
    ),
    "filter_language": ({"keep": ["en"], "threshold": 0.3}, {"keep": ["en", "de"], "threshold": 0.5}),
    "score_quality": ({"minimum": 0.1, "minima": {}}, {"minimum": 0.6, "weights": {"length": 1.0, "density": 0.5}}),
}


def parent_of(root: Path) -> str:
    texts = TEXTS * 5
    languages = pa.array(["de" if text.startswith("Der") else "en" for text in texts])
    table = documents(texts, language=languages, language_score=pa.array([0.9] * len(texts)))
    return commit_parent(root, [table.slice(0, 9), table.slice(9)])


def run(root: Path, stage: str, params: Mapping[str, Any]) -> Refined:
    return refine(RefineRequest(str(root), stage, params, parent_of(root)), engine("local"))


def outcome(root: Path, refined: Refined) -> tuple[list[pa.Table], Mapping[str, int]]:
    parts = [refined.manifest.shards, refined.manifest.rejects]
    tables = [list(read_shards(str(root), shards)) for shards in parts]
    return [pa.Table.from_batches(batches) for batches in tables if batches], refined.manifest.rejected


@pytest.mark.parametrize("stage", sorted(CHANGES))
def test_other_bounds_decide_anew_and_compute_nothing_again(tmp_path: Path, stage: str) -> None:
    before, after = CHANGES[stage]
    first = run(tmp_path / "root", stage, before)
    again = run(tmp_path / "root", stage, after)
    fresh = run(tmp_path / "fresh", stage, after)
    assert (first.cost.ran, first.cost.reused) == (4, 0)  # two shards, measured and judged
    assert (again.cost.ran, again.cost.reused) == (2, 2)  # judged
    assert again.manifest == fresh.manifest
    assert outcome(tmp_path / "root", again)[0] == outcome(tmp_path / "fresh", fresh)[0]
    assert again.manifest.rejected != first.manifest.rejected  # or the bounds would show nothing
    assert again.manifest.below == first.manifest.below


@pytest.mark.parametrize("stage", sorted(CHANGES))
def test_what_only_measures_know_is_no_column_of_the_documents(tmp_path: Path, stage: str) -> None:
    manifest = run(tmp_path, stage, CHANGES[stage][0]).manifest
    hidden = {"edited_text", "edited_chars", "edited_spans", "language_labels", "language_probabilities"}
    assert not (hidden | {"score_components"}) & {name for name, _ in manifest.schema}


def test_other_words_are_measured_again(tmp_path: Path) -> None:
    params = CHANGES["filter_quality"][0]
    run(tmp_path, "filter_quality", params)
    again = run(tmp_path, "filter_quality", {**params, "words": "unicode"})
    assert (again.cost.ran, again.cost.reused) == (4, 0)


def test_lists_that_exchange_their_contents_are_read_again(tmp_path: Path) -> None:
    """A measure was found by the set of digests of all files, whichever had which."""
    lists = {"en": tmp_path / "en.txt", "de": tmp_path / "de.txt"}
    params = {
        "profiles": ["c4_badwords"],
        "limits": {"c4_badwords": {"bad_words": {k: str(v) for k, v in lists.items()}}},
    }
    outcomes = []
    for words in ({"en": "river", "de": "fluss"}, {"en": "fluss", "de": "river"}):
        for language, path in lists.items():
            path.write_text(f"{words[language]}\n")
        refined = run(tmp_path / "root", "filter_quality", params)
        fresh = run(tmp_path / f"fresh-{words['en']}", "filter_quality", params)
        assert refined.manifest == fresh.manifest
        outcomes.append(sum(refined.manifest.rejected.values()))
    assert outcomes == [10, 0]


def test_vacuum_keeps_a_measure_that_a_run_named_after_the_vacuum_had_listed_it(tmp_path: Path) -> None:
    first = run(tmp_path, "filter_quality", CHANGES["filter_quality"][0])
    for entry in sorted((tmp_path / first.path).parent.rglob("*"), reverse=True):
        entry.unlink() if entry.is_file() else entry.rmdir()
    orphans = vacuum.find_orphans(str(tmp_path), grace=-3600.0)
    again = run(tmp_path, "filter_quality", CHANGES["filter_quality"][1])
    assert again.cost.reused == 2
    vacuum.remove(str(tmp_path), orphans)
    assert outcome(tmp_path, again)[0]
    assert run(tmp_path, "filter_quality", CHANGES["filter_quality"][1]).manifest == again.manifest


@pytest.mark.parametrize("body", [b"", b"not a receipt"])
def test_vacuum_removes_receipts_of_measures_that_no_run_believes(tmp_path: Path, body: bytes) -> None:
    refined = run(tmp_path, "filter_quality", CHANGES["filter_quality"][0])
    damaged, other = sorted((tmp_path / "filter_quality").glob("shared-*/receipts/*.json"))
    damaged.write_bytes(body)
    orphans = vacuum.find_orphans(str(tmp_path), grace=-3600.0)
    assert [tmp_path / entry.path for entry, _ in orphans.files] == [damaged]
    vacuum.remove(str(tmp_path), orphans)
    assert other.exists()
    assert outcome(tmp_path, refined)[0]


def test_vacuum_keeps_the_measures_that_a_manifest_rests_on_and_removes_others(tmp_path: Path) -> None:
    first = run(tmp_path, "filter_quality", CHANGES["filter_quality"][0])
    assert not vacuum.find_orphans(str(tmp_path), grace=-3600.0).files
    (tmp_path / first.path).unlink()
    for entry in sorted((tmp_path / first.path).parent.rglob("*"), reverse=True):
        entry.unlink() if entry.is_file() else entry.rmdir()
    orphans = vacuum.find_orphans(str(tmp_path), grace=-3600.0)
    assert {reason for _, reason in orphans.files} == {vacuum.UNUSED}
    assert orphans.lost == 0
    vacuum.remove(str(tmp_path), orphans)
    assert not [name for _, _, names in os.walk(tmp_path / "filter_quality") for name in names]
    again = run(tmp_path, "filter_quality", CHANGES["filter_quality"][0])
    assert again.manifest == first.manifest


def test_a_run_does_not_commit_on_a_measure_that_was_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_tasks.stages import filter_quality

    stage_run = filter_quality.run

    def run_and_lose(shards: Any, params: Any, on: Any) -> Any:
        kept = stage_run(shards, params, on)
        for path in (tmp_path / "filter_quality").glob("shared-*/data/*"):
            path.unlink()
        return kept

    monkeypatch.setattr("pipeline_tasks.run.plan.stage_card", lambda name: _with_run(name, run_and_lose))
    with pytest.raises(JobLost, match=re.escape(f"{tmp_path}/filter_quality/shared-")):
        run(tmp_path, "filter_quality", CHANGES["filter_quality"][0])
    assert not list(tmp_path.glob("filter_quality/*/manifest.json"))


def _with_run(name: str, changed: Any) -> Any:
    from dataclasses import replace

    from pipeline_tasks.cards import stage_card

    return replace(stage_card(name), run=changed)
