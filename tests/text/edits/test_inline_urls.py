"""URLs and addresses go out of texts as two patterns of DCLM take them, and nothing else goes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.edits import inline_urls
from tests.text import plain_profiles

PIECES = (
    *(".", "..", "/", "//", "://", " ", "          ", "\n", "\t", "\u3000", "\x1c", "\x85", ",", ";", "-", "_", "@"),
    *("com", "co", "uk", "museum", "vermögensberatung", "中国", "भारत", "рф", "COM", "zzz", "é", "中", "ा", "ß"),
    *("http", "https", "ftp", "www", "example", "a", "Z", "b" * 250, "c" * 7, "?q=1&b#x", "(x)", "~%20"),
    *("0", "1", "12", "192", "255", "300", ".1", ".10.0.0", "1.2.3.4", "v3.12.7.4", "example.co.uk", "e.g.", "U.S.A."),
)
TEXTS = st.builds(
    lambda first, pieces: first + "".join(pieces),
    st.sampled_from(["Th", "the ", "IN ", "qq ", "", "\u017fO", "Қ"]),
    st.lists(st.sampled_from(PIECES), max_size=14),
)


def removed(*texts: str | None) -> list[str]:
    return inline_urls.remove_urls(pa.array(texts, pa.large_string())).texts.to_pylist()  # type: ignore[no-any-return]


@given(st.lists(TEXTS, max_size=12))
def test_what_goes_is_what_the_patterns_match(texts: list[str]) -> None:
    assert removed(*texts) == [plain_profiles.without_urls(text) for text in texts]


@pytest.mark.parametrize(
    "url",
    [
        "https://www.example.com", "www.example.org", "example.co.uk", "blog.example.org:8081/post.html", "t.co/x",
        "ftp://user:password@ftp.example.com/files", "https://en.example.org/a_(b)?q=1&r=%20#c", "http://192.168.1.1",
        "https://10.0.0.1:8080/x", "1.1.1.1", "http://example.中国/x",
    ],
)  # fmt: skip
def test_a_url_goes_with_the_white_space_before_it(url: str) -> None:
    assert removed(f"This URL {url} goes.\n{url}\nAnd this\n\n {url}") == ["This URL goes.\nAnd this"]


@pytest.mark.parametrize(
    "text", ["U.S.A.", "e.g. this", "3.14", "999.999.999.999", "1.2.3", "v3.12.7", "A.Com", "x.zzz"]
)
def test_what_is_none_stays(text: str) -> None:
    assert removed(f"This {text} stays.") == [f"This {text} stays."]


def test_urls_go_only_from_texts_that_begin_with_a_domain() -> None:
    """Upstream tests whether the text begins with one: `Th` of `This`, not `Qu` of `Quite`. Addresses always go."""
    assert removed("This: a.com 1.2.3.4", "Quite: a.com 1.2.3.4") == ["This:", "Quite: a.com"]


def test_a_host_has_at_most_256_characters() -> None:
    assert removed(f"This {'a' * 256}.com.", f"This {'a' * 257}.com.") == ["This", "This a"]


def test_nulls_and_slices_keep_their_places() -> None:
    texts = pa.array(["no", "This a.com is", None, "This b.org too", "no"], pa.large_string()).slice(1, 3)
    removed_urls = inline_urls.remove_urls(texts)
    assert removed_urls.texts.to_pylist() == ["This is", "", "This too"]
    assert removed_urls.counts.tolist() == [[1, 0], [0, 0], [1, 0]]
