"""URLs and mail addresses are recognized by the rules of spaCy's URL pattern, worked by hand."""

import numpy as np
import pytest

from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.words.spacy_urls import is_url


@pytest.mark.parametrize(
    "text",
    [
        "a.com", "www.a-b.co.uk", "a.com:80", "a.com/x?y#z", "a.com?q", "http://a.com", "ftp://a.b.com:8080/x", "a@b.com",
        "a.b-c@d.org/x", "8.8.8.8", "223.255.255.254", "8.8.8.8:53/a", "é.com", "http://8.8.8.8#a", f"{'a' * 64}.com",
    ],
)  # fmt: skip
def test_urls(text: str) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    assert is_url(data, 0, len(data), *classes())


@pytest.mark.parametrize(
    "text",
    [
        "a", "com", "a.c", "a.Com", "-a.com", "a-.com", "a..com", ".com", "a.com:8", "a.com:123456", "a.com,b", "http:/a.com",
        "10.0.0.1", "127.0.0.1", "192.168.0.1", "169.254.1.1", "172.16.0.1", "172.31.0.1", "224.0.0.1", "1.2.3.255", "01.2.3.4",
        "1.2.3", "1.2.3.4x", "a@b", f"{'a' * 65}.com", f"a.{'b' * 64}", "", "@", "://",
    ],
)  # fmt: skip
def test_other_words(text: str) -> None:
    data = np.frombuffer(text.encode() + b" ", np.uint8)
    assert not is_url(data, 0, len(data) - 1, *classes())
