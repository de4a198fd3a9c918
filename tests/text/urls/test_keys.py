"""URLs have one key for many spellings, and one site."""

import pyarrow as pa
import pytest

from pipeline_tasks.text.urls.keys import edition_hosts, edition_pages, keys
from pipeline_tasks.text.urls.sites import sites


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://Example.org/", "example.org"),
        (" https://example.org:443/a/ ", "example.org/a"),
        ("http://example.org:443/", "example.org:443"),
        ("https://example.org./a#b", "example.org/a"),
        ("ftp://example.org/A", "ftp://example.org/A"),
        ("http://a.b/?q=1&utm_source=x&UTM_B&ref=2", "a.b?q=1"),
        ("http://a.b/?&&", "a.b"),
        ("http://a.b?b=2&a=1", "a.b?b=2&a=1"),
        ("http://a.b//c://d:80//", "a.b//c://d:80"),
        ("http://a.b/c;ref=1/", "a.b/c"),
        ("no url ", "no url"),
        ("", None),
        (None, None),
    ],
)
def test_keys(url: str | None, key: str | None) -> None:
    assert keys(pa.array([url], pa.string()), ("utm_*", "ref")).to_pylist() == [key]


def test_sites() -> None:
    urls = [
        "http://a.b.co.uk:80/x",
        "http://user@Example.org.",
        "http://1.2.3.4/",
        "http://[::1]/",
        "http://com/",
        "x",
        None,
    ]
    assert sites(pa.array(urls, pa.string())).to_pylist() == [
        "b.co.uk", "example.org", "1.2.3.4", "[::1]", "com", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "host", "page"),
    [
        ("https://www.w3.org/questions/qa-scripts.uk", "w3.org", "w3.org/questions/qa-scripts"),
        ("https://www.w3.org/questions/qa-scripts.zh-hans", "w3.org", "w3.org/questions/qa-scripts"),
        ("https://de.a.org/guide?lang=de", "a.org", "a.org/guide?lang="),
        ("https://a.org/v2.24/guide/index.fr.html", "a.org", "a.org/guide/index"),
        ("https://a.org/v2.25/guide/index.html", "a.org", "a.org/guide/index"),
        ("https://v2.docs.a.org/7.4/pt-BR/text", "docs.a.org", "docs.a.org/text"),
        ("https://de.com/what-is-it", "de.com", "de.com/what-is-it"),
        ("https://a.org/2014/12/29/club", "a.org", "a.org/2014/12/29/club"),
        (None, None, None),
    ],
)
def test_editions_of_a_page_are_one(url: str | None, host: str | None, page: str | None) -> None:
    assert edition_hosts(pa.array([url], pa.string())).to_pylist() == [host]
    assert edition_pages(pa.array([url], pa.string())).to_pylist() == [page]
