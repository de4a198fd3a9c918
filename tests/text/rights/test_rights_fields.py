"""Header fields that say how a page may be used: all lines of each, and nothing of a header without them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.landing.archives.header_fields import MOST, header_fields, rights_fields
from pipeline_tasks.text.rights.directives import header_signals
from pipeline_tasks.text.rights.licenses import agreed, license_id
from pipeline_tasks.text.rights.markup import markup_signals

CC = "https://creativecommons.org"


def fields(*lines: str) -> dict[str, str]:
    return rights_fields(lines, header_fields(lines))


def test_lines_of_one_name_stay_apart_and_folded_ones_are_joined() -> None:
    lines = ("X-Robots-Tag: a: noai", " , noml", "Server: x", "x-robots-tag: b", "Link: </l>; rel=license")
    assert fields(*lines) == {"x-robots-tag": "a: noai , noml\nb", "link": "</l>; rel=license"}
    assert fields("Server: x", "Link: </a>; rel=next") == {}
    assert len(fields("TDM-Policy: " + "x" * 10_000)["tdm-policy"]) == MOST


@given(st.lists(st.text(max_size=40) | st.sampled_from(["X-Robots-Tag: a", "\tb", "Link: <a>; rel=license"])))
def test_any_header_is_read(lines: list[str]) -> None:
    list(header_signals(fields(*lines), frozenset({"gptbot"})))


def test_licenses_have_their_identifiers() -> None:
    known = {
        f"{CC}/licenses/by-sa/4.0/": "CC-BY-SA-4.0",
        f"{CC}/licenses/by-nd-nc/1.0": "CC-BY-NC-ND-1.0",
        f"{CC}/licenses/by/3.0/de/deed.de": "CC-BY-3.0",
        "//www.creativecommons.org/publicdomain/zero/1.0/": "CC0-1.0",
        f"{CC}/publicdomain/mark/1.0/": "CC-PDM-1.0",
        "https://en.wikipedia.org/wiki/Wikipedia:Text_of_the_Creative_Commons_Attribution-ShareAlike_4.0_I": "CC-BY-SA-4.0",
        "http://www.apache.org/licenses/LICENSE-2.0.html": "Apache-2.0",
        f"{CC}/licenses/by-xx/4.0/": None,
        f"{CC}.evil.example/licenses/by/4.0/": None,
        f"{CC}/about/": None,
        "/license": None,
    }
    assert {url: license_id(url) for url in known} == known
    assert agreed([f"{CC}/licenses/by/4.0/", "/terms", f"{CC}/licenses/by/4.0/deed.fr"]) == "CC-BY-4.0"
    assert agreed([f"{CC}/licenses/by/4.0/", f"{CC}/licenses/by/3.0/"]) is None


@given(st.binary(max_size=600))
def test_any_page_is_read(page: bytes) -> None:
    markup_signals(b"<meta name=robots content=noai" + page + b"rel=license <a <link <!-- <script", frozenset())


def test_a_page_of_nothing_but_beginnings_of_tags_is_read_in_time() -> None:
    """Each of these took time that is quadratic in the page without a bound on tags."""
    noai = b'<meta name="robots" content="noai">'
    for part in (b"<meta ", b"<a license ", b"<script ", b"<script></script ", b"<!-- ", b"<link rel=license href='"):
        signals = markup_signals(noai + part * 300_000, frozenset())
        assert [signal.signal for signal in signals][:1] == ["noai"]


def test_a_page_in_utf_16_is_read() -> None:
    page = "\ufeff<html><meta name=robots content=noai>".encode("utf-16-le")
    assert [signal.signal for signal in markup_signals(page, frozenset())] == ["noai"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("*: noai", [("noai", "*")]),
        ("googlebot: noindex, gptbot: noai, noml", [("noai", "gptbot"), ("noml", "gptbot")]),
        ("noarchive, googlebot: noai", [("noarchive", "*")]),
        ("noarchive, revisit-after: 7 days, noai", [("noarchive", "*"), ("noai", "*")]),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noai", [("noai", "*")]),
    ],
)
def test_lines_of_several_agents_that_were_joined_are_told_apart(line: str, expected: list[tuple[str, str]]) -> None:
    signals = header_signals({"x-robots-tag": line}, frozenset({"gptbot"}))
    assert [(signal.signal, signal.agent) for signal in signals] == expected
