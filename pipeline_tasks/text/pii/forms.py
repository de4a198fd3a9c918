"""Finds what is written by a form, such as `9999-999999-99999`: a compiled loop proposes, the check of a form accepts.

A form is a row of signs. `9` is a digit, `A` a capital letter, `a` a letter, `#` a digit or x, `H` a hexadecimal
digit; a space is one blank of any kind, a hyphen any hyphen, and every other sign is itself. `*` at the end says that
the value may go on: its check says where it ends.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import NamedTuple

import numpy as np

from pipeline_tasks.text.pii.candidates import Limits, Span
from pipeline_tasks.text.pii.form_runs import (
    HEXADECIMALS_FIRST,
    LEADS,
    LETTERS_FIRST,
    SLOTS,
    form_places,
    long_words,
    slot_of,
)
from pipeline_tasks.text.pii.kinds import KINDS, TABLE, Kind


class Found(NamedTuple):
    """What a check accepts: its bytes, and what identifies the value."""

    start: int
    end: int
    value: str


class Place(NamedTuple):
    """Where a form fits: text[start:end], and what counts in the text."""

    text: bytes
    start: int
    end: int
    limits: Limits


Check = Callable[[Place], Found | None]
"""Returns what at a place is a value, and None if nothing is."""


@dataclass(frozen=True, slots=True)
class Forms:
    """Forms with one check. Without `written` they are long words: twenty letters, digits, hyphens and underscores.

    With `cues` one of these words has to begin in the context ahead, whatever its case, or the check is not asked: it
    would accept nothing. The loop looks at the first four bytes of each. `begins` is how a value in a long word begins.
    """

    check: Check
    written: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()
    begins: str = ""


FormTable = tuple["np.ndarray", "np.ndarray", "np.ndarray", "np.ndarray", "np.ndarray"]
"""What `form_runs.form_places` needs: signs, places, leads, cue_of and cues."""


class _Table(NamedTuple):
    """The forms of some kinds, those with one lead together, whose each is, and whose the long words may be."""

    forms: FormTable
    owners: tuple[tuple[Kind, Check], ...]
    words: tuple[tuple[Kind, Check], ...]


class _Form(NamedTuple):
    lead: int
    signs: bytes
    owner: tuple[Kind, Check]
    cue: int


@cache
def _table(kinds: frozenset[Kind]) -> _Table:
    forms: list[_Form] = []
    words: list[tuple[Kind, Check]] = []
    cues: list[np.ndarray[tuple[int], np.dtype[np.bool_]]] = []
    for kind, declared in _declared(kinds):
        owner = kind, declared.check
        words += [] if declared.written else [owner]
        cue = len(cues) if declared.cues else -1
        cues += [_slots(declared.cues)] if declared.cues else []
        forms += [_Form(lead, form.encode(), owner, cue) for form in declared.written for lead in _leads(form)]
    forms.sort(key=lambda form: form.lead)
    signs = np.frombuffer(b"".join(form.signs for form in forms) or b"*", np.uint8)
    places = np.cumsum([0, *(len(form.signs) for form in forms)], dtype=np.int64)
    leads = np.searchsorted(np.array([form.lead for form in forms], np.int64), np.arange(LEADS + 1)).astype(np.int64)
    cue_of = np.array([form.cue for form in forms], np.int64)
    rows = np.array(cues) if cues else np.zeros((1, SLOTS), np.bool_)
    return _Table((signs, places, leads, cue_of, rows), tuple(form.owner for form in forms), tuple(words))


def _declared(kinds: frozenset[Kind]) -> Iterator[tuple[Kind, Forms]]:
    for kind in KINDS:
        if kind in kinds and TABLE[kind].forms:
            for forms in import_module(f"{__package__}.{TABLE[kind].forms}").FORMS:
                yield kind, forms


def _leads(form: str) -> tuple[int, ...]:
    """Return under which leads a form is looked up; `#` at the end of digits may be one more digit."""
    if form.startswith("H"):
        return (HEXADECIMALS_FIRST,)
    first = len(form) - len(form.lstrip("9"))
    if first:
        return (first, first + 1) if form[first : first + 1] == "#" else (first,)
    return (LETTERS_FIRST + len(form) - len(form.lstrip("Aa")),)


def _slots(cues: Sequence[str]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    slots = np.zeros(SLOTS, np.bool_)
    for cue in cues:
        slots[slot_of(*cue.lower().encode()[:4])] = True
    return slots


_CLASSES = {
    "9": "[0-9]", "A": "[A-Z]", "a": "[A-Za-z]", "#": "[0-9Xx]", "H": "[0-9A-Fa-f]", "*": "",
    " ": r"[ \x{a0}\x{2007}\x{2009}\x{202f}]", "-": r"[\-\x{2010}-\x{2013}]",
}  # fmt: skip
_SIX = re.compile(r"(?:9[ .\-/]?){6}")


def patterns_of(kinds: frozenset[Kind]) -> tuple[str, ...]:
    """Return the patterns of the values of some kinds that have fewer than six digits in a row.

    Runs of six digits with marks between are looked for whatever the kinds are.
    """
    declared = [each for _, each in _declared(kinds)]
    written = dict.fromkeys(form for each in declared for form in each.written if not _SIX.search(form))
    words = dict.fromkeys(each.begins for each in declared if each.begins)
    return (*("".join(_CLASSES.get(sign, re.escape(sign)) for sign in form) for form in written), *words)


def find_forms(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the disjoint values of `text` that have forms, left to right; of two that begin together the longer one."""
    table = _table(limits.kinds)
    last: Span | None = None
    for span in sorted(_accepted(text, table, limits), key=_first_then_longest):
        if last is None or span.start >= last.end:
            last = span
            yield span


def _first_then_longest(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _accepted(text: bytes, table: _Table, limits: Limits) -> Iterator[Span]:
    data = np.frombuffer(text, np.uint8)
    for form, start, end in form_places(data, table.forms).tolist():
        kind, check = table.owners[form]
        if found := check(Place(text, start, end, limits)):
            yield Span(found.start, found.end, kind, found.value)
    for start, end in long_words(data).tolist() if table.words else ():
        for kind, check in table.words:
            if found := check(Place(text, start, end, limits)):
                yield Span(found.start, found.end, kind, found.value)
