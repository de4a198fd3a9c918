"""filter_url sets aside listed hosts, URLs and words, and says which."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from pipeline_tasks.stages.filter_url import STAGE, Params, resources, screen, suffix_list
from tests.documents import documents
from tests.refining import given, refined, rows


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, str]:
    content = {
        "domains": "# hosts\nevil.co.uk\nbad.blogspot.com\nbücher.example\n",
        "urls": "https://www.example.com/Casino/\nexample.org/page?id=1\n",
        "hard_words": "Casino-free\nxxx\n",
        "soft_words": "free\nporn\nbet\n",
    }
    for name, text in content.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: str(tmp_path / name) for name in content}


def reasons(given_urls: list[str | None], /, **params: object) -> list[str | None]:
    batch = pa.record_batch({"url": pa.array(given_urls, pa.string())})
    (out,) = screen(iter([batch]), params=Params(**params))  # type: ignore[arg-type]
    return [reason and reason.removeprefix("filter_url:") for reason in out["reason"].to_pylist()]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://evil.co.uk", "domain"),
        ("HTTPS://user:pw@WWW.Evil.CO.UK.:8080/a?b#c", "domain"),
        ("http://notevil.co.uk/", None),
        ("http://co.uk/", None),
        ("https://x.bad.blogspot.com/1", "subdomain"),
        ("https://good.blogspot.com/1", None),
        ("https://bücher.example/", "domain"),
        ("https://xn--bcher-kva.example/", "domain"),
        ("http://example.com/Casino#top", "url"),
        ("http://example.com/casino", None),
        ("http://www.example.org/page?id=1", "url"),
        ("http://a.com/XXX?x", "hard_word"),
        ("http://a.com/xxxl", None),
        ("http://a.com/free-porn", "soft_words"),
        ("http://free.a.com/free/freedom", None),
        ("http://1.2.3.4/", None),
        ("http://[2001:db8::1]:80/x", None),
        ("http://localhost/", None),
        ("", None),
        (None, None),
    ],
)
def test_lists(lists: dict[str, str], url: str | None, reason: str | None) -> None:
    assert reasons([url], **lists) == [reason]


@pytest.mark.parametrize(
    "url", ["nonsense", "http://", "http:///path", "http://a..b/", "http://a b/", "://x", "http://[::1/"]
)
def test_urls_without_a_host_are_bad(url: str) -> None:
    assert reasons([url]) == ["bad_url"]


def test_empty_lists_keep_every_url_with_a_host() -> None:
    assert reasons(["http://xxx.porn/free", "ftp://a.b/c"]) == [None, None]


def test_everything_against_a_url_is_evidence(lists: dict[str, str]) -> None:
    batch = pa.record_batch({"url": ["http://evil.co.uk/xxx/free/bet"]})
    (out,) = screen(iter([batch]), params=Params(**lists))  # type: ignore[arg-type]
    assert json.loads(out["evidence"][0].as_py()) == [
        {"bound": "domains", "rule": "filter_url:domain", "value": "evil.co.uk"},
        {"bound": "hard_words", "rule": "filter_url:hard_word", "value": "xxx"},
        {"bound": 2, "rule": "filter_url:soft_words", "value": "bet,free"},
    ]


def test_lists_and_suffixes_are_resources(lists: dict[str, str]) -> None:
    assert set(resources(Params(**lists))) == {*lists.values(), suffix_list()}  # type: ignore[arg-type]
    assert resources(Params()) == (suffix_list(),)


@settings(max_examples=40, deadline=None)
@drawn(st.lists(st.text(max_size=30) | st.text(max_size=20).map("http://{}/".format) | st.none(), max_size=9))
def test_any_text_is_judged(urls: list[str | None]) -> None:
    whole = reasons(urls)
    assert len(whole) == len(urls)
    assert whole == [*reasons(urls[:4]), *reasons(urls[4:])]


def test_rows_are_conserved_and_a_list_changes_the_fingerprint(tmp_path: Path, lists: dict[str, str]) -> None:
    urls = ["http://evil.co.uk", "https://example.net/", None, "nonsense"]
    table = documents(["text"] * len(urls), urls)
    prints = set()
    for batch_rows in (1, 7, 10_000):
        root = tmp_path / str(batch_rows)
        parent = given(root, [table, table[:0]])
        _, manifest = refined(root, "filter_url", parent, {"domains": lists["domains"]}, batch_rows=batch_rows)
        kept = rows(root, manifest)
        assert kept.schema.names == STAGE.writes.names
        assert kept["url"].to_pylist() == ["https://example.net/", None]
        assert dict(manifest.rejected) == {"filter_url:bad_url": 1, "filter_url:domain": 1}
        prints.add(manifest.fingerprint)
    assert len(prints) == 1
    Path(lists["domains"]).write_text("example.net\n", encoding="utf-8")
    _, changed = refined(root, "filter_url", parent, {"domains": lists["domains"]})
    assert changed.fingerprint not in prints
