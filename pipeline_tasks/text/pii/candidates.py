"""What the finders of personal data share: findings, limits, patterns over bytes, and what is next to a candidate.

Every pattern over text is RE2 (no backtracking), because an unbounded e-mail pattern in a backtracking
engine takes 21 s on 80 kB of `a`. A pattern only proposes a candidate; a validator accepts it.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from pipeline_tasks.text.pii.kinds import DEFAULT_KINDS, PLACEHOLDERS, TABLE, Kind

LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
DIGITS = frozenset(b"0123456789")
CONTEXT = 48  # bytes before a candidate in which a cue is looked for
LONGEST_PLACEHOLDER = max(map(len, PLACEHOLDERS.values()))

NAME_MASK, NUMBER_MASK = 0x01, 0x02
"""Control bytes that stand for a finding while the kinds that come after it are looked for."""

READS_AS = {PLACEHOLDERS[kind]: b"00" if TABLE[kind].is_number else b"xx" for kind in PLACEHOLDERS}
"""What the neighbors of a placeholder take it for: digits or letters, as the value had there."""


class Span(NamedTuple):
    """One finding: byte range in the text, kind, and the value in the form that identifies it."""

    start: int
    end: int
    kind: Kind
    value: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts: phone regions, private addresses or not, our pseudonyms or not, kinds; which mail is public."""

    regions: tuple[str, ...] = ("US",)
    public_ips: bool = True
    keep_pseudonyms: bool = False
    kinds: frozenset[Kind] = DEFAULT_KINDS
    public_mail: frozenset[str] = frozenset()


@cache
def pattern(expression: str) -> Any:  # noqa: ANN401 -- re2 has no stubs
    """Return a compiled RE2 pattern over bytes."""
    import re2

    return re2.compile(expression.encode())


def context(text: bytes, start: int, size: int = CONTEXT) -> bytes:
    """Return up to `size` bytes before `start`, cut to whole characters."""
    return text[max(0, start - size) : start].decode(errors="ignore").encode()


def is_announced(text: bytes, start: int, cue: str) -> bool:
    """Return whether a pattern matches the bytes before `start`."""
    return bool(pattern(cue).search(context(text, start)))


def is_named(text: bytes, start: int, cue: str) -> bool:
    """Return whether a pattern matches the bytes before `start`, or how the names of fields there read.

    `user_ssn` and `cardNumber` read as `user ssn` and `card Number`.
    """
    ahead = context(text, start)
    return bool(pattern(cue).search(ahead) or pattern(cue).search(spoken(ahead)))


def spoken(names: bytes) -> bytes:
    """Return a text with blanks between the words of its identifiers."""
    return bytes(pattern(r"(\p{Ll})(\p{Lu})").sub(rb"\1 \2", names.replace(b"_", b" ")))


def masked(text: bytes, spans: list[Span]) -> bytes:
    """Return `text` with every byte of every span as a mask: as long, and nothing is found there."""
    pieces: list[bytes] = []
    at = 0
    for span in spans:
        mask = NUMBER_MASK if TABLE[span.kind].is_number else NAME_MASK
        pieces += [text[at : span.start], bytes([mask]) * (span.end - span.start)]
        at = span.end
    return b"".join([*pieces, text[at:]])


# Neighbors. A placeholder left by an earlier pass, or the mask of a finding, counts as the kind of character that the
# value had there, so that a candidate has the same outcome before and after its neighbors were replaced: scrubbing is
# idempotent.


def before(text: bytes, start: int) -> bytes:
    """Return the two bytes before `start`, placeholders and masks read as `00` (number) or `xx` (others)."""
    head = text[max(0, start - LONGEST_PLACEHOLDER - 1) : start]
    for back in (0, 1):
        body, rest = head[: len(head) - back], head[len(head) - back :]
        if body.endswith(b">") and (read := READS_AS.get(body[max(body.rfind(b"<"), 0) :])):
            return (read + rest)[-2:]
    return _unmasked((b"  " + head)[-2:])


def after(text: bytes, end: int) -> bytes:
    """Return the two bytes after `end`, placeholders and masks read as `00` (number) or `xx` (others)."""
    tail = text[end : end + LONGEST_PLACEHOLDER + 1]
    for skip in (0, 1):
        if tail[skip:].startswith(b"<") and (read := READS_AS.get(tail[skip : tail.find(b">") + 1])):
            return (tail[:skip] + read)[:2]
    return _unmasked((tail + b"  ")[:2])


def _unmasked(neighbors: bytes) -> bytes:
    return neighbors.replace(bytes([NAME_MASK]), b"x").replace(bytes([NUMBER_MASK]), b"0")


def is_separate(text: bytes, start: int, end: int, glue: bytes) -> bool:
    """Return whether text[start:end] is no part of a word or, through a `glue` byte, of a longer number."""
    far, near = before(text, start)
    first, second = after(text, end)
    if near in LETTERS or near in DIGITS or first in LETTERS or first in DIGITS:
        return False
    return not (near in glue and far in DIGITS) and not (first in glue and second in DIGITS)
