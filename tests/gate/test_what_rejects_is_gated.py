"""Every stage that rejects rows is refused when it rejects nearly all: found by its card, so that a new one is, too."""

from pathlib import Path

import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.stages import NAMES
from tests.gate.samples import healthy, judged, kept, losing_german

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
