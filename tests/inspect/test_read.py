"""A reader is shown the documents that a seed draws, answers are stored once each, and shares have their intervals."""

import io
import json
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_study.read import PAGE_SHOWN, page_lines
from refinery_study.read.answers import READINGS, Answer, answers, save
from refinery_study.read.beside import LandedPage, Line, compared_lines
from refinery_study.read.sample import Choice, sample
from refinery_study.read.shares import Share, findings, reading, share_of

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.inspect.lint import lint
from pipeline_tasks.publish.logs import version_log
from tests.small_root import DAYS, RECIPE, SmallRoot

ANSWER = Answer(
    recipe=RECIPE,
    snapshot=DAYS[0],
    version="publish/a",
    id="0" * 32,
    stage="filter_quality",
    reason="fineweb:line_punct_ratio",
    language="en",
    verdict="good",
    why="",
    reader="ada",
    at="2026-11-26T04:00:00+00:00",
)


@pytest.fixture
def own_root(small_root: SmallRoot, tmp_path: Path) -> SmallRoot:
    """A copy of the root, to write answers to."""
    shutil.copytree(small_root.root, tmp_path / "root")
    return replace(small_root, root=str(tmp_path / "root"))


def version(small: SmallRoot) -> version_log.Version:
    return version_log.current(small.root, RECIPE, DAYS[0])


def test_the_same_seed_draws_the_same_documents_and_another_one_others(small_root: SmallRoot) -> None:
    every = sample(small_root.root, version(small_root), Choice(kept=100, rejected=100))
    assert Counter(document.is_kept for document in every)[True] > 3
    some = Choice(kept=3, rejected=1)
    assert sample(small_root.root, version(small_root), some) == sample(small_root.root, version(small_root), some)
    drawn = [frozenset(sample(small_root.root, version(small_root), replace(some, seed=seed))) for seed in range(8)]
    assert len(set(drawn)) > 1
    assert {len(documents) for documents in drawn} == {4}
    assert all(documents <= set(every) for documents in drawn)


def test_rejected_documents_have_their_stage_reason_and_text(small_root: SmallRoot) -> None:
    [short] = [d for d in sample(small_root.root, version(small_root), Choice(kept=0)) if not d.is_kept]
    assert (short.stage, short.reason) == ("extract", "extract:too_short")
    assert short.text
    only = Choice(reasons=("extract:too_short",))
    assert sample(small_root.root, version(small_root), only) == [short]
    with pytest.raises(RecipeError, match=r"extract:empty.*extract:too_short"):
        sample(small_root.root, version(small_root), Choice(reasons=("extract:empty",)))


def asked(small: SmallRoot, monkeypatch: pytest.MonkeyPatch, typed: str, *more: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert main(["read", small.root, "--recipe", RECIPE, "--snapshot", DAYS[0], "--reader", "ada", *more]) == 0


def test_answers_are_asked_for_once_and_stored_without_the_text(
    own_root: SmallRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(own_root, monkeypatch, "x\nb\nb a menu\ns\ng\nq\n", "--kept", "3", "--rejected", "0")
    first = capsys.readouterr()
    assert first.err.count("--- document") == 3
    assert first.err.count("it was kept") == 2
    given_ = answers(own_root.root, RECIPE)
    assert [(answer.verdict, answer.why, answer.reader) for answer in given_] == [
        ("bad", "a menu", "ada"),
        ("good", "", "ada"),
    ]
    stored = b"".join(path.read_bytes() for path in Path(own_root.root, READINGS, RECIPE).iterdir())
    texts = [document.text for document in sample(own_root.root, version(own_root), Choice(kept=3, rejected=0))]
    assert not any(text.encode() in stored for text in texts)
    asked(own_root, monkeypatch, "g\n", "--kept", "3", "--rejected", "0", "--json")
    again = capsys.readouterr()
    assert again.err.count("--- document") == 1
    facts = json.loads(again.out)
    assert (facts["kept"]["judged"], facts["kept"]["good"]) == (3, 2)
    asked(own_root, monkeypatch, "", "--summary")
    assert "3      2   67%" in capsys.readouterr().out


def test_the_page_of_a_document_is_shown_beside_it_or_a_sentence_why_not(
    small_root: SmallRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(small_root, monkeypatch, "p\nq\n", "--kept", "1", "--rejected", "0")
    assert capsys.readouterr().err.count("Its landed record has a text and no HTML page.") == 1
    asked(small_root, monkeypatch, "p\nq\n", "--kept", "1", "--rejected", "0", "--beside")
    assert capsys.readouterr().err.count("Its landed record has a text and no HTML page.") == 2
    lines = LandedPage((Line("All ferries", is_kept=False), Line("Ask for the ferry", is_kept=True)))
    assert list(page_lines(lines))[1:] == ["| All ferries", "  Ask for the ferry"]
    long = LandedPage(tuple(Line("x" * 1000, is_kept=True) for _ in range(PAGE_SHOWN)))
    assert len("".join(page_lines(long))) < PAGE_SHOWN + 300


@given(st.text(), st.text())
def test_a_line_is_kept_where_the_text_has_its_letters(shown: str, text: str) -> None:
    lines = list(compared_lines(shown, text))
    assert "\n".join(line.text for line in lines) == shown
    assert all(line.is_kept for line in compared_lines(shown, f"{text}{shown}"))


def test_the_last_answer_of_a_reader_counts_and_others_stay(tmp_path: Path) -> None:
    later = replace(ANSWER, verdict="bad", why="half of it", at="2026-11-26T05:00:00+00:00")
    other = replace(ANSWER, reader="bob", verdict="bad")
    for answer in (later, ANSWER, other, replace(ANSWER, recipe="web_en")):
        save(str(tmp_path), answer)
    assert save(str(tmp_path), ANSWER) == save(str(tmp_path), ANSWER)
    assert answers(str(tmp_path), RECIPE) == [other, later]


@pytest.mark.parametrize(
    ("change", "error"),
    [({"verdict": "good "}, DigestMismatch), (None, ContractError)],
)
def test_a_damaged_answer_is_named(tmp_path: Path, change: Mapping[str, Any] | None, error: type[Exception]) -> None:
    path = tmp_path / save(str(tmp_path), ANSWER)
    body = json.loads(path.read_bytes())
    path.write_text(json.dumps(body | change, sort_keys=True, separators=(",", ":")) + "\n" if change else "{")
    with pytest.raises(error, match=path.name):
        answers(str(tmp_path), RECIPE)


def test_shares_agreement_and_rules_that_reject_good_documents() -> None:
    rule = [replace(ANSWER, id=f"{at:032x}", verdict="good" if at < 9 else "bad") for at in range(10)]
    few = [replace(ANSWER, id=f"{at:032x}", reason="c4:lorem_ipsum") for at in range(20, 24)]
    kept = [replace(ANSWER, id="f" * 32, stage="", reason="", language="de", verdict="bad", why="a menu")]
    second = [replace(rule[0], reader="bob"), replace(rule[1], reader="bob", verdict="bad")]
    read = reading([*rule, *few, *kept, *second])
    assert read.kept == Share("kept", 1, 0)
    assert read.rejected == Share("rejected", 14, 12.5)
    assert read.rules == (Share("fineweb:line_punct_ratio", 10, 8.5), Share("c4:lorem_ipsum", 4, 4))
    assert read.readers == (Share("ada", 15, 13), Share("bob", 2, 1))
    assert read.languages == (Share("de", 1, 0),)
    assert asdict(read.agreement) == {"documents": 2, "same": 1}
    assert [rule for rule, _ in findings(read)] == []
    assert [rule for rule, _ in findings(reading(rule))] == ["fineweb:line_punct_ratio"]


@pytest.mark.parametrize(
    ("judged", "good", "low", "high"),
    [(0, 0, 0, 1), (10, 10, 0.6915, 1), (10, 0, 0, 0.3085), (81, 15, 0.1075, 0.2870), (10, 9.5, 0.5550, 1)],
)  # quantiles of the beta distribution, of scipy
def test_intervals_are_those_of_clopper_and_pearson(judged: int, good: float, low: float, high: float) -> None:
    assert Share("", judged, good).interval == pytest.approx((low, high), abs=1e-4)


def coverage(documents: int, share: float, agree: float, readers: tuple[int, int], draws: int) -> tuple[float, float]:
    """Return how often the interval has the true share, and how often that of answers would have it.

    A document is good for each of its readers with a chance that is drawn: with `agree` for all or for none of them.
    """
    random = np.random.default_rng(documents)
    by_unit = by_answer = 0
    for _ in range(draws):
        counts = random.integers(readers[0], readers[1] + 1, documents)
        is_good, is_agreed = random.random(documents) < share, random.random(documents) < agree
        answers = [
            (at, bool(is_good[at] if is_agreed[at] else random.random() < share))
            for at, count in enumerate(counts)
            for _ in range(count)
        ]
        units, each = share_of("", answers), share_of("", [(at, good) for at, (_, good) in enumerate(answers)])
        by_unit += units.interval[0] <= share <= units.interval[1]
        by_answer += each.interval[0] <= share <= each.interval[1]
    return by_unit / draws, by_answer / draws


@pytest.mark.parametrize("documents", [5, 20])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
@pytest.mark.parametrize(("agree", "readers"), [(1.0, (5, 5)), (1.0, (1, 1)), (0.5, (1, 9)), (0.0, (2, 2))])
def test_the_interval_of_a_share_holds_however_many_readers_there_are(
    documents: int, share: float, agree: float, readers: tuple[int, int]
) -> None:
    held, _ = coverage(documents, share, agree, readers, 300)
    assert held >= 0.94


def test_five_readers_who_agree_are_no_five_documents() -> None:
    held, of_answers = coverage(20, 0.5, 1.0, (5, 5), 300)
    assert held >= 0.94
    assert of_answers < 0.8


@pytest.mark.nightly
def test_the_intervals_of_shares_hold_over_a_grid() -> None:
    for share in np.linspace(0.01, 0.99, 9).tolist():
        for documents in (3, 8, 40):
            for agree, readers in ((1.0, (5, 5)), (0.7, (1, 9)), (0.0, (3, 3))):
                held, _ = coverage(documents, share, agree, readers, 1_000)
                assert held >= 0.94, (share, documents, agree)


@given(st.integers(1, 500), st.integers(0, 500))
def test_an_interval_has_the_share_and_is_within_0_and_1(judged: int, good: int) -> None:
    low, high = Share("", judged, min(good, judged)).interval
    assert 0 <= low <= min(good, judged) / judged <= high + 1e-9 <= 1 + 1e-9


def test_lint_finds_rules_that_rejected_good_documents(own_root: SmallRoot) -> None:
    def found() -> list[str]:
        return [finding.where for finding in lint("web", own_root.root) if "by reading" in finding.message]

    for at in range(6):
        assert found() == []
        save(own_root.root, replace(ANSWER, recipe="web", id=f"{at:032x}"))
    assert found() == ["fineweb:line_punct_ratio"]
