"""Work over a whole root is the same on every engine, and goes on where it was killed: every verb that a recipe may name."""

import json
import os
import shutil
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from refinery_spark.spark import session

from benchmarks.counting import Requests, counted
from pipeline_tasks.engines import each
from pipeline_tasks.engines.each import On, Work
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.errors import ContractError, JobLost, RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL, engine_names, whole_root_verbs
from pipeline_tasks.run.tasks.cancellation import canceled_by
from pipeline_tasks.service.verbs import verbs
from pipeline_tasks.store.local_store import UNFINISHED, LocalStore
from tests import screened_root
from tests.faults.forked import SERVER, ended, forked
from tests.faults.whole_root_victim import main as victim
from tests.screened_root import QUESTIONS, done
from tests.small_build import DATASET, build, copied
from tests.squares import squared

pytestmark = pytest.mark.slow

ITEMS = range(40)

Request = dict[str, Any]

OTHER = "other"
"""A dataset of the same manifests, which is published with the same shards."""

EXAMPLES: Mapping[str, Callable[[str], Request]] = {
    "verify": lambda root: {"verb": "verify", "root": root, "full": True},
    "publish": lambda root: {
        "verb": "publish", "root": root, "recipe": OTHER, "snapshot": "build",
        "manifests": dict(version_log.current(root, DATASET).manifests)
    },
    "export": lambda root: {
        "verb": "export", "root": root, "recipe": DATASET, "version": 1, "exports": {"parquet": 300, "text-jsonl": 900}
    },
    "register": lambda root: {
        "verb": "register", "root": root, "recipe": DATASET, "version": 1, "catalog": f"ducklake:sqlite:{root}.lake"
    },
    "contamination": lambda root: {"verb": "contamination", "root": root},
    "opted_out": lambda root: {"verb": "opted_out", "root": root},
}  # fmt: skip
"""A request of each verb over a root that has what it reads; whoever adds a verb adds one."""

KILLED_AT = {"verify": 9, "publish": 6, "export": 11, "register": 3, "contamination": 2, "opted_out": 4}
"""The write behind which a process is killed: some receipts are there, and not all."""


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


@pytest.mark.parametrize("age", [0, 7200])
def test_work_goes_on_where_no_receipt_may_be_removed_and_old_ones_do_not_count(
    age: int, tmp_path: Path, seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squares(Work("count", str(tmp_path), "receipts"), seen)
    for file in tmp_path.glob("receipts/*/*"):
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime - age))

    def refuse(*_: object) -> None:
        message = "read-only"
        raise RecipeError(message)

    monkeypatch.setattr(LocalStore, "delete_many", refuse)
    monkeypatch.setattr(LocalStore, "create", refuse)
    work = Work("count", str(tmp_path), "receipts", patience=3600)
    assert squares(work, seen) == EXPECTED
    work.forget()
    assert ran(seen) == [2 if age else 1] * len(ITEMS)


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


# --- Every verb ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def root_of(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a root that has what a verb reads: a training dataset, or rights and evaluation items."""

    @cache
    def screened() -> str:
        return screened_root.build(tmp_path_factory.mktemp("screened"))

    @cache
    def built() -> str:
        small = copied(request.getfixturevalue("small_root"), tmp_path_factory.mktemp("built"))
        build(small)
        return small.root

    return lambda verb: screened() if verb in QUESTIONS else built()


def beside(root: str, folder: Path) -> str:
    """Return a copy of a root, with the evaluation sets that lie beside it."""
    folder.mkdir(exist_ok=True)
    for sets in Path(root).parent.glob("*.jsonl"):
        shutil.copy(sets, folder)
    return str(shutil.copytree(root, folder / "root"))


@pytest.fixture(scope="module")
def expected(
    root_of: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Request, dict[str, bytes]]]:
    """Return what a verb says, and the objects that it leaves, where nothing stops it on this machine."""

    @cache
    def said(verb: str) -> tuple[Request, dict[str, bytes]]:
        root = beside(root_of(verb), tmp_path_factory.mktemp(verb))
        return plain(root, done(EXAMPLES[verb](root))), left(root)

    return said


def left(root: str) -> dict[str, bytes]:
    """Return the objects of a root by path, but the ledger, and the log of a dataset, whose entries have times.

    What another thread was writing when the process was killed is no object, and waits for a vacuum.
    """
    files = (path for path in Path(root).rglob("*") if path.is_file() and not path.name.startswith(UNFINISHED))
    paths = {str(path.relative_to(root)): path for path in files}
    timed = ("ledger.", f"datasets/{OTHER}/")
    return {name: path.read_bytes() for name, path in paths.items() if not name.startswith(timed)}


def plain(root: str, answer: Any) -> Request:
    """Return a reply without the place of its root."""
    return dict(json.loads(json.dumps(answer).replace(json.dumps(root)[1:-1], "ROOT")))


def test_every_verb_that_a_recipe_may_name_has_an_engine() -> None:
    for verb in set(whole_root_verbs()) - set(QUESTIONS):
        assert {"engine", "address"} <= {each.name for each in fields(verbs()[verb].request)}  # type: ignore[arg-type]
    assert set(EXAMPLES) == set(KILLED_AT) == set(whole_root_verbs())


def test_what_questions_find_is_not_nothing(expected: Any) -> None:
    hits, opted = (expected(verb)[0] for verb in ("contamination", "opted_out"))
    assert {(hit["benchmark"], hit["outcome"]) for hit in hits["listed"]} == {("quiz", "rejected")}
    assert {hit["benchmark"] for _, found in hits["added"] for hit in found} == {"later"}
    assert [each["url"].removeprefix("https://") for each in opted["opted_out"]] == [
        "a.example/one",
        "b.example/one",
        "d.example/one",
        "d.example/two",
    ]


@pytest.mark.parametrize("verb", whole_root_verbs())
def test_a_verb_that_was_killed_goes_on_on_any_engine(
    verb: str, any_on: On, root_of: Any, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = beside(root_of(verb), tmp_path)
    request = EXAMPLES[verb](root)
    killed = forked(victim, json.dumps(request), str(KILLED_AT[verb]), log=tmp_path / "log")
    assert ended(killed) == -signal.SIGKILL, (tmp_path / "log").read_text()
    receipts = [path for path in left(root).keys() - left(root_of(verb)).keys() if is_receipt(path)]
    assert receipts
    sent = []

    def each_(engine: LocalEngine, tasks: Any, weight: int) -> Iterator[Any]:
        sent.append(len(tasks))
        return engine._each(tasks, weight)

    monkeypatch.setattr(LocalEngine, "each", each_)
    answer = done(request, any_on)
    again = sum(sent)
    assert (plain(root, answer), left(root)) == expected(verb)
    sent.clear()
    done(EXAMPLES[verb](beside(root_of(verb), tmp_path / "whole")))
    assert again == sum(sent) - len(receipts) > 0


def is_receipt(path: str) -> bool:
    return path.startswith("requests/") or ("/exports/" in path and "/receipts/" in path)


@pytest.mark.parametrize("verb", whole_root_verbs())
def test_two_drivers_of_a_verb_do_it_together(verb: str, root_of: Any, expected: Any, tmp_path: Path) -> None:
    root, together = beside(root_of(verb), tmp_path), SERVER.Barrier(2)
    request = json.dumps(EXAMPLES[verb](root))
    logs = [tmp_path / f"log{number}" for number in range(2)]
    both = [forked(victim, request, log=log, together=together) for log in logs]
    assert [ended(process) for process in both] == [0, 0], [log.read_text() for log in logs]
    for log in logs:
        assert plain(root, json.loads(log.read_text().splitlines()[-1])) == expected(verb)[0]
    assert {path: body for path, body in left(root).items() if not is_receipt(path)} == expected(verb)[1]
