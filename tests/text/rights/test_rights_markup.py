"""Markup of pages: what a browser takes for a tag says what it says, all else nothing, in linear time."""

import pytest

from pipeline_tasks.text.rights.markup import markup_signals

AGENTS = frozenset({"gptbot"})
META = b'<meta name="robots" content="noai">'


def said(page: bytes) -> list[str]:
    return [signal.value for signal in markup_signals(page, AGENTS)]


@pytest.mark.parametrize(
    "page",
    [
        b'<script>var a = "<!--";</script>' + META,
        b"<!-->" + META + b"<!-- x -->",
        b"<!--->" + META + b"<!-- x -->",
        b"<!-- x --!>" + META,
        b"<!--[if gt IE 8]><!-->" + META + b"<!--<![endif]-->",
        b'<p title="<!--">' + META,
        b"<img alt='<script>'>" + META,
        b"<template-card>" + META + b"</template-card>",
        b"<noscript>" + META + b"</noscript>",
        b"<meta name=robots content=noai/>",
        b"<META NAME=ROBOTS CONTENT=noai x=it's><p>it's",
    ],
)
def test_a_tag_of_a_browser_is_one(page: bytes) -> None:
    assert said(page) == ["noai"]


@pytest.mark.parametrize("name", ["script", "style", "template", "textarea", "title", "xmp", "iframe"])
def test_what_is_text_in_an_element_says_nothing(name: str) -> None:
    for tag in (name, name.upper()):
        opened, closed = f"<{tag}>".encode(), f"</{tag}>".encode()
        assert said(opened + META + closed) == []
        assert said(opened + META) == []
        assert said(opened + b"a" + closed + META) == ["noai"]


@pytest.mark.parametrize(
    "part",
    [
        b"<script",
        b"<script ",
        b"<!--",
        b'<a "<a" "',
        b'<a b="',
        b"<a b=<a b='",
        b"<title>",
        b"application/rsl+xml<script ",
    ],
)
def test_beginnings_of_tags_take_linear_time(part: bytes) -> None:
    assert said(META + part * (3_000_000 // len(part)))[:1] == ["noai"]
