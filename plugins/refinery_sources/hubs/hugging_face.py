"""Datasets of the Hugging Face Hub: files of a repository at one commit, with the digests that the Hub declares."""

import functools
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import orjson

from pipeline_tasks.constraints import Anywhere
from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from pipeline_tasks.landing.first_look import UNREAD
from pipeline_tasks.landing.listing import ABOUT, ARCHIVES, LISTING_LINES, TABLES
from pipeline_tasks.store.credential import Credential
from pipeline_tasks.store.protocol import CHUNK
from refinery_sources.download import discard, download
from refinery_sources.fields import COMMIT, Fields, asked_before, names_at_source, require_commit, takes
from refinery_sources.first_records import require_text
from refinery_sources.hubs.hub import TOKEN, Hub, gated, has_token, own_address, page, redirected
from refinery_sources.source import RIGHTS, Flow, Occasion, Part, Received, Terms
from refinery_sources.splits import NAME_THEM, log_unasked, unasked_splits
from refinery_sources.web import Web, require_address

CARD = re.compile(r"(?i)(?:readme|licen[cs]e|notice)(?:\.(?:md|txt))?")
"""Files at the top of a repository that say under which terms it is; they land beside the data."""

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_REVISION = re.compile(r"(?!.*\.\.)[\w][\w./-]{0,200}")
_PATH = re.compile(r"(?!/)(?:(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\x7f\\]+(?:/|\Z))+(?<!/)")
_OID = "#sha1="


class _File(NamedTuple):
    """A file of a repository: its path, bytes, and SHA-256, or the SHA-1 of its blob where the Hub has no other."""

    path: str
    bytes: int
    sha256: str
    blob: str


@dataclass(frozen=True, slots=True)
class HuggingFace:
    """Files of the dataset `repository` at `revision`: a branch, a tag or a commit.

    Files are those that a landing reads, of the split train where names tell others; with `include` those whose paths
    match a pattern of it, of any split, without those that match `exclude`. `address` is the Hub's, by default that of
    `HF_ENDPOINT`. A pull asks once what commit a name is.
    """

    repository: str
    revision: str = "main"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    fields: Fields = field(default_factory=dict)
    address: Anywhere = ""
    commit: str = ""
    license: str = ""
    snapshot: str = ""

    @property
    def cursor(self) -> str:
        return self.commit

    @property
    def terms(self) -> Terms:
        stated = f"its license is {self.license}" if self.license else "it names no license"
        text = f"The card of the dataset {self.repository} says at commit {self.commit} that {stated}."
        return Terms(f"{self.address}/datasets/{self.repository}/tree/{self.commit}", text)

    @property
    def typical_bytes(self) -> int:
        return 0

    @property
    def asks(self) -> tuple[str, ...]:
        return (self.address or own_address(),)

    @property
    def secrets(self) -> Mapping[Credential, tuple[str, ...]]:
        return {TOKEN: (own_address(),)}

    @property
    def hub(self) -> Hub:
        """The Hub that is asked."""
        return Hub(self.address, self.repository)

    @property
    def read_by(self) -> dict[str, str]:
        return names_at_source(self.fields)

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "hugging_face",
            "address": self.address,
            "repository": self.repository,
            "revision": self.revision,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "fields": dict(self.fields),
            "commit": self.commit,
            "license": self.license,
            "snapshot": self.snapshot,
        }

    def resolved(self, occasion: Occasion) -> "HuggingFace":
        """Return the query of a commit: that of a pull which began goes before what the name stands for now.

        RecipeError for a repository that is not there, is private, or has terms that nobody has accepted.
        """
        query = replace(self, address=(self.address or own_address()).rstrip("/"))
        _require_query(query)
        begun = asked_before(query.query(), ("commit", "license", "snapshot"), occasion.unfinished)
        if begun:
            known = {name: begun[name] for name in ("license", "snapshot")}
            return replace(query, commit=require_commit(begun["commit"]), **known)
        return query.at(occasion, _info(occasion.web, query))

    def at(self, occasion: Occasion, info: Mapping[str, Any]) -> "HuggingFace":
        """Return the query of the commit that the Hub says a revision is; ContractError if it says none."""
        try:
            commit = str(info["sha"])
            moment = datetime.fromisoformat(info["lastModified"])
            written = (info.get("cardData") or {}).get("license") or ""
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"{self.address} says of {self.repository} neither commit nor time; is it a Hub?"
            raise ContractError(message) from error
        if not COMMIT.fullmatch(commit):
            message = f"{self.address} says that {self.repository} is at {commit[:50]!a}, which is no commit"
            raise ContractError(message)
        name = f"{occasion.name}-{moment:%Y%m%dT%H%M%SZ}-{commit[:12]}"
        stated = ", ".join(map(str, written)) if isinstance(written, list) else str(written)
        return replace(self, commit=commit, license=stated[:200], snapshot=name)

    def parts(self, web: Web) -> Sequence[Part]:
        every = list(_files(web, self))
        _require_whole(every, _info(web, replace(self, revision=self.commit)), self)
        listed = [file for file in every if not file.path.startswith((".", "_")) and "/." not in file.path]
        taken = [file for file in listed if self._takes(file.path)]
        tables = [file.path for file in taken if TABLES.search(file.path)]
        unasked = unasked_splits(tables, self.include)
        log_unasked(self.repository, unasked)
        chosen = [file for file in taken if file.path not in unasked]
        place = f"{self.address}/datasets/{self.repository}"
        if not chosen:
            patterns = ", ".join(self.include) or f"WARC, JSON lines, Parquet; of splits {NAME_THEM}"
            first = ", ".join(file.path for file in listed[:5]) or "none"
            message = f"{place} has no files to land ({patterns}) at {self.commit}; its files are: {first}"
            raise RecipeError(message)
        other = next((file.path for file in chosen if UNREAD.search(file.path)), None)
        if other is not None:
            message = (
                f"{place}: {other[:200]} is a table that a landing does not read. Choose others by `include`; or take "
                "the Hub's own copy in Parquet, revision refs/convert/parquet; or have the files in a folder, and pull "
                "that by the kind `files`"
            )
            raise RecipeError(message)
        cards = [file for file in listed if CARD.fullmatch(file.path)]
        return [
            *(self._part(file.path, file) for file in chosen),
            *(self._part(f"{RIGHTS}{file.path}", file) for file in cards),
        ]

    def _takes(self, path: str) -> bool:
        if self.include and UNREAD.search(path):  # who asks for it is told
            return takes(path, self.include, self.exclude)
        is_data = (ARCHIVES.search(path) or TABLES.search(path)) and path.rpartition("/")[2] not in ABOUT
        return bool(is_data) and takes(path, self.include, self.exclude)

    def _part(self, name: str, file: _File) -> Part:
        place = f"{self.address}/datasets/{self.repository}/resolve/{self.commit}/{quote(file.path)}"
        return Part(name, place + (f"{_OID}{file.blob}" if file.blob else ""), file.bytes, file.sha256)

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        received = download(web, part, partial, flow, functools.partial(redirected, self.hub))
        url, _, blob = part.address.partition(_OID)
        if blob and blob != _blob(partial, received.bytes):
            discard(partial)
            message = f"{url} has other bytes than its blob {blob}; the Hub's file is damaged"
            raise ContractError(message)
        if not part.beside:
            require_text(partial, part.name, url, self.read_by)
        return received


def _require_query(query: HuggingFace) -> None:
    """Raise RecipeError for a query that makes no sense."""
    require_address(query.address)
    names_at_source(query.fields)
    if not _REPOSITORY.fullmatch(query.repository):
        message = f"repository {query.repository[:100]!a}: name one of the Hub, as HuggingFaceFW/fineweb"
        raise RecipeError(message)
    if not _REVISION.fullmatch(query.revision):
        message = f"revision {query.revision[:100]!a}: name a branch, a tag or a commit"
        raise RecipeError(message)


# --- What the Hub says --------------------------------------------------------------------------------------------


def _info(web: Web, query: HuggingFace) -> Mapping[str, Any]:
    """Return what the Hub says of a revision."""
    revision = quote(query.revision, safe="")
    url = f"{query.address}/api/datasets/{query.repository}/revision/{revision}"
    try:
        _, body = page(web, query.hub, url)
        info: Mapping[str, Any] = orjson.loads(body)
    except SnapshotIncomplete as error:
        message = f"{query.address} has no dataset {query.repository} at revision {query.revision}; correct the recipe"
        raise RecipeError(message) from error
    except orjson.JSONDecodeError as error:
        message = f"{url} is no JSON; is it a Hub?"
        raise ContractError(message) from error
    if info.get("gated") and not has_token(query.hub):
        raise gated(query.hub)
    return info


def _files(web: Web, query: HuggingFace) -> Iterator[_File]:
    """Yield the files of a commit; ContractError for a list that is none."""
    url = f"{query.address}/api/datasets/{query.repository}/tree/{query.commit}?recursive=true"
    seen: set[str] = set()
    while url:
        if url in seen or len(seen) > LISTING_LINES:
            message = f"{url} comes twice in the pages of a list, which has no end"
            raise ContractError(message)
        seen.add(url)
        following, body = page(web, query.hub, url)
        try:
            entries = [entry for entry in orjson.loads(body) if entry["type"] == "file"]
            listed = [_file(entry) for entry in entries]
        except (ValueError, KeyError, TypeError) as error:
            message = f"{url} is no list of files with sizes and digests ({str(error)[:100]!a})"
            raise ContractError(message) from error
        yield from listed
        url = _below(query.address, url, following)


def _require_whole(listed: Sequence[_File], info: Mapping[str, Any], query: HuggingFace) -> None:
    """Raise ContractError if the pages of the list lack a file that the Hub names besides: a list may end early."""
    there = {file.path for file in listed}
    lacking = [str(one.get("rfilename")) for one in info.get("siblings") or () if one.get("rfilename") not in there]
    if lacking:
        message = (
            f"{query.address} lists {len(there):,} files of {query.repository} at {query.commit}, without "
            f"{len(lacking):,} that it names besides, first {lacking[0][:200]!a}; run the same command again later"
        )
        raise ContractError(message)


def _file(entry: Mapping[str, Any]) -> _File:
    large, path = entry.get("lfs") or {}, entry["path"]
    if not _PATH.fullmatch(path):
        message = f"the path {path[:100]!a} leads elsewhere"
        raise ValueError(message)
    sha256, blob = str(large.get("oid", "")).removeprefix("sha256:"), "" if large else str(entry["oid"])
    if not re.fullmatch(r"[0-9a-f]{64}" if large else r"[0-9a-f]{40}", sha256 or blob):
        message = f"{path[:100]!a} has no digest"
        raise ValueError(message)
    return _File(path, int(entry["size"]), sha256, blob)


def _below(address: str, url: str, following: str) -> str:
    """Return the next page of a list at the Hub that is asked: a mirror may name it at the Hub that it mirrors."""
    parts = urlsplit(following)
    at = parts.path.find("/api/")
    if following and at < 0:
        message = f"{url.partition('?')[0]} names a next page that is none of the Hub's"
        raise ContractError(message)
    return f"{address}{parts.path[at:]}?{parts.query}" if following else ""


def _blob(path: Path, size: int) -> str:
    """Return the name that Git gives to a file's content."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


SOURCE = HuggingFace
