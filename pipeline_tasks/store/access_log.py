"""Keeps who saw texts below a root: each look is a sealed object of its own, written before anything is shown."""

import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import ContractError, LookRefused, RecipeError, RefineryError, Transient, cause
from pipeline_tasks.sealed import digest_of, seal, unseal
from pipeline_tasks.store import storage

FOLDER = "access"
"""The folder of a root that has the looks, by day."""

SETTING = "REFINERY_ACCESS_LOG"
"""The variable that has commands log their looks at a root of this machine, too, or demands purposes of every look."""

ON, PURPOSES = "on", "purposes"

PURPOSE = "REFINERY_PURPOSE"
"""The variable with the purpose of the looks of commands."""

LONGEST = 500
"""Characters of a purpose."""

NAMED = 50
"""Documents that an entry names; it counts all."""

WAY_OUT = "restore it from a backup: nothing makes it again"


@dataclass(frozen=True, slots=True)
class Look:
    """Who saw what, and why. Nothing that was shown, and nothing of what was searched for, is in it.

    `through` is `page` or `command`, and `what` its name. `of` are the names of what was looked at: recipe, snapshot,
    stage, path of a manifest. `asked` is a digest of all else that was asked for, such as a phrase or a URL ("":
    nothing). `rows` were shown at most, and `documents` are the ids of the first `NAMED` of them, where they have any.
    `role` is the one that the look needs ("" for a command, which has no login). `at` is ISO 8601 in UTC; `nonce`
    keeps apart what is equal otherwise.
    """

    by: str
    through: str
    what: str
    of: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""
    rows: int = 0
    documents: tuple[str, ...] = ()
    purpose: str = ""
    role: str = ""
    at: str = ""
    nonce: str = ""


def is_logged(root: str) -> bool:
    """Return whether commands log looks at a root: one in a bucket, which is shared, or any if `SETTING` says so."""
    return bool(_setting()) or is_bucket(root)


def needs_purpose() -> bool:
    """Return whether a look without a purpose is refused."""
    return _setting() == PURPOSES


def _setting() -> str:
    """Return what `SETTING` says; RecipeError for another word, with which nothing would be logged."""
    said = os.environ.get(SETTING, "").strip()
    if said not in ("", ON, PURPOSES):
        message = f"{SETTING}={said[:40]!r}: write {ON}, or {PURPOSES} to refuse looks without a purpose"
        raise RecipeError(message)
    return said


def one_line(words: str) -> str:
    """Return a purpose or a name as one line of printable characters, of `LONGEST` at most."""
    return "".join(letter for letter in " ".join(words.split()) if letter.isprintable())[:LONGEST]


def asked(words: Mapping[str, object]) -> str:
    """Return the digest of what was asked for, which who guesses the words can compute; "" for nothing."""
    said = {name: value for name, value in words.items() if value not in (None, "", False, [], ())}
    return digest_of(said) if said else ""


def record(root: str, look: Look) -> str:
    """Store a look that is about to happen; return its path.

    LookRefused if it has no purpose and needs one, or cannot be stored; Transient if it may be stored later.
    """
    purpose = one_line(look.purpose)
    if needs_purpose() and not purpose:
        message = f"texts of {root} are shown for a purpose alone: name it with --purpose or {PURPOSE}, in a few words"
        raise LookRefused(message)
    now = datetime.now(UTC)
    known = Look(
        by=one_line(look.by),
        through=look.through,
        what=look.what,
        of={name: str(value)[:LONGEST] for name, value in look.of.items() if value},
        asked=look.asked,
        rows=look.rows,
        documents=tuple(dict.fromkeys(look.documents))[:NAMED],
        purpose=purpose,
        role=look.role,
        at=now.isoformat(timespec="microseconds"),
        nonce=secrets.token_hex(8),
    )
    path = _path(known)
    try:
        storage.commit(storage.connect(root), path, seal(known))
    except Transient:
        raise
    except (RefineryError, OSError) as error:
        message = f"{root}/{FOLDER}: the look was not logged, so that nothing is shown: {error}"
        raise LookRefused(message) from error
    return path


def looks(root: str, since: str = "") -> Iterator[Look]:
    """Yield the looks at a root in the order of time, from a day on, as 2026-11-26; ContractError for a damaged one."""
    store = storage.connect(root)
    paths = [entry.path for entry in store.list(f"{FOLDER}/") if entry.path >= f"{FOLDER}/{since}"]
    yield from storage.each(store, lambda path: read_look(root, path), paths)


def look_paths(root: str) -> Sequence[str]:
    """Return the paths of all looks at a root."""
    return [entry.path for entry in storage.connect(root).list(f"{FOLDER}/")]


def read_look(root: str, path: str) -> Look:
    """Return a look; DigestMismatch if it was changed, ContractError if it has another name or is no look."""
    where = f"{root}/{path}"
    fields: dict[str, Any] = unseal(storage.connect(root).read(path), where, WAY_OUT)
    try:
        look = Look(**{**fields, "documents": tuple(fields["documents"])})
        named = _path(look)
    except (TypeError, KeyError) as error:
        message = f"{where} is no entry of the access log ({cause(error)}); {WAY_OUT}"
        raise ContractError(message) from error
    if path != named:
        message = f"{where} was renamed after it was written: its name is not that of its content; {WAY_OUT}"
        raise ContractError(message)
    return look


def _path(look: Look) -> str:
    """Return the path of a look: its day, its time of day to the microsecond, and the digest of all that it says."""
    return f"{FOLDER}/{look.at[:10]}/{re.sub('[^0-9]', '', look.at[11:26])}-{digest_of(look)}.json"
