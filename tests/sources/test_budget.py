"""A budget spaces requests, whatever was idle before, and lets no request through what an answer forbids."""

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refinery_sources.budget import LONGEST_WAIT, MOST_SLOWED, OPEN, RECOVERY, Budget, Rate, Stopped, circuits
from refinery_sources.rate_limits import LONGEST, retry_after, until_reset

from pipeline_tasks.errors import SourceBusy, SourceRefused
from tests.crawl_mirror import http_date
from tests.sources.pulling import SLEW


def taken(budget: Budget) -> float:
    with budget.turn():
        return time.time()


def test_requests_are_spaced_and_idle_time_is_not_saved_up() -> None:
    budget = Budget("host", Rate(50.0))
    for _ in range(2):
        begin = time.time()
        moments = [taken(budget) for _ in range(4)]
        for place, moment in enumerate(moments):
            assert moment >= begin + place / 50 - SLEW
        budget.path.write_text(json.dumps({"next": time.time() - 100}))


def test_hosts_have_budgets_of_their_own() -> None:
    with Budget("one", Rate(1.0)).turn() as turn:
        assert isinstance(turn.refuse("https://one/x was answered with 403"), SourceRefused)
    with pytest.raises(SourceRefused):
        taken(Budget("one", Rate(1.0)))
    assert taken(Budget("two", Rate(1.0)))


def test_a_refusal_holds_for_every_budget_of_the_host_until_a_person_goes_on() -> None:
    with Budget("host", Rate(1.0)).turn() as turn:
        turn.refuse("https://host/x was answered with 403")
    with pytest.raises(SourceRefused, match="https://host/x was answered with 403"):
        taken(Budget("host", Rate(9.0)))
    Budget("host", Rate(1.0)).reopen()
    assert taken(Budget("host", Rate(9.0)))


def test_a_wait_is_heeded_or_ends_the_pull() -> None:
    budget = Budget("host", Rate(1_000.0))
    with budget.turn() as turn:
        asked = time.time()
        turn.pause(0.2)
    assert taken(budget) >= asked + 0.2 - SLEW
    with budget.turn() as turn:
        turn.pause(LONGEST_WAIT + 5)
    with pytest.raises(SourceBusy, match="host"):
        taken(budget)


def test_requests_come_further_apart_when_they_are_too_many_and_come_back_slowly() -> None:
    budget = Budget("host", Rate(1_000.0))
    for _ in range(10):
        with budget.turn() as turn:
            turn.slow()
    begin = time.time()
    moments = [taken(Budget("host", Rate(1_000.0))) for _ in range(3)]  # of another worker
    for place, moment in enumerate(moments):
        assert moment >= begin + place * MOST_SLOWED / 1_000 - SLEW
    steps = 0
    while json.loads(budget.path.read_text())["slowed"] > 1:
        steps += 1
        with budget.turn() as turn:
            turn.recover()
    assert steps == round((1 - 1 / MOST_SLOWED) / RECOVERY + 0.5)


def test_a_limit_that_is_used_up_is_read_from_the_headers() -> None:
    later, begin = str(round(time.time() + 100)), time.time()
    left = until_reset({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": later})
    assert float(later) - time.time() - SLEW <= left <= float(later) - begin + SLEW
    assert until_reset({"RateLimit-Remaining": "0", "RateLimit-Reset": "7"}) == 7
    for headers in ({}, {"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": later}, {"X-RateLimit-Remaining": "0"}):
        assert until_reset(headers) == 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"RateLimit": '"api";r=0;t=55', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}, 55),
        ({"RateLimit": '"burst";r=3;t=5, "day";r=0;t=70'}, 70),
        ({"RateLimit": '"day";r=0', "RateLimit-Policy": '"burst";q=5;w=5, "day";q=9;w=40'}, 40),
        ({"RateLimit": '"a;r=0;t=9,b";r=1;t=8'}, 0),
        ({"RateLimit": "limit=100, remaining=0, reset=7.5"}, 7.5),
        ({"RateLimit": "limit=100, remaining=1, reset=7"}, 0),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "0.5"}, 0.5),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "-5"}, 0),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999"}, LONGEST),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999999"}, LONGEST),
    ],
)
def test_limits_are_read_in_each_form_that_apis_have(headers: dict[str, str], seconds: float) -> None:
    assert until_reset(headers) == seconds


odd = st.text('0123456789.-+e;=,"rtw remainingstGMTJan:²', max_size=30) | st.text(max_size=20)


@given(odd, odd, odd)
@example("²", "9" * 400, "Mon, 01 Jan 99999 00:00:00 +9999")
def test_no_header_closes_a_host_for_longer_than_a_day_or_raises(one: str, other: str, third: str) -> None:
    for value in (one, other, third):
        assert 0 <= retry_after(value) <= LONGEST
    names = ("RateLimit", "RateLimit-Policy", "RateLimit-Reset", "X-RateLimit-Reset")
    for values in ((one, other, third, one), (third, one, other, other)):
        used_up = {"RateLimit-Remaining": "0", "X-RateLimit-Remaining": "0", **dict(zip(names, values, strict=True))}
        assert 0 <= until_reset(used_up) <= LONGEST


def test_a_stop_ends_the_wait_for_a_turn_that_another_has() -> None:
    with Budget("host", Rate(1_000.0)).turn():
        waiting = Budget("host", Rate(1_000.0))
        waiting.stop.set()
        with pytest.raises(Stopped):
            taken(waiting)


def test_a_stop_ends_every_wait() -> None:
    budget = Budget("host", Rate(0.01))
    assert taken(budget)
    budget.stop.set()
    with pytest.raises(Stopped):
        taken(budget)


def test_bytes_are_spaced() -> None:
    budget = Budget("host", Rate(1.0, bytes=1_000.0))
    begin = time.time()
    for _ in range(3):
        budget.spend(100)
    assert time.time() >= begin + 0.2 - SLEW


@pytest.mark.parametrize("content", ["", "{", "[]", '{"next": 1, "other": 2}'])
def test_a_state_that_cannot_be_read_is_the_first_one(budgets: Path, content: str) -> None:
    budget = Budget("host", Rate(1_000.0))
    budget.path.write_text(content)
    assert taken(budget)
    assert json.loads(budget.path.read_text())["next"] > 0
    assert budget.path.is_relative_to(budgets)


def test_a_clock_that_was_set_back_holds_nobody_for_long() -> None:
    budget = Budget("host", Rate(1_000.0))
    budget.path.write_text(json.dumps({"next": time.time() + 1e9}))
    waits: list[float] = []

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    assert taken(Budget("host", Rate(1_000.0), Clock()))
    assert waits == [100.0]


@pytest.mark.parametrize("closed", ["paused_until", "refused_until"])
def test_a_host_that_was_closed_for_years_is_open(closed: str) -> None:
    """One absurd answer, kept by an earlier release, closed it for all processes."""
    budget = Budget("host", Rate(1_000.0))
    budget.path.write_text(json.dumps({closed: time.time() + 3 * 365 * LONGEST, "host": "host"}))
    assert [circuit.state for circuit in circuits() if circuit.host == "host"] == [OPEN]
    assert taken(budget)
    budget.path.write_text(json.dumps({closed: time.time() + LONGEST - 60, "host": "host"}))
    with pytest.raises((SourceBusy, SourceRefused), match="--again"):
        taken(budget)
    budget.reopen()
    assert taken(budget)


def test_retry_after_is_seconds_or_a_date() -> None:
    assert [retry_after(value) for value in ("", "7", " 7 ", "-7", "soon", "1.5")] == [0, 7, 7, 0, 0, 1.5]
    begin = datetime.now(UTC).timestamp()
    left = retry_after(http_date(begin + 100))  # which has whole seconds
    assert begin + 99 - datetime.now(UTC).timestamp() - SLEW <= left <= 100 + SLEW
    assert retry_after(http_date(0)) == 0
    assert retry_after(http_date(begin + 1e9)) == LONGEST
