"""The chain of a log: every entry is sealed, counts on from the one before, and names its digest.

Each entry has a witness, its head: a small object with the entry's digest, so that the removal of the last entry is
noticed as well. It is written after the entry; the next append writes one that a crash left out.

Every `PAGE` entries are copied into one object, a page, so that a year of days is read in a few requests. A page is a
cache: what its entries say is checked link by link as ever, an entry whose object is gone or has another size is not
taken from it, and without it the entries are read one by one. `refinery verify` reads the entries themselves.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import seal, sha256, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store

PAGE = 64
"""Entries of a page; a log of n takes n / PAGE requests, and one for each of the entries behind the last page."""

PAGES_AT_ONCE = 4
"""Pages that an append writes at most."""

_ENTRY = re.compile(r"(heads/|pages/)?(\d{12})(?(1)|\.json)")


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

    def page_path(self, number: int) -> str:
        """Return the path of the page that ends with an entry."""
        return f"{self.folder}/pages/{number:012d}"


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
    name the entry before it; the message names the entry and the way out. A process that has read a log lists it, and
    reads it again if an object has come, gone or changed.
    """
    store = storage.connect(root)
    listed = _listed(store, log)
    known = _KNOWN.get((store.root, log.folder))
    if known is None or known[0] != listed:
        known = _KNOWN[store.root, log.folder] = (listed, tuple(_believed(store, log, listed)))
    return list(known[1])


def _believed(store: Store, log: Log, listed: "_Listed") -> list[ChainEntry]:
    """Return the chain by its pages; by its entries alone where it does not hold, as a page may be the one at fault."""
    try:
        return _read_chain(store, log, listed)
    except ContractError:
        if not listed.pages:
            raise
        return _read_chain(store, log, replace(listed, pages=[]))


def _read_chain(store: Store, log: Log, listed: "_Listed") -> list[ChainEntry]:
    last = max(listed.entries.keys() | listed.heads, default=0)
    chain: list[ChainEntry] = []
    pages = storage.each(store, lambda end: [*_of_page(store, log, end)], listed.pages)
    paged = dict(entry for page in pages for entry in page)
    sound = {number for number, body in paged.items() if len(body) == listed.entries.get(number)}
    numbers = range(1, last + 1)
    for body in storage.each(store, lambda at: paged[at] if at in sound else _body(store, log, at), numbers):
        number = len(chain) + 1
        fields = unseal(body, f"{store.root}/{log.entry_path(number)}", log.way_out)
        _require_link(store, log, number, fields, chain)
        chain.append(ChainEntry(number, sha256(body), _without_link(fields), number in listed.heads))
    if chain and chain[-1].witnessed:
        _require_head(store, log, chain[-1])
    return chain


@dataclass(slots=True)
class _Listed:
    """What the folder of a log has: bytes of entries by number, numbers with a head or a page, and times of all."""

    entries: dict[int, int] = field(default_factory=dict)
    heads: set[int] = field(default_factory=set)
    pages: list[int] = field(default_factory=list)
    modified: list[float] = field(default_factory=list)


_KNOWN: dict[tuple[str, str], tuple[_Listed, tuple[ChainEntry, ...]]] = {}
"""The chains that this process has read, by root and folder, with what the folder had."""


def _listed(store: Store, log: Log) -> _Listed:
    listed = _Listed()
    for entry in store.list(log.folder):
        match = _ENTRY.fullmatch(entry.path.removeprefix(f"{log.folder}/"))
        if match is None:
            continue
        number = int(match[2])
        listed.modified.append(entry.modified)
        if match[1] is None:
            listed.entries[number] = entry.bytes
        elif match[1] == "heads/":
            listed.heads.add(number)
        else:
            listed.pages.append(number)
    return listed


def numbers(store: Store, log: Log) -> tuple[set[int], set[int]]:
    """Return the numbers that have an entry, and those that have a head."""
    listed = _listed(store, log)
    return set(listed.entries), listed.heads


def _of_page(store: Store, log: Log, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and bodies of the entries of a page; none of one that cannot be read."""
    path = log.page_path(end)
    with contextlib.suppress(ContractError, FileNotFoundError):
        bodies = unseal(store.read(path), f"{store.root}/{path}", "remove it").get("entries", [])
        yield from ((end - len(bodies) + place, str(body).encode()) for place, body in enumerate(bodies, 1))


def page_faults(store: Store, log: Log) -> Iterator[str]:
    """Yield the paths of pages that have another entry than the log."""
    for end in _listed(store, log).pages:
        bodies = dict(_of_page(store, log, end))
        there = {at: log.entry_path(at) for at in bodies if store.size(log.entry_path(at)) is not None}
        if not bodies or {at: store.read(path) for at, path in there.items()} != bodies:
            yield log.page_path(end)


def _write_pages(store: Store, log: Log, number: int) -> None:
    """Store some of the pages up to an entry that the log lacks: it may have been long before it had any."""
    there = set(_listed(store, log).pages)
    missing = [end for end in range(PAGE, number + 1, PAGE) if end not in there]
    for end in missing[:PAGES_AT_ONCE]:
        _write_page(store, log, end)


def _write_page(store: Store, log: Log, end: int) -> None:
    """Store the page that ends with an entry."""
    bodies = list(storage.each(store, lambda number: _body(store, log, number), range(end - PAGE + 1, end + 1)))
    storage.keep(store, log.page_path(end), seal({"entries": [body.decode() for body in bodies]}))


def way_out(recipe: str) -> str:
    """Return how to heal the log of a recipe."""
    return (
        f"restore it from a backup; without one, remove datasets/{recipe}, run `refinery keep ledger`, which names "
        "what was retracted, and run every other snapshot again in order, or `refinery build` where it is a training "
        "dataset: what is made already is reused"
    )


def _body(store: Store, log: Log, number: int) -> bytes:
    path = log.entry_path(number)
    try:
        return store.read(path)
    except FileNotFoundError as error:
        message = f"{store.root}/{path}: {log.entry.format(number=number)} was removed; {log.way_out}"
        raise ContractError(message) from error


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

    The entry is committed first, its head second, and a page that is full last.
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
    if number >= PAGE:
        _write_pages(store, log, number)
    return True


def next_number(chain: list[ChainEntry]) -> int:
    """Return the number of the entry that is appended next."""
    return len(chain) + 1
