"""A state is loaded once and serves one thread at a time; work that nobody waits for ends."""

import threading

import pytest

from pipeline_tasks.errors import JobLost
from pipeline_tasks.run.tasks import states
from pipeline_tasks.run.tasks.cancellation import canceled_by, raise_if_canceled


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the states that were loaded, in order; none waits at the beginning."""
    monkeypatch.setattr(states, "_waiting", [])
    return []


def use(name: str, loaded: list[str]) -> object:
    def prepare() -> object:
        loaded.append(name)
        return object()

    with states.state_of(name, prepare) as state:
        return state


def test_a_state_is_loaded_once_for_one_task_after_the_other(loaded: list[str]) -> None:
    first, other = use("model", loaded), use("other", loaded)
    assert first is use("model", loaded)
    assert other is use("other", loaded)
    assert loaded == ["model", "other"]


def test_tasks_at_the_same_time_have_states_of_their_own(loaded: list[str]) -> None:
    with states.state_of("model", object) as first, states.state_of("model", object) as second:
        assert first is not second
    assert use("model", loaded) in (first, second)
    assert loaded == []


def test_the_state_that_waits_longest_is_freed(loaded: list[str]) -> None:
    names = [f"model {number}" for number in range(states.MOST + 1)]
    for name in names:
        use(name, loaded)
    for name in reversed(names[1:]):
        use(name, loaded)
    assert loaded == names
    use(names[0], loaded)
    assert loaded == [*names, names[0]]


def test_a_task_that_fails_frees_its_state(loaded: list[str]) -> None:
    with pytest.raises(LookupError), states.state_of("model", object):
        raise LookupError
    use("model", loaded)
    assert loaded == ["model"]


def test_work_that_is_canceled_ends_and_other_work_goes_on() -> None:
    event, outer = threading.Event(), threading.Event()
    raise_if_canceled()
    with canceled_by(outer):
        with canceled_by(event):
            raise_if_canceled()
            event.set()
            with pytest.raises(JobLost):
                raise_if_canceled()
        raise_if_canceled()
        outer.set()
        with pytest.raises(JobLost):
            raise_if_canceled()
    raise_if_canceled()
