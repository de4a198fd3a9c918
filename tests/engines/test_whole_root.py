"""Work over a whole root is the same on every engine, and goes on where it was stopped."""

import os
import threading
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from refinery_spark.spark import session

from benchmarks.counting import Requests, counted
from pipeline_tasks.engines import each
from pipeline_tasks.engines.each import On, Work
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.errors import ContractError, JobLost
from pipeline_tasks.recipe import LOCAL, engine_names
from pipeline_tasks.run.tasks.cancellation import canceled_by
from tests.squares import squared

pytestmark = pytest.mark.slow

ITEMS = range(40)


@pytest.fixture(params=engine_names())
def any_on(request: pytest.FixtureRequest) -> On:
    """Every engine, at the address of its one cluster of this test session."""
    return On(request.param, "" if request.param == LOCAL else request.getfixturevalue(request.param))


@pytest.fixture(autouse=True)
def _receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the smallest work have receipts."""
    monkeypatch.setattr(each, "FEW", 0)


# --- Any function ----------------------------------------------------------------------------------------------------


def squares(work: Work, folder: Path, items: range = ITEMS) -> list[Mapping[str, Any]]:
    return list(work.each("squares", partial(squared, str(folder)), items, key=int, weight=abs))


def ran(folder: Path) -> list[int]:
    """Return how often each number was squared."""
    names = [path.name.split("-")[1] for path in folder.glob("ran-*")]
    return [names.count(str(number)) for number in ITEMS]


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    folder = tmp_path / "seen"
    folder.mkdir()
    return folder


EXPECTED = [{"number": number, "square": number * number, "pair": [number, "ä"]} for number in ITEMS]


def test_results_come_in_the_order_of_items_on_every_engine(any_on: On, tmp_path: Path, seen: Path) -> None:
    for folder in ("", "receipts"):
        assert squares(Work("count", str(tmp_path), folder, any_on), seen) == EXPECTED
    assert squares(Work("count", str(tmp_path), "receipts", any_on), seen) == EXPECTED
    assert ran(seen) == [2] * len(ITEMS)


def test_no_items_are_no_work(any_on: On, tmp_path: Path, seen: Path) -> None:
    assert squares(Work("count", str(tmp_path), "receipts", any_on), seen, range(0)) == []


def test_the_first_refusal_in_the_order_of_items_is_raised_as_itself(any_on: On, tmp_path: Path, seen: Path) -> None:
    for number in (31, 7, 12):
        (seen / f"refuse-{number}").write_text(f"item {number}")
    with pytest.raises(ContractError, match=r"^item 7$") as refusal:
        squares(Work("count", str(tmp_path), "receipts", any_on), seen)
    assert refusal.type is ContractError


def test_what_was_refused_goes_on_with_what_is_missing_on_any_engine(any_on: On, tmp_path: Path, seen: Path) -> None:
    (seen / "refuse-20").write_text("not yet")
    with pytest.raises(ContractError, match="not yet"):
        squares(Work("count", str(tmp_path), "receipts", On(workers=Workers())), seen)
    (seen / "refuse-20").unlink()
    assert ran(seen) == [1] * 20 + [0] * 20
    work = Work("count", str(tmp_path), "receipts", any_on)
    assert squares(work, seen) == EXPECTED
    assert ran(seen) == [1] * len(ITEMS)
    work.forget()
    assert not list(tmp_path.glob("receipts/**/*.json"))


def test_receipts_are_listed_once_and_read_once(tmp_path: Path, seen: Path) -> None:
    work = Work("count", str(tmp_path), "receipts", On(workers=Workers()))
    squares(work, seen)
    requests = Requests(str(tmp_path))
    with counted(requests):
        squares(work, seen)
    assert requests.verbs == {"LIST": 1, "GET": len(ITEMS)}


def test_a_driver_that_comes_later_does_not_repeat_what_is_done_meanwhile(tmp_path: Path, seen: Path) -> None:
    first, second = (Work("count", str(tmp_path), "receipts", On(workers=Workers())) for _ in range(2))
    slow = first.each("squares", partial(squared, str(seen)), ITEMS, key=int, weight=abs)
    begun = [next(slow) for _ in range(5)]
    assert squares(second, seen) == EXPECTED
    assert [*begun, *slow] == EXPECTED
    assert ran(seen) == [1] * len(ITEMS)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"results":[{"number":9}],"sha256":"' + b"0" * 64 + b'"}'])
def test_a_receipt_that_was_changed_is_not_believed(body: bytes, tmp_path: Path, seen: Path) -> None:
    work = Work("count", str(tmp_path), "receipts")
    squares(work, seen)
    changed = min(tmp_path.glob("receipts/**/*.json"))
    before = changed.read_bytes()
    changed.write_bytes(body)
    assert squares(work, seen) == EXPECTED
    assert sum(ran(seen)) == len(ITEMS) + 1
    assert changed.read_bytes() == before


def test_old_receipts_do_not_count_where_objects_may_have_changed(tmp_path: Path, seen: Path) -> None:
    squares(Work("count", str(tmp_path), "receipts"), seen)
    old = min(tmp_path.glob("receipts/**/*.json"))
    os.utime(old, (1, 1))
    assert squares(Work("count", str(tmp_path), "receipts", patience=3600.0), seen) == EXPECTED
    assert sum(ran(seen)) == len(ITEMS) + 1


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_work_goes_on_where_no_receipt_may_be_written(tmp_path: Path, seen: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert squares(Work("count", str(closed), "receipts"), seen) == EXPECTED


def test_small_work_has_no_receipts(tmp_path: Path, seen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(each, "FEW", 41 * each.ITEM)
    assert squares(Work("count", str(tmp_path), "receipts"), seen) == EXPECTED
    assert not (tmp_path / "receipts").exists()


@pytest.mark.parametrize("workers", [Workers(), Workers(4), Workers(2, are_processes=True)])
def test_local_work_is_canceled(workers: Workers, tmp_path: Path, seen: Path) -> None:
    event = threading.Event()
    work = Work("count", str(tmp_path), "", On(workers=workers))
    results = work.each("squares", partial(squared, str(seen)), range(2000), key=int, weight=abs)
    with canceled_by(event):
        next(results)
        event.set()
        with pytest.raises(JobLost, match="nobody waits"):
            deque(results, maxlen=0)
    assert len(list(seen.iterdir())) < 2000


def test_work_is_one_job_of_spark_that_says_what_it_does(spark: str, tmp_path: Path, seen: Path) -> None:
    context = session(spark).sparkContext
    context.setJobGroup(str(tmp_path), "one verb")
    try:
        squares(Work("count", str(tmp_path), "", On("spark", spark)), seen)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    [job] = context.statusTracker().getJobIdsForGroup(str(tmp_path))
    said = context._jsc.sc().statusStore().job(job).description().get()
    assert said == "count: squares of 40 objects"
