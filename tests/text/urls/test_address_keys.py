"""All forms of one address have one canonical form, and other addresses have others."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.urls.addresses import PORTS, canonical, canonical_host, canonical_url
from pipeline_tasks.text.urls.hosts import locate_hosts
from pipeline_tasks.text.urls.keys import hosts, keys, origins
from pipeline_tasks.text.urls.sites import sites
from pipeline_tasks.text.urls.takedown import URL, evidence, key_of, of_entries

FORMS = [
    ["http://a.example/", "HTTP://A.EXAMPLE", "http://a.example:80", "http://u:p@a.example./", " http:\\\\a.example\\ "],
    ["https://a.example/~b/s?q=%27", "https://a.example/%7eb/./c/../%73?q='#f", "https://a.example//../%7Eb/%2E/s?q='"],
    ["https://xn--bcher-kva.example/", "https://B\u00dcCHER.example", "https://b%C3%BCcher.example", "https://XN--BCHER-KVA.example/"],
    ["https://xn--strae-oqa.example/%C3%BC", "https://stra\u00dfe.example/\u00fc", "https://stra\u00dfe.example/%c3%bc"],
    ["http://127.0.0.1/x", "http://0x7f.1/x", "http://2130706433/x", "http://0177.0.0.1/x", "http://\uff11\uff12\uff17.0.0.1/x"],
    ["http://[::1]:8080/", "http://[0:0::0:1]:08080/"],
    ["https://a.example/a%20b?c[]=%7C".replace("[]", "%5B%5D"), "https://a.example/a b?c[]=|", "https://a.example/a\t%20b?c[]=%7c"],
    ["ftp://a.example/x", "ftp://a.example:21/x"],
]  # fmt: skip

APART = [
    "https://a.example/x",
    "https://a.example/X",
    "https://a.example/x%2Fy",
    "https://a.example/x/y",
    "https://a.example/x?a=1&b=2",
    "https://a.example/x?b=2&a=1",
    "https://a.example/x?a=1+2",
    "https://a.example/x?a=1%202",
    "https://a.example:8443/x",
    "https://www.a.example/x",
    "https://strasse.example/x",
    "https://stra\u00dfe.example/x",
    "http://1.2.3.4/x",
    "http://1.2.34/x",
    "http://256.1.1.1/x",
    "ftp://a.example/x",
    "https://a.example/100%25",
    "https://a.example/..x",
]


@pytest.mark.parametrize("forms", FORMS, ids=lambda forms: forms[0])
def test_forms_of_an_address_are_one(forms: Sequence[str]) -> None:
    assert {canonical_url(form) for form in forms} == {forms[0]}
    assert len({key_of(URL, form) for form in forms}) == 1


def test_other_addresses_are_others() -> None:
    assert len({canonical_url(url) for url in APART}) == len(APART)
    assert len({key_of(URL, url) for url in APART}) == len(APART)


@pytest.mark.parametrize("text", ["", "a.example/x", "mailto:a@b.example", "https:x", "//a.example/x", "about:blank"])
def test_what_is_no_address_is_left_as_it_is(text: str) -> None:
    assert canonical(pa.array([text, None])).to_pylist() == [text, None]


LABELS = st.text("abcxyz09\u00e4\u00df\u0431", min_size=1, max_size=6)
SEGMENTS = st.text("aZ09-_~ .%\u00e9/+;@", max_size=8)
Parts = tuple[list[str], list[str], list[str]]
PARTS = st.tuples(
    st.lists(LABELS, min_size=1, max_size=3), st.lists(SEGMENTS, max_size=4), st.lists(SEGMENTS, max_size=3)
)


def _percent(text: str, keep: str) -> str:
    return "".join(letter if letter in keep else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in text)


PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~."


def written(parts: Parts, draw: st.DataObject | None = None) -> str:
    """Return the address of a host, segments and parameters; with `draw` in one of its many forms."""
    labels, segments, asked = parts
    named = [segment for segment in segments if segment not in ("", ".", "..")]
    if draw is None:
        path, query = (
            "/".join(_percent(each, PLAIN) for each in named),
            "&".join(_percent(each, PLAIN) for each in asked),
        )
        return f"https://{'.'.join([*labels, 'example'])}/{path}?{query}"
    host = "".join(draw.draw(st.sampled_from([letter, _percent(letter, "")])) for letter in ".".join(labels))
    host = draw.draw(st.sampled_from([host, host.upper() if "%" not in host and "\u00df" not in host else host]))
    path = "/".join(_any_form(each, draw) for each in named)
    path = draw.draw(st.sampled_from([path, f"./{path}", f"x/../{path}", f"%2E/{path}", f"q/%2e%2E/{path}"]))
    port, user, end = (
        draw.draw(st.sampled_from(each)) for each in (["", ":443", ":"], ["", "u@", "u:p@"], ["", "#f?"])
    )
    query = "&".join(_any_form(each, draw) for each in asked)
    return f"{draw.draw(st.sampled_from(['https', 'HTTPS']))}://{user}{host}.Example{port}/{path}?{query}{end}"


def _any_form(text: str, draw: st.DataObject) -> str:
    """Return text in which some letters that may stand for themselves have percent forms, in any case."""
    forms = [_percent(letter, PLAIN) for letter in text]
    for at, letter in enumerate(text):
        if draw.draw(st.booleans()):
            forms[at] = letter if letter == "\u00e9" else _percent(letter, "").lower()
    return "".join(forms)


@given(PARTS, st.data())
def test_any_form_of_an_address_is_taken_down_with_it(parts: Parts, data: st.DataObject) -> None:
    form = written(parts, data)
    assert canonical_url(form) == canonical_url(written(parts))
    assert evidence(of_entries([(URL, written(parts))]), pa.record_batch({"url": [form]})).null_count == 0


@given(PARTS, st.data())
def test_the_compiled_parser_reads_the_host_of_a_canonical_address(parts: Parts, data: st.DataObject) -> None:
    urls = pa.array([written(parts, data)])
    offsets, bytes_ = views(canonical(urls))
    places, _ = locate_hosts(offsets, bytes_.copy())
    host = bytes_[places[0, 2] : places[0, 3]].tobytes().decode()
    assert [host] == hosts(urls).to_pylist() == [_named(parts)[0]]


def _named(parts: Parts) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return what an address names: empty parameters and segments do not count."""
    labels, segments, asked = parts
    named = [segment for segment in segments if segment not in ("", ".", "..")]
    return canonical_host(".".join([*labels, "example"])), tuple(named), tuple(each for each in asked if each)


@given(PARTS, PARTS)
@example((["a"], ["x/y"], []), (["a"], ["x", "y"], []))
@example((["a"], ["x"], ["y"]), (["a"], ["x", "y"], []))
def test_two_addresses_are_one_only_if_they_name_the_same(one: Parts, other: Parts) -> None:
    keys = [key_of(URL, written(each)) for each in (one, other)]
    assert (keys[0] == keys[1]) == (_named(one) == _named(other))


@given(st.lists(st.text(max_size=30) | PARTS.map(written), max_size=6))
def test_canonical_addresses_stay_as_they_are_and_many_are_as_each(urls: list[str]) -> None:
    once = canonical(pa.array(urls, pa.string()))
    assert once.to_pylist() == [canonical_url(url) for url in urls]
    assert canonical(once) == once


@given(st.sampled_from(sorted(PORTS)), st.from_regex(r"[a-z]{1,5}(\.[a-z0-9-]{1,5}){0,2}", fullmatch=True))
def test_the_port_of_a_scheme_is_none(scheme: str, host: str) -> None:
    assert canonical_url(f"{scheme}://{host}:{PORTS[scheme]}/") == canonical_url(f"{scheme}://{host}")


def test_an_address_that_was_scrubbed_is_taken_down_by_the_one_that_it_was() -> None:
    taken = of_entries([(URL, "https://a.example/of/jane%40corp.example/x?y=1")])
    urls = [
        "https://a.example/of/<EMAIL>/x?y=1",
        "https://a.example/of/%3CEMAIL%3E/x?y=1",
        "https://a.example/of/<EMAIL>/x",
        "https://a.example/of/joe/x?y=1",
        "https://a.example/of/joe@corp.example/x?y=1",
    ]
    assert [proof is not None for proof in evidence(taken, pa.record_batch({"url": urls})).to_pylist()] == [
        True,
        True,
        False,
        False,
        False,
    ]


LONG = "9" * 5000
"""More digits than `int` reads of a text."""


@pytest.mark.parametrize(
    "url",
    [
        f"http://a.example:{LONG}/x",
        f"http://{LONG}/x",
        f"http://1.2.3.{LONG}/",
        f"http://0x{'f' * 9000}/",
        "http://a.example:٣/",
    ],
)
def test_digits_of_any_number_are_read(url: str) -> None:
    """One such address stopped a run at every try."""
    urls = pa.array([url, "https://a.example/"])
    assert [len(read(urls)) for read in (canonical, keys, hosts, origins, sites)] == [2] * 5
    assert canonical_url(canonical_url(url)) == canonical_url(url)


@given(st.text(max_size=60), st.text(alphabet="0123456789xX.:[]@%-abn", max_size=60))
def test_no_text_ends_the_reading_of_addresses(text: str, authority: str) -> None:
    for url in (text, f"http://{authority}", f"https://{authority}/{text}", f"http://{text}.example"):
        assert isinstance(canonical_url(url), str)
