"""Ports of this machine that a test may count on: one to listen at later, and one at which nothing listens."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

RESERVED = range(20_000, 30_000)
"""Below those that Linux gives to connections and to who binds port 0, and above those of Ray's workers."""

_claims: list[socket.socket] = []


def free_port() -> int:
    """Return a port that nothing listens on, and that this function gives to no other process while this one lives.

    A server that is started binds it seconds later, and by then the system would have given a port of its own choice to
    whoever asked for any. A claim is an abstract socket, which ends with its process.
    """
    for port in RESERVED:
        claim = socket.socket(socket.AF_UNIX)
        with suppress(OSError), socket.socket() as probe:
            claim.bind(f"\0refinery-tests-port-{port}")
            probe.bind(("", port))
            _claims.append(claim)
            return port
        claim.close()
    message = f"none of the ports {RESERVED.start} to {RESERVED.stop - 1} is free"
    raise RuntimeError(message)


@contextmanager
def closed_port() -> Iterator[int]:
    """Have a port of the loopback interface that refuses connections: it is taken, so that nobody else can listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])
