"""Says where snapshots came from: the source that a pull has noted, and the crawler that archives name.

Both are in the landing, which is outside the root. What is gone by now is said to be so. The note of a pull,
`snapshot.json`, is named by no manifest; it is believed where the files that it lists are those that were refined.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.landing.archives.warcinfo import read_warcinfo
from pipeline_tasks.landing.listing import ARCHIVES, PROMISE
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LAND
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import LANDING, Shards
from pipeline_tasks.store import storage
from refinery_rights.disclose.about import About, Category, SourceAbout
from refinery_rights.statements.statement import Stated

ARCHIVES_READ = 64
"""Archives of a snapshot whose crawler is read, in the order of their digests; a crawl has 90,000."""

CATEGORIES: Mapping[str, Category] = {
    "common_crawl": "public",
    "common_crawl_news": "public",
    "common_crawl_records": "public",
    "hugging_face": "public",
}
"""The list of the EU's template that a kind of source belongs to, if the provider says nothing; else `other`."""

NAMED_BY = ("http-header-user-agent", "software")
"""Fields of a `warcinfo` record that name the crawler, in order."""


@dataclass(frozen=True, slots=True)
class Crawler:
    """A crawler as archives name it: its name, who runs it, what it does about robots.txt, and a description."""

    name: str
    operator: str = ""
    robots: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """What a pull has noted in a landing: the kind of source, its recipe and query, the terms, when, and the files.

    `digest` is the SHA-256 of the note. `vouched` is whether the files that it lists are those that were refined.
    """

    kind: str = ""
    recipe: str = ""
    query: Mapping[str, Any] = field(default_factory=dict)
    terms: str = ""
    pulled: str = ""
    digest: str = ""
    vouched: bool = False


@dataclass(frozen=True, slots=True)
class SourceOrigin:
    """Where a snapshot came from: what a pull has noted, and the crawlers of `read` of its `archives`.

    `gone` says why the landing could not be read, "" if it could. `assumed` is whether the provider has not said which
    list of the template it belongs to.
    """

    stated: Stated
    files: int
    bytes: int
    archives: int
    about: SourceAbout
    note: Note = field(default_factory=Note)
    crawlers: tuple[Crawler, ...] = ()
    read: int = 0
    gone: str = ""

    @property
    def version(self) -> Version:
        """The version of the snapshot."""
        return self.stated.version

    @property
    def names(self) -> tuple[str, ...]:
        """What a provider may call it, first the most specific."""
        return (self.version.snapshot, self.note.recipe, self.note.kind, self.version.recipe)

    @property
    def assumed(self) -> bool:
        """Whether the category follows from the kind of source alone."""
        return not self.about.category

    @property
    def category(self) -> Category:
        """The list of the EU's template: as the provider says, else by the kind of source; archives are crawled."""
        if self.about.category:
            return self.about.category
        if self.note.kind:
            return CATEGORIES.get(self.note.kind, "other")
        return "crawled" if self.archives else "other"

    @property
    def kind(self) -> str:
        """The kind of source that was pulled, else what landed."""
        return self.note.kind or ("web archives" if self.archives else "files")

    @property
    def line(self) -> str:
        """The snapshot, the kind of its source, and its name."""
        return f"{self.version.snapshot}: {self.kind} {self.name}"

    @property
    def name(self) -> str:
        """The name of the source: the provider's, else what the query names, else that of the snapshot."""
        query = self.note.query
        named = next((str(query[key]) for key in ("crawl", "repository", "address") if query.get(key)), "")
        return self.about.name or named or self.version.snapshot


def origin_of(stated: Stated, about: About) -> SourceOrigin:
    """Return where a snapshot came from; nothing is raised for a landing that is gone or cannot be read."""
    version = stated.version
    landed = stated.manifests[LAND].shards if LAND in stated.manifests else ()
    names = sorted({shard.path.removeprefix(LANDING) for shard in landed})
    archives = [name for name in names if ARCHIVES.search(name)]
    note, gone = _note(version, landed)
    size = sum(shard.bytes for shard in landed)
    base = SourceOrigin(stated, len(names), size, len(archives), SourceAbout(), note, gone=gone)
    base = replace(base, about=about.source(*base.names))
    if gone:
        return base
    first = _by_digest(landed, archives)[:ARCHIVES_READ]
    records = [fields for name in first if (fields := _warcinfo(version, name)) is not None]
    return _with_crawlers(base, records)


def _by_digest(landed: Shards, archives: Sequence[str]) -> list[str]:
    wanted = set(archives)
    pairs = sorted((shard.digest, shard.path.removeprefix(LANDING)) for shard in landed)
    return list(dict.fromkeys(name for _, name in pairs if name in wanted))


def _with_crawlers(base: SourceOrigin, records: Sequence[Mapping[str, str]]) -> SourceOrigin:
    crawlers = sorted(set(_crawlers(records)), key=lambda crawler: (crawler.name, crawler.description))
    return replace(base, crawlers=tuple(crawlers), read=len(records))


def _crawlers(records: Iterable[Mapping[str, str]]) -> Iterator[Crawler]:
    for fields in records:
        name = next((fields[key] for key in NAMED_BY if fields.get(key)), "")
        if name:
            yield Crawler(name, fields.get("operator", ""), fields.get("robots", ""), fields.get("description", ""))


def _note(version: Version, landed: Shards) -> tuple[Note, str]:
    """Return the note of a pull, an empty one where no pull has landed; and why the landing cannot be read."""
    if not version.landing:
        return Note(), "no landing is recorded"
    try:
        store = storage.connect(version.landing)
        body = store.read(PROMISE)
    except FileNotFoundError:
        return Note(), "" if _is_there(version, landed) else "the landing is gone"
    except (RefineryError, OSError) as error:
        return Note(), f"the landing cannot be read now ({error})"
    try:
        promise = json.loads(body)
        block = promise.get("source") or {}
        query, terms = block.get("query") or {}, block.get("terms") or {}
        digests = {file["path"]: file.get("sha256", "") for file in promise["files"]}
        refined = {shard.path.removeprefix(LANDING): shard.digest for shard in landed}
        return Note(
            kind=str(query.get("source", "")),
            recipe=str(block.get("recipe", "")),
            query=query,
            terms=str(terms.get("address", "")),
            pulled=str(block.get("pulled", "")),
            digest=sha256(body),
            vouched=all(digests.get(name) == digest for name, digest in refined.items()),
        ), ""
    except (ValueError, KeyError, TypeError, AttributeError):
        return Note(), f"{PROMISE} of the landing cannot be read"


def _is_there(version: Version, landed: Shards) -> bool:
    store = storage.connect(version.landing)
    return any(store.size(shard.path.removeprefix(LANDING)) is not None for shard in landed[:1])


def _warcinfo(version: Version, name: str) -> Mapping[str, str] | None:
    """Return the fields of the record that opens an archive; None of one that is gone or cannot be read."""
    try:
        with storage.open_landed(f"{version.landing}/{name}") as stream:
            return read_warcinfo(stream)
    except (RefineryError, OSError):
        return None
