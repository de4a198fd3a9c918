"""The first screen of a snapshot's page: what is left, why the rest is not, its health, what changed, what to do."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.publish.logs import version_log
from tests.markup import words
from tests.mixed_root import DAYS, RECIPE

FOLDED = ("Stages", "Bounds", "Languages and sites", "Distributions", "Before and after", "Time and cost")


@pytest.fixture
def root(mixed_root: Path) -> Path:
    return mixed_root


def page(visitor: Any, day: str) -> str:
    answer = visitor.get(f"/snapshot/{RECIPE}/{day}")
    assert answer.status_code == 200
    return str(answer.text)


def card(page: str, name: str) -> str:
    """Return the words of an answer, by the id of its heading."""
    [section] = re.findall(rf'<section class="[^"]*" aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    return words(section)


def test_every_record_is_accounted_for_on_the_first_screen(visitor: Any, root: Path) -> None:
    from refinery_airflow.pages.answers import balance_of

    for day in DAYS:
        balance = balance_of(funnel(str(root), version_log.current(str(root), RECIPE, day)))
        assert balance.is_conserved
        assert sum(reason.rows for reason in balance.reasons) == balance.rejected + balance.quarantined > 0
        counts = f"{balance.records} records = {balance.documents} documents ({balance.share:.1%}"
        assert counts.removesuffix("%") in card(page(visitor, day), "came-in")
        most = balance.reasons[0]
        assert f"{most.reason} {most.rows} " in card(page(visitor, day), "why")
    assert not replace(balance, records=balance.records + 1).is_conserved


def test_an_imbalance_is_not_hidden(visitor: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.pages import answers as refinery_answers

    balance_of = refinery_answers.balance_of
    monkeypatch.setattr(refinery_answers, "balance_of", lambda steps: replace(balance_of(steps), records=10**6))
    assert "1,000,000 records ≠" in card(page(visitor, DAYS[0]), "came-in")


def test_a_snapshot_is_compared_with_the_one_before(visitor: Any) -> None:
    assert "there is none to compare it with" in card(page(visitor, DAYS[0]), "differs")
    shown = card(page(visitor, DAYS[-1]), "differs")
    assert "records 30 10 -66.7 %" in shown
    assert "share kept 86.7 % 50.0 % -36.7 points" in shown
    assert "dedup_exact:duplicate 0.0 % 30.0 % +30.0 points" in shown


def test_all_else_is_folded_and_opens_without_a_script(visitor: Any) -> None:
    shown = page(visitor, DAYS[-1])
    folds = re.findall(r'<details class="fold"><summary><h2>([^<]+)</h2>', shown)
    assert folds == [*FOLDED]
    assert '<details class="fold" open' not in shown
    first_screen = shown[: shown.index('<details class="fold"')]
    assert len(re.findall('<section class="answer', first_screen)) == 5


def test_findings_of_gates_are_listed_the_worst_first(small_root: Any) -> None:
    from refinery_airflow.pages.answers import health_of

    version = version_log.versions(small_root.root, "small")[0]
    verdicts = {gate: read_verdict(small_root.root, path) for gate, path in version.verdicts.items()}
    health = health_of("small", verdicts)
    assert health.gates == len(verdicts) > health.passed
    assert health.findings
    assert [finding.outcome for finding in health.findings] == sorted(
        (finding.outcome for finding in health.findings), key=("refuse", "warn", "undecided").index
    )
    assert set(health.overridden.values()) <= {verdict.override for verdict in verdicts.values()}
