"""URLs have one key for many spellings, and one site."""

import pyarrow as pa
import pytest

from pipeline_tasks.text.urls.keys import keys
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
