"""Sets aside pages by their URL: listed hosts, listed URLs, and listed words."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Shards, Stage, set_aside

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

Failure = dict[str, str | int]
"""One rule that a URL fails, with what was found and the list or bound that it was found against."""

NO_FILE = FilePath("")

WORD = re.compile(r"[a-z0-9]+")

PARTS = (
    r"^(?i:[a-z][a-z0-9+.-]*)://(?:[^/?#@\s]*@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\\<>^`{|}\"\s\x00-\x1f]+)(?::[0-9]*)?(?:[/?#][^\r\n]*)?$"
)
"""A URL with a host (RFC 3986, 3.2); whatever follows the host is taken as it comes, as crawlers do."""


@dataclass(frozen=True, slots=True)
class Params:
    """Lists of what is not wanted: UTF-8 files with one item per line, `#` comments, plain or compressed.

    `domains` holds hosts: each stands for itself and all hosts below it. `urls` holds URLs, with or without scheme,
    `www.`, fragment and last slash. `hard_words` sets a page aside for one word of its URL, `soft_words` for
    `soft_limit` different ones; words are the runs of ASCII letters and digits in the URL, in lower case.
    All lists are empty by default, so that only URLs without a host are set aside.
    """

    domains: FilePath = NO_FILE
    urls: FilePath = NO_FILE
    hard_words: FilePath = NO_FILE
    soft_words: FilePath = NO_FILE
    soft_limit: int = 2


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of `Params`, read and normalized."""

    hosts: frozenset[str]
    urls: frozenset[str]
    hard: frozenset[str]
    soft: frozenset[str]


def suffix_list() -> FilePath:
    """Return the path of the Public Suffix List in the installed package publicsuffixlist, without importing it."""
    package = find_spec("publicsuffixlist")
    if package is None or package.origin is None:
        message = "filter_url: package publicsuffixlist is not installed; install it"
        raise RecipeError(message)
    return FilePath(str(Path(package.origin).parent / "public_suffix_list.dat"))


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the files whose content decides the output: the lists given, and the Public Suffix List."""
    lists = (params.domains, params.urls, params.hard_words, params.soft_words)
    return (*(path for path in lists if path), suffix_list())


def screen(batches: Batches, *, params: Params) -> Batches:
    """Set aside each row whose URL is listed or has no host, with everything that is against it as evidence.

    Rules in the order of huggingface/datatrove `src/datatrove/pipeline/filters/url_filter.py`: domain (the part of
    the host that somebody registered), subdomain, url, hard words (there `hard_blacklisted`), soft words
    (`soft_blacklisted`). A row without a URL is kept.
    """
    from publicsuffixlist import PublicSuffixList

    lists = _read(params)
    lineage = cache(partial(_lineage, PublicSuffixList(only_icann=True)))
    for batch in batches:
        urls = pc.utf8_trim_whitespace(batch.column("url").cast(pa.string()))
        parts = pc.extract_regex(urls, PARTS).to_pylist()
        failures = [
            _failures(url, _hosts(part, lineage), lists, params.soft_limit) if url else []
            for url, part in zip(urls.to_pylist(), parts, strict=True)
        ]
        reasons = pa.array([failed[0]["rule"] if failed else None for failed in failures], pa.string())
        yield set_aside(batch, reasons, pa.array([_evidence(failed) for failed in failures], pa.string()))


def _read(params: Params) -> Lists:
    """Read the lists; hosts and URLs in the form that `_failures` compares, words in lower case."""
    from pipeline_tasks.text.wordlist import read

    return Lists(
        hosts=frozenset(_name(item.strip(".")) for item in read(params.domains)),
        urls=frozenset(_bare(item.partition("://")[2] or item) for item in read(params.urls)),
        hard=frozenset(item.lower() for item in read(params.hard_words)),
        soft=frozenset(item.lower() for item in read(params.soft_words)),
    )


def _bare(url: str) -> str:
    """Return a URL after its scheme in the form of the list: lower-case host, no `www.`, fragment or last slash."""
    host, slash, rest = url.strip().partition("#")[0].partition("/")
    return f"{host.lower().removeprefix('www.')}{slash}{rest}".rstrip("/")


def _lineage(suffixes: "PublicSuffixList", host: str) -> tuple[str, ...]:
    """Return the hosts that `host` lies below, from the registered domain to itself; nothing if it is no host name.

    An IP address, a public suffix and a name without dots are their own registered domain.
    """
    try:
        return (str(ip_address(host.strip("[]"))),)
    except ValueError:
        pass
    name = _name(host)
    labels = name.split(".")
    registered = suffixes.privatesuffix(name) or name
    least = registered.count(".") + 1
    return tuple(".".join(labels[-size:]) for size in range(least, len(labels) + 1)) if all(labels) else ()


def _name(host: str) -> str:
    """Return a host name in lower-case ASCII (IDNA), empty if it has no such form."""
    try:
        return host.lower().removesuffix(".").encode("idna").decode()
    except UnicodeError:
        return ""


def _hosts(part: dict[str, str] | None, lineage: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
    """Return the lineage of the host that `PARTS` found, nothing if it found none."""
    return lineage(part["host"]) if part else ()


def _failures(url: str, hosts: tuple[str, ...], lists: Lists, soft_limit: int) -> list[Failure]:
    """Return everything that is against a URL, in the order of the rules."""
    if not hosts:
        return [{"rule": "filter_url:bad_url", "value": url[:200], "bound": "scheme://host"}]
    words = set(WORD.findall(url.lower()))
    hard, soft = sorted(words & lists.hard), sorted(words & lists.soft)
    below = [host for host in hosts[1:] if host in lists.hosts]
    found: tuple[tuple[bool, str, str, str | int], ...] = (
        (hosts[0] in lists.hosts, "domain", hosts[0], "domains"),
        (bool(below), "subdomain", ",".join(below), "domains"),
        (bool(lists.urls) and _bare(url.partition("://")[2]) in lists.urls, "url", url[:200], "urls"),
        (bool(hard), "hard_word", ",".join(hard), "hard_words"),
        (len(soft) >= soft_limit, "soft_words", ",".join(soft), soft_limit),
    )
    against = (one for fails, *one in found if fails)
    return [{"rule": f"filter_url:{why}", "value": value, "bound": bound} for why, value, bound in against]


def _evidence(failed: list[Failure]) -> str | None:
    """Return failed rules as canonical JSON, null for none."""
    return json.dumps(failed, sort_keys=True, separators=(",", ":")) if failed else None


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Judge every shard by itself."""
    return on.map(partial(screen, params=params), shards)


STAGE = Stage(
    name="filter_url",
    run=run,
    params=Params,
    reads=pa.schema([DOCUMENT.field("url")]),
    writes=DOCUMENT,
    version=1,
    splits=True,
    measures=("chars",),
    fires=tuple(f"filter_url:{why}" for why in ("bad_url", "domain", "subdomain", "url", "hard_word", "soft_words")),
    engine="spark",
    title="Set aside unwanted hosts, URLs and words in URLs",
)
