"""A module's clock without its pauses: what the module would have slept is noted, and no other thread's sleep."""

import time
from types import ModuleType

import pytest


class Unslept:
    """The module `time` whose `sleep` notes the seconds in `slept` and returns at once."""

    def __init__(self, slept: list[float]) -> None:
        self.sleep = slept.append

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


def slept(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[float]:
    """The seconds that `module` would have slept from now on.

    `time.sleep` itself stays: threads that other tests left in this process, and libraries, sleep by it.
    """
    noted: list[float] = []
    monkeypatch.setattr(module, "time", Unslept(noted))
    return noted
