"""Parts of other distributions come by entry points, or by `module:NAME`, with the version of who brings them."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from refinery_sources.recipe import each_source

from pipeline_tasks import file_types, seams
from pipeline_tasks.ask.known import QUESTIONS, questions
from pipeline_tasks.cli.main import main
from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters import load_filters, require_loaded
from pipeline_tasks.gate import judging
from pipeline_tasks.landing.brought_formats import brought_format
from pipeline_tasks.seams import Part, known, own_parts, part_at, part_of, parts
from pipeline_tasks.stages import read_images
from pipeline_tasks.upkeep import doctor
from pipeline_tasks.upkeep.doctor import DEPLOYED
from tests.brought import PROJECT, site

SEAM = "refinery.filters"
OWN = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Install]:
    """Install a distribution with entry points of a seam, and the module `brought_NAME`."""
    with site(tmp_path / "site") as packages:

        def installed(name: str, version: str = "1.2", code: str = "", seam: str = SEAM, **points: str) -> None:
            packages.install(name, seam, points, code, version)

        yield installed


def test_a_part_says_who_brings_it_and_is_loaded(install: Install) -> None:
    install("one", code="CARD = 'a card'", short="brought_one:CARD")
    assert parts(SEAM) == {"short": Part("short", "brought_one:CARD", "one", "1.2")}
    assert parts(SEAM)["short"].load(str) == "a card"
    assert not parts("refinery.none")


def test_parts_are_in_the_order_of_their_names(install: Install) -> None:
    install("two", b="brought_two:B", a="brought_two:A")
    install("one", c="brought_one:C")
    assert list(parts(SEAM)) == ["a", "b", "c"]


@pytest.mark.parametrize("code", ["import no_such_module", "1 / 0", "", "CARD = 1"])
def test_a_part_that_cannot_be_had_names_its_distribution(install: Install, code: str) -> None:
    install("broken", code=code, short="brought_broken:CARD")
    with pytest.raises(RecipeError, match=r"'short' is brought_broken:CARD of the package broken 1.2, .*uninstall it"):
        parts(SEAM)["short"].load(str)


BOTH = r"package (one|two) 1.2, and .* of the package (one|two) 1.2; uninstall one"


def test_of_two_distributions_with_one_name_none_is_loaded(install: Install) -> None:
    install("one", code="CARD = 1", short="brought_one:CARD", other="brought_one:CARD")
    install("two", short="brought_two:CARD")
    assert parts(SEAM)["other"].load() == 1
    with pytest.raises(RecipeError, match=BOTH):
        parts(SEAM)["short"].load()


@pytest.mark.parametrize("seam", [file_types.SEAM, read_images.SEAM, "refinery.questions", "refinery.stages"])
def test_two_distributions_with_one_name_stop_no_command(seam: str, install: Install, tmp_path: Path) -> None:
    """Every command ended where two packages had an entry point `table` of types of files, or of readers of images."""
    for name in ("one", "two"):
        install(name, seam=seam, code="TABLE = {}", table=f"brought_{name}:TABLE")
    paths = os.pathsep.join((str(tmp_path / "site"), str(PROJECT)))
    command = [sys.executable, "-m", "pipeline_tasks.cli", "lint", "web"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_model_that_two_distributions_bring_is_refused_where_it_is_named(install: Install) -> None:
    for name in ("one", "two"):
        install(name, seam=read_images.SEAM, eyes=f"brought_{name}:load")
    assert read_images.Params().model == ""
    with pytest.raises(RecipeError, match=BOTH):
        read_images.Params(model="eyes")


def test_a_part_of_the_name_of_ours_is_left_out_and_named(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    install("one", c4="brought_one:CARD", mine="brought_one:CARD")
    assert [*parts(SEAM, ("c4",))] == ["mine"]
    assert "'c4' is brought_one:CARD of the package one 1.2, and Refinery has a part" in caplog.text


def test_a_part_at_a_place_has_the_version_of_its_distribution(install: Install) -> None:
    install("one", version="3", code="CARD = 'a card'")
    assert part_at("brought_one:CARD") == Part("brought_one:CARD", "brought_one:CARD", "one", "3")
    assert part_at("brought_one:CARD").load(str) == "a card"


def test_a_module_of_no_distribution_is_refused() -> None:
    with pytest.raises(RecipeError, match="'no_such_module:CARD': no installed package has that module"):
        part_at("no_such_module:CARD")


def test_names_are_ours_those_of_others_and_the_places_that_are_asked_for(install: Install) -> None:
    exports = "refinery.exports"
    install("one", seam=exports, code="CARD = 'a card'", short="brought_one:CARD")
    assert known(exports, ["mds", "brought_one:CARD"]) == (*own_parts(exports), "short", "brought_one:CARD")
    assert part_of(exports, "short").load(str) == part_of(exports, "brought_one:CARD").load(str) == "a card"
    assert part_of(exports, "mds").distribution == ""
    with pytest.raises(RecipeError, match=r"refinery.exports: no package that is installed here brings 'other'"):
        part_of(exports, "other")


def test_a_part_of_our_extensions_stays(install: Install) -> None:
    ours = part_of("refinery.exports", "mds")
    install("one", seam="refinery.exports", mds="brought_one:CARD")
    assert part_of("refinery.exports", "mds") == ours


@pytest.mark.parametrize("seam", [seam for seam in OWN if seam.startswith("refinery.")])
def test_what_our_extensions_bring_is_installed_and_loaded(seam: str) -> None:
    assert {name: part.place for name, part in own_parts(seam).items()} == OWN[seam]
    for part in own_parts(seam).values():
        assert part.load() is not None
        assert (part.distribution, part.version) == ("", "")


def test_the_recipes_that_have_a_dag_are_named() -> None:
    found = {name: [*part.load()()] for name, part in own_parts(DEPLOYED).items()}
    assert all(found.values())
    assert found["sources"] == [recipe.name for recipe in each_source()]
    assert {*chain.from_iterable(found.values())} < {*doctor._recipes()}


def test_our_own_part_fails_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError):
        Part("short", "no_such_module:CARD").load()


# --- What a seam asks of a part ---------------------------------------------------------------------------------------

FILTER = """
from pipeline_tasks.filters import c4
CARD = c4.FILTER
"""

FORMAT = """
from pipeline_tasks.landing.brought_formats import Format
from pipeline_tasks.landing.json_lines import read_lines
CARD = Format(("{ending}",), read_lines)
"""


def test_a_filter_has_the_name_of_its_card(install: Install) -> None:
    """It is an error where it is asked for; a recipe without it has all others."""
    install("one", code=FILTER, other="brought_one:CARD")
    assert "other" not in load_filters()
    with pytest.raises(RecipeError, match=r"package one 1.2, whose card has the name 'c4'; give both the same name"):
        require_loaded("other")
    require_loaded("c4")


@pytest.mark.parametrize("ending", ["jsonl", "notes"])
def test_an_ending_of_files_has_one_format(ending: str, install: Install) -> None:
    seam = "refinery.formats"
    install("one", code=FORMAT.format(ending=ending), seam=seam, a="brought_one:CARD")
    install("two", code=FORMAT.format(ending="notes"), seam=seam, b="brought_two:CARD")
    with pytest.raises(
        RecipeError, match=rf"package (one|two) 1.2, which reads files that end in .{ending}, and so does"
    ):
        brought_format("a.notes")


def test_names_of_files_end_as_ours_do(install: Install) -> None:
    install("one", code=FORMAT.format(ending="notes"), seam="refinery.formats", a="brought_one:CARD")
    names = ("a.notes", "A.NOTES.gz", "a.b.notes.zst.gz", "a.notes.txt", "notes", "a.jsonl")
    assert [brought_format(name) is not None for name in names] == [True, True, True, False, False, False]


def test_a_store_has_a_scheme_that_means_nothing_to_us(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    install("one", seam="refinery.stores", shelf="brought_one:Shelf")
    uris = ("shelf://a", "s3://b", "self://a", "/shelf", "file:///shelf")
    assert [is_bucket(uri) for uri in uris] == [True, True, False, False, False]
    install("two", seam="refinery.stores", file="brought_two:Shelf")
    assert not is_bucket("file:///shelf")
    assert "'file' is brought_two:Shelf of the package two 1.2, and Refinery has a part" in caplog.text


def test_code_without_its_metadata_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With sources and checks missing in silence, `verify` said that all is well of a root that it had checked in part."""
    monkeypatch.setattr(seams, "REFINERY", "refinery-that-nobody-installed")
    seams.own_parts.cache_clear()
    with pytest.raises(RecipeError, match=r"is not installed here.*pip install -e"):
        own_parts("refinery.checks")
    seams.own_parts.cache_clear()


ENTRIES = """
from pipeline_tasks.ask.known import Entry
TABLE = {"mine": Entry("brought_one", "mine", "look"), "takedown": Entry("brought_one", "not mine", "look"), "odd": 3}
"""


def test_a_name_that_is_taken_is_left_out_and_named(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    """A package of somebody else took the place of `refinery takedown`, in silence."""
    ours = questions()["takedown"]
    install("one", code=ENTRIES, seam="refinery.questions", table="brought_one:TABLE")
    known = questions()
    assert known["takedown"] == ours
    assert {"mine"} == {*known} - {
        *QUESTIONS,
        *(name for name, entry in known.items() if "brought" not in entry.module),
    }
    assert "'table' is brought_one:TABLE of the package one 1.2" in caplog.text
    assert "'takedown', which there is already" in caplog.text


@pytest.mark.parametrize("code", ["1 / 0", "TYPES = {'pdf': 1}", "TYPES = {'html': 1}", "TYPES = 1"])
def test_a_broken_type_of_files_is_left_out_and_named(
    code: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    """Stages name all types as they are imported: one that raised would stop everything."""
    before = [*file_types.brought_types()]
    install("broken", code=code, seam=file_types.SEAM, mine="brought_broken:TYPES")
    assert [*file_types.brought_types.__wrapped__()] == before
    assert "package broken 1.2" in caplog.text


def test_a_type_of_files_has_its_package_among_its_libraries(install: Install) -> None:
    card = "from pipeline_tasks.file_types import FileType; TYPES = {'log': FileType('other', 'Log', 'm:f')}"
    install("one", code=card, seam=file_types.SEAM, mine="brought_one:TYPES")
    kind = file_types.brought_types.__wrapped__()["log"]
    assert (kind.name, kind.libraries) == ("log", ("one",))


def test_a_broken_package_stops_no_other_question(
    install: Install, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    install("one", code="import no_such_module", seam="refinery.questions", table="brought_one:TABLE")
    assert main(["takedown", "--list", str(Path(__file__).parent)]) != 70
    assert "of the package one 1.2, which cannot be imported" in caplog.text
    install(
        "two",
        code=ENTRIES.replace("takedown", "other").replace("_one", "_two"),
        seam="refinery.questions",
        t="brought_two:TABLE",
    )
    assert main(["mine"]) == RecipeError.exit_code
    assert "brought_two is no command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("[True]", "does not say of each bound"),
        ("['no', True]", "does not say of each bound"),
        ("1 / 0", "cannot judge: ZeroDivisionError"),
    ],
)
def test_a_judge_of_somebody_else_answers_of_each_bound(install: Install, answer: str, said: str) -> None:
    code = f"def judge():\n    return lambda stage, run, numbers, expectations: ({answer}, None)"
    install("one", code=code, seam=judging.SEAM, own="brought_one:judge")
    _, compare = judging.judge_here()
    with pytest.raises(RecipeError, match=f"'own' is brought_one:judge of the package one 1.2, which {said}"):
        compare("extract", "a run", {}, [bound("a"), bound("b")])


def bound(column: str) -> Any:
    return {"type": "expect_column_max_to_be_between", "kwargs": {"column": column, "min_value": 1.0}}
