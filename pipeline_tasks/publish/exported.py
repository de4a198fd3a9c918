"""Where the exports of a version are in its root, and the list of files that each ends with."""

from typing import Any

from pipeline_tasks.sealed import unseal

EXPORTS = "exports"
"""The folder of a version's exports in the root."""

FILES = "files.json"
"""The last file: every other file with its bytes and SHA-256, sealed. Without it an export is not complete."""

RECEIPTS = "receipts"
"""The folder of an export that says what is written of it, until all is."""


def files_of(to: str, body: bytes) -> dict[str, Any]:
    """Return the list of files of an export from its bytes; ContractError if they were changed."""
    return unseal(body, f"{to}/{FILES}", "remove it and export again: the same files are written")
