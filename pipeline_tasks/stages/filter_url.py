"""Sets aside pages by their URL: listed hosts, listed URLs, and listed words."""

import json
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Shards, Stage, reject

if TYPE_CHECKING:
    from pipeline_tasks.text.urls.blocklists import Subwords, Suffixes, Tables
    from pipeline_tasks.text.urls.lists import Table

Failure = dict[str, str | int]
"""One rule that a URL fails, with what was found and the list or bound that it was found against."""

NO_FILE = FilePath("")

MOST_SOFT = 100
"""Different soft words of one URL that are counted (`text.blocked.MOST`)."""

SHOWN = 200
"""Characters of a URL in evidence."""

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

RULES = ("bad_url", "domain", "subdomain", "url", "hard_blacklisted", "soft_blacklisted", "blacklisted_subword")
"""By the numbers of `text.blocked`; all but the first are the reasons of datatrove's filter, in its order."""


@dataclass(frozen=True, slots=True)
class Params:
    """Lists of what is not wanted: UTF-8 files with one item per line, `#` comments, plain or compressed (.gz, .zst).

    `domains` holds hosts: each stands for itself and all hosts below it. `urls` holds URLs, with or without scheme,
    `www.`, fragment and last slash. `hard_words` sets a page aside for one word of its URL, `soft_words` for
    `soft_limit` different ones; words are the runs of ASCII letters and digits in the URL, in lower case. `subwords`
    sets it aside for a stretch of all its letters and digits joined. Of the items of these three lists, too, only
    letters and digits count. All lists are empty by default, so that only URLs without a host are set aside.
    `matching: exact` compares as datatrove does: as spelled, and of hosts only the registered domain and the whole.
    """

    domains: FilePath = NO_FILE
    urls: FilePath = NO_FILE
    hard_words: FilePath = NO_FILE
    soft_words: FilePath = NO_FILE
    soft_limit: int = 2
    subwords: FilePath = NO_FILE
    matching: Literal["normalized", "exact"] = "normalized"

    def __post_init__(self) -> None:
        if not 1 <= self.soft_limit <= MOST_SOFT:
            message = f"soft_limit {self.soft_limit}: name a number from 1 to {MOST_SOFT}"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of `Params` as tables, the Public Suffix List, and how they are compared."""

    tables: "Tables"
    subwords: "Subwords"
    suffixes: "Suffixes"
    soft_limit: int
    exact: bool

    @property
    def bounds(self) -> tuple[str | int, ...]:
        """What a URL that fails a rule was held against, by the numbers of `RULES`."""
        return ("scheme://host", "domains", "domains", "urls", "hard_words", self.soft_limit, "subwords")


def suffix_list() -> FilePath:
    """Return the path of the Public Suffix List in the installed package publicsuffixlist, without importing it."""
    package = find_spec("publicsuffixlist")
    if package is None or package.origin is None:
        message = "filter_url: package publicsuffixlist is not installed; install it"
        raise RecipeError(message)
    return FilePath(str(Path(package.origin).parent / "public_suffix_list.dat"))


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the files whose content decides the output: the lists given, and the Public Suffix List."""
    lists = (params.domains, params.urls, params.hard_words, params.soft_words, params.subwords)
    return (*(path for path in lists if path), suffix_list())


def screen(batches: Batches, *, params: Params) -> Batches:
    """Set aside each row whose URL is listed or has no host, with everything that is against it as evidence.

    Rules and reasons are those of huggingface/datatrove `src/datatrove/pipeline/filters/url_filter.py`, in its order,
    after `bad_url`. A row without a URL is kept.
    """
    lists = read(params)
    for batch in batches:
        against = _against(batch.column("url"), lists)
        reasons: list[str | None] = [None] * batch.num_rows
        evidence: list[str | None] = [None] * batch.num_rows
        for row, failed in against.items():
            reasons[row] = str(failed[0]["rule"])
            evidence[row] = CANONICAL.encode(failed)
        yield reject(batch, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def read(params: Params) -> Lists:
    """Return the lists, which stay loaded for the next shard of this process."""
    from pipeline_tasks.text.base.cached import cached
    from pipeline_tasks.text.urls import blocklists, lists

    exact = params.matching == "exact"
    forms = (lists.SPELLED, lists.SPELLED) if exact else (lists.HOST, lists.URL)
    asked = zip(
        (params.domains, params.urls, params.hard_words, params.soft_words, params.subwords),
        (*forms, lists.WORD, lists.WORD, lists.WORD),
        strict=True,
    )
    tables: Any = tuple(cached(table, path, form) if path else lists.entries([]) for path, form in asked)
    return Lists(
        tables, blocklists.known(tables[4]), cached(blocklists.read_suffixes, suffix_list()), params.soft_limit, exact
    )


def size(params: Params) -> int:
    """Return the bytes that the lists of `params` take in a process."""
    from pipeline_tasks.text.urls import lists

    return sum(map(lists.size, read(params).tables))


def table(path: str, form: int) -> "Table":
    """Read one list; hosts that are not plain names (IDNA, IPv6) in the form that they are compared in."""
    from pipeline_tasks.text.urls import lists

    found, odd = lists.read(path, form)
    names = (name_of(item.strip(".")) for item in odd)
    return lists.joined(found, [name for name in names if name])


def name_of(host: str) -> bytes:
    """Return a host in lower-case ASCII: an address in its shortest form, a name by IDNA; empty if it has none."""
    from pipeline_tasks.text.urls.blocklists import FORBIDDEN

    try:
        return str(ip_address(host.removeprefix("[").removesuffix("]"))).encode()
    except ValueError:
        pass
    try:
        name = host.lower().removesuffix(".").encode("idna")
    except UnicodeError:
        return b""
    return name if name.translate(None, FORBIDDEN) == name else b""


def _against(column: pa.Array, lists: Lists) -> dict[int, list[Failure]]:
    """Return everything that is against the URLs of a column, by row, in the order of the rules."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.urls import blocklists

    offsets, whole = views(column)
    data = whole[offsets[0] : offsets[-1]].copy()
    places, kinds = blocklists.locate(offsets - offsets[0], data)
    odd = _odd_hosts(data, places, kinds)
    hits = blocklists.screen(
        data, (places, kinds), odd, lists.tables, lists.subwords, lists.suffixes, exact=lists.exact
    )
    against, spans = {}, places[:, :2].tolist()
    for row, found in groupby(hits.tolist(), key=lambda hit: hit[0]):
        begin, end = spans[row]
        failed = _failures(data[begin:end].tobytes().decode(), [hit[1:] for hit in found], lists)
        if failed:
            against[row] = failed
    return against


def _odd_hosts(data: Any, places: Any, kinds: Any) -> list[bytes]:  # noqa: ANN401 -- numpy arrays
    """Return the names of hosts that compiled code leaves to Python, and say in `kinds` what they turned out to be."""
    from pipeline_tasks.text.urls.blocklists import ADDRESS, BAD, LONGEST_HOST, ODD

    names = []
    for row in np.flatnonzero(kinds == ODD).tolist():
        host = data[places[row, 2] : places[row, 3]].tobytes().decode()
        name = name_of(host)
        labels = name.split(b".")
        if not all(labels) or len(name) > LONGEST_HOST:
            kinds[row] = BAD
            continue
        kinds[row] = ADDRESS if host.startswith("[") else ODD
        names.append(name)
    return names


def _failures(url: str, hits: list[list[int]], lists: Lists) -> list[Failure]:
    """Return what the hits of one URL amount to: a rule each, soft words only if there are enough of them."""
    from pipeline_tasks.text.urls import blocklists
    from pipeline_tasks.text.urls.lists import entry

    lists_of = {
        blocklists.DOMAIN: 0,
        blocklists.SUBDOMAIN: 0,
        blocklists.HARD: 2,
        blocklists.SOFT: 3,
        blocklists.SUBWORD: 4,
    }
    failed: list[Failure] = []
    for rule in sorted({rule for rule, _ in hits}):
        found = [number for which, number in hits if which == rule]
        if rule == blocklists.SOFT and len(found) < lists.soft_limit:
            continue
        value = url[:SHOWN]
        if rule in lists_of:
            names = [entry(lists.tables[lists_of[rule]], number) for number in found]
            value = ",".join(names if rule in (blocklists.DOMAIN, blocklists.SUBDOMAIN) else sorted(names))
        failed.append({"rule": f"filter_url:{RULES[rule]}", "value": value, "bound": lists.bounds[rule]})
    return failed


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Judge every shard by itself."""
    return on.map(partial(screen, params=params), shards)


STAGE = Stage(
    name="filter_url",
    run=run,
    params=Params,
    reads=pa.schema([DOCUMENT.field("url")]),
    writes=DOCUMENT,
    version=2,
    splits=True,
    profiled=("chars",),
    reasons=tuple(f"filter_url:{why}" for why in RULES),
    engine="spark",
    title="Set aside unwanted hosts, URLs and words in URLs",
)
