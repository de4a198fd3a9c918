"""Records which loops are compiled for calls from Python, with the types of their arguments."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

from pipeline_tasks.text.base.loop_calls import Calls, recorded_type


class _Listener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Keeps what is compiled while nothing else is: a loop that another one calls is compiled within that one."""

    def __init__(self) -> None:
        self.started: list[float] = []
        self.seconds: dict[str, float] = {}
        self.calls: Calls = {}

    def on_start(self, _: event.Event) -> None:
        self.started.append(time.perf_counter())

    def on_end(self, ended: event.Event) -> None:
        seconds = time.perf_counter() - self.started.pop()
        loop = ended.data["dispatcher"].py_func
        if not self.started and loop.__module__.startswith("pipeline_tasks."):
            path = f"{loop.__module__}.{loop.__qualname__}"
            self.seconds[path] = self.seconds.get(path, 0) + seconds
            self.calls.setdefault(path, []).append([recorded_type(type_) for type_ in ended.data["args"]])


@contextmanager
def recorded() -> Iterator[Calls]:
    """Yield a mapping that has the calls of the block when it has ended, slowest to compile first."""
    listener, calls = _Listener(), Calls()
    event.register("numba:compile", listener)
    try:
        yield calls
    finally:
        event.unregister("numba:compile", listener)
        for path in sorted(listener.calls, key=listener.seconds.__getitem__, reverse=True):
            calls[path] = listener.calls[path]
