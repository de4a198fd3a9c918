"""A function of whole-root work, in a module that workers import."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import ContractError


def squared(folder: str, number: int) -> Mapping[str, Any]:
    """Return the square of a number, once nothing is in its way, and leave a file that says so."""
    if (message := Path(folder, f"refuse-{number}")).exists():
        raise ContractError(message.read_text())
    Path(folder, f"ran-{number}-{time.monotonic_ns()}").touch()
    return {"number": number, "square": number * number, "pair": (number, "ä")}
