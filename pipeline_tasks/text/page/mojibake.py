"""Undoes mojibake, UTF-8 that was once read as Windows-1252, Latin-1 or Windows-1251, in the lines that show it."""

import re
from typing import NamedTuple


class Misread(NamedTuple):
    """UTF-8 read as a one-byte encoding: first characters of sequences of 2, 3 and 4 bytes, later ones, second ones."""

    pairs: str
    triples: str
    fours: str
    rest: str
    second: str


def _read(encoding: str, *data: int) -> str:
    """Return what bytes are in `encoding`; those without a character there are Latin-1's."""
    return "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in data)


_REST = "".join(sorted({*_read("cp1252", *range(0x80, 0xC0)), *_read("latin-1", *range(0x80, 0xC0))}))

WESTERN = Misread(
    pairs=_read("cp1252", *range(0xC2, 0xE0)),
    triples=_read("cp1252", *range(0xE0, 0xF0)),
    fours=_read("cp1252", *range(0xF0, 0xF5)),
    rest=_REST,
    second=_REST,
)
CYRILLIC = Misread(
    pairs=_read("cp1251", 0xD0, 0xD1),  # letters: begin and rest are letters of their own, so two in a row count
    triples=_read("cp1251", 0xE2),  # with 80 quotes and dashes, with 82 currencies, 84 signs, 86 arrows
    fours="",
    rest=_read("cp1251", *range(0x80, 0xC0)),
    second=_read("cp1251", 0x80, 0x82, 0x84, 0x86),
)


def _shown(misread: Misread, times: int) -> str:
    """Return an expression for a misread character; of pairs it takes `times` in a row."""
    pairs, triples, rest, second = (
        f"[{re.escape(part)}]" for part in (misread.pairs, misread.triples, misread.rest, misread.second)
    )
    fours = f"|[{misread.fours}]{second}{rest}{rest}" if misread.fours else ""
    return f"(?:{pairs}{rest}){{{times}}}|{triples}{second}{rest}{fours}"


SHOWN = re.compile(f"{_shown(WESTERN, 1)}|{_shown(CYRILLIC, 2)}")
"""What a line with mojibake has: one character read as Western, or two letters or a sign read as Cyrillic."""


def repair(text: str) -> tuple[str, int]:
    """Return the text with the mojibake of its lines undone, and how many lines that changed.

    Only lines in which `SHOWN` matches are given to ftfy (`fix_encoding`), which changes what its statistics do not
    expect in human writing; double encoding is undone as well.
    """
    from ftfy import fix_encoding

    lines = text.split("\n")
    mended = [fix_encoding(line) if SHOWN.search(line) else line for line in lines]
    count = sum(new != old for new, old in zip(mended, lines, strict=True))
    return ("\n".join(mended), count) if count else (text, 0)
