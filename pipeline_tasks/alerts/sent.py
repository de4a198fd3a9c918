"""Logs the alerts of a run, and notes in its root what has been said, so that it is said once."""

import logging
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pipeline_tasks.alerts.alert import KINDS, RUNBOOK
from pipeline_tasks.alerts.message import Message, log_lines
from pipeline_tasks.store import storage

log = logging.getLogger("refinery")

ALERTS = "alerts"
"""The folder of a root that has what runs have said, until a vacuum removes it."""

WAIT = 10.0
"""Seconds that a task waits until it is noted what it says."""


def runbook() -> str:
    """Return the address of the runbook: that of `REFINERY_RUNBOOK`, else the page of the docs."""
    return os.environ.get("REFINERY_RUNBOOK") or RUNBOOK


def log_message(message: Message) -> None:
    """Log a message: a warning, unless the log has all of it already."""
    in_log = all(KINDS[alert.kind].in_log for alert in message.alerts)
    log.log(logging.INFO if in_log else logging.WARNING, "alert  %s", "\n".join(log_lines(message)))


def note_message(root: str, message: Message) -> bool:
    """Return whether a run has not said a message yet, and note that it has; so it is where nobody can know.

    Who notes it first says it: an object of the root is put if it is absent.
    """
    title = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {message.origin.task}: {message.title}"
    body = f"{title}\n{secrets.token_hex(8)}\n".encode()  # some stores take equal bytes for one's own
    firsts: list[bool] = []
    thread = threading.Thread(target=_note, args=(root, f"{ALERTS}/{message.key()}.txt", body, firsts), daemon=True)
    thread.start()
    thread.join(WAIT)
    if not firsts:
        log.warning("alert  it may be sent twice, as what the run has sent is unknown")
    return not firsts or firsts[0]


def _note(root: str, path: str, body: bytes, firsts: list[bool]) -> None:
    """Put an object if it is absent, and add to `firsts` whether it was."""
    with harmless("alert", "what was sent could not be noted"):
        firsts.append(storage.connect(root).create(path, body))


@contextmanager
def harmless(what: str, effect: str) -> Iterator[None]:
    """Log an error of what only reports a run, with its effect, and go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- a report of a run must not fail it
        log.warning("%s  %s (%s)", what, effect, type(error).__name__)
