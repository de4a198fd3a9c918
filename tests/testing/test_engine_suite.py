"""An engine that breaks a promise fails the suite of engines, which says what is wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.testing import engines
from pipeline_tasks.testing.engines import check_engine
from tests.brought import Site, site

CARD = """
from pipeline_tasks.engines.card import EngineCard
from pipeline_tasks.engines.local import LocalEngine, cancel, lives, load, start, stop
from pipeline_tasks.run.tracker import results_of

ENGINE = EngineCard(__name__)


def factory(address, resources):
    return Loose


class Loose(LocalEngine):
"""

LOSES = """
    def map(self, kernel, *inputs, **how):
        return super().map(kernel, *inputs, **how)[:-1]
"""

WRAPS = """
    def _each(self, tasks, weight):
        try:
            yield from super()._each(tasks, weight)
        except Exception as error:
            raise RuntimeError("a task failed") from error
"""

DEAF = """
    def _each(self, tasks, weight):
        from concurrent.futures import ThreadPoolExecutor
        from pipeline_tasks.run.tracker import guarded

        with ThreadPoolExecutor(1) as pool:
            yield from results_of(pool.map(guarded, tasks))
"""

UNSORTED = """
    def group(self, kernel, rows, *, by, order=(), buckets):
        return super().group(kernel, rows, by=by, buckets=1)
"""


@pytest.fixture
def packages(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path / "site") as place:
        yield place


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (LOSES, "other shards than those of `local` where rows are mapped"),
        (UNSORTED, "other shards than those of `local` where rows are grouped"),
        (WRAPS, "a kernel's ContractError arrived as RuntimeError"),
        (DEAF, "work that nobody awaits goes on"),
    ],
)
def test_a_fault_of_an_engine_is_found(packages: Site, code: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "ENDLESS", 4.0)
    packages.install("loose", "refinery.engines", {"loose": "brought_loose:ENGINE"}, CARD + code)
    with pytest.raises(AssertionError, match=f"^loose: {said}"):
        check_engine("loose")


def test_a_library_that_is_not_installed_is_named_with_the_way_out(packages: Site) -> None:
    card = CARD.replace("(__name__)", '(__name__, library="no_such_thing", way_out="pip install no-such-thing")')
    packages.install("loose", "refinery.engines", {"loose": "brought_loose:ENGINE"}, card + LOSES)
    with pytest.raises(Exception, match=r"^Loose needs no_such_thing, .*: pip install no-such-thing"):
        check_engine("loose")


def test_the_engine_of_the_core_keeps_its_promises() -> None:
    check_engine(LOCAL)
