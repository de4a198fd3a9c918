"""Files that are made to harm: each ends as a text, with a reason or at a limit, and takes no other file with it.

Most of the time is what bombs take until they meet the limit of the sandbox: only here is every reader held against it.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from pipeline_tasks.file_types import brought_types
from tests.file_types import hostile
from tests.file_types.hostile_archives import MARKED, MARKER

CLIMBED = Path("/tmp/refinery-climbed")
FEWEST = 100
FEWEST_OF_TYPE = 5

Ends = dict[str, list[hostile.Outcome]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[6, pytest.param(1, marks=pytest.mark.nightly)], ids=["sixth", "all"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """What became of each file, or each sixth, by type, with the file on disk that external entities ask for."""
    Path(MARKED).write_text(MARKER)
    found = defaultdict[str, list[hostile.Outcome]](list)
    for outcome in hostile.outcomes(islice(hostile.files(), 0, None, request.param)):
        found[outcome.file.type].append(outcome)
    yield found
    Path(MARKED).unlink()


@pytest.mark.parametrize("name", sorted(brought_types()))
def test_every_hostile_file_ends_in_a_way_that_is_allowed(name: str, ends: Ends) -> None:
    outcomes = ends[name]
    assert len(outcomes) >= FEWEST_OF_TYPE
    assert {outcome.file.name: outcome.fault for outcome in outcomes if outcome.fault} == {}


def test_there_are_a_hundred_and_each_has_a_name() -> None:
    names = [file.name for file in hostile.files()]
    assert len(set(names)) == len(names) >= FEWEST


def test_few_files_need_a_limit(ends: Ends) -> None:
    outcomes = [outcome for outcomes in ends.values() for outcome in outcomes]
    limited = [outcome.file.name for outcome in outcomes if outcome.end in hostile.LIMITS]
    assert len(limited) < len(outcomes) / 20, limited


def test_no_archive_writes_a_file(ends: Ends) -> None:
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
