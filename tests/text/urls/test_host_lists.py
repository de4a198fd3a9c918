"""Lists of hosts are read in the forms in which they are published; a line that would block nothing is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.urls.host_lists import plain_hosts
from pipeline_tasks.text.urls.lists import HOST, entry_text, read_list


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("ads.example.org", ["ads.example.org"]),
        ("  Ads.Example.org.  \r", ["ads.example.org"]),
        ("ads.example.org # since May", ["ads.example.org"]),
        ("0.0.0.0 ads.example.org", ["ads.example.org"]),
        ("127.0.0.1\tads.example.org www.example.net # both", ["ads.example.org", "www.example.net"]),
        ("::1 localhost ip6-loopback", []),
        ("0.0.0.0 0.0.0.0", []),
        ("||ads.example.org^", ["ads.example.org"]),
        ("||ads.example.org^$document,important", ["ads.example.org"]),
        ("*.example.org", ["example.org"]),
        (".example.org", ["example.org"]),
        ("https://ads.example.org/", ["ads.example.org"]),
        ("http://ads.example.org:8080", ["ads.example.org"]),
        ("! Title: a list", []),
        ("[Adblock Plus 2.0]", []),
        ("# a remark with spaces", []),
    ],
)
def test_a_line_gives_its_hosts(line: str, hosts: list[str], tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(f"first.example\n{line}\nlast.example\n")
    table, others = read_list(str(tmp_path / "hosts"), HOST)
    assert [entry_text(table, number) for number in range(len(table[1]) - 1)] == [
        "first.example",
        *hosts,
        "last.example",
    ]
    assert others == []


@pytest.mark.parametrize(
    "line",
    [
        "https://example.org/page.html",
        "example.org/ads",
        "||example.org^$third-party",
        "||example.org/ads/*",
        "@@||example.org^",
        "example.org##.banner",
        "/banner[0-9]+/",
        "address=/example.org/0.0.0.0",
        "two hosts.example",
        "ads.*.example.org",
    ],
)
def test_a_line_that_would_block_nothing_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(RecipeError, match=r"lists/hosts: line 3 .*`urls`"):
        plain_hosts(f"first.example\n\n{line}\nlast.example".encode(), "lists/hosts")


@given(st.lists(st.from_regex(r"[a-z0-9.\-]{1,20}", fullmatch=True) | st.sampled_from(["# a b", "", "  "]), max_size=9))
def test_a_list_of_plain_hosts_is_taken_as_it_is(lines: list[str]) -> None:
    content = "\n".join(lines).encode()
    assert plain_hosts(content, "hosts") == content
