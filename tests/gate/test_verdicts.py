"""A verdict is read as it was written, and only if it is the verdict of its path; its lines say what was found."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.gate.estimates import exact
from pipeline_tasks.gate.explaining import allowed, explain
from pipeline_tasks.gate.facts.comparison import ks, psi
from pipeline_tasks.gate.facts.spread import divergence
from pipeline_tasks.gate.judging import Failure
from pipeline_tasks.gate.suites import apply_bounds, load_suite
from pipeline_tasks.gate.trials import trial_bounds
from pipeline_tasks.gate.verdicts import Verdict, read_verdict, verdict_reference
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.sealed import SEAL, seal
from pipeline_tasks.stages import NAMES
from tests.gate.samples import healthy, judged, kept


@pytest.fixture
def verdict(tmp_path: Path) -> Verdict:
    """A verdict with failures and undecided bounds."""
    found = judged(tmp_path, kept(healthy("extract", 60), 0.1))
    assert found.failures
    return found


def rewritten(place: Path, **changes: object) -> None:
    raw = {name: value for name, value in json.loads(place.read_bytes()).items() if name != SEAL} | changes
    place.chmod(0o644)
    place.write_bytes(seal({name: value for name, value in raw.items() if value is not None}))


def test_a_verdict_is_read_by_its_path_and_by_its_reference(tmp_path: Path, verdict: Verdict) -> None:
    assert read_verdict(str(tmp_path), verdict.path) == verdict
    assert read_verdict(str(tmp_path), verdict_reference(verdict)) == verdict
    with pytest.raises(DigestMismatch, match=re.escape(f"{tmp_path}/{verdict.path}")):
        read_verdict(str(tmp_path), f"{verdict.path}@sha256:{'0' * 64}")


def test_a_verdict_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path}/extract/f/gate/q/verdict.json: ")):
        read_verdict(str(tmp_path), "extract/f/gate/q/verdict.json")


@pytest.mark.parametrize(
    "changes", [{"outcome": None}, {"more": 1}, {"failures": [{}]}, {"skipped": None}, {"learned": 3}, {"path": "p"}]
)
def test_what_is_no_verdict_or_that_of_another_path_is_refused(
    tmp_path: Path, verdict: Verdict, changes: dict[str, object]
) -> None:
    rewritten(tmp_path / verdict.path)
    assert read_verdict(str(tmp_path), verdict.path) == verdict
    rewritten(tmp_path / verdict.path, **changes)
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path}/{verdict.path} ")):
        read_verdict(str(tmp_path), verdict.path)


def test_a_verdict_that_was_changed_is_refused(tmp_path: Path, verdict: Verdict) -> None:
    path = tmp_path / verdict.path
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b'"refuse"', b'"pass"'))
    with pytest.raises(DigestMismatch, match=re.escape(f"{path} ")):
        read_verdict(str(tmp_path), verdict.path)


# --- What its lines say -----------------------------------------------------------------------------------------------


def failure(bound: dict[str, float], observed: float | None = 2.0, **facts: object) -> Failure:
    return Failure("e", "chars_mean", observed, bound, "warning", "", **facts)  # type: ignore[arg-type]


def test_a_bound_with_two_ends_has_both_in_its_line() -> None:
    both = allowed(failure({"min_value": 1, "max_value": 1.5}))
    assert [each in both for each in ("at least 1", "at most 1.5")] == [True, True]
    assert "at most" not in allowed(failure({"min_value": 3}))
    assert "at least" not in allowed(failure({"max_value": 1}))


@pytest.mark.parametrize(
    ("low", "high", "said"), [(None, 1.5, "at most 1.5"), (0.5, None, "at least 0.5"), (0.5, 1.5, "0.5 to 1.5")]
)
def test_an_interval_may_have_one_end(low: float | None, high: float | None, said: str) -> None:
    lines = explain([failure({"max_value": 1}, rows=9, low=low, high=high)], ())
    assert f"9 rows leave {said} possible" in lines[1]


def test_an_undecided_fact_is_named_once_with_the_end_that_it_is_beyond_and_the_most_rows() -> None:
    bounds = {"min_value": 1, "max_value": 1.5}
    (line,) = explain([], [failure(bounds, 2.0, rows=9), failure({"max_value": 1}, 2.0, rows=12), failure(bounds, 0.5)])
    assert line.count("chars_mean 2 (at most 1.5)") == 1
    assert "chars_mean 0.5 (at least 1)" in line
    assert "12 rows" in line


# --- What is compared -------------------------------------------------------------------------------------------------


def test_nothing_is_as_far_from_anything() -> None:
    nothing = {"kind": "name", "count": 0, "bins": {}}
    some = {"kind": "name", "count": 3, "bins": {"en": 3}}
    for pair in ((nothing, some), (some, nothing), (nothing, nothing)):
        assert psi(*pair) is None
        assert ks(*pair) is None
    empty = {**some, "bins": {}}
    assert psi(empty, some) is None


def test_columns_of_numbers_are_compared_by_the_tenths_of_the_one_before() -> None:
    values = list(range(100))
    before = profile(pa.table({"chars": values}), ["chars"])["chars"]
    same, moved = psi(before, before), psi(profile(pa.table({"chars": [9] * 100}), ["chars"])["chars"], before)
    assert same is not None
    assert moved is not None
    assert same.value == 0
    assert moved.value > 1
    apart = ks(profile(pa.table({"chars": [value + 3 for value in range(12)]}), ["chars"])["chars"],
               profile(pa.table({"chars": list(range(12))}), ["chars"])["chars"])  # fmt: skip
    assert apart is not None
    assert apart.value == pytest.approx(0.25)


def test_shares_diverge_by_the_formula_of_kullback_and_leibler() -> None:
    import numpy as np
    from scipy.special import rel_entr

    seen, expected = np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.5, 0.5, 0.5, 0.25])
    wanted = rel_entr(seen, expected) + rel_entr(1 - seen, 1 - expected)
    assert divergence(seen, expected) == pytest.approx(wanted)


def test_a_stage_without_a_quarantined_partition_is_whole(tmp_path: Path) -> None:
    facts = judged(tmp_path, healthy("extract", 60)).facts
    assert (facts["partial_share"], facts["rows_unaccounted"], facts["rejects_unstored"]) == (0, 0, 0)


def test_a_trial_has_the_bounds_of_a_recipe_but_none_on_its_size() -> None:
    own = {"retention": {"min_value": 0.5}, "rows_in_change": {"min_value": 0.5}}
    assert trial_bounds("extract", own) == own
    off = {"min_value": None, "max_value": None}
    assert trial_bounds("ingest", own) == {**own, "rows_in": {"trailing": None}, "rows_in_change": off}
    assert trial_bounds("mix", own) == {**own, "n_tokens_sum_change": off}
    assert trial_bounds(PUBLISH, own) == {**own, "record_retention": {"trailing": None}}


AMOUNTS = re.compile("(rows|rows_in|bytes|records|documents|new_pages|.+_sum)(_change)?|record_retention")
"""Facts that are amounts, and the share of records that are documents: a sample has fewer copies of its own."""


@pytest.mark.parametrize("gate", [*NAMES, PUBLISH])
def test_a_trial_is_compared_with_no_amounts_of_whole_snapshots(gate: str) -> None:
    suite = load_suite(gate)
    compared = [bound for bound in suite if bound["learned"] or bound["kwargs"]["column"].endswith("_change")]
    of_size = [bound for bound in suite if bound["of_size"]]
    assert of_size == [bound for bound in compared if AMOUNTS.fullmatch(bound["kwargs"]["column"])]
    facts = {bound["kwargs"]["column"]: exact(1) for bound in suite}
    left = [bound["kwargs"] for bound in apply_bounds(suite, trial_bounds(gate, {}), facts) if bound["of_size"]]
    assert {limit for limits in left for name, limit in limits.items() if name != "column"} <= {None}


def test_a_suite_that_is_not_there_is_named() -> None:
    with pytest.raises(RecipeError, match=r"/no_such_gate\.json "):
        load_suite("no_such_gate")
