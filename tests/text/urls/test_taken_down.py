"""Lists of takedowns match ids, URLs however they are written, and hosts with all hosts below them."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.urls.takedown import DOC, SITE, URL, evidence, key_of, keys_of, of_entries, of_rows, read_list


def matches(kind: str, value: str, *urls: str | None) -> list[bool]:
    taken = of_rows([{"kind": kind, "key": key_of(kind, value), "value": value, "takedown": 7}])
    proofs = evidence(taken, pa.record_batch({"url": pa.array(urls, pa.string())})).to_pylist()
    assert {proof for proof in proofs if proof} <= {
        json.dumps({kind: value, "takedown": 7}, sort_keys=True, separators=(",", ":"))
    }
    return [proof is not None for proof in proofs]


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example",
        "http://A.EXAMPLE/x?q=1",
        "https://b.a.example/",
        "https://user:pass@a.example:8443/x",
        "https://a.example./x",
        "ftp://a.example/file",
        " https://a.example/x ",
    ],
)
def test_a_site_has_its_host_and_all_below(url: str) -> None:
    assert matches(SITE, "a.example", url) == [True]
    assert matches(SITE, " A.Example. ", url) == [True]


@pytest.mark.parametrize(
    "url", ["https://ba.example/", "https://example/a.example", "https://b.example/?u=a.example", "a.example", "", None]
)
def test_a_site_has_no_other(url: str | None) -> None:
    assert matches(SITE, "a.example", url) == [False]


def test_hosts_with_other_letters_are_one_with_their_encoding() -> None:
    urls = ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/", "https://bucher.example/")
    assert matches(SITE, "b\u00fccher.example", *urls) == [True, True, False]
    assert matches(SITE, "xn--bcher-kva.example", *urls) == [True, True, False]
    assert matches(SITE, "10.0.0.1", "http://10.0.0.1:80/x", "http://10.0.0.11/") == [True, False]


def test_a_url_is_one_however_it_is_written() -> None:
    urls = (
        "http://a.example/x/#top",
        "https://A.example/x?utm_source=mail",
        "https://a.example/X",
        "https://a.example/x?p=1",
    )
    assert matches(URL, "https://a.example/x", *urls) == [True, True, False, False]


def test_an_id_comes_before_a_url_and_a_url_before_a_site() -> None:
    rows = [("doc", "0" * 32), ("url", "https://a.example/x"), ("site", "a.example")]
    taken = of_rows({"kind": kind, "key": key_of(kind, value), "value": value, "takedown": 1} for kind, value in rows)
    urls = pa.array(["https://a.example/x", "https://a.example/x", "https://a.example/y", "https://b.example/", None])
    ids = pa.array(["0" * 32, "1", "2", "3", "4"])
    proofs = [
        json.loads(proof or "{}") for proof in evidence(taken, pa.record_batch({"url": urls, "id": ids})).to_pylist()
    ]
    assert [proof.keys() - {"takedown"} for proof in proofs] == [{"doc"}, {"url"}, {"site"}, set(), set()]


def test_nothing_is_on_no_list() -> None:
    assert evidence(read_list(""), pa.record_batch({"url": ["https://a.example/"], "id": ["1"]})).to_pylist() == [None]
    assert evidence(read_list(""), pa.record_batch({"url": pa.array([], pa.string())})).to_pylist() == []
    assert evidence(of_entries([(DOC, "1")]), pa.record_batch({"text": ["1"]})).to_pylist() == [None]


def test_a_generated_document_is_taken_down_with_its_parent() -> None:
    source, other, one, two = ("".join(letter * 32) for letter in "abcd")
    rows = pa.table({"id": [source, one, two, other], "parent": [None, source, other, None]})
    by_source = [proof is not None for proof in evidence(of_entries([(DOC, source)]), rows).to_pylist()]
    assert by_source == [True, True, False, False]
    by_itself = [proof is not None for proof in evidence(of_entries([(DOC, one)]), rows).to_pylist()]
    assert by_itself == [False, True, False, False]


@given(st.lists(st.text(max_size=40), max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_any_text_is_compared_as_a_url(urls: list[str], sites: list[str]) -> None:
    rows = [{"kind": SITE, "key": key_of(SITE, site), "value": site, "takedown": 1} for site in sites]
    assert len(evidence(of_rows(rows), pa.record_batch({"url": pa.array(urls, pa.string())}))) == len(urls)


def test_the_keys_of_many_entries_are_those_of_each() -> None:
    named = [
        ("site", "A.example."),
        ("url", "http://"),
        ("doc", "AB" * 16),
        ("url", "HTTPS://a.example:443/x/?utm_id=1"),
    ]
    assert keys_of(named) == [key_of(kind, value) for kind, value in named]
    assert keys_of(named) == ["a.example", "", "ab" * 16, "a.example/x"]
    assert keys_of([]) == []
