"""What never changes is made once per process, by one of the threads that ask, and leaves when others are used more."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from pipeline_tasks.store.once import Once


def test_threads_that_ask_together_have_the_value_of_one() -> None:
    made, together, may_end = list[str](), Barrier(4), Event()
    once = Once[str](len, 100)

    def make() -> str:
        made.append("made")
        may_end.wait(10)
        return "value"

    def ask() -> str:
        together.wait(10)
        if len(made) == 1:
            may_end.set()
        return once.get("name", make)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        may_end.set()
        assert {each.result() for each in asked} == {"value"}
    assert made == ["made"]


def test_an_error_is_raised_and_forgotten() -> None:
    once = Once[str](len, 100)
    with pytest.raises(ZeroDivisionError):
        once.get("name", lambda: str(1 // 0))
    assert once.get("name", lambda: "value") == "value"


def test_values_used_longest_ago_leave_and_the_last_one_stays() -> None:
    once, made = Once[str](len, 5), list[str]()

    def get(name: str, weight: int) -> None:
        def make() -> str:
            made.append(name)
            return "x" * weight

        once.get(name, make)

    for name, weight in (("a", 2), ("b", 2), ("a", 2), ("c", 2), ("a", 2), ("b", 2), ("huge", 9), ("huge", 9)):
        get(name, weight)
    assert made == ["a", "b", "c", "b", "huge"]
    once.clear()
    get("huge", 9)
    assert made[-2:] == ["huge", "huge"]


def test_a_fork_does_not_wait_for_threads_of_its_parent() -> None:
    once, may_end, begun = Once[str](len, 100), Event(), Event()

    def make() -> str:
        begun.set()
        may_end.wait(30)
        return "parent"

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(once.get, "name", make)
        begun.wait(10)
        child = os.fork()
        if child == 0:
            os._exit(once.get("name", lambda: "child") != "child")
        may_end.set()
        assert os.waitpid(child, 0)[1] == 0
        assert asked.result() == "parent"
