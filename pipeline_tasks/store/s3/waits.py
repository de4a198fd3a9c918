"""Counts the requests to S3 that this process sent again, and the seconds that it waited before it did.

A store that is too busy refuses a request or breaks it off. boto3 sends it again after a pause, so a run becomes slower
and nothing else shows it.
"""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.awsrequest import AWSRequest
    from botocore.client import BaseClient

_REFUSED = "refinery_refused_at"
"""Key of the context of a request: when its last response came. boto3 shows each response before it decides."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Requests that were sent again, and the seconds from the response before to that."""

    requests: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Waits") -> "Waits":
        return Waits(self.requests + other.requests, self.seconds + other.seconds)


NO_WAITS = Waits()


class _Waited:
    """The waits of this process that nobody has taken."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)  # those of a parent are the parent's

    def reset(self) -> None:
        self._lock, self._waits = threading.Lock(), NO_WAITS

    def add(self, waits: Waits) -> None:
        with self._lock:
            self._waits += waits

    def take(self) -> Waits:
        with self._lock:
            waits, self._waits = self._waits, NO_WAITS
            return waits


_waited = _Waited()


def take() -> Waits:
    """Return the waits of this process that were not taken yet: each is taken once, so that sums are right."""
    return _waited.take()


def count_repeated(seconds: float = 0.0) -> None:
    """Count a request that is sent again."""
    _waited.add(Waits(1, seconds))


def give_back(waits: Waits) -> None:
    """Count waits that were taken and that no log has: the next to take has them."""
    _waited.add(waits)


def count_waits(client: "BaseClient") -> None:
    """Let a client count what it repeats."""
    client.meta.events.register_first("needs-retry.s3", _responded)
    client.meta.events.register("request-created.s3", _sent)


def _responded(request_dict: Mapping[str, Any], **_: object) -> None:
    request_dict["context"][_REFUSED] = time.monotonic()


def _sent(request: "AWSRequest", **_: object) -> None:
    responded = request.context.pop(_REFUSED, None)
    if responded is not None:
        count_repeated(time.monotonic() - responded)
