"""A target of tokens asks for what `refinery plan` says, and looser bounds keep what they are said to keep."""

import json
import re

import pytest
from refinery_study.plan.token_target import parse_target, target_estimate

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif import whatif
from pipeline_tasks.inspect.whatif.looser_bounds import looser_bounds
from pipeline_tasks.publish.logs import version_log
from tests.judged_root import RECIPE, TOKENS, judged_root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    return judged_root(tmp_path_factory.mktemp("judged"))


@pytest.fixture
def version(root: str) -> version_log.Version:
    return version_log.current(root, RECIPE)


def test_a_target_asks_for_what_a_plan_from_the_version_says(
    root: str, version: version_log.Version, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--target-tokens", "5e6", "--days", "1", "--gpus", "1", "--from", "1", "--json"]
    assert main(["plan", root, *words]) == 0
    [plan] = json.loads(capsys.readouterr().out)["plans"]
    estimate = target_estimate(root, version, 5e6, 1.0)
    assert estimate.snapshots == pytest.approx(5e6 / TOKENS)
    assert (estimate.published, estimate.reached) == (TOKENS, TOKENS)
    for name in ("landed", "core_hours", "core_money", "stored"):
        assert getattr(estimate.demand, name) == pytest.approx(plan[name])


def test_with_bounds_that_keep_half_twice_as_much_is_to_land(root: str, version: version_log.Version) -> None:
    whole, half = (target_estimate(root, version, 5e6, share) for share in (1.0, 0.5))
    assert half.demand.landed == pytest.approx(2 * whole.demand.landed)
    assert half.reached == TOKENS / 2
    stages = zip(whole.demand.stages, half.demand.stages, strict=True)
    more = {before.stage: after.reads / before.reads for before, after in stages}
    assert more["filter_quality"] == pytest.approx(2)
    assert more["dedup_exact"] == pytest.approx(1), "it reads what is kept, which is as much for as many tokens"


@pytest.mark.parametrize("written", ["many", "0", "-3", "nan", "inf", "1e30"])
def test_what_is_no_number_of_tokens_is_refused(written: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"target_tokens={written}")):
        parse_target(written)
    assert parse_target("14.8e12") == 14.8e12


@pytest.mark.parametrize("changes", [[], ["gopher_quality.min_doc_words=80"]])
@pytest.mark.parametrize("share", [1.01, 1.3, 50])
def test_a_looser_bound_keeps_what_it_is_said_to_keep(
    root: str, version: version_log.Version, changes: list[str], share: float
) -> None:
    now, kept = whatif(root, version, changes).characters
    bounds = looser_bounds(root, version, changes, share)
    assert {"gopher_quality.max_ellipsis_lines_ratio"} < {bound.key for bound in bounds}
    assert any(bound.then is not None for bound in bounds) == (share < 50)
    for bound in bounds:
        skipped = 0.0 if ".min_" in bound.key else 1.0
        value = skipped if bound.then is None else bound.then
        forecast = whatif(root, version, [*changes, f"{bound.key}={value!r}"])
        assert forecast.characters[1] == bound.characters > kept
        assert bound.share == pytest.approx(bound.characters / now)
        assert (bound.then is not None) == (bound.characters >= share * now)


def test_a_bound_of_one_language_is_its_own(root: str, version: version_log.Version) -> None:
    general, own = (looser_bounds(root, version, [], 1.01, language) for language in ("", "en"))
    assert [bound.key for bound in own] == [f"en.{bound.key}" for bound in general]
    assert not looser_bounds(root, version, [], 1.01, "de"), "the snapshot has no document in German"
