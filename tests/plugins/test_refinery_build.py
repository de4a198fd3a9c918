"""The page of a build before it starts: snapshots, weights and budget, the plan they give, and the params to start it."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refinery_study.plan.build_estimate import build_estimate

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import Recipe
from tests.known_dags import known_dags
from tests.markup import words
from tests.publish.test_building import built, recipe_of, refined_days


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with snapshots, and a training dataset of all of them."""
    root = refined_days(tmp_path_factory.mktemp("build"))
    built(root, recipe_of(mix={}))
    return Path(root)


@pytest.fixture(autouse=True)
def _recipes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know the recipe of the tests as one of those that are wired."""
    from refinery_airflow.pages import build as refinery_build

    monkeypatch.setattr(refinery_build, "recipe_names", lambda _: ["corpus"])
    monkeypatch.setattr(refinery_build, "load_build", lambda _: recipe_of(mix={}))
    with known_dags("build_corpus"):
        yield


def test_without_a_dag_the_build_is_started_by_its_command(
    visitor: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.pages import build as refinery_build

    monkeypatch.setattr(refinery_build, "load_build", lambda _: replace(recipe_of(mix={}), name="mine"))
    page = visitor.get("/build/corpus").text
    assert "/dags/" not in page
    assert f"refinery build {root} --recipe mine</pre>" in page
    assert "There is no DAG <code>build_mine</code> here" in page


def conf_of(page: str) -> Any:
    [written] = re.findall(r'<pre tabindex="0" aria-label="Params of the run"[^>]*>([^<]+)</pre>', page)
    return json.loads(html.unescape(written))


def snapshots(root: Path) -> list[str]:
    recipe = recipe_of(mix={})
    assert recipe.versions
    return [version.snapshot for version in version_log.latest_by_snapshot(str(root), recipe.versions.recipe)]


def test_the_estimate_of_what_was_built_is_what_was_built(root: Path) -> None:
    """`select` leaves documents out of this dataset; without them the estimate has the tokens of `tokenize`."""
    estimate = build_estimate(str(root), recipe_of(mix={}), [], {})
    assert [version.snapshot for version in estimate.versions] == snapshots(root)
    assert estimate.total.documents == sum(version.documents for version in estimate.versions) > 0
    assert estimate.total.available > 0
    assert "corpus version 1" in estimate.basis


def test_weights_and_budget_are_planned_as_the_mixture_does(root: Path) -> None:
    whole = build_estimate(str(root), recipe_of(mix={}), [], {})
    en, de = (next(group for group in whole.groups if group.name == name) for name in ("en", "de"))
    changes = {"weights": {"en": 3, "de": 1}, "max_epochs": 100, "budget_tokens": 400}
    planned = build_estimate(str(root), recipe_of(mix={}), [], changes)
    taken = {group.name: group.taken for group in planned.groups if group.taken}
    assert taken == {"en": 300, "de": 100}
    assert (en.available > 0, de.available > 0) == (True, True)
    one = build_estimate(str(root), recipe_of(mix={}), snapshots(root)[:1], {})
    assert len(one.versions) == 1
    assert one.total.documents < whole.total.documents
    absent = build_estimate(str(root), recipe_of(mix={}), [], {"weights": {"en": 1, "xx": 1}})
    assert absent.absent == ["xx"]


def test_without_a_build_tokens_follow_from_characters(tmp_path: Path) -> None:
    root = refined_days(tmp_path)
    estimate = build_estimate(str(root), recipe_of(mix={}), [], {})
    assert "4 characters per token" in estimate.basis
    assert estimate.total.available > 0


def test_the_page_shows_the_plan_and_the_params_of_its_run(visitor: Any, root: Path) -> None:
    usual = visitor.get("/build/corpus")
    assert usual.status_code == 200
    assert "every field is as in the recipe" in words(usual.text)
    assert "Params of the run" not in usual.text
    assert usual.text.count(" checked") == len(snapshots(root))
    first = snapshots(root)[0]
    fields = {"snapshot": first, "weight.en": "3", "weight.de": "1", "budget_tokens": "400", "max_epochs": "100"}
    page = visitor.get("/build/corpus", params=fields).text
    assert conf_of(page) == {
        "snapshots": [first],
        "weights": {"en": 3.0, "de": 1.0},
        "budget_tokens": 400,
        "max_epochs": 100.0,
    }
    assert re.search(r'<tr><th scope="row">en<svg.*?<td class="n">300</td>', page, re.DOTALL)
    assert page.count(" checked") == 1
    assert "refinery setup airflow dags trigger build_corpus --conf" in html.unescape(page)


def test_quality_is_estimated_by_band_and_goes_into_the_params_of_the_run(visitor: Any, root: Path) -> None:
    whole = build_estimate(str(root), recipe_of(mix={}), [], {}).total
    fields = {"quality.column": "chars", "quality.bands": "4", "quality.drop": "0.5", "quality.mean": "0.5"}
    page = visitor.get("/build/corpus", params=fields).text
    quality = {"column": "chars", "bands": 4, "upsample": {"drop": 0.5, "mean": 0.5}}
    assert conf_of(page) == {"quality": quality}
    estimate = build_estimate(str(root), recipe_of(mix={}), [], {"quality": quality})
    assert estimate.total.taken == pytest.approx(whole.taken / 2, rel=0.01)
    assert [band.taken for band in estimate.bands[:2]] == [0, 0]
    assert sum(band.taken for band in estimate.bands) == pytest.approx(estimate.total.taken, abs=4)
    assert f'<td class="n">{estimate.bands[3].factor:.3f}</td>' in page


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"quality.drop": "much"}, "quality: drop is 'much'; write a number"),
        ({"quality.drop": "0.9", "quality.most": "2"}, "quality: upsample: mean"),
        ({"budget_tokens": "many"}, "the budget is 'many'; write a number"),
        ({"weight.en": "x"}, "the weight of en is 'x'"),
        ({"weight.en": "-1"}, "weights"),
        ({"snapshot": "2031-01-01"}, "2031-01-01"),
        ({"max_epochs": "1e9"}, "max_epochs"),
        ({"budget_tokens": "inf"}, "budget"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(visitor: Any, fields: dict[str, str], message: str) -> None:
    page = visitor.get("/build/corpus", params=fields)
    assert page.status_code == 422
    [alert] = re.findall(r'role="alert"><p>(.*?)</p>', page.text)
    assert message in html.unescape(alert)


def test_the_run_takes_what_the_form_chose_and_refuses_what_the_mixture_does_not(root: Path) -> None:
    from refinery_airflow.runs.form import mixture_of, params_of_builds
    from refinery_airflow.tasks.operators import Compose

    for param in params_of_builds().values():
        param.resolve()
    chosen = mixture_of({"weights": {"en": 1}, "budget_tokens": 0, "max_epochs": None, "engine": "ray"})
    assert chosen == {"weights": {"en": 1}, "budget_tokens": 0}
    assert mixture_of({"weights": {}, "budget_tokens": None}) == {}
    about: dict[str, Any] = {"recipe": "corpus", "versions": {}, "next_cut": {}}
    mixed, tempered = ([{"stage": "mix", "params": params}] for params in ({}, {"temperature": 2}))
    Compose(task_id="compose", **about, steps=mixed).require_mixture(chosen)
    with pytest.raises(RecipeError, match="max_epochs"):
        Compose(task_id="compose", **about, steps=mixed).require_mixture({"max_epochs": -1})
    with pytest.raises(RecipeError, match="temperature"):
        Compose(task_id="compose", **about, steps=tempered).require_mixture(chosen)
    with pytest.raises(RecipeError, match="has no stage mix"):
        Compose(task_id="compose", **about, steps=[]).require_mixture(chosen)


def test_groups_that_manifests_do_not_count_are_left_to_the_command(root: Path) -> None:
    recipe: Recipe = recipe_of(mix={})
    with pytest.raises(RecipeError, match="not by html_language"):
        build_estimate(str(root), recipe, [], {"by": "html_language"})
