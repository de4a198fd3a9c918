"""Outputs that the documentation shows are what its commands print: in every page, and by rules that see a difference."""

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline_tasks.cli.reference import pages_with_outputs
from pipeline_tasks.cli.reference.outputs import WIDTH, Part, comparable, excerpt, files_of, outputs_of, with_outputs
from pipeline_tasks.cli.reference.walk import renewed
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.loops import COMPILING
from tests.commands import Refinery

PAGES = pages_with_outputs()

RENEW = "run `python -m pipeline_tasks.cli.reference --outputs`"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands of all pages run, so that the demo runs once."""
    return tmp_path_factory.mktemp("walk")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_commands_print(name: str, folder: Path, refinery: Refinery) -> None:
    def run(place: Path, arguments: Sequence[str]) -> str:
        with contextlib.chdir(place):
            done = refinery(*arguments)
        return done.stderr + done.stdout  # as a pipe has them: standard output waits for its buffer

    assert PAGES[name] == renewed(folder, name, PAGES[name], run), RENEW


def test_the_pages_that_show_outputs_are_these() -> None:
    assert {name: len(outputs_of(page)) for name, page in PAGES.items()} == {
        "first-walk.md": 4,
        "how-to/build/build-a-training-dataset.md": 1,
        "how-to/look/compare-two-versions.md": 4,
        "how-to/operate/handle-a-refused-gate.md": 1,
        "how-to/build/plan-a-training-run.md": 3,
        "how-to/build/register-tables.md": 1,
        "how-to/build/train-from-a-dataset.md": 2,
        "how-to/refine/remove-duplicates.md": 2,
        "how-to/refine/write-a-recipe.md": 1,
        "how-to/look/why-is-my-page-not-in-it.md": 1,
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_shown_command_is_one_that_a_reader_is_told(name: str) -> None:
    """A block of its page has it, or `make demo` for it."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGES[name], re.DOTALL | re.MULTILINE)
    told = {
        line.partition("  #")[0].rstrip().removeprefix(".venv/bin/") for block in blocks for line in block.split("\n")
    }
    assert told
    shown = {command for output in outputs_of(PAGES[name]) for command in output.commands}
    assert {command.replace("refinery demo", "make demo") for command in shown} <= told


# --- The rules -----------------------------------------------------------------------------------------------------

PAGE = """
<!-- file: mix.yaml -->
```yaml
name: mix
```

<!-- output: refinery run --recipe mix.yaml && refinery look funnel ROOT
     lines: ingest +1; dedup -->
```text
ingest 10 in
...
```

```text
not an output
```
"""

PRINTED = "title\ningest 12 in\n   3 ingest:empty\nextract 9 in\n   1 gone\ndedup 8 in\nend\n"


def test_an_output_has_its_commands_its_parts_and_its_text() -> None:
    (output,) = outputs_of(PAGE)
    assert output == (
        ("refinery run --recipe mix.yaml", "refinery look funnel ROOT"),
        (Part("ingest", 1), Part("dedup", 0)),
        "ingest 10 in\n...\n",
    )
    assert files_of(PAGE) == {"mix.yaml": "name: mix\n"}


def test_a_page_gets_the_lines_that_its_command_prints_and_nothing_else_changes() -> None:
    seen = []

    def printed(commands: Sequence[str]) -> str:
        seen.append(commands)
        return PRINTED

    now = with_outputs(PAGE, printed)
    assert seen == [("refinery run --recipe mix.yaml", "refinery look funnel ROOT")]
    shown = "ingest 12 in\n   3 ingest:empty\n...\ndedup 8 in\n...\n"
    assert now == PAGE.replace("ingest 10 in\n...\n", shown)
    assert with_outputs(now, printed) == now


def test_all_lines_are_shown_without_parts_and_long_ones_are_cut() -> None:
    assert excerpt("a\nb\n", ()) == "a\nb\n"
    (line,) = excerpt("word " * 40, ()).splitlines()
    assert line == "word " * 31 + "..."
    assert len(line) <= WIDTH


def test_a_part_that_is_not_printed_is_named() -> None:
    with pytest.raises(RecipeError, match="pack"):
        excerpt(PRINTED, [Part("ingest", 0), Part("pack", 0)])


def test_a_part_is_looked_for_behind_the_one_before() -> None:
    with pytest.raises(RecipeError, match="ingest"):
        excerpt(PRINTED, [Part("dedup", 0), Part("ingest", 0)])


def test_lines_of_a_slow_machine_are_left_out_and_partitions_are_in_order() -> None:
    run = (
        "  10.0 s  extract            3 of 40 tasks done, 10 s, 0.1 MB/s, about 9 s left\n"
        f"{COMPILING}\n"
        f"{COMPILING} 37 of 112\n"
        "  11.0 s  Great Expectations starts\n"
        "  11.5 s  Spark starts at local[2]\n"
        "  12.0 s  extract            partition 2/2        3 in        3 kept  0.1 s\n"
        "  13.0 s  extract            partition 1/2        4 in        4 kept  0.1 s\n"
        "  14.0 s  extract                                 7 in        7 kept  0.2 s\n"
    )
    numbers = [line.split()[0] for line in excerpt(run, ()).splitlines()]
    assert numbers == ["13.0", "12.0", "14.0"]


LEDGER = "version 2: demo version 2, snapshot s: its manifests and the ledger\n  crawl    140 TB as landed; 0.34 stay\n"
STORAGE = "  storage  365 TB with the crawl, for 68 days"

SAME = [
    ("   8.9 s  land               4 files  4.3 MB", " 108.9 s  land               4 files  4.3 MB"),
    ("done in 158.6 s: version 2", "done in 8.0 s: version 2"),
    ("12 published files; 24.9 MB read (full)", "12 published files; 25.0 MB read (full)"),
    ("demo 056bfd13fc9a  2026-11-25 15:08", "demo 056bfd13fc9a  2027-01-02 01:00"),
    (
        "refuses extract/cfdfd9e69d1ff9c5ef5467b7/manifest.json",
        "refuses extract/2f0cd9e69d1ff9c5ef5467b7/manifest.json",
    ),
    (f"head       demo 2: {'0' * 64}", f"head       demo 2: {'1' * 64}"),
    (
        f"{LEDGER}  compute  98,799 core-hours: 295 cores for 14 days, $4,940\n{STORAGE}, $18,755",
        f"{LEDGER}  compute  9,799 core-hours: 29 cores for 14 days, $490\n{STORAGE}, $18,748",
    ),
    (
        "  ingest                     53.3%      140 TB        11,354     10.7 TB  ledger",
        "  ingest                     53.3%      140 TB           354     10.7 TB  ledger",
    ),
    (
        "  pack                           -       22 TB           715      991 GB  ledger",
        "  pack                           -       22 TB         1,715      1.0 TB  ledger",
    ),
    (
        "  extract                         2.72 MB, 2.78 MB               0.98, 2.8              0.35",
        "  extract                         2.72 MB, 2.78 MB                0.98, 12              0.08",
    ),
    (
        "  all that are measured                                           2.2, 6.8              0.32",
        "  all that are measured                                            2.2, 10              0.22",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_a_machine_decides_does_not_differ(one: str, other: str) -> None:
    assert one != other
    assert comparable(one) == comparable(other)


DIFFERENT = [
    ("   8.9 s  land               4 files  4.3 MB", "   8.9 s  land               5 files  4.3 MB"),
    ("ingest             1,603 in      854 rows", "ingest             1,603 in      855 rows"),
    ("12 published files; 24.9 MB read (full)", "13 published files; 24.9 MB read (full)"),
    ("document   a371e3e77e0dc1fc98ec6cd57fa7a282", "document   b371e3e77e0dc1fc98ec6cd57fa7a282"),
    (
        "  compute  29,356 core-hours: 88 cores for 14 days, $1,468",
        "  compute  29,511 core-hours: 88 cores for 14 days, $1,476",
    ),
    (
        "  ingest                     53.3%      140 TB        11,354     10.7 TB  ledger",
        "  ingest                     53.3%      141 TB        11,354     10.7 TB  ledger",
    ),
    (
        "  ingest                     59.8%      134 TB           967     2.68 TB  unit cost",
        "  ingest                     59.8%      134 TB           968     2.68 TB  unit cost",
    ),
    (
        "  tokens                                                  311,579, 284,242              1.10",
        "  tokens                                                  311,579, 284,243              1.10",
    ),
    ("loader     3,172,154 tokens/s of 4 bytes", "loader     3,172,155 tokens/s of 4 bytes"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_the_code_decides_differs(one: str, other: str) -> None:
    assert comparable(one) != comparable(other)
