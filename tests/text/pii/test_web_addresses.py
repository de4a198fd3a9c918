"""URLs without personal data: what is taken out, and what stays."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.pii.web_addresses import scrub_url, scrub_urls


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/u/jane@example.org", "https://example.org/u/<EMAIL>"),
        ("https://example.org/?q=1&mail=jane%40example.org#top", "https://example.org/?q=1&mail=<EMAIL>#top"),
        ("https://example.org/?mail=jane%2540example.org&q=1", "https://example.org/?mail=<EMAIL>&q=1"),
        ("mailto:jane@iki.fi?subject=x", "mailto:<EMAIL>?subject=x"),
        ("https://jane:password@example.org/a", "https://example.org/a"),
        ("ftp://jane%40example.org:secret@ftp.example.org/", "ftp://ftp.example.org/"),
    ],
)
def test_personal_data_is_taken_out(url: str, expected: str) -> None:
    assert scrub_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/@jane", "https://example.org/photos/12345@N00/", "https://unpkg.com/react@18.2.0/index.js", "https://example.org/a%40b",
        "https://example.org/?id=2125552368", "", "no url",
    ],
)  # fmt: skip
def test_everything_else_stays(url: str) -> None:
    assert scrub_url(url) == url


@given(st.lists(st.none() | st.text(st.sampled_from("htps:/@ab.%40org?=&é\U0001f600"), max_size=30), max_size=5))
def test_an_array_is_its_urls_one_by_one_and_twice_is_once(urls: list[str | None]) -> None:
    expected = [None if url is None else scrub_url(url) for url in urls]
    scrubbed = scrub_urls(pa.array(urls, pa.string()))
    assert scrubbed.to_pylist() == expected
    assert scrub_urls(scrubbed).to_pylist() == expected
