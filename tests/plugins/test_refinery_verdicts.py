"""The pages of verdicts: what each says, on what it rests, and which recipe waits for one; nothing of it is computed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.inspect.diff import compare, diff_facts, diff_lines
from pipeline_tasks.inspect.recipe.recipe_verdicts import verdict_between
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import ATTRIBUTION, MIXTURE, Ablation, ablations, record_ablation
from pipeline_tasks.sealed import path_of
from tests.ablated_root import given_verdict, made, recipe_file
from tests.markup import assert_inert
from tests.visitors import be

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both arms, by a mixture whose groups are named by sites, with a verdict on them."""
    folder = tmp_path_factory.mktemp("ablated")
    given_verdict(folder, made(folder, by="url"), -0.05)
    return folder


@pytest.fixture
def root(folder: Path, tmp_path: Path) -> Path:
    """A copy of its root, which a test may change."""
    import shutil

    return Path(shutil.copytree(folder / "root", tmp_path / "root"))


@pytest.fixture
def recorded(root: Path) -> Callable[..., Ablation]:
    """Record the verdict with changes."""

    def record(**changes: Any) -> Ablation:
        return record_ablation(str(root), replace(ablations(str(root))[0], **changes))

    return record


def test_a_verdict_is_shown_with_its_intervals_plots_cost_and_evidence(visitor: Any, root: Path) -> None:
    page = visitor.get("/verdicts/1")
    assert page.status_code == 200
    (verdict,) = ablations(str(root))
    for difference in verdict.differences:
        assert f"{difference.value:+.4f}" in page.text
        assert f"{difference.low:+.4f} to {difference.high:+.4f}" in page.text
    assert page.text.count("data-spec") == 3
    assert "Their recipes differ in extract." in page.text
    assert "7 min 12 s" in page.text  # 12 runs of 36 seconds
    assert path_of(verdict.evidence) in page.text
    assert verdict.held_out in page.text
    assert "https://0.example/" in page.text  # a group of the mixture


def test_a_viewer_sees_its_numbers_and_no_group_that_a_site_names(viewer: Any) -> None:
    page = viewer.get("/verdicts/1")
    assert page.status_code == 200
    assert page.text.count("data-spec") == 3
    assert ".example" not in page.text
    assert viewer.get("/verdicts").status_code == 200


@pytest.fixture
def viewer(stranger: Any, app: Any) -> Any:
    be(app, "vi", "VIEWER")
    yield stranger
    app.dependency_overrides.clear()


def test_all_verdicts_are_listed_the_newest_first(visitor: Any, recorded: Callable[..., Ablation]) -> None:
    recorded(outcome="worse", override=f"Ada: {SCRIPT}")
    recorded(outcome="not decidable", size="smoke")
    page = visitor.get("/verdicts")
    assert_inert(page.text, SCRIPT)
    shown = page.text.partition("The newest first")[2]
    outcomes = ("not decidable", "worse", "better")
    assert sorted(outcomes, key=shown.index) == list(outcomes)
    assert "says nothing of larger ones" in shown
    assert "let pass: Ada" in shown
    assert "no gate takes it" in visitor.get("/verdicts/3").text


def test_a_mixture_that_was_found_is_shown_beside_the_prior(
    visitor: Any, root: Path, recorded: Callable[..., Ablation]
) -> None:
    arm = ablations(str(root))[0].arms[0]
    entry = recorded(kind=MIXTURE, arms=(replace(arm, weights={"en": 1.0}), replace(arm, weights={"en": 0.5})))
    title = f"found mixture of {arm.dataset.rpartition('/')[2]}"
    page = visitor.get(f"/verdicts/{entry.number}").text
    assert f"<h1>{title}, beside the prior</h1>" in page
    assert "mixtures of one dataset" in page
    assert f"refinery model mixture --dataset {arm.dataset}" in page
    assert title in visitor.get("/verdicts").text


def test_a_root_without_verdicts_says_how_to_get_one(visitor: Any, root: Path) -> None:
    import shutil

    shutil.rmtree(root / "ablations")
    assert f"--root {root}" in visitor.get("/verdicts").text
    assert visitor.get("/verdicts/1").status_code == 404


def test_an_entry_of_an_earlier_release_has_its_intervals_and_damaged_evidence_is_named(
    visitor: Any, root: Path, recorded: Callable[..., Ablation]
) -> None:
    bare = recorded(evidence="", tokens=5)
    page = visitor.get(f"/verdicts/{bare.number}")
    assert (page.status_code, page.text.count("data-spec")) == (200, 0)
    assert f"{bare.differences[0].low:+.4f}" in page.text
    path = root / path_of(ablations(str(root))[0].evidence)
    path.write_bytes(path.read_bytes().replace(b"0", b"1"))
    page = visitor.get("/verdicts/1")
    assert page.status_code == 409
    assert str(path) in page.text


@pytest.mark.parametrize(("least", "passes"), [(2, True), (3, False)])
def test_a_recipe_that_requires_a_verdict_is_listed_with_where_it_stands(
    visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, passes: bool
) -> None:
    from refinery_airflow.pages import verdicts as refinery_verdicts

    from pipeline_tasks.recipe import load_recipe

    own = load_recipe(recipe_file(tmp_path, "mine", least, "requires: {verdict: not-worse, beside: base}"))
    monkeypatch.setattr(refinery_verdicts, "recipe_names", lambda *_: ["web"])
    monkeypatch.setattr(refinery_verdicts, "load_recipe", lambda _: own)
    monkeypatch.setattr(refinery_verdicts, "load_build", lambda _: replace(own, requires=None))
    required = visitor.get("/verdicts").text.partition("Recipes that require a verdict")[2].partition("All verdicts")[0]
    assert ('class="state pass"' in required) == passes
    assert ("refinery ablate --recipes base,mine" in required) != passes


def test_a_stage_of_an_attribution_is_shown_among_all_of_its_run(
    visitor: Any, recorded: Callable[..., Ablation], root: Path
) -> None:
    (known,) = ablations(str(root))
    first, second = known.arms
    costs = recorded(kind=ATTRIBUTION, outcome="better")
    other = replace(second, digest="other", choices={"mine": {}})
    worse = tuple(replace(each, value=0.07) for each in known.differences)
    pays = recorded(kind=ATTRIBUTION, outcome="worse", arms=(first, other), differences=worse)
    recorded(kind=ATTRIBUTION, outcome="worse", arms=(first, other), seeds=9)  # of another run
    page = visitor.get(f"/verdicts/{costs.number}").text
    stages = page.partition("Which stage pays for itself")[2].partition("</section>")[0]
    assert "base without extract" in page
    assert stages.count("<tr>") == 3  # its head, and two stages
    assert stages.index(f'/verdicts/{pays.number}"') < stages.index('aria-current="page"')
    assert ('pass">pays' in stages, 'refuse">costs' in stages) == (True, True)
    assert "refinery ablate --attribute base --input LANDED" in page
    assert "Which stage pays" not in visitor.get("/verdicts/1").text
    assert "extract costs" in visitor.get("/verdicts").text


# --- Who sees them ----------------------------------------------------------------------------------------------------

DAGS = {f"{kind}_{name}{of}" for name in ("base", "mine") for kind, of in (("refine", ""), ("build", "_set"))}
"""The DAGs of the recipes of both arms."""


def reads(monkeypatch: pytest.MonkeyPatch, *dags: str) -> None:
    """Let users read these DAGs alone."""
    from airflow.api_fastapi.app import get_auth_manager

    def is_authorized_dag(*, details: Any = None, **_: Any) -> bool:
        return details is not None and details.id in dags

    monkeypatch.setattr(get_auth_manager(), "is_authorized_dag", is_authorized_dag)


@pytest.mark.parametrize("without", sorted(DAGS))
def test_who_may_not_read_the_dag_of_a_recipe_sees_nothing_of_its_verdict(
    viewer: Any, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    reads(monkeypatch, *DAGS - {without})
    assert viewer.get("/verdicts/1").status_code == 403
    listed = viewer.get("/verdicts")
    assert (listed.status_code, "_set@1" in listed.text) == (200, False)


def test_who_may_read_the_dags_of_a_verdict_sees_it_and_no_other(
    viewer: Any, monkeypatch: pytest.MonkeyPatch, recorded: Callable[..., Ablation], root: Path
) -> None:
    first, second = ablations(str(root))[0].arms
    unknown = replace(second, recipe="gone", made_from=("gone",), dataset="/elsewhere/gone@1")
    recorded(arms=(first, unknown))
    made_for_it = replace(second, recipe="mine_arm", dataset="/elsewhere/mine_arm@1")
    recorded(arms=(first, made_for_it))
    recorded(arms=(first, unknown), kind=ATTRIBUTION)
    another = root / version_log.version_path("other", 1)  # a recipe of the root that this user may not read
    another.parent.mkdir()
    another.write_bytes(b"")
    reads(monkeypatch, *DAGS, "refine_gone")  # of which the root has no run, so that no DAG here says who may
    assert [viewer.get(f"/verdicts/{number}").status_code for number in (1, 2, 3, 4, 5)] == [200, 403, 200, 200, 403]
    listed = viewer.get("/verdicts").text
    assert ("gone@1" in listed, "mine_arm@1" in listed) == (False, True)


# --- In comparisons ---------------------------------------------------------------------------------------------------


def test_a_comparison_of_two_datasets_names_their_verdict(visitor: Any, root: Path) -> None:
    a, b = (version_log.current(str(root), f"{name}_set") for name in ("base", "mine"))
    diff = compare(str(root), a, b)
    (verdict,) = ablations(str(root))
    assert diff.verdict == verdict == verdict_between(str(root), b, a)
    assert any(line.startswith("verdict: ") and "better" in line for line in diff_lines(diff))
    assert diff_facts(diff)["verdict"]["number"] == 1
    page = visitor.get("/compare/mine_set", params={"a": "base_set:1", "b": "1"})
    assert "/verdicts/1" in page.text.partition("Which trains better models")[2].partition("What was set otherwise")[0]


def test_snapshots_stand_for_what_their_recipes_choose(root: Path, recorded: Callable[..., Ablation]) -> None:
    a, b = (version_log.current(str(root), name) for name in ("base", "mine"))
    assert verdict_between(str(root), a, b) == ablations(str(root))[0]
    assert verdict_between(str(root), a, a) is None
    assert verdict_between(str(root), a, version_log.current(str(root), "mine_set")) is None
    newest = recorded(outcome="worse")
    recorded(kind=MIXTURE)
    assert verdict_between(str(root), a, b) == newest, "mixtures of a dataset say nothing of recipes"
