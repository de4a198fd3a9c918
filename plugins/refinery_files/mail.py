"""Reads mail: a message (RFC 5322, MIME) or a box of them (RFC 4155). The subject is the heading.

Plain text is taken before HTML, unless it is a stub that says that there is HTML. Replies that are quoted stay;
attachments are not read.
"""

import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import CloseBoundaryNotFoundDefect, StartBoundaryNotFoundDefect
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from pipeline_tasks.text.page.file_text import ENCRYPTED, TOO_LARGE, FileRefused, FileText
from refinery_files.body import body_of
from refinery_files.markup import escaped, heading, write
from refinery_files.plain import plain_blocks

MOST_MESSAGES = 5_000
"""Messages of a box."""

MOST_PARTS = 20_000
"""Lines that may part a message into others: more are a bomb."""

_FROM = re.compile(rb"(?m)^From (?:\S+@\S+|\S+) .{0,60}\d{4}\b[^\r\n]{0,40}\r?$")
_QUOTED_FROM = re.compile(rb"(?m)^>(>*From )")
_HEADER = re.compile(rb"([!-9;-~]{1,80}):[^\n]*\n(?:[ \t][^\n]*\n)*")
_ENVELOPE = re.compile(rb"(?:>?From [^\n]*\n)")
_BOXED = b"From "
_HEAD = 64 << 10
_SENT = frozenset((b"from", b"sender"))
_TRACES = frozenset((b"received", b"message-id", b"mime-version"))
_CARRIED = frozenset((b"return-path", b"delivered-to"))
_ENCRYPTED = ("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime")
_PGP = re.compile(r"\s*-----BEGIN PGP MESSAGE-----")
_STUB = 2
_ADDRESS = re.compile(r"(?i)\bhttps?://\S+")
_TAG = re.compile(r"<[^<>]*>")
_DAMAGE = (CloseBoundaryNotFoundDefect, StartBoundaryNotFoundDefect)


def holds(body: bytes) -> bool:
    """Return whether bytes begin with the head of a message: who sent it, and when, or a field that carriers write.

    RFC 5322 (3.6) asks for the sender and the date; `From` and `Subject` alone are of any text.
    """
    fields = _fields(body)
    is_sent = bool(fields & _SENT) and bool(fields & (_TRACES | _CARRIED | {b"date"}))
    return is_sent or (bool(fields & _TRACES) and bool(fields & _CARRIED))


def holds_plain(body: bytes) -> bool:
    """Return whether bytes that are called plain text are surely a message: they have a field that programs write.

    A text that quotes a message begins with what people are shown of it: sender, date, subject.
    """
    return bool(_fields(body) & _TRACES) and holds(body)


def _fields(body: bytes) -> set[bytes]:
    """Return the names of the fields of a head, in small letters; none unless an empty line or the end is behind it."""
    head, names, at = bytes(body[:_HEAD]), set[bytes](), 0
    if begin := _ENVELOPE.match(head):
        at = begin.end()
    while field := _HEADER.match(head, at):
        names.add(field[1].lower())
        at = field.end()
    return names if at >= len(head) or head[at : at + 1] in (b"\n", b"\r") else set()


def read(body: bytes) -> FileText:
    """Return the text of a message, or of each message of a box; FileRefused for one that is encrypted or a bomb."""
    messages = list(_messages(body))
    read_ones = [_Message(each) for each in messages]
    if len(read_ones) == 1 and read_ones[0].is_encrypted:
        raise FileRefused(ENCRYPTED)
    parts = tuple(html for each in read_ones if (html := each.html))
    days = [each.day for each in read_ones if each.day]
    alone = read_ones[0] if len(read_ones) == 1 else None
    return FileText(
        parts,
        title=(alone.subject or None) if alone else None,
        language=alone.language if alone else None,
        published=max(days, default=None),
        is_cut=read_ones[-1].is_cut,
    )


def _messages(body: bytes) -> Iterator[bytes]:
    """Yield the messages of a box, or the one that the bytes are."""
    if not body.startswith(_BOXED):
        yield body
        return
    starts = [found for found in _FROM.finditer(body) if found.start() == 0 or _is_behind_empty(body, found.start())]
    if len(starts) > MOST_MESSAGES:
        raise FileRefused(TOO_LARGE)
    if not starts:
        yield body.partition(b"\n")[2]
    ends = [found.start() for found in starts[1:]] + [len(body)]
    for found, end in zip(starts, ends, strict=True) if starts else ():
        yield _QUOTED_FROM.sub(rb"\1", body[found.end() : end].lstrip(b"\r\n"))


def _is_behind_empty(body: bytes, at: int) -> bool:
    return body[max(at - 4, 0) : at].endswith((b"\n\n", b"\n\r\n"))


class _Message:
    """The text of a message and what its head says."""

    def __init__(self, data: bytes) -> None:
        if data.count(b"\n--") > MOST_PARTS:
            raise FileRefused(TOO_LARGE)
        self.is_encrypted = self.is_cut = False
        try:
            parsed = message_from_bytes(data, policy=policy.default)
            self.subject, self.day = _header(parsed, "subject"), _day(parsed)
            self.language = _header(parsed, "content-language").partition(",")[0].strip() or None
            html = "".join(self._parts(parsed, 2))
        except RecursionError as error:  # as deep as its author pleased
            raise FileRefused(TOO_LARGE) from error
        self.html = write([heading(1, escaped(self.subject))]) + html if html or self.subject else ""

    def _parts(self, part: EmailMessage, level: int) -> Iterator[str]:
        """Yield the HTML of the parts that are shown."""
        kind = part.get_content_type()
        self.is_cut = self.is_cut or any(isinstance(each, _DAMAGE) for each in part.defects)
        if kind in _ENCRYPTED and part.get_param("smime-type") != "signed-data":
            self.is_encrypted = True
        elif kind == "multipart/alternative":
            yield from self._alternative(_children(part), level)
        elif kind in ("multipart/related", "multipart/signed"):
            for child in _children(part)[:1]:
                yield from self._parts(child, level)
        elif part.is_multipart() and part.get_content_maintype() == "multipart":
            for child in _children(part):
                if kind == "multipart/digest" and child.get_content_type() == "message/rfc822":
                    yield from self._digested(child, level)
                elif _is_shown(child):
                    yield from self._parts(child, level)
        elif kind in ("text/plain", "text/html"):
            yield self._text(part)

    def _digested(self, part: EmailMessage, level: int) -> Iterator[str]:
        for message in _children(part):
            yield write([heading(level, escaped(_header(message, "subject")))])
            yield from self._parts(message, level + 1)

    def _alternative(self, parts: list[EmailMessage], level: int) -> Iterator[str]:
        """Yield the plain one of parts that say the same, or the last one with text if it says much more."""
        written = [(part.get_content_type(), "".join(self._parts(part, level))) for part in parts]
        plain = next((html for kind, html in written if kind == "text/plain"), "")
        rich = next((html for kind, html in reversed(written) if kind != "text/plain" and html), "")
        yield rich if _size(rich) > _STUB * _size(plain) else plain

    def _text(self, part: EmailMessage) -> str:
        data = part.get_payload(decode=True)
        if not isinstance(data, bytes):
            return ""
        charset = part.get_content_charset()
        if part.get_content_type() == "text/html":
            return body_of(_decoded(data, charset).encode("utf-8", "ignore"), "utf-8") if charset else body_of(data)
        text = _decoded(data, charset)
        if _PGP.match(text):
            self.is_encrypted = True
            return ""
        if part.get_param("format") == "flowed":
            text = _unflowed(text, is_joined=str(part.get_param("delsp")).lower() == "yes")
        return write(plain_blocks(text))


def _children(part: EmailMessage) -> list[EmailMessage]:
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, EmailMessage)] if isinstance(payload, list) else []


def _is_shown(part: EmailMessage) -> bool:
    """Return whether a part of several is no attachment."""
    return (
        _header(part, "content-disposition").partition(";")[0].strip().lower() != "attachment"
        and not part.get_filename()
    )


def _header(part: EmailMessage, name: str) -> str:
    """Return a field of a head as text, "" if there is none, or none that can be read."""
    try:
        return " ".join(str(part.get(name, "")).split())
    except (ValueError, LookupError, TypeError, AttributeError):  # what the library raises at fields that are damaged
        return ""


def _day(part: EmailMessage) -> str | None:
    try:
        return parsedate_to_datetime(_header(part, "date")).date().isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _size(html: str) -> int:
    """Return the characters of a text without blanks and addresses, of which plain parts are full."""
    return len("".join(_ADDRESS.sub("", _TAG.sub(" ", html)).split()))


def _decoded(data: bytes, charset: str | None) -> str:
    """Return text by the charset that is stated; what is none of it is UTF-8, or Windows' Latin."""
    for name in (charset or "utf-8", "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, UnicodeError):
            continue
    return data.decode("cp1252", "replace")


def _unflowed(text: str, *, is_joined: bool) -> str:
    """Return a text whose soft breaks are blanks (RFC 3676); quoted lines and the mark of a signature stay lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    out = list[str]()
    is_open = False
    for line in lines:
        depth = len(line) - len(line.lstrip(">"))
        body = line[depth:].removeprefix(" ")
        is_soft = body.endswith(" ") and body != "-- "
        if is_open and out and depth == _depth(out[-1]):
            out[-1] += body
        else:
            out.append(f"{'>' * depth}{' ' if depth else ''}{body}")
        if is_soft and is_joined:
            out[-1] = out[-1][:-1]
        is_open = is_soft
    return "\n".join(out)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(">"))
