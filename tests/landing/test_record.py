"""Rows of records: kinds, digests, metadata and damage."""

import base64
import hashlib
import json

import pytest

from pipeline_tasks.landing.archives.http_body import read_message
from pipeline_tasks.landing.archives.record import check_digest, damage_row, normal_digest, record_row, sha1
from pipeline_tasks.landing.archives.record_header import Head

HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nLast-Modified: x\r\n\r\n<p>"


def head(**fields: str) -> Head:
    return Head(10, 20, {name.replace("_", "-"): value for name, value in fields.items()}, arc=False)


def test_a_response() -> None:
    row = record_row(head(warc_type="response", warc_target_uri="<http://a.b/>", x="y"), HTTP, 5, 30, "f.warc")
    assert (row.kind, row.status, row.content_type, row.payload) == ("response", 200, "text/html", b"<p>")
    assert (row.url, row.record_id, row.payload_digest) == ("http://a.b/", "f.warc:5", sha1(b"<p>"))
    assert json.loads(row.metadata or "") == {"x": "y", "http-last-modified": "x"}


def test_a_conversion_is_text() -> None:
    row = record_row(head(warc_type="conversion", content_type="text/plain"), b"a\xff", 2, 9, "f")
    assert (row.text, row.payload, row.record_id) == ("a\ufffd", None, "f:2")
    assert json.loads(row.metadata or "") == {"content-type": "text/plain", "replaced": "1"}


def test_other_kinds_have_no_content() -> None:
    row = record_row(head(warc_type="request", content_type="application/http"), b"GET /", 0, 9, "f")
    assert (row.kind, row.payload, row.text, row.error) == ("request", None, None, None)
    revisit = record_row(head(warc_type="revisit", warc_payload_digest="sha1:" + "A" * 32), HTTP, 0, 9, "f")
    assert (revisit.payload, revisit.status, revisit.payload_digest) == (None, 200, "sha1:" + "A" * 32)
    assert record_row(head(), b"", 0, 9, "f").error == "bad_header"


def test_damage_keeps_what_the_header_has() -> None:
    row = damage_row(3, 4, "bad_length", "d" * 500, head(warc_record_id="r", warc_target_uri="u", warc_date="t"))
    assert (row.kind, row.error, row.record_id, row.url, row.crawled_at) == ("damage", "bad_length", "r", "u", "t")
    assert len(row.error_detail or "") == 200


@pytest.mark.parametrize("declared", ["sha1:{}", "SHA-1:{}", " sha1:{} "])
def test_digests_have_one_form(declared: str) -> None:
    digest = hashlib.sha1(b"x").digest()
    wanted = "sha1:" + base64.b32encode(digest).decode()
    assert normal_digest(declared.format(digest.hex())) == wanted == sha1(b"x")
    assert normal_digest(declared.format(wanted[5:].lower())) == wanted
    assert normal_digest("md5:x") is None


def test_a_page_without_a_media_type_has_none_but_in_an_arc() -> None:
    """The type of a WARC record is that of its block, `application/http`; an ARC's is that of its page."""
    bare = b"HTTP/1.1 200 OK\r\n\r\n<p>"
    fields = {"warc-type": "response", "content-type": "text/html", "warc-target-uri": "http://a.b/"}
    rows = [record_row(Head(10, 20, dict(fields), arc=arc), bare, 0, 9, "f") for arc in (False, True)]
    assert [row.content_type for row in rows] == [None, "text/html"]


def test_a_sound_text_says_nothing_of_replacements() -> None:
    row = record_row(head(warc_type="conversion", content_type="text/plain"), b"sound", 0, 9, "f")
    assert json.loads(row.metadata or "") == {"content-type": "text/plain"}


def test_a_payload_digest_may_be_that_of_the_decoded_body() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n<p>\r\n0\r\n\r\n"
    message = read_message(chunked)
    assert message.body == b"<p>"
    assert message.raw != message.body
    for declared, wrong in ((sha1(b"<p>"), None), (sha1(b"other"), "payload digest differs")):
        assert check_digest({"warc-payload-digest": declared}, chunked, message) == (declared, wrong)
