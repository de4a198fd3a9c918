"""filter_url rejects listed hosts, URLs and words, and names them."""

import gzip
import json
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from publicsuffixlist import PublicSuffixList

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stages.filter_url import RULES, STAGE, Params, read_lists, resources, screen, suffix_list
from tests.documents import documents
from tests.refining import commit_parent, refined, rows

CONTENT = {
    "domains": "# hosts\nevil.co.uk\n  bad.blogspot.com\r\nbücher.example\n\n1.2.3.4\n[2001:DB8::1]\nnowhere\n",
    "urls": "https://www.example.com/Casino/\nexample.org/page?id=1\nEXAMPLE.net#top\n",
    "hard_words": "#casino\nCasino-free\nxxx\n",
    "soft_words": "free\nporn\nbet\n",
    "subwords": "2 girls\nsexcam\nsex-shop\n",
}


def written(folder: Path, content: Mapping[str, str]) -> dict[str, str]:
    for name, text in content.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: str(folder / name) for name in content}


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return written(tmp_path_factory.mktemp("lists"), CONTENT)


def screened(given_urls: list[str | None], **params: Any) -> pa.RecordBatch:
    batch = pa.record_batch({"url": pa.array(given_urls, pa.string())})
    (out,) = screen(iter([batch]), params=Params(**params))
    return out


def reasons(given_urls: list[str | None], /, **params: Any) -> list[str | None]:
    out = screened(given_urls, **params)["reason"].to_pylist()
    return [reason and reason.removeprefix("filter_url:") for reason in out]


@pytest.mark.parametrize(
    ("url", "reason", "exact"),
    [
        ("http://evil.co.uk", "domain", "domain"),
        ("HTTPS://user:pw@WWW.Evil.CO.UK.:8080/a?b#c", "domain", None),
        ("http://notevil.co.uk/", None, None),
        ("http://co.uk/", None, None),
        ("https://bad.blogspot.com/1", "subdomain", "subdomain"),
        ("https://x.bad.blogspot.com/1", "subdomain", None),
        ("https://good.blogspot.com/1", None, None),
        ("https://bücher.example/", "domain", None),  # no registry has `.example`, so datatrove sees no domain
        ("https://xn--bcher-kva.example/", "domain", None),
        ("https://www.example.com/Casino/", "url", "url"),
        ("http://example.com/Casino#top", "url", None),
        ("http://example.com/casino", None, None),
        ("http://www.example.org/page?id=1", "url", None),
        ("http://example.net", "url", None),
        ("http://a.com/xxx?x", "hard_blacklisted", "hard_blacklisted"),
        ("http://a.com/XXX?x", "hard_blacklisted", None),
        ("http://a.com/xxxl", None, None),
        ("http://a.com/CasinoFree", "hard_blacklisted", None),
        ("http://a.com/casinofree", "hard_blacklisted", "hard_blacklisted"),
        ("http://a.com/free-porn", "soft_blacklisted", "soft_blacklisted"),
        ("http://a.com/free-free", None, None),
        ("http://free.a.com/free/freedom", None, None),
        ("http://a.com/the-2-GIRLS", "blacklisted_subword", "blacklisted_subword"),
        ("http://essex.shop/", "blacklisted_subword", "blacklisted_subword"),
        ("http://1.2.3.4/", "domain", None),
        ("http://1.2.3.04/", "domain", None),  # browsers read octal, hexadecimal and whole numbers, too
        ("http://16909060/", "domain", None),
        ("http://0x1.2.772/", "domain", None),
        ("http://1.2.3.5/", None, None),
        ("http://%31.2.3.4/", "domain", None),
        ("http://[2001:db8:0::1]:80/x", "domain", None),
        ("http://[2001:db8::2]:80/x", None, None),
        ("http://nowhere/", "domain", None),
        ("http://localhost/", None, None),
        ("", None, None),
        ("  \n", None, None),
        (None, None, None),
    ],
)
def test_lists(lists: dict[str, str], url: str | None, reason: str | None, exact: str | None) -> None:
    assert reasons([url], **lists) == [reason]
    assert reasons([url], **lists, matching="exact") == [exact]


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "http://",
        "http:///path",
        "http://a..b/",
        "http://a b/",
        "://x",
        "1http://a.com",
        "http://[::1/",
        "http://[::zz]/",
        "http://[]/",
        "http://a@b@c.com/",
        "http://a.com:8o/",
        "http://a.com/\nx",
        "http://x.ü..com/",
        f"http://{'a' * 64}.com/",
        f"http://{'a.' * 130}com/",
    ],
)
def test_urls_without_a_host_are_bad(url: str) -> None:
    assert reasons([url]) == ["bad_url"]


def test_empty_lists_keep_every_url_with_a_host() -> None:
    assert reasons(["http://xxx.porn/free", "ftp://a.b/c", " http://a.com:/x y "]) == [None, None, None]


def test_a_document_of_a_folder_has_no_host_to_be_judged(lists: dict[str, str]) -> None:
    """A folder of documents was refused by its gate: 100 % of its rows were bad URLs."""
    addresses = ["file:///manual%201.pdf", "file:///sub/a.txt"]
    assert reasons(addresses) == reasons(addresses, **lists) == [None, None]
    assert reasons(["file:/a", "file://", "file:///"]) == ["bad_url", "bad_url", None]


def test_everything_against_a_url_is_evidence(lists: dict[str, str]) -> None:
    out = screened(["http://evil.co.uk/xxx/free/bet/bet/sexcam", "http://a.com/"], **lists)
    assert json.loads(out["evidence"][0].as_py()) == [
        {"bound": "domains", "rule": "filter_url:domain", "value": "evil.co.uk"},
        {"bound": "hard_words", "rule": "filter_url:hard_blacklisted", "value": "xxx"},
        {"bound": 2, "rule": "filter_url:soft_blacklisted", "value": "bet,free"},
        {"bound": "subwords", "rule": "filter_url:blacklisted_subword", "value": "sexcam"},
    ]
    assert out["evidence"][1].as_py() is None


def test_a_url_of_a_million_words_tells_some_of_them(lists: dict[str, str], tmp_path: Path) -> None:
    many = written(tmp_path, {"hard_words": "".join(f"w{number}\n" for number in range(1000))})
    words = "/".join(f"w{number % 1000}" for number in range(1_000_000))
    (evidence,) = screened([f"http://a.com/{words}"], **many)["evidence"].to_pylist()
    assert json.loads(evidence)[0]["value"].count(",") == 99


@pytest.mark.parametrize("wrong", [0, 101])
def test_soft_limits_that_cannot_be_counted_are_refused(wrong: int) -> None:
    with pytest.raises(RecipeError, match="soft_limit"):
        bind(STAGE, {"soft_limit": wrong})


def test_lists_and_suffixes_are_resources(lists: dict[str, str]) -> None:
    assert set(resources(Params(**lists))) == {*lists.values(), suffix_list()}  # type: ignore[arg-type]
    assert resources(Params()) == (suffix_list(),)


def test_lists_may_be_compressed_and_stay_loaded(lists: dict[str, str], tmp_path: Path) -> None:
    packed = {name: str(tmp_path / f"{name}.gz") for name in CONTENT}
    for name, text in CONTENT.items():
        Path(packed[name]).write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    urls: list[str | None] = ["http://evil.co.uk/xxx/free/bet/sexcam", "https://bücher.example/", "http://example.net"]
    assert screened(urls, **packed).to_pylist() == screened(urls, **lists).to_pylist()
    assert read_lists(Params(**lists)).tables[0] is read_lists(Params(**lists)).tables[0]  # type: ignore[arg-type]
    Path(packed["domains"]).write_bytes(gzip.compress(b"other.com\n"))
    assert reasons(urls[1:2], **packed) == [None]


# --- The same in plain Python -----------------------------------------------------------------------------------------

SUFFIXES = PublicSuffixList(only_icann=True)
KNOWN = PublicSuffixList(only_icann=True, accept_unknown=False)
PARTS = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@\t-\r ]*@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\\<>^`{|}\"\s\x00-\x20]+)(?::[0-9]*)?(?:[/?#][^\r\n]*)?",
    re.DOTALL | re.ASCII,
)


def plain_name(host: str) -> str | None:
    """Return a host as it is compared, None if it is none."""
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        name = host.lower().removesuffix(".").encode("idna").decode()
    except UnicodeError:
        return None
    return name if all(name.split(".")) and len(name) <= 253 and not re.search(r"[\x00-\x20/?#@:\[\]]", name) else None


def plain_words(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


def plain_bare(url: str) -> str:
    """Return a URL as the list of URLs has it."""
    rest = re.sub("^[A-Za-z][A-Za-z0-9+.-]*://", "", url).partition("#")[0]
    host = re.split("[/?]", rest, maxsplit=1)[0]
    return (re.sub("(?i:^www[.])", "", host).lower() + rest[len(host) :]).rstrip("/")


def plainly(url: str, *, exact: bool) -> str | None:  # noqa: PLR0911 -- one return per rule
    """Return why a URL is rejected, by sets of strings and one regular expression."""
    lines = {name: [line.strip() for line in text.splitlines()] for name, text in CONTENT.items()}
    listed = {name: {line for line in items if line and line[0] != "#"} for name, items in lines.items()}
    url = url.strip()
    if not url or url.startswith("file:///"):
        return None
    parts = PARTS.fullmatch(url)
    name = plain_name(parts["host"]) if parts else None
    if parts is None or name is None:
        return "bad_url"
    host = parts["host"].removesuffix(".") if exact else name
    hosts, own = listed["domains"], plain_name(host) == host and ":" in host
    address = own or (re.fullmatch(r"[0-9.]+", name) and plain_address(name))
    suffixes = KNOWN if exact else SUFFIXES
    registered = name if address else suffixes.privatesuffix(name) or ("" if exact else name)
    listed_hosts = hosts if exact else {plain_name(item.strip(".")) for item in hosts}
    if exact:
        size = registered.count(".") + 1
        known = registered and not address and len(host.split(".")) == len(name.split("."))
        below = [".".join(host.split(".")[-size:]), host] if known else []
    else:
        labels = name.split(".")
        deep = len(registered.split("."))
        below = [name] if address else [".".join(labels[-size:]) for size in range(deep, len(labels) + 1)]
    if below and below[0] in listed_hosts:
        return "domain"
    if any(name_below in listed_hosts for name_below in below[1:]):
        return "subdomain"
    if (url in listed["urls"]) if exact else (plain_bare(url) in {plain_bare(item) for item in listed["urls"]}):
        return "url"
    words = set(re.findall("[A-Za-z0-9]+", url))
    words = words if exact else {word.lower() for word in words}
    if words & {plain_words(item) for item in listed["hard_words"]}:
        return "hard_blacklisted"
    if len(words & {plain_words(item) for item in listed["soft_words"]}) >= 2:
        return "soft_blacklisted"
    joined = plain_words("".join(re.findall("[A-Za-z0-9]+", url)))
    return "blacklisted_subword" if any(plain_words(item) in joined for item in listed["subwords"]) else None


def plain_address(name: str) -> bool:
    try:
        return str(ip_address(name)) == name
    except ValueError:
        return False


PIECES = """
evil co uk . . . / / ? # : @ :80 [ ] [2001:db8::1] bad blogspot com bücher example EXAMPLE Example.COM www. WWW. Casino
casino free Free bet porn xxx XXX sex cam shop 2 girls 1.2.3.4 ck www.ck city.kobe.jp kobe.jp x - _ % é http:// https://
HTTP:// page?id=1 example.org example.net nowhere \\
"""

pieces = st.sampled_from([*PIECES.split(), "\u3002", "\x0b", "\x00", "\u2003", " "])
urls = st.lists(pieces, max_size=9).map("".join)
any_url = urls.map("http://{}".format) | urls.map("http://{}/".format) | urls | st.text(max_size=20)


@given(st.lists(any_url, min_size=1, max_size=12))
def test_compiled_and_plain_rules_agree(lists: dict[str, str], given_urls: list[str]) -> None:
    for exact in (False, True):
        outcomes = reasons([*given_urls], **lists, matching="exact" if exact else "normalized")
        assert outcomes == [plainly(url, exact=exact) for url in given_urls]


@given(st.lists(any_url | st.none(), max_size=9))
def test_any_text_is_judged_by_itself(lists: dict[str, str], given_urls: list[str | None]) -> None:
    whole = screened(given_urls, **lists).to_pylist()
    parts = [*screened(given_urls[:4], **lists).to_pylist(), *screened(given_urls[4:], **lists).to_pylist()]
    assert whole == parts
    for row in whole:
        first = row["evidence"] and json.loads(row["evidence"])[0]["rule"]
        assert row["reason"] == first
        assert first is None or first.removeprefix("filter_url:") in RULES


def test_rows_are_conserved_and_a_list_changes_the_fingerprint(tmp_path: Path) -> None:
    lists = written(tmp_path, CONTENT)
    urls = ["http://evil.co.uk", "https://example.com/", None, "nonsense"]
    table = documents(["text"] * len(urls), urls)
    prints = set()
    for batch_rows in (1, 7, 10_000):
        root = tmp_path / str(batch_rows)
        parent = commit_parent(root, [table, table[:0]])
        _, manifest = refined(root, "filter_url", parent, {"domains": lists["domains"]}, batch_rows=batch_rows)
        kept = rows(root, manifest)
        assert kept.schema.names == STAGE.writes.names
        assert kept["url"].to_pylist() == ["https://example.com/", None]
        assert dict(manifest.rejected) == {"filter_url:bad_url": 1, "filter_url:domain": 1}
        prints.add(manifest.fingerprint)
    assert len(prints) == 1
    for name in CONTENT:
        Path(lists[name]).write_text("example.com\n", encoding="utf-8")
        _, changed = refined(root, "filter_url", parent, {name: lists[name]})
        assert changed.fingerprint not in prints
        prints.add(changed.fingerprint)
