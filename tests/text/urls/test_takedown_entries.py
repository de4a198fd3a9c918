"""What people ask to take down names a document, an address or a site, or is refused with the form that names one."""

import re

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.urls.takedown import DOC, SITE, URL
from pipeline_tasks.text.urls.takedown_entries import parse_lines, valid_entries

HOSTLESS = [
    *("notahost", "/a/b", "a page", "", "http:", "http://", "http://:80/a"),
    *("http://?q=1", "http://#top", "http://user@/a", "file:///", "file://", "mailto:x@y.example"),
]
"""What is no address, or one without a host."""

ADDRESSES = [
    *("http://example.org", "HTTPS://Example.org/a?b#c", "http://user:secret@example.org/a", "https://[::1]:8080/a"),
    *(
        "ftp://example.org/a",
        "http://localhost",
        "file:///NAME",
        "file:///folder/a%20b.pdf",
        "http://b\u00fccher.example/",
    ),
]


@pytest.mark.parametrize("url", HOSTLESS)
def test_an_address_without_a_host_is_refused_with_a_form_that_has_one(url: str) -> None:
    said = re.escape(
        f"url {url!r} has to be an address with its host, as `https://example.com/page`, or `file:///NAME`"
    )
    with pytest.raises(RecipeError, match=said):
        valid_entries([(URL, url)])


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_is_named_as_it_is_written(url: str) -> None:
    assert valid_entries([(URL, f" {url} "), (URL, url)]) == ((URL, url),)


@pytest.mark.parametrize("bare", ["example.org/a", "//example.org/a", "localhost:80/a"])
def test_an_address_without_a_scheme_is_one(bare: str) -> None:
    assert valid_entries([(URL, bare)]) == ((URL, f"http://{bare.removeprefix('//')}"),)


def test_a_line_names_the_first_of_a_document_an_address_and_a_site() -> None:
    document = 32 * "a"
    lines = [f"{document}  # a text", "", "# all", "https://example.org/a#b", "file:///NAME", "example.org"]
    assert parse_lines(lines, "list.txt") == [
        (DOC, document),
        (URL, "https://example.org/a#b"),
        (URL, "file:///NAME"),
        (SITE, "example.org"),
    ]
    for line in ("http://", "/a/b"):
        with pytest.raises(RecipeError, match=rf"list\.txt: line 2: '{line}' is no id .*with its scheme and host"):
            parse_lines(["example.org", line], "list.txt")
