"""Reads the text of RTF files (Microsoft, RTF 1.9.1): headings by outline levels, lists by the labels that they show.

Codes of fields, hidden and deleted text, pictures, objects, comments, heads and feet of pages are left out; notes are
behind the text.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pipeline_tasks.text.page.file_text import TOO_LARGE, FileRefused, FileText
from refinery_files.markup import (
    EMPHASIS,
    LOWERED,
    RAISED,
    STRONG,
    Block,
    Runs,
    code,
    escaped,
    heading,
    inline,
    item,
    paragraph,
    table,
    write,
)
from refinery_files.office.signs import symbol

DEEPEST = 2_000
"""Groups in each other: those of word processors are some 20 deep."""

_TOKEN = re.compile(
    rb"""\\'([0-9a-fA-F]{2}) | \\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]? | \\([^a-zA-Z]) | ([{}]) | [\r\n\0]+
    | ([^\\{}\r\n\0]+) | \\""",
    re.VERBOSE | re.DOTALL,
)
_SKIPPED = frozenset(
    re.findall(
        rb"\S+",
        b"""colortbl themedata colorschememapping latentstyles datastore generator listtable listoverridetable revtbl
        rsidtbl filetbl xmlnstbl pict object header headerl headerr headerf footer footerl footerr footerf annotation
        atnid atnauthor atntime atnicn atnref atnparent atndate fldinst ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn
        nonshppict pgdsctbl bkmkstart bkmkend sp nextfile template tc xe rxe txe listname do pnseclvl mmathPr
        wgrffmtfilter userprops docvar author operator company keywords comment doccomm subject category manager
        hlinkbase""",
    )
)
_KEPT = frozenset(b"shpinst shptxt shprslt shppict fldrslt listtext pntext footnote ud background".split())
"""Destinations behind a star that have text; what is behind another star is for programs that know it."""

_SIGNS = {
    b"tab": "\t", b"line": "\n", b"page": " ", b"column": " ", b"emdash": "\u2014", b"endash": "\u2013",
    b"emspace": "\u2003", b"enspace": "\u2002", b"qmspace": "\u2005", b"bullet": "\u2022", b"lquote": "\u2018",
    b"rquote": "\u2019", b"ldblquote": "\u201c", b"rdblquote": "\u201d", b"zwj": "\u200d", b"zwnj": "\u200c",
}  # fmt: skip
_MARKS = {b"~": "\u00a0", b"_": "\u2011", b"-": "", b"{": "{", b"}": "}", b"\\": "\\", b"\t": "\t"}
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "big5", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
_SYMBOL_CHARSET = 2
_PICTURES = "pictures"
_BITS = {b"b": STRONG, b"i": EMPHASIS}
_ENDS = (b"par", b"sect", b"row", b"cell", b"nestcell", b"nestrow")
_BODY = "body"
_CONTENTS = re.compile(r"(?:toc|contents) (?:\d|heading)")
_BODY_LEVEL = 9
_HIGH, _LOW, _BEHIND_LOW = 0xD800, 0xDC00, 0xE000
"""Where the halves of characters begin that UTF-16 has in two units."""


@dataclass(frozen=True, slots=True)
class _State:
    """What a group sets for what is in it."""

    place: str = _BODY
    bits: int = 0
    is_hidden: bool = False
    font: int = -1
    skipped: int = 1  # characters that follow one of Unicode for programs that have none
    is_starred: bool = False


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a paragraph is: its levels in the outline (-1: text) and in a list, its style, whether it is in a table."""

    outline: int = -1
    level: int = 0
    style: int = -1
    is_cell: bool = False


@dataclass(slots=True)
class _Story:
    """The blocks of the text, or of a note; the row that is being read, and the paragraph."""

    blocks: list[Block] = field(default_factory=list)
    rows: list[list[list[Block]]] = field(default_factory=list)
    cells: list[list[Block]] = field(default_factory=list)
    cell: list[Block] = field(default_factory=list)
    runs: Runs = field(default_factory=list)
    label: str = ""


def read_rtf(body: bytes) -> FileText:
    """Return the text of a file; FileRefused for one whose groups are too deep."""
    reader = _Reader(body)
    reader.run()
    return FileText(
        (write(reader.blocks()),),
        title=reader.texts["title"].strip() or None,
        language=_LANGUAGES.get(reader.language),
        published=reader.day,
        is_cut=reader.depth > 0,
    )


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body, self.state = body, _State()
        self._stack: list[_State] = []
        self._stories = [_Story()]
        self._notes: list[_Story] = []
        self._shape = _Shape()
        self._bytes = bytearray()  # of one font, not yet decoded: a character may have two
        self._code_page = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = -1  # the one that the table of fonts is at
        self.default = 0
        self._style = -1  # the one that the table of styles is at
        self._styles: dict[int, tuple[int, str]] = {}
        self._left = 0  # characters to skip
        self._high = 0
        self._day: dict[bytes, int] = {}
        self.texts = {"title": "", "style": ""}
        self.language = 0
        self.depth = 0

    @property
    def day(self) -> str | None:
        """The day on which the file was saved or made."""
        from datetime import date

        try:
            return date(self._day[b"yr"], self._day[b"mo"], self._day[b"dy"]).isoformat()
        except (LookupError, ValueError, OverflowError):
            return None

    def blocks(self) -> list[Block]:
        """Return the blocks of the text, then those of its notes."""
        blocks = _finished(self._stories[0])
        for nth, note in enumerate(self._notes, 1):
            own = [block for block in _finished(note) if block.html]
            if own and own[0].tag == "p":
                own[0] = item(f"{nth}.", 0, own[0].html)
            blocks += own
        return blocks

    def run(self) -> None:
        """Read the file up to its end, or to where its outermost group ends."""
        at, body = 0, self._body
        while found := _TOKEN.match(body, at):
            at = found.end()
            code, word, number, sign, brace, text = found.groups()
            if text is not None:
                self._add_bytes(text)
            elif code is not None:
                self._add_bytes(bytes([int(code, 16)]))
            elif word is not None:
                if word == b"bin":
                    at += max(int(number or 0), 0)
                else:
                    self._word(word, int(number) if number else None)
            elif brace is not None:
                self._flush()
                if self._brace(brace):
                    break
            elif sign is not None:
                self._sign(sign)
        self._flush()
        while self._stack:
            self._close()
        self._end_paragraph()

    # --- groups

    def _brace(self, brace: bytes) -> bool:
        """Open or close a group; return whether it was the outermost one that closed."""
        if brace == b"{":
            self.depth += 1
            if self.depth > DEEPEST:
                raise FileRefused(TOO_LARGE)
            self._stack.append(self.state)
            self._left = 0
            self.state = replace(self.state, is_starred=False)
            return False
        self.depth -= 1
        self._close()
        return self.depth <= 0

    def _close(self) -> None:
        if not self._stack:
            return
        ended, self.state = self.state.place, self._stack.pop()
        if ended == self.state.place:
            return
        if ended == "style":
            self._styles[self._style] = (self._styles.get(self._style, (-1, ""))[0], self.texts["style"].strip(" ;"))
        elif ended == "note" and len(self._stories) > 1:
            self._end_paragraph()
            self._stories.pop()

    def go(self, place: str) -> None:
        self.state = replace(self.state, place=place)

    # --- words

    def _word(self, word: bytes, number: int | None) -> None:
        self._flush()
        if word == b"u":
            self._unicode(number or 0)
            return
        if self._left and word in _SIGNS:
            self._left -= 1
            return
        if self.state.is_starred and word not in _KEPT and self.state.place == _BODY:
            self.go("skipped")
        self.state = replace(self.state, is_starred=False) if self.state.is_starred else self.state
        if word in _SKIPPED:
            self.go("skipped")
        elif self.state.place != "skipped":
            self._known(word, number)

    def _known(self, word: bytes, number: int | None) -> None:
        act = _ACTS.get(word)
        if act is not None:
            act(self, number)
        elif word in _SIGNS:
            self._add(_SIGNS[word])
        elif word in _ENDS:
            self._end(word)
        elif word in _BITS:
            self._set(_BITS[word], is_on=number != 0)
        elif self.state.place == "info" and word in (b"yr", b"mo", b"dy"):
            self._day[word] = number or 0

    def _set(self, bit: int, *, is_on: bool) -> None:
        bits = self.state.bits | bit if is_on else self.state.bits & ~bit
        self.state = replace(self.state, bits=bits)

    def lift(self, bit: int) -> None:
        self.state = replace(self.state, bits=self.state.bits & ~(RAISED | LOWERED) | bit)

    def hide(self, number: int | None) -> None:
        self.state = replace(self.state, is_hidden=number != 0)

    def plain(self, _: int | None) -> None:
        self.state = replace(self.state, bits=0, is_hidden=False, font=self.default)

    def choose_font(self, number: int | None) -> None:
        if self.state.place == "fonts":
            self._font = number or 0
        else:
            self.state = replace(self.state, font=number or 0)

    def charset(self, number: int | None) -> None:
        if self.state.place == "fonts":
            known = _CHARSETS.get(number or 0, "")
            self._fonts[self._font] = _PICTURES if number == _SYMBOL_CHARSET else known

    def code(self, number: int | None) -> None:
        self._code_page = _codec(number or 1252)

    def styled(self, number: int | None) -> None:
        if self.state.place in ("styles", "style"):
            self._begin_style(number or 0)
        else:
            outline, name = self._styles.get(number or 0, (-1, ""))
            self._shape = replace(self._shape, style=number or 0, outline=_outline(outline, name))

    def _begin_style(self, number: int) -> None:
        self._style, self.texts["style"] = number, ""
        self._styles[number] = (-1, "")
        self.go("style")

    def outlined(self, number: int | None) -> None:
        if self.state.place == "style":
            self._styles[self._style] = (number or 0, "")
        else:
            level = -1 if number is None or number >= _BODY_LEVEL else number
            self._shape = replace(self._shape, outline=level)

    def leveled(self, number: int | None) -> None:
        if self.state.place != "style":
            self._shape = replace(self._shape, level=number or 0)

    def reset(self, _: int | None) -> None:
        if self.state.place != "label":  # a label has a look of its own
            self._shape = _Shape()

    def in_table(self, _: int | None) -> None:
        self._shape = replace(self._shape, is_cell=True)

    def label(self, _: int | None) -> None:
        if self.state.place in (_BODY, "note"):
            self._stories[-1].label = ""
            self.go("label")

    def note(self, _: int | None) -> None:
        if self.state.place == _BODY:
            self._stories[-1].runs.append((str(len(self._notes) + 1), RAISED))
            self._notes.append(_Story())
            self._stories.append(self._notes[-1])
            self.state = replace(self.state, place="note", bits=0)

    def tell_language(self, number: int | None) -> None:
        self.language = self.language or number or 0

    def skip_count(self, number: int | None) -> None:
        self.state = replace(self.state, skipped=min(max(1 if number is None else number, 0), 10))

    # --- text

    def _unicode(self, number: int) -> None:
        number &= 0xFFFF
        self._left = 0
        if _HIGH <= number < _LOW:
            self._high = number
        elif _LOW <= number < _BEHIND_LOW:
            if self._high:
                self._add(chr(0x10000 + ((self._high - _HIGH) << 10) + number - _LOW))
            self._high = 0
        else:
            sign = symbol(chr(number), None)
            self._add(sign if sign or self.state.place != "label" else "\u2022")
        self._left = self.state.skipped

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            self.state = replace(self.state, is_starred=True)
        elif sign in (b"\r", b"\n"):
            self._flush()
            self._end(b"par")
        elif sign in _MARKS:
            if self._left:
                self._left -= 1
                return
            self._flush()
            self._add(_MARKS[sign])

    def _add_bytes(self, text: bytes) -> None:
        if self._left:
            skipped = min(self._left, len(text))
            self._left -= skipped
            text = text[skipped:]
        if self.state.place != "skipped":
            self._bytes += text

    def _flush(self) -> None:
        """Decode the bytes that were read, as the font of their group says."""
        if not self._bytes:
            return
        data, encoding = bytes(self._bytes), self._fonts.get(self.state.font, "") or self._code_page
        self._bytes.clear()
        if encoding == _PICTURES:
            self._add("".join(symbol(chr(byte), "Symbol") for byte in data))
        else:
            self._add(data.decode(encoding, "replace"))

    def _add(self, text: str) -> None:
        place, state = self.state.place, self.state
        if place in self.texts:
            self.texts[place] += text
        elif place == "label":
            self._stories[-1].label += text
        elif place in (_BODY, "note") and not state.is_hidden and text:
            self._stories[-1].runs.append((text, state.bits))

    # --- blocks

    def _end(self, word: bytes) -> None:
        if self.state.place not in (_BODY, "note"):
            return
        story = self._stories[-1]
        if word in (b"par", b"sect"):
            self._end_paragraph()
        elif word in (b"cell", b"nestcell"):
            self._end_paragraph(is_cell=True)
            story.cells.append(story.cell)
            story.cell = []
        else:
            self._end_paragraph(is_cell=True)
            if story.cells:
                story.rows.append(story.cells)
                story.cells = []

    def _end_paragraph(self, *, is_cell: bool = False) -> None:
        story, shape = self._stories[-1], self._shape
        runs, label = story.runs, story.label.strip()
        story.runs, story.label = [], ""
        rank = shape.outline + 1
        html = inline(runs, plain=rank > 0)
        if not (is_cell or shape.is_cell):
            _end_table(story)
        if not html:
            return
        name = self._styles.get(shape.style, (-1, ""))[1].lower()
        if _CONTENTS.fullmatch(name):
            return
        if rank or name == "title":
            block = heading(rank or 1, f"{escaped(label)} {html}" if label else html)
        elif "preformatted" in name:
            block = code(runs)
        else:
            block = item(_shown(label), shape.level, html) if label else paragraph(html)
        (story.cell if is_cell or shape.is_cell else story.blocks).append(block)


def _shown(label: str) -> str:
    """Return a label; signs of fonts of pictures are bullets."""
    return "\u2022" if len(label) == 1 and not label.isdigit() else label


def _end_table(story: _Story) -> None:
    if story.cell:
        story.cells.append(story.cell)
        story.cell = []
    if story.cells:
        story.rows.append(story.cells)
        story.cells = []
    if story.rows:
        story.blocks += table(story.rows)
        story.rows = []


def _finished(story: _Story) -> list[Block]:
    _end_table(story)
    return story.blocks


def _outline(level: int, name: str) -> int:
    named = re.fullmatch(r"heading ([1-9])", name.lower())
    return level if level >= 0 else int(named[1]) - 1 if named else -1


def _codec(number: int) -> str:
    name = {932: "cp932", 936: "gbk", 949: "cp949", 950: "big5", 10000: "mac_roman", 65001: "utf-8"}.get(
        number, f"cp{number}"
    )
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


_LANGUAGES = {
    1025: "ar-SA", 1026: "bg-BG", 1028: "zh-TW", 1029: "cs-CZ", 1030: "da-DK", 1031: "de-DE", 1032: "el-GR",
    1033: "en-US", 1034: "es-ES", 1035: "fi-FI", 1036: "fr-FR", 1037: "he-IL", 1038: "hu-HU", 1040: "it-IT",
    1041: "ja-JP", 1042: "ko-KR", 1043: "nl-NL", 1044: "nb-NO", 1045: "pl-PL", 1046: "pt-BR", 1048: "ro-RO",
    1049: "ru-RU", 1050: "hr-HR", 1051: "sk-SK", 1053: "sv-SE", 1054: "th-TH", 1055: "tr-TR", 1057: "id-ID",
    1058: "uk-UA", 1066: "vi-VN", 2052: "zh-CN", 2057: "en-GB", 2070: "pt-PT", 3082: "es-ES",
}  # fmt: skip
"""Languages by the numbers of Windows ([MS-LCID])."""


def _to(place: str) -> Callable[["_Reader", int | None], None]:
    def go(reader: "_Reader", _: int | None) -> None:
        reader.go(place)

    return go


def _default_font(reader: "_Reader", number: int | None) -> None:
    reader.default = number or 0
    reader.state = replace(reader.state, font=number or 0)


_ACTS: dict[bytes, Callable[["_Reader", int | None], None]] = {
    b"ansicpg": _Reader.code,
    b"mac": lambda reader, _: reader.code(10000),
    b"pc": lambda reader, _: reader.code(437),
    b"deff": _default_font,
    b"fonttbl": _to("fonts"),
    b"stylesheet": _to("styles"),
    b"info": _to("info"),
    b"title": _to("title"),
    b"f": _Reader.choose_font,
    b"fcharset": _Reader.charset,
    b"s": _Reader.styled,
    b"cs": lambda reader, _: reader.go("skipped") if reader.state.place == "styles" else None,
    b"ds": lambda reader, _: reader.go("skipped") if reader.state.place == "styles" else None,
    b"ts": lambda reader, _: reader.go("skipped") if reader.state.place == "styles" else None,
    b"outlinelevel": _Reader.outlined,
    b"ilvl": _Reader.leveled,
    b"pard": _Reader.reset,
    b"plain": _Reader.plain,
    b"intbl": _Reader.in_table,
    b"listtext": _Reader.label,
    b"pntext": _Reader.label,
    b"footnote": _Reader.note,
    b"uc": _Reader.skip_count,
    b"v": _Reader.hide,
    b"deleted": _Reader.hide,
    b"super": lambda reader, number: reader.lift(RAISED if number != 0 else 0),
    b"sub": lambda reader, number: reader.lift(LOWERED if number != 0 else 0),
    b"nosupersub": lambda reader, _: reader.lift(0),
    b"deflang": _Reader.tell_language,
    b"upr": lambda reader, _: reader.go("skipped"),
    b"ud": lambda reader, _: reader.go(_BODY),
}
