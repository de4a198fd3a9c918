"""Every stage that changes rows has bounds on how many and which it keeps: found by its card, so that a new one is, too."""

from pathlib import Path

import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.profiles.distributions import DISTRIBUTIONS, changes_rows
from pipeline_tasks.stages import NAMES
from tests.documents import documents
from tests.gate.samples import healthy, judged, kept, losing_a_kind, losing_german, profiled
from tests.refining import commit_parent, refined

CHOSEN = ("select", "mix")
"""What a recipe of a build chooses may be any share of what it reads: only nothing at all is refused."""

REJECT = [name for name in NAMES if stage_card(name).reasons and stage_card(name).conserves != "tokens"]


def reason(stage: str) -> str:
    """Return a reason for which a stage rejects pages that it could keep."""
    card = stage_card(stage)
    return next(name for name in card.reasons if name not in card.no_page)


@pytest.mark.parametrize("stage", REJECT)
def test_a_stage_that_rejects_nearly_all_is_refused(stage: str, tmp_path: Path) -> None:
    share = 0.0 if stage in CHOSEN else 0.01
    verdict = judged(tmp_path, kept(healthy(stage), share, reason(stage)))
    assert verdict.outcome == "refuse"


TOLD = (*CHOSEN, "filter_language", "tokenize")
"""Stages that reject by language because they were told to, or reject nothing that has one."""

BY_LANGUAGE = [name for name in REJECT if "language" in stage_card(name).profiled and name not in TOLD]


@pytest.mark.parametrize("stage", BY_LANGUAGE)
def test_a_stage_that_rejects_most_of_one_language_is_noticed(stage: str, tmp_path: Path) -> None:
    """`filter_quality` judges each language by its words, and warns; those that shall keep nearly all refuse."""
    verdict = judged(tmp_path, losing_german(healthy(stage)))
    severity = "warning" if stage == "filter_quality" else "critical"
    assert ("language_retention_min", severity) in {(one.column, one.severity) for one in verdict.failures}


CHANGING = [name for name in NAMES if changes_rows(stage_card(name))]


@pytest.mark.parametrize("column", DISTRIBUTIONS)
@pytest.mark.parametrize("stage", CHANGING)
def test_a_stage_that_changes_rows_is_noticed_when_it_loses_a_kind_of_them(
    stage: str, column: str, tmp_path: Path
) -> None:
    verdict = judged(tmp_path, *losing_a_kind(healthy(stage), column))
    assert f"{column}_own_psi" in {failure.column for failure in verdict.failures}


def test_annotating_stages_are_those_that_change_no_rows() -> None:
    """What is not judged by distributions neither rejects nor writes texts, or has sequences of tokens."""
    rest = [stage_card(name) for name in NAMES if name not in CHANGING and stage_card(name).conserves != "tokens"]
    assert [card.name for card in rest if card.reasons or "text" in card.writes.names] == []
    assert {"decontaminate", "scrub_pii", "takedown", "cut_templates"} <= {*CHANGING}


def test_a_drift_of_the_input_is_none_of_the_stage(tmp_path: Path) -> None:
    """It keeps every language as before, and the input has far more of one."""
    good = healthy("filter_url")
    before, now = (profiled(good, language=["en"] * en + ["de"] * 8_000) for en in (8_000, 800))
    facts = compute_facts("", now, before)
    assert facts["language_own_psi"] is not None
    assert facts["language_own_psi"].value == 0
    assert compute_facts("", now)["language_own_psi"] is None
    assert judged(tmp_path, now, before).outcome == "pass"


def test_a_run_counts_what_is_compared_though_no_card_names_it(tmp_path: Path) -> None:
    """`filter_url` profiles lengths alone by its card."""
    assert stage_card("filter_url").profiled == ("chars",)
    table = documents([f"a text of a page {number}" for number in range(9)])
    _, manifest = refined(tmp_path, "filter_url", commit_parent(tmp_path, [table]))
    assert manifest.metrics["kept"].keys() == {"chars", "source"}, "there is no language yet"
    assert sum(manifest.metrics["kept"]["source"]["bins"].values()) == 9
