"""The chain of a log: every entry is sealed, counts on from the one before, and names its digest.

Each entry has a witness, its head: a small object with the entry's digest, so that the removal of the last entry is
noticed as well. It is written after the entry; the next append writes one that a crash left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import seal, sha256, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store

_ENTRY = re.compile(r"(heads/)?(\d{12})(?(1)|\.json)")


@dataclass(frozen=True, slots=True)
class Log:
    """A log: the folder of its entries, what each of them says of itself, how errors name one, and how to heal it."""

    folder: str
    facts: Mapping[str, str]
    entry: str
    way_out: str

    def entry_path(self, number: int) -> str:
        """Return the path of an entry."""
        return f"{self.folder}/{number:012d}.json"

    def head_path(self, number: int) -> str:
        """Return the path of an entry's witness."""
        return f"{self.folder}/heads/{number:012d}"


def dataset_log(recipe: str) -> Log:
    """Return the log of a recipe's versions."""
    return Log(f"datasets/{recipe}", {"recipe": recipe}, f"version {{number}} of recipe {recipe}", way_out(recipe))


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """A verified entry: its number, the SHA-256 of its bytes, its fields, and whether its head is stored."""

    number: int
    digest: str
    fields: Mapping[str, Any]
    witnessed: bool


def entry_path(recipe: str, number: int) -> str:
    """Return the path of an entry of a recipe's log."""
    return dataset_log(recipe).entry_path(number)


def head_path(recipe: str, number: int) -> str:
    """Return the path of the witness of an entry of a recipe's log."""
    return dataset_log(recipe).head_path(number)


def read_chain(root: str, log: Log) -> list[ChainEntry]:
    """Return all entries of a log, oldest first.

    ContractError where an entry is missing, was changed, has a number or facts other than its path, or does not
    name the entry before it; the message names the entry and the way out.
    """
    store = storage.connect(root)
    entries, heads = numbers(store, log)
    chain: list[ChainEntry] = []
    for number in range(1, max(entries | heads, default=0) + 1):
        fields, digest = _read(store, log, number)
        _require_link(store, log, number, fields, chain)
        chain.append(ChainEntry(number, digest, _without_link(fields), number in heads))
    if chain and chain[-1].witnessed:
        _require_head(store, log, chain[-1])
    return chain


def numbers(store: Store, log: Log) -> tuple[set[int], set[int]]:
    """Return the numbers that have an entry, and those that have a head."""
    entries: set[int] = set()
    heads: set[int] = set()
    for entry in store.list(log.folder):
        if match := _ENTRY.fullmatch(entry.path.removeprefix(f"{log.folder}/")):
            (heads if match[1] else entries).add(int(match[2]))
    return entries, heads


def way_out(recipe: str) -> str:
    """Return how to heal the log of a recipe."""
    return (
        f"restore it from a backup; without one, remove datasets/{recipe}, run `refinery ledger rebuild`, which names "
        "what was retracted, and run every other snapshot again in order: what is refined already is reused"
    )


def _read(store: Store, log: Log, number: int) -> tuple[dict[str, Any], str]:
    path = log.entry_path(number)
    where = f"{store.root}/{path}"
    try:
        body = store.read(path)
    except FileNotFoundError as error:
        message = f"{where}: {log.entry.format(number=number)} was removed; {log.way_out}"
        raise ContractError(message) from error
    return unseal(body, where, log.way_out), sha256(body)


def _require_link(store: Store, log: Log, number: int, fields: Mapping[str, Any], chain: list[ChainEntry]) -> None:
    """Raise ContractError unless an entry is the next of its chain."""
    expected = {"number": number, **log.facts, "previous": chain[-1].digest if chain else ""}
    for name, value in expected.items():
        if fields.get(name) != value:
            message = (
                f"{store.root}/{log.entry_path(number)}: {name} is {fields.get(name)!r} and has to be {value!r}: "
                f"it, or the entry before it, was replaced; {log.way_out}"
            )
            raise ContractError(message)


def _without_link(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "previous"}


def _require_head(store: Store, log: Log, last: ChainEntry) -> None:
    path = log.head_path(last.number)
    head = store.read(path)
    if head and head != head_body(last.digest):  # an empty object is no commit
        message = (
            f"{store.root}/{path} does not name the digest of {log.entry.format(number=last.number)}, which is "
            f"{last.digest}: one of the two was changed; {log.way_out}"
        )
        raise ContractError(message)


def head_body(digest: str) -> bytes:
    """Return the content of the head of the entry that has this digest."""
    return f"{digest}\n".encode()


def append(root: str, log: Log, chain: list[ChainEntry], fields: Mapping[str, Any]) -> bool:
    """Append an entry with `fields` to a chain that was just read; False if another process has taken its number.

    The entry is committed first, its head second.
    """
    store = storage.connect(root)
    last = chain[-1] if chain else None
    if last:
        storage.commit(store, log.head_path(last.number), head_body(last.digest))
    number = next_number(chain)
    body = seal({**fields, "number": number, **log.facts, "previous": last.digest if last else ""})
    if not store.create(log.entry_path(number), body):
        return False
    storage.commit(store, log.head_path(number), head_body(sha256(body)))
    return True


def next_number(chain: list[ChainEntry]) -> int:
    """Return the number of the entry that is appended next."""
    return len(chain) + 1
