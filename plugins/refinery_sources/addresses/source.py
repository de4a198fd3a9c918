"""Addresses of a list as a source: each is asked once, as robots.txt allows and within the budget of its host.

What answers becomes records of WARC archives, `PER_PART` addresses each, sorted. An address that gives no answer is
left out and counted: hosts that are gone hold up no others.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipeline_tasks.constraints import Anywhere, Bytes, Note, on_web
from pipeline_tasks.errors import RefineryError, SourceBusy, SourceRefused
from pipeline_tasks.landing.listing import LISTING_BYTES
from pipeline_tasks.sealed import canonical
from pipeline_tasks.store.local_store import flush, os_errors, sha256_of
from refinery_sources.addresses.listed import addresses_in
from refinery_sources.addresses.record import response_record
from refinery_sources.admission import open_file
from refinery_sources.budget import Stopped
from refinery_sources.fields import asked_before, stated_terms
from refinery_sources.source import Flow, Occasion, Part, Received, Terms
from refinery_sources.web import AGENT, PIECE, Web, answered, bounded, fetched, tried

KIND = "addresses"
"""The name of the kind, in a recipe and on the command line."""

PER_PART = 100
"""Addresses of an archive."""

TYPICAL = 1_000_000
"""Bytes of a file that is worth a list, for estimates: PDFs of the web have about as many."""

ANSWERS = frozenset({*range(200, 300), *range(400, 500)} - {403, 408, 425, 429})
"""Statuses of answers that are recorded; `ingest` rejects those of pages that are gone. Others ask to come back."""

ROBOTS = ANSWERS | {403}
"""As `ANSWERS`, for a robots.txt: who may not read one is forbidden nothing by that (RFC 9309, 2.3.1.3)."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The files at the addresses of `list`: a file here, in a bucket or on the web, as `refinery look cut` has.

    A file of more than `max_bytes` is left out. Hosts of this machine or its network are not asked, unless the list is
    at one. `listed` is the digest of the addresses: as long as it is the same, the same is asked. Records are of the
    moment `at` at which the pull began.
    """

    list: Anywhere
    max_bytes: Bytes = 64 << 20
    terms_address: str = ""
    terms_text: Note = ""
    snapshot: str = ""
    listed: str = ""
    at: str = ""

    @property
    def cursor(self) -> str:
        return self.listed

    @property
    def terms(self) -> Terms:
        return stated_terms(self.list, self.terms_address, self.terms_text)

    @property
    def typical_bytes(self) -> int:
        return PER_PART * TYPICAL

    def query(self) -> Mapping[str, Any]:
        return {"source": KIND, "listed": self.listed, "max_bytes": self.max_bytes, "snapshot": self.snapshot}

    def resolved(self, occasion: Occasion) -> "Addresses":
        """Return the query of the addresses that the list has now; ContractError for what is none."""
        query = replace(self, listed=_digest(_listed(self.list, occasion.web)), at=f"{occasion.moment:%FT%TZ}")
        before = asked_before(query.query(), ("snapshot",), occasion.unfinished, occasion.before.get("query", {}))
        named = f"{occasion.name}-{occasion.moment:%Y%m%dT%H%M%SZ}" if occasion.name else f"{KIND}-{query.listed[:12]}"
        return replace(query, snapshot=before["snapshot"] if before else named)

    def urls(self, web: Web) -> tuple[str, ...]:
        """Return the addresses; SourceBusy if they are not those that the query was resolved for."""
        return _unchanged(self.list, self.listed, web)

    def parts(self, web: Web) -> Sequence[Part]:
        urls = self.urls(web)
        groups = [urls[first : first + PER_PART] for first in range(0, len(urls), PER_PART)]
        place = f"addresses of {self.list}"  # no one of them: a plan would ask it for its size
        return [Part(f"part-{at:05d}.warc.gz", place, requests=len(group)) for at, group in enumerate(groups)]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        first = int(part.name[len("part-") :].partition(".")[0]) * PER_PART
        left_out: Counter[str] = Counter()
        rows = size = 0
        with os_errors(str(partial)), partial.open("wb") as file:
            for record in _records(web, self.urls(web)[first : first + PER_PART], self, left_out):
                file.write(record)
                flow.on_bytes(part.name, len(record))
                rows, size = rows + 1, size + len(record)
            flush(file)
        facts = {"left_out": dict(sorted(left_out.items()))} if left_out else {}
        return Received(size, sha256_of(partial), rows=rows, facts=facts)


# --- The list -----------------------------------------------------------------------------------------------------


def _listed(place: str, web: Web) -> tuple[str, ...]:
    if on_web(place):
        return addresses_in(fetched(web, place, LISTING_BYTES), place)
    with open_file(place) as file:
        return addresses_in(file.read(LISTING_BYTES + 1), place)


def _digest(urls: Sequence[str]) -> str:
    return hashlib.sha256(canonical(list(urls))).hexdigest()


@lru_cache(maxsize=4)
def _unchanged(place: str, listed: str, web: Web) -> tuple[str, ...]:
    urls = _listed(place, web)
    if _digest(urls) != listed:
        message = f"{place} has other addresses than when the pull began; run the same command again when it rests"
        raise SourceBusy(message)
    return urls


# --- Answers ------------------------------------------------------------------------------------------------------


def _records(web: Web, urls: Sequence[str], query: Addresses, left_out: Counter[str]) -> Iterator[bytes]:
    """Yield the records of the addresses that answer; count why the others do not.

    A host that does not answer, or refuses, is not asked for the others of this archive.
    """
    gone: set[str] = set()
    for url in urls:
        if web.stop.is_set():
            raise Stopped
        found: bytes | str = "no_answer"
        host = url.partition("://")[2].partition("/")[0]
        try:
            found = found if host in gone else _record(web, url, query)
        except (SourceBusy, SourceRefused):
            gone.add(host)
        except (RefineryError, ValueError):
            found = "no_address"
        if isinstance(found, bytes):
            yield found
        else:
            left_out[found] += 1


def _record(web: Web, url: str, query: Addresses) -> bytes | str:
    """Return the record of an address, or why it is left out."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
        return "no_address"
    web.gate.lead(url)
    if not _is_allowed(web, f"{parts.scheme}://{parts.netloc}/robots.txt", url):
        return "robots"

    def ask() -> bytes | str:
        with answered(web, url, accepted=ANSWERS) as response:
            body = bounded(web, url, response.iter_raw(PIECE), query.max_bytes)
            if body is None:
                return "too_large"
            status = f"{response.status_code} {response.reason_phrase}".strip()
            return response_record(url, query.at, status, response.headers.raw, body)

    return tried(web, ask)


def _is_allowed(web: Web, robots: str, url: str) -> bool:
    """Return whether a host allows that a URL is fetched, by its robots.txt: no such file forbids nothing."""
    from pipeline_tasks.text.rights.robots import Robots

    return not any(Robots(_robots(web, robots), (AGENT,)).disallowed(url))


@lru_cache(maxsize=1024)
def _robots(web: Web, url: str) -> bytes:
    """Return a robots.txt, nothing where there is none; SourceBusy for a host that does not say (RFC 9309, 2.3.1.4)."""
    from pipeline_tasks.text.rights.robots import MOST_BYTES

    def ask() -> bytes:
        with answered(web, url, accepted=ROBOTS) as response:
            body = bytearray()
            for piece in response.iter_raw(PIECE) if response.status_code == HTTPStatus.OK else ():
                body += piece
                if len(body) > MOST_BYTES:
                    break
            return bytes(body)

    return tried(web, ask)


SOURCE = Addresses
