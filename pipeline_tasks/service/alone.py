"""Handles one request in a process of its own: what kills that process kills no other work."""

import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import cast

from pipeline_tasks import errors
from pipeline_tasks.recipe import LOCAL, Resources
from pipeline_tasks.run.request import RefineReply, RefineRequest
from pipeline_tasks.service.processes import environment, interpreter
from pipeline_tasks.service.requests.wire import Wire, encode, raise_refusal

TEXT = 300
"""Characters of an error's text that are kept."""


class Died(Exception):
    """A process was ended by a signal, or by an error that is no refusal.

    `kind` is the name of the error's class or of the signal, and has no text of a record.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind


def refine_alone(request: RefineRequest) -> RefineReply:
    """Return the reply to a request, handled by the local engine in a process of its own; refusals are raised.

    Raises Died if that process was killed, got no more memory, or met an error that is no refusal.
    """
    request = replace(request, engine=LOCAL, address="", resources=Resources())
    with tempfile.TemporaryDirectory(prefix="alone-") as folder:
        asked, answered = Path(folder, "request.json"), Path(folder, "reply.json")
        asked.write_text(json.dumps({**encode(request), "reply": str(answered)}))
        finished = subprocess.run(  # noqa: S603 -- our own interpreter and module
            [interpreter(), "-m", "pipeline_tasks", str(asked)],
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if not answered.exists():
            code = finished.returncode
            raise Died(f"signal {-code}" if code < 0 else f"exit code {code}")
        reply: Wire = json.loads(answered.read_bytes())
    kind = str(reply.get("error", ""))
    if kind == errors.NoMemory.__name__:  # it had the machine's to itself
        raise Died(MemoryError.__name__)
    if kind and not isinstance(getattr(errors, kind, None), type):
        raise Died(kind, str(reply["message"])[:TEXT])
    raise_refusal(reply)
    return cast("RefineReply", reply)
