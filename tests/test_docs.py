"""The documentation: generated pages are fresh, names that it mentions exist, and its examples run."""

import argparse
import contextlib
import io
import itertools
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from refinery_sources.files.source import ENDINGS
from refinery_sources.recipe import SEAM

from pipeline_tasks import api
from pipeline_tasks.ask.known import questions
from pipeline_tasks.binding import bind
from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli import reference
from pipeline_tasks.cli.listing import first_words
from pipeline_tasks.cli.main import _parse, build_parser, parser_of
from pipeline_tasks.cli.reference.outputs import outputs_of
from pipeline_tasks.file_types import type_names
from pipeline_tasks.flow.progress import step_line
from pipeline_tasks.ledger import queries
from pipeline_tasks.recipe import parse_recipe, recipe_names
from pipeline_tasks.run.tracker import Step
from pipeline_tasks.seams import EXPORTS, own_parts
from pipeline_tasks.stages import NAMES
from pipeline_tasks.testing.training_dataset import write_dataset
from pipeline_tasks.text.pii.kinds import KINDS as PII_KINDS
from tests import small_build
from tests.commands import Refinery
from tests.small_root import SmallRoot

PROJECT = Path(__file__).parent.parent
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])
TEXTS = {page.relative_to(PROJECT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
ALL = "\n".join(TEXTS.values())

LANGUAGES = {"sh", "text", "yaml", "dockerfile", "json", "markdown", "python", "sql", "mermaid"}

TRAINING = "docs/how-to/build/train-from-a-dataset.md"

UNCHECKED = {
    ("docs/decisions/0002-one-prefix-per-stage.md", "data/  rejects/"): "a listing of paths",
    ("docs/reference/formats.md", "land/<fingerprint>/manifest.json"): "a listing of paths",
    ("docs/how-to/start/run-your-own-crawl.md", "  95.2 s  extract"): "test_the_line_of_a_long_stage",
    ("docs/how-to/refine/keep-things-out.md", "# label and weight"): "a lexicon",
    ("docs/how-to/operate/handle-a-refused-gate.md", "critical: rows: "): "gate/test_own_suites.py compares it",
    ("docs/how-to/build/search-a-mixture.md", "proxy-0000: "): "models of torch are trained for it",
    (TRAINING, "+-------------------+"): "publish/test_annotations.py compares it",
    (
        "docs/how-to/operate/operate-day-by-day.md",
        "snapshot 2026-11-19 is incomplete",
    ): "test_a_waiting_run_says_what_the_operator_is_told",
}
"""Blocks of text that no command of `docs/` prints, by page and beginning: why, or the test that compares them."""

NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")

IMAGE_BYTES = 200_000
RECIPE_PAGE = "docs/how-to/refine/write-a-recipe.md"

PROSE = "Rain fell on the harbor all night, and the boats stayed where they were."


WORDS = "|".join(rf"{name}(?![\w-])" for name in questions() if " " in name)
"""Names of two words."""


def commands() -> list[str]:
    return sorted(questions())


@cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    (commands,) = (
        action
        for action in build_parser(questions(), questions())._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(commands.choices)


def block_commands(text: str) -> list[tuple[str, str]]:
    """Return the `refinery` commands of blocks of `sh`, each with its arguments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return split_commands(line.replace("\\\n", " ") for block in blocks for line in re.split(r"(?<!\\)\n", block))


def command_lines(text: str) -> list[tuple[str, str]]:
    """Return the `refinery` commands of code blocks, indented lines and code spans, each with its arguments."""
    indented = re.findall(r"^ {4}(refinery .*)$", text, re.MULTILINE)
    spans = re.findall(r"`(refinery [^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    return [*block_commands(text), *split_commands([*indented, *spans])]


def split_commands(lines: Iterable[str]) -> list[tuple[str, str]]:
    matches = (re.match(rf"(?:\.venv/bin/)?refinery ({WORDS}|[a-z][a-z-]*)(.*)", line, re.DOTALL) for line in lines)
    return [(match[1], match[2].partition("  #")[0]) for match in matches if match]


def cells(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading, without its head, each as its cells."""
    _, _, rest = TEXTS[page].partition(f"\n{heading}\n")
    table = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert table, f"{page} has no table below {heading!r}"
    return [[cell.strip() for cell in line.split(" | ")] for line in table[0].strip().split("\n")[2:]]


def fences(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of every code block of a page."""
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```$", TEXTS[page], re.DOTALL | re.MULTILINE)


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading: its words without marks, with links as their texts."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def code(page: str, language: str) -> Iterator[str]:
    return (match[1] for match in re.finditer(rf"```{language}\n(.*?)```", TEXTS[page], re.DOTALL))


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    page = reference.PAGES[name]()
    assert TEXTS[f"docs/reference/{name}"] == page, "run `python -m pipeline_tasks.cli.reference`"


def test_options_are_shown_with_their_defaults() -> None:
    assert "%(" not in reference.PAGES["options.md"]()


def test_the_table_of_commands_has_every_command_and_no_other() -> None:
    rows = cells("docs/reference/commands.md", "## Commands")
    named = [re.match(rf"\| `refinery ({WORDS}|[a-z-]+)", row[0]) for row in rows]
    assert sorted({match[1] if match else "" for match in named}) == commands()
    assert [row for row in rows if not row[1].strip("| ")] == []


@pytest.mark.parametrize("command", commands())
def test_the_help_of_every_command_says_what_it_does(command: str) -> None:
    assert parsers()[command].description


def test_the_included_recipes_are_those_that_the_page_of_recipes_names() -> None:
    sentence = re.search(r"^(\w+) recipes are included: (.*?)\.\n\n", TEXTS[RECIPE_PAGE], re.DOTALL | re.MULTILINE)
    assert sentence
    assert sorted(re.findall(r"`(\w+)` \(", sentence[2])) == recipe_names()
    assert sentence[1] == NUMBERS[len(recipe_names())]


def test_the_table_of_damage_has_every_reason_of_damage_and_no_other() -> None:
    rows = cells("docs/reference/failures.md", "## Damaged records")
    named = [reason for row in rows for reason in re.findall(r"`(error:\w+)`", row[0])]
    known = {why for stage in ("ingest", "extract") for why in stage_card(stage).reasons if why.startswith("error:")}
    assert sorted(named) == sorted(known)
    assert [row for row in rows if not row[1].strip("| ")] == []


def test_tests_that_the_docs_name_exist() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PROJECT.glob("tests/**/test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", ALL))
    assert named
    named |= {why for why in UNCHECKED.values() if why.startswith("test_")}
    assert sorted(name for name in named if f"def {name}(" not in sources) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(PROJECT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8"))
    inside = [(page.parent / link if link else page, anchor) for link, anchor in links if "://" not in link]
    assert [str(place) for place, _ in inside if not place.exists()] == []
    assert [f"{place}#{anchor}" for place, anchor in inside if anchor and anchor not in anchors(place)] == []


def test_a_link_into_a_page_is_found_by_its_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Of `what`, and [why](why.md)?\n\n```sh\n# no heading\n```\n", encoding="utf-8")
    assert anchors(page) == {"of-what-and-why"}


def test_the_recipe_of_the_docs_is_sound() -> None:
    text = next(code(RECIPE_PAGE, "yaml"))
    assert [step.stage for step in parse_recipe(yaml.safe_load(text), "docs").steps][-1] == "dedup_exact"


def test_queries_of_the_docs_are_in_the_ledger() -> None:
    named = re.findall(r'\.query\("(\w+)"', ALL)
    assert named
    assert set(named) <= set(queries())


@pytest.mark.parametrize("page", TEXTS)
def test_options_that_the_docs_name_exist(page: str) -> None:
    """Every `refinery COMMAND ... --option` of a page is known to the parser of that command."""
    unknown = [
        f"refinery {command} {option}"
        for command, arguments in command_lines(TEXTS[page])
        for option in re.findall(r"--[a-z][a-z-]*", arguments)
        if command not in ("setup airflow", *first_words(parsers()))  # its options are Airflow's
        and (command not in parsers() or option not in parsers()[command]._option_string_actions)
    ]
    assert unknown == []


@pytest.mark.parametrize("page", [page for page in TEXTS if "decisions" not in page and page != "CHANGELOG.md"])
def test_options_have_the_names_that_help_shows(page: str) -> None:
    """An option that had another name answers to it, and no page teaches it; `export` takes recipes and datasets."""
    named = [
        (command, option, action.option_strings[0])
        for command, arguments in command_lines(TEXTS[page])
        if command in parsers()
        for option in re.findall(r"--[a-z][a-z-]*", arguments)
        if (action := parsers()[command]._option_string_actions.get(option))
    ]
    assert [each for each in named if each[1] != each[2] and each[:2] != ("export", "--recipe")] == []


@pytest.mark.parametrize("page", TEXTS)
def test_commands_that_the_docs_name_exist(page: str) -> None:
    known = {*parsers(), *first_words(parsers())}
    assert [command for command, _ in command_lines(TEXTS[page]) if command not in known] == []


@pytest.mark.parametrize("page", TEXTS)
def test_commands_that_the_docs_show_are_whole(page: str) -> None:
    """The command of every line of a block has the arguments that it needs, and values that it takes."""
    refused = [
        f"refinery {command}{arguments}: {complaint}"
        for command, arguments in block_commands(TEXTS[page])
        if (complaint := complaint_of(command, arguments))
    ]
    assert refused == []


def complaint_of(command: str, arguments: str) -> str:
    """Return what the parser of a command says against arguments, "" for nothing; a redirection is the shell's."""
    said = io.StringIO()
    words = itertools.takewhile(lambda word: word != ">", shlex.split(arguments))
    try:
        with contextlib.redirect_stderr(said):
            _parse(parser_of(command), [command, *words])
    except SystemExit:
        return said.getvalue().strip().rpartition("\n")[2]
    return ""


def test_a_command_that_lacks_an_argument_is_not_whole() -> None:
    (first, *_), lacking = (
        block_commands("```sh\n.venv/bin/refinery plan --days 54 \\\n  --gpus x  # why\n```\n"),
        "--days 54",
    )
    assert first == ("plan", " --days 54    --gpus x")
    assert "--gpus" in complaint_of(*first)
    assert "--target-tokens" in complaint_of("plan", lacking)
    assert complaint_of("verify", "/data/refined --json > report.json") == ""


def test_the_walk_shows_the_commands_of_the_readme() -> None:
    """Its readers find there all that they saw before: the commands of both are found, and are these."""
    shown = [command for command, _ in block_commands(TEXTS["docs/first-walk.md"])]
    assert shown == ["look funnel", "look report", "rejects", "rejects", "look trace", "verify", "whatif"]
    assert {*shown} <= {command for command, _ in block_commands(TEXTS["README.md"])}


@pytest.mark.parametrize("page", TEXTS)
def test_a_block_of_text_is_an_output_that_is_checked_or_has_a_reason(page: str) -> None:
    """So is every block: its language says whether it is a command, a file, code, or what a command printed."""
    blocks = fences(page)
    assert [text for language, text in blocks if language not in LANGUAGES] == []
    checked = {output.shown for output in outputs_of(TEXTS[page])}
    known = {start for of, start in UNCHECKED if of == page}
    unchecked = [text for language, text in blocks if language == "text" and text not in checked]
    assert [text for text in unchecked if not text.startswith(tuple(known))] == []
    assert len(unchecked) == len(known)


def block_of(page: str) -> str:
    """Return the only block of text of a page that no command prints, as one line."""
    (start,) = (start for of, start in UNCHECKED if of == page)
    (text,) = (text for language, text in fences(page) if language == "text" and text.startswith(start))
    return " ".join(text.split())


def test_the_line_of_a_long_stage() -> None:
    """What a run prints after ten silent seconds: 12 tasks of 40, of equal weight, are done after 38 s."""
    step = Step("extract", "root", {str(number): 38 * 3.1e6 / 12 for number in range(40)})
    line = step_line(step, {str(number) for number in range(12)}, seconds=38)
    assert block_of("docs/how-to/start/run-your-own-crawl.md") == f"95.2 s {' '.join(line.split())}"


def test_bounds_that_the_docs_set_exist() -> None:
    named = set(re.findall(r"--set (?:[a-z]{2,3}\.)?(\w+)\.(\w+)=", ALL))
    params = [(card, bind(card, {})) for card in map(stage_card, NAMES) if card.bounds or card.dials]
    of_stages = {(card.name, bound.param) for card, own in params if card.bounds for bound in card.bounds(own)}
    of_stages |= {(card.name, dial.param) for card, own in params if card.dials for dial in card.dials(own)}
    assert named & of_stages
    named -= of_stages
    assert named
    limits = {profile: import_module(f"pipeline_tasks.filters.{profile}").FILTER.limits for profile, _ in named}
    known = {(profile, field.name) for profile, cls in limits.items() for field in fields(cls)}
    assert named <= known


@pytest.mark.parametrize("page", TEXTS)
def test_paths_that_the_docs_name_exist(page: str) -> None:
    named = re.findall(r"`((?:pipeline_tasks|plugins|dags|expectations|sql|tests|benchmarks)/[\w./-]*)`", TEXTS[page])
    assert [path for path in named if not (PROJECT / path).exists()] == []


def test_images_that_the_docs_show_are_small() -> None:
    images = [*PROJECT.glob("docs/images/*")]
    assert images
    assert [image.name for image in images if image.stat().st_size > IMAGE_BYTES] == []


def test_the_examples_of_training_run(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20])
    names: dict[str, Any] = {"rank": 0, "new_world_size": 2}
    examples = [
        part
        for part in code(TRAINING, "python")
        if not {"StatefulDataLoader", "memmap", "load_dataset"} & {*re.findall(r"\w+", part)}
    ]
    assert len(examples) == 5
    for example in examples:
        here = re.sub(r'"(/data|s3://bucket)/[^"]*"', repr(str(packed.folder)), example).replace(
            "/scratch", str(tmp_path)
        )
        names["loader"] = names["dataset"].batches() if "dataset" in names else None
        exec(compile(here, "guide.md", "exec"), names)
        names["batch"] = {"resume_at": 16}
    assert names["usage"].sequences == (2 * 20 - 16) / 2


def test_the_example_of_reading_tokens_runs(
    small_root: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = small_build.copied(small_root, tmp_path)
    folder = Path(small.root, small_build.build(small)["index"]).parent
    [example] = [part for part in code(TRAINING, "python") if "memmap" in part]
    here, replaced = re.subn(r'folder = Path\(".*"\)', f"folder = Path({str(folder)!r})", example)
    assert replaced == 1
    exec(compile(here, "guide.md", "exec"), {})
    counted, text, origin = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d+ sequences of 64", counted)
    assert "word" in text
    assert re.search(r" https://example\.org/\d+/\d+ .* [ab]\.jsonl \d+$", origin)


def test_the_questions_of_the_page_of_sql_are_answered(tmp_path: Path) -> None:
    asked = block_commands(TEXTS["docs/how-to/look/query-with-sql.md"])
    words = [shlex.split(arguments) for command, arguments in asked if command == "sql"]
    found = [query for root, *query in words if root == "/data/refined" and len(query) == 1]
    assert len(found) >= 4
    line = "The boats came back to the harbor before the rain, and the men of the village went home with what they had."
    for day in ("2026-11-19", "2026-11-20"):
        pq.write_table(pa.table({"text": [f"{line} It was {day}.", "short"]}), tmp_path / f"{day}.parquet")
        recipe = api.recipe(["ingest", "extract", ("filter_language", {"keep": []})], name="harbor")
        api.refine(str(tmp_path / f"{day}.parquet"), str(tmp_path / "root"), recipe)
    for [query] in found:
        of_ours = query.replace("v3.", "v1.").replace("v4.", "v2.")
        assert api.sql(str(tmp_path / "root"), of_ours).column_names


@pytest.mark.slow
def test_the_joins_of_ones_own_columns_run(tmp_path: Path, refinery: Refinery, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deduplicated data lacked `score`, and the page said that it may be joined, but not how."""
    page, folder = "docs/how-to/refine/remove-duplicates.md", tmp_path / "texts"
    folder.mkdir()
    texts = [" ".join(f"word{row * 100 + at}" for at in range(80)) for row in range(8)]
    for name, numbers in (("a", range(6)), ("b", range(6, 12))):  # the last four are copies of the first
        rows = [{"id": number, "text": texts[number % 8], "score": number / 10} for number in numbers]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet", row_group_size=3)
    monkeypatch.chdir(tmp_path)
    root = str(tmp_path / "out")  # what a process knows of a root is kept by its name
    (tmp_path / "dedup.yaml").write_text(next(part for part in code(page, "yaml") if "name: dedup" in part))
    assert (
        refinery(
            "run", root, "--input", "texts", "--recipe", "dedup.yaml", "--no-build", "--engine", "local"
        ).returncode
        == 0
    )
    select = "SELECT * EXCLUDE (blocks) FROM kept"
    assert select in TEXTS[page]
    assert refinery("sql", root, select, "--to", "kept.parquet").returncode == 0
    kept = {int(name) for name in pq.read_table("kept.parquet")["record_id"].to_pylist()}
    joins = [part for part in code(page, "python") if "JOIN" in part]
    assert (len(kept), len(joins)) == (8, 2)
    for at, join in enumerate(joins):
        own = join.replace("/data/texts", "texts").replace("own.parquet", f"own-{at}.parquet")
        exec(compile(own, "guide.md", "exec"), {})
        joined = pq.read_table(f"own-{at}.parquet")
        assert joined.schema.names == ["id", "text", "score"]
        assert sorted(joined["id"].to_pylist()) == sorted(kept)
        assert joined["score"].to_pylist() == [number / 10 for number in joined["id"].to_pylist()]


COMPARED: dict[str, Iterable[str]] = {
    "Kinds of sources": own_parts(SEAM),
    "Files of other formats, made rows as they land": ENDINGS,
    "Types of files, told by their bytes": type_names(),
    "Personal data": PII_KINDS,
    "Output": (*own_parts(EXPORTS), ".bin"),
}
"""Rows of the comparison with others, and what there is of each: our cell names it in code, and nothing else."""


@pytest.mark.parametrize("row", COMPARED)
def test_the_comparison_with_others_names_what_there_is(row: str) -> None:
    [cell] = re.findall(rf"^\| {row} \|([^|]*)\|", TEXTS["docs/explanation/comparison.md"], re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", cell)) == set(COMPARED[row])


def test_what_the_comparison_says_is_missing_is_not_there() -> None:
    ours = [line.split("|")[2] for line in TEXTS["docs/explanation/comparison.md"].splitlines() if line.count("|") > 2]
    said = [*ours, TEXTS["docs/explanation/comparison.md"].partition("## What is missing")[2]]
    denied = {
        word for text in said for each in re.findall(r"\bno\b([^.;|]*)", text.lower()) for word in each.split(", ")
    }
    there = {name.replace("_", " ") for names in COMPARED.values() for name in names}
    assert not [word for word in denied if {*re.findall(r"[a-z]+", word)} & there]


def test_what_is_installed_by_name_is_our_distribution_with_an_extra_that_it_has() -> None:
    """`refinery` on PyPI is somebody else's package."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    code = [path for folder in ("pipeline_tasks", "plugins", "dags") for path in (PROJECT / folder).rglob("*.py")]
    pages = [text for name, text in TEXTS.items() if name != "CHANGELOG.md"]
    texts = [*pages, *(path.read_text(encoding="utf-8") for path in (PROJECT / "pyproject.toml", *code))]
    named = {found for text in texts for found in re.findall(r"([\w-]*refinery[\w-]*)\[([a-z,]+)\]", text)}
    assert {name for name, _ in named} == {project["name"]} != {"refinery"}
    assert {extra for _, extras in named for extra in extras.split(",")} <= set(project["optional-dependencies"])
