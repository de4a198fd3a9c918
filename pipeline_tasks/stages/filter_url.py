"""Rejects pages by their URL: listed hosts, listed URLs, and listed words."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Canceled, Requests, UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import NO_FILE, Batches, Engine, FilePath, Idle, Layer, Shards, Stage, always, reject

if TYPE_CHECKING:
    from pipeline_tasks.text.urls.blocklists import SubwordIndex, Tables
    from pipeline_tasks.text.urls.hosts import Suffixes
    from pipeline_tasks.text.urls.lists import Table

Failure = dict[str, str | int]
"""One rule that a URL fails, with the matching value and the list or bound that it breaks."""

MOST_SOFT = 100
"""Different soft words of one URL that are counted (`text.urls.blocklists.MOST_HITS`)."""

SHOWN = 200
"""Characters of a URL in evidence."""

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

RULES = ("bad_url", "domain", "subdomain", "url", "hard_blacklisted", "soft_blacklisted", "blacklisted_subword")
"""By the numbers of `text.urls.blocklists`; all but the first are the reasons of datatrove's filter, in its order."""


@dataclass(frozen=True, slots=True)
class Params:
    """Lists of unwanted URLs: UTF-8 files with one item per line, `#` comments, plain or compressed (.gz, .zst).

    `domains` lists hosts, also as hosts files and adblock rules do (`0.0.0.0 host`, `||host^`, `*.host`): each blocks
    itself and all hosts below it. `urls` lists URLs, with or without scheme,
    `www.`, fragment and last slash. `hard_words` rejects a page for one word of its URL, `soft_words` for
    `soft_limit` different ones; words are the runs of ASCII letters and digits in the URL, in lower case. `subwords`
    rejects it for a stretch of all its letters and digits joined. Of the items of these three lists, too, only
    letters and digits count. All lists are empty by default: then only URLs without a host are rejected.
    `matching: exact` compares as datatrove does: as spelled, and of hosts only the registered domain and the whole.
    """

    domains: FilePath = NO_FILE
    urls: FilePath = NO_FILE
    hard_words: FilePath = NO_FILE
    soft_words: FilePath = NO_FILE
    soft_limit: Annotated[int, Range(1, MOST_SOFT)] = 2
    subwords: FilePath = NO_FILE
    matching: Literal["normalized", "exact"] = "normalized"

    def __post_init__(self) -> None:
        if not 1 <= self.soft_limit <= MOST_SOFT:
            message = f"soft_limit {self.soft_limit}: name a number from 1 to {MOST_SOFT}"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of `Params` as tables, the Public Suffix List, and how entries are compared."""

    tables: "Tables"
    subwords: "SubwordIndex"
    suffixes: "Suffixes"
    soft_limit: int
    exact: bool

    @property
    def bounds(self) -> tuple[str | int, ...]:
        """What a URL that fails a rule was compared with, by the numbers of `RULES`."""
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


def check_files(params: Params) -> None:
    """Raise RecipeError unless every list that is given can be read."""
    if len(resources(params)) > 1:
        read_lists(params)


def idle(params: Params, _: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return that no URL is compared with a list, if none is named."""
    if params.domains or params.urls or params.hard_words or params.soft_words or params.subwords:
        return ()
    return (Idle("no lists", "name files in `domains` or `urls`; `refinery setup fetch url-lists` gets public ones"),)


def screen(batches: Batches, *, params: Params) -> Batches:
    """Reject each row whose URL is listed or has no host, with everything that is against it as evidence.

    Rules and reasons are those of huggingface/datatrove `src/datatrove/pipeline/filters/url_filter.py`, in its order,
    after `bad_url`. A row without a URL is kept, and so is a document of a folder, whose address has no host.
    """
    lists = read_lists(params)
    for batch in batches:
        reasons: list[str | None] = [None] * batch.num_rows
        evidence: list[str | None] = [None] * batch.num_rows
        for row, failures in _failures_by_row(batch.column("url"), lists).items():
            reasons[row] = str(failures[0]["rule"])
            evidence[row] = CANONICAL.encode(failures)
        yield reject(batch, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def read_lists(params: Params) -> Lists:
    """Return the lists, which stay loaded for the next shard of this process."""
    from pipeline_tasks.text.base.cached import cached
    from pipeline_tasks.text.urls import lists
    from pipeline_tasks.text.urls.blocklists import index_subwords
    from pipeline_tasks.text.urls.hosts import read_suffixes

    exact = params.matching == "exact"
    forms = (lists.SPELLED, lists.SPELLED) if exact else (lists.HOST, lists.URL)
    sources = zip(
        (params.domains, params.urls, params.hard_words, params.soft_words, params.subwords),
        (*forms, lists.WORD, lists.WORD, lists.WORD),
        strict=True,
    )
    tables: Any = tuple(cached(read_table, path, form) if path else lists.short_table([]) for path, form in sources)
    suffixes = cached(read_suffixes, suffix_list())
    return Lists(tables, index_subwords(tables[4]), suffixes, params.soft_limit, exact)


def list_bytes(params: Params) -> int:
    """Return the bytes that the lists of `params` take in a process."""
    from pipeline_tasks.text.urls import lists

    return sum(map(lists.table_bytes, read_lists(params).tables))


def read_table(path: str, form: int) -> "Table":
    """Read one list; hosts that are not plain names (IDNA, IPv6) in the form that they are compared in."""
    from pipeline_tasks.text.urls import lists

    table, odd = lists.read_list(path, form)
    names = (host_name(item.strip(".")) for item in odd)
    return lists.extend_table(table, [name for name in names if name])


def host_name(host: str) -> bytes:
    """Return a host in lower-case ASCII, as all of `text.urls` has it (`addresses`); empty if it has none.

    An address has its shortest form.
    """
    from pipeline_tasks.text.urls.addresses import canonical_host
    from pipeline_tasks.text.urls.hosts import FORBIDDEN

    try:
        return str(ip_address(host.removeprefix("[").removesuffix("]"))).encode()
    except ValueError:
        name = canonical_host(host).encode()
    return name if name.isascii() and name.translate(None, FORBIDDEN) == name else b""


def _failures_by_row(column: pa.Array, lists: Lists) -> dict[int, list[Failure]]:
    """Return everything that is against the URLs of a column, by row, in the order of the rules."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.urls.blocklists import find_listed
    from pipeline_tasks.text.urls.hosts import locate_hosts

    offsets, whole = views(column)
    data = whole[offsets[0] : offsets[-1]].copy()
    places, kinds = locate_hosts(offsets - offsets[0], data)
    odd = _odd_hosts(data, places, kinds)
    hits = find_listed(data, (places, kinds), odd, lists.tables, lists.subwords, lists.suffixes, exact=lists.exact)
    failures_by_row, spans = {}, places[:, :2].tolist()
    for row, hits_of_row in groupby(hits.tolist(), key=lambda hit: hit[0]):
        begin, end = spans[row]
        failures = _failures(data[begin:end].tobytes().decode(), [hit[1:] for hit in hits_of_row], lists)
        if failures:
            failures_by_row[row] = failures
    return failures_by_row


def _odd_hosts(data: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], kinds: npt.NDArray[np.uint8]) -> list[bytes]:
    """Return the names of hosts that compiled code leaves to Python, and set in `kinds` what they turned out to be."""
    from pipeline_tasks.text.urls.hosts import ADDRESS, BAD, LONGEST_HOST, ODD

    names = []
    for row in np.flatnonzero(kinds == ODD).tolist():
        host = data[places[row, 2] : places[row, 3]].tobytes().decode()
        name = host_name(host)
        labels = name.split(b".")
        if not all(labels) or len(name) > LONGEST_HOST:
            kinds[row] = BAD
            continue
        kinds[row] = ADDRESS if host.startswith("[") else ODD
        names.append(name)
    return names


def _failures(url: str, hits: list[list[int]], lists: Lists) -> list[Failure]:
    """Return a failure per rule that the hits of one URL break; soft words only if there are enough of them."""
    from pipeline_tasks.text.urls.blocklists import DOMAIN, HARD, SOFT, SUBDOMAIN, SUBWORD
    from pipeline_tasks.text.urls.lists import entry_text

    table_of = {DOMAIN: 0, SUBDOMAIN: 0, HARD: 2, SOFT: 3, SUBWORD: 4}
    failures: list[Failure] = []
    for rule in sorted({rule for rule, _ in hits}):
        numbers = [number for rule_of_hit, number in hits if rule_of_hit == rule]
        if rule == SOFT and len(numbers) < lists.soft_limit:
            continue
        value = url[:SHOWN]
        if rule in table_of:
            entries = [entry_text(lists.tables[table_of[rule]], number) for number in numbers]
            value = ",".join(entries if rule in (DOMAIN, SUBDOMAIN) else sorted(entries))
        failures.append({"rule": f"filter_url:{RULES[rule]}", "value": value, "bound": lists.bounds[rule]})
    return failures


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Screen every shard by itself."""
    return on.map(partial(screen, params=params), shards, layer=Layer(reads=("url",)))


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    lists = (params.domains, params.urls, params.hard_words, params.soft_words, params.subwords)
    if not any(lists):
        return  # `idle` says so
    if not params.soft_words:
        yield Canceled("soft_limit", "it counts `soft_words`, and there are none", "name their list")
    if not (params.domains or params.urls):
        yield Canceled("matching", "it compares `domains` and `urls`, and there are none", "name a list of them")


STAGE = Stage(
    name="filter_url",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    idle=idle,
    reads=pa.schema([DOCUMENT.field("url")]),
    writes=DOCUMENT,
    version=4,
    splits=True,
    libraries={UNICODE: always},
    profiled=("chars",),
    reasons=tuple(f"filter_url:{why}" for why in RULES),
    engine="spark",
    title="Reject unwanted hosts, URLs and words in URLs",
    removes="unfit",
    canceled=canceled,
    cost=UnitCost(0.18, 1.00, 0.01, 2, requests=Requests(7, 2), rows=1.0),
)
