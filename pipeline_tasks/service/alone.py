"""Handles one request in a process of its own: what kills that process kills no other work."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.recipe import LOCAL, Resources
from pipeline_tasks.run.plan import RefineRequest
from pipeline_tasks.service.requests import Reply, encode, raise_refusal

PROJECT = Path(__file__).resolve().parents[2]

LINE = 300
"""Characters of an error's last line that are kept."""


class Died(Exception):
    """A process ended before it replied: by a signal, or by an error that is a defect.

    `kind` is the name of the error or of the signal, and has no text of a record.
    """

    def __init__(self, kind: str, line: str) -> None:
        super().__init__(f"{kind}: {line}" if line else kind)
        self.kind = kind


def refine_alone(request: RefineRequest) -> Reply:
    """Return the reply to a request, handled by the local engine in a process of its own; refusals are raised.

    Raises Died if that process ended without a reply.
    """
    request = replace(request, engine=LOCAL, address="", resources=Resources())
    with tempfile.TemporaryDirectory(prefix="alone-") as folder:
        asked, answered = Path(folder, "request.json"), Path(folder, "reply.json")
        asked.write_text(json.dumps({**encode(request), "reply": str(answered)}))
        finished = subprocess.run(  # noqa: S603 -- our own interpreter and module
            [sys.executable, "-m", "pipeline_tasks", str(asked)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if not answered.exists():
            raise _death(finished.returncode, finished.stderr.decode(errors="replace"))
        reply: Reply = json.loads(answered.read_bytes())
    raise_refusal(reply, unknown=RefineryError)
    return reply


def _death(code: int, written: str) -> Died:
    """Return how a process ended, given its exit code and what it wrote to stderr."""
    if code < 0:
        return Died(f"signal {-code}", "")
    kind, _, line = (written.strip().splitlines() or ["no error"])[-1].partition(": ")
    return Died(kind.rpartition(".")[2][:LINE] or f"exit code {code}", line[:LINE])
