"""Files that are made to harm: each ends as a text, with a reason or at a limit, and takes no other file with it."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.file_types import brought_types
from tests.file_types import hostile
from tests.file_types.hostile_archives import MARKED, MARKER

CLIMBED = Path("/tmp/refinery-climbed")
FEWEST = 100
FEWEST_OF_TYPE = 5

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ends() -> Iterator[dict[str, list[hostile.Outcome]]]:
    """What became of each file, by type, with the file on disk that external entities ask for."""
    Path(MARKED).write_text(MARKER)
    found = defaultdict[str, list[hostile.Outcome]](list)
    for outcome in hostile.outcomes(hostile.files()):
        found[outcome.file.type].append(outcome)
    yield found
    Path(MARKED).unlink()


@pytest.mark.parametrize("name", sorted(brought_types()))
def test_every_hostile_file_ends_in_a_way_that_is_allowed(name: str, ends: dict[str, list[hostile.Outcome]]) -> None:
    outcomes = ends[name]
    assert len(outcomes) >= FEWEST_OF_TYPE
    assert {outcome.file.name: outcome.fault for outcome in outcomes if outcome.fault} == {}


def test_there_are_a_hundred_and_each_has_a_name(ends: dict[str, list[hostile.Outcome]]) -> None:
    names = [outcome.file.name for outcomes in ends.values() for outcome in outcomes]
    assert len(set(names)) == len(names) >= FEWEST


def test_few_files_need_a_limit(ends: dict[str, list[hostile.Outcome]]) -> None:
    outcomes = [outcome for outcomes in ends.values() for outcome in outcomes]
    limited = [outcome.file.name for outcome in outcomes if outcome.end in hostile.LIMITS]
    assert len(limited) < len(outcomes) / 20, limited


def test_no_archive_writes_a_file(ends: dict[str, list[hostile.Outcome]]) -> None:
    assert ends
    assert not CLIMBED.exists()


def test_a_reader_that_dies_hangs_or_shows_a_file_is_noticed() -> None:
    """The harness itself: its faults are what it is for."""
    file = next(hostile.hostile_pdfs.files())
    assert hostile.Outcome(file._replace(ends=()), "signal 11", 0.1).fault
    assert hostile.Outcome(file._replace(ends=("encrypted",)), "text", 0.1).fault
    assert hostile.Outcome(file._replace(ends=()), "text", 0.1, shows=True).fault
    assert hostile.Outcome(file._replace(ends=()), "text", 0.1, size=1e3).fault
    assert not hostile.Outcome(file._replace(ends=()), "text", 0.1).fault
