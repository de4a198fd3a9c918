"""Feeds and mail that are made to harm who reads them."""

import base64
from collections.abc import Iterator
from html import escape

from tests.file_types.hostile_archives import LAUGHS, MARKER, OUTSIDE, REMOTE, SAMPLE_OFFICE, SQUARE
from tests.file_types.hostile_file import Hostile

_SAID = "The station writes one line every ten minutes."
_ITEM = f"<item><title>One</title><description>{_SAID}</description></item>"


def rss(items: str, head: str = "", title: str = "News", encoding: str = "utf-8") -> bytes:
    """Return a feed."""
    channel = f"<channel><title>{title}</title><link>http://a.example</link>{items}</channel>"
    return f'<?xml version="1.0" encoding="{encoding}"?>{head}<rss version="2.0">{channel}</rss>'.encode()


SAMPLE_FEED = rss(_ITEM * 3)
_Files = Iterator[tuple[str, bytes, tuple[str, ...]]]
_BROKEN = ("text", "cut", "damaged")


def feed_files() -> Iterator[Hostile]:
    """Yield all feeds."""
    for name, body, ends in _feeds():
        yield Hostile(f"feed_{name}", "feed", body, ends, MARKER)


def _feeds() -> _Files:
    for share in (2, 5, 9):
        yield f"cut_at_{share}0", SAMPLE_FEED[: len(SAMPLE_FEED) * share // 10], _BROKEN
    yield "laughs", rss(_ITEM.replace("One", "&j;"), LAUGHS), ()
    yield "square", rss(_ITEM.replace("One", "&a;" * 50_000), SQUARE), ()
    yield "entity_of_a_file", rss(_ITEM.replace("One", "&a;"), OUTSIDE), ()
    yield "entity_of_a_server", rss(_ITEM, REMOTE), ()
    yield (
        "include_of_a_file",
        rss(_ITEM + '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd" parse="text"/>'),
        ("text",),
    )
    yield "100000_deep", rss("<item>" * 100_000 + _ITEM + "</item>" * 100_000), ()
    yield "100000_items", rss(_ITEM * 100_000), ("text", "too_large", "cut")
    yield "open_cdata", rss(f"<item><title>A</title><description><![CDATA[{_SAID}"), _BROKEN
    yield "html_50000_deep", rss(f"<item><description>{escape('<div>' * 50_000 + _SAID)}</description></item>"), ()
    yield (
        "html_of_tables",
        rss(f"<item><description>{escape('<table><tr><td>' * 2_000 + _SAID)}</description></item>"),
        (),
    )
    escaped = f"<p>{_SAID}</p>"
    for _ in range(8):
        escaped = escape(escaped)
    yield "escaped_8_times", rss(f"<item><description>{escaped}</description></item>"), ("text",)
    yield "wrong_charset", rss(_ITEM, encoding="utf-16"), ()
    yield "no_charset", rss(_ITEM, encoding="klingon"), ()
    yield "zeros", rss(_ITEM).replace(b"One", bytes(1000)), ()
    yield (
        "attributes",
        rss("<item " + " ".join(f'a{at}="x"' for at in range(50_000)) + f"><description>{_SAID}</description></item>"),
        (),
    )
    yield "same_attribute", rss(f'<item a="1" a="2"><description>{_SAID}</description></item>'), ()
    yield "title_of_10_megabytes", rss(_ITEM, title="x" * 10_000_000), ()
    yield (
        "day_of_no_year",
        rss(_ITEM.replace("<title>", "<pubDate>Foo, 99 Bar 99999 99:99:99 +9999</pubDate><title>")),
        ("text",),
    )
    yield "not_a_feed", b'<?xml version="1.0"?><x><y/></x>', ("damaged", "text")
    yield "empty_feed", rss("", title=""), ("text", "damaged", "unread", "empty")


HEAD = b"From: a@example.org\r\nTo: b@example.org\r\nSubject: The log\r\nMIME-Version: 1.0\r\n"
SAMPLE_MAIL = HEAD + b"Content-Type: text/plain; charset=utf-8\r\n\r\n" + (_SAID + "\r\n").encode() * 3


def mail_files() -> Iterator[Hostile]:
    """Yield all mail."""
    for name, body, ends in _mails():
        yield Hostile(f"mail_{name}", "mail", body, ends, MARKER)


def _part(kind: str, body: bytes, *heads: str) -> bytes:
    return "\r\n".join([f"Content-Type: {kind}", *heads, "", ""]).encode() + body + b"\r\n"


def _mails() -> _Files:
    said = _SAID.encode()
    yield "head_alone", HEAD, ()
    yield "no_head", b"\r\n\r\n" + said, ()
    for deep in (100, 3_000):
        body = HEAD
        for at in range(deep):
            body += f"Content-Type: multipart/mixed; boundary=b{at}\r\n\r\n--b{at}\r\n".encode()
        yield f"parts_{deep}_deep", body + _part("text/plain", said), ()
    inner = SAMPLE_MAIL
    for _ in range(200):
        inner = HEAD + b"Content-Type: message/rfc822\r\n\r\n" + inner
    yield "mail_in_mail_200", inner, ()
    yield "no_boundary", HEAD + b"Content-Type: multipart/mixed\r\n\r\n--x\r\n\r\n" + said, ()
    yield (
        "empty_boundary",
        HEAD + b'Content-Type: multipart/mixed; boundary=""\r\n\r\n--\r\n\r\n' + said + b"\r\n--\r\n" * 1000,
        (),
    )
    yield (
        "boundary_of_signs",
        HEAD + b'Content-Type: multipart/mixed; boundary="(a+)+$"\r\n\r\n--(a+)+$\r\n\r\n' + said + b"a" * 100_000,
        (),
    )
    parts = b"".join(b"--x\r\n" + _part("text/plain", b"a") for _ in range(50_000))
    yield "50000_parts", HEAD + b"Content-Type: multipart/mixed; boundary=x\r\n\r\n" + parts + b"--x--", ()
    yield (
        "bad_base64",
        HEAD + b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"=%!" * 10_000 + b"VGhl",
        (),
    )
    yield (
        "10_megabytes_of_signs",
        HEAD + b"Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + b"=" * 10_000_000,
        (),
    )
    yield "no_charset", HEAD + b'Content-Type: text/plain; charset="klingon"\r\n\r\n' + said + b"\xff\xfe", ("text",)
    yield "charset_that_unpacks", HEAD + b'Content-Type: text/plain; charset="zlib_codec"\r\n\r\n' + said, ("text",)
    yield "charset_rot13", HEAD + b'Content-Type: text/plain; charset="rot13"\r\n\r\n' + said, ("text",)
    yield (
        "charset_punycode",
        HEAD + b'Content-Type: text/plain; charset="punycode"\r\n\r\n' + b"a-" * 20_000 + b"b" * 40_000,
        (),
    )
    yield "charset_idna", HEAD + b'Content-Type: text/plain; charset="idna"\r\n\r\n' + b"xn--" + b"a" * 50_000, ()
    yield "head_of_5_megabytes", b"Subject: " + b"x" * 5_000_000 + b"\r\n" + SAMPLE_MAIL, ()
    yield "100000_heads", b"X-A: 1\r\n" * 100_000 + SAMPLE_MAIL, ()
    yield "100000_addresses", b"To: " + b"a <a@b.example>,\r\n " * 50_000 + b"\r\n" + SAMPLE_MAIL, ()
    yield "encoded_words", b"Subject: " + b"=?utf-8?b?4pyT?= " * 50_000 + b"\r\n" + SAMPLE_MAIL, ()
    yield (
        "comments_deep",
        b"Date: "
        + b"(" * 50_000
        + b")" * 50_000
        + b"\r\nContent-Type: text/plain; "
        + b"(" * 20_000
        + b"\r\n"
        + HEAD
        + b"\r\n"
        + said,
        (),
    )
    yield (
        "parameters_in_parts",
        b"Content-Type: text/plain; "
        + b"; ".join(b"a*%d*=x%%41" % at for at in range(20_000))
        + b"\r\n"
        + HEAD
        + b"\r\n"
        + said,
        (),
    )
    yield (
        "day_of_no_year",
        SAMPLE_MAIL.replace(b"Subject", b"Date: Mon, 99 Foo 99999999 99:99:99 +999999\r\nSubject"),
        ("text",),
    )
    yield "zeros", SAMPLE_MAIL.replace(b"every", bytes(10_000)), ()
    yield "line_of_10_megabytes", SAMPLE_MAIL + b"x" * 10_000_000, ("text", "too_large", "cut")
    html = b"<div>" * 100_000 + said
    yield "html_100000_deep", HEAD + b"Content-Type: text/html\r\n\r\n" + html, ()
    yield (
        "html_of_remote_images",
        HEAD
        + b'Content-Type: text/html\r\n\r\n<img src="http://127.0.0.1:9/x.png"><iframe src="file:///etc/passwd"></iframe>'
        + said,
        ("text",),
    )
    attached = base64.encodebytes(SAMPLE_OFFICE * 200)
    yield (
        "attached_archive",
        HEAD
        + b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n"
        + _part("text/plain", said)
        + b"--x\r\n"
        + _part(
            "application/zip",
            attached,
            "Content-Transfer-Encoding: base64",
            "Content-Disposition: attachment; filename=../../a.docx",
        )
        + b"--x--",
        ("text",),
    )
    yield (
        "only_an_image",
        HEAD + _part("image/png", base64.b64encode(bytes(1000)), "Content-Transfer-Encoding: base64"),
        (),
    )
    yield "surrogates", SAMPLE_MAIL.replace(b"utf-8", b"utf-16").replace(b"every", b"\x00\xd8\x00\xd8"), ()
