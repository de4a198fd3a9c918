"""Names that stages of other distributions may have, and what is asked of stages that nobody has."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline_tasks import cards
from pipeline_tasks.cards import RESERVED, is_stage, known_card, stage_card, stage_names
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.plan import flow_of
from pipeline_tasks.recipe import BUILDS, load_build, load_recipe, parse_recipe, recipe_names
from pipeline_tasks.stages import NAMES
from pipeline_tasks.upkeep import zone_users
from tests.brought import site
from tests.small_root import SmallRoot

CODE = "from tests.toys import CARDS; STAGE = CARDS[0]"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """Install the distribution `stages` with stages by name, and its module `brought_stages`."""
    with site(tmp_path / "site") as packages:

        def installed(code: str = CODE, **stages: str) -> None:
            points = {name.replace("__", "/"): place for name, place in stages.items()}
            packages.install("stages", cards.SEAM, points, code)

        yield installed


@pytest.mark.parametrize("name", ["publish", "cache", "land", "verdict", "a__b", "Loud", "..__up"])
def test_a_name_that_means_something_else_is_no_stage(install: Install, name: str) -> None:
    install(**{name: "brought_stages:STAGE"})
    written = name.replace("__", "/")
    assert not is_stage(written)
    assert stage_names() == NAMES
    with pytest.raises(RecipeError, match="no stage may have that name"):
        parse_recipe({"stages": {"ingest": {}, written: {}}}, "mine.yaml")


def test_ours_goes_before_a_stage_of_the_same_name(install: Install) -> None:
    install(dedup_exact="brought_stages:STAGE")
    assert stage_card("dedup_exact").name == "dedup_exact"
    assert stage_names() == NAMES


@pytest.mark.parametrize("code", ["raise ImportError", "import sys; sys.exit(0)", "STAGE = 5", ""])
def test_a_stage_that_cannot_be_had_is_unknown_to_readers_and_an_error_of_a_recipe(install: Install, code: str) -> None:
    install(code, loud="brought_stages:STAGE")
    assert known_card("loud") is None
    assert known_card("brought_stages--STAGE") is None
    with pytest.raises(RecipeError, match=r"stages 1\.2"):
        parse_recipe({"stages": {"ingest": {}, "loud": {}}}, "mine.yaml")


@pytest.mark.parametrize(
    "place",
    ["brought_stages:", "brought_stages:STAGE [x]", "a b:STAGE", "pipeline_tasks.stages.ingest:STAGE"],
)
def test_what_is_no_place_of_a_part_is_refused(install: Install, place: str) -> None:
    install()
    with pytest.raises(RecipeError, match=r"is no place of a part|is ours"):
        parse_recipe({"stages": {"ingest": {}, place: {}}}, "mine.yaml")


def test_a_stage_is_once_in_a_recipe_by_name_or_place(install: Install) -> None:
    install(loud="brought_stages:STAGE")
    assert [step.stage for step in parse_recipe({"stages": {"loud": {}}}, "mine.yaml").steps] == ["loud"]
    with pytest.raises(RecipeError, match="is there twice"):
        parse_recipe({"stages": {"brought_stages:STAGE": {}, "brought_stages--STAGE": {}}}, "mine.yaml")


def test_every_folder_of_a_root_that_no_stage_writes_is_reserved(small_root: SmallRoot) -> None:
    folders = {path.name for path in Path(small_root.root).iterdir() if path.is_dir()}
    assert len(folders) > 6
    assert {*folders, *zone_users.LOGS} - {*NAMES} <= RESERVED


def test_every_task_of_a_run_that_is_of_no_stage_is_reserved() -> None:
    flows = [flow_of(load_recipe(name)) for name in recipe_names()]
    flows += [flow_of(load_build(name)) for name in recipe_names(BUILDS)]
    required = flow_of(parse_recipe({"stages": {"ingest": {}}, "requires": {"verdict": "not-worse"}}, "mine.yaml"))
    names = {task.name for flow in (*flows, required) for task in flow.tasks if not task.stage}
    assert {"turn", "publish", "verdict_gate"} <= names <= RESERVED
