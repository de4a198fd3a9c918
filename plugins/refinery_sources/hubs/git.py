"""Git repositories: a document for each file of a commit that is text, and the files that say under which license."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pipeline_tasks.constraints import Anywhere, Note
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.json_lines import LINE_CAP
from refinery_sources.documents import COLUMNS, OVERSIZE, Document, batches_of, grouped
from refinery_sources.fields import COMMIT, asked_before, require_commit, takes
from refinery_sources.hubs.git_objects import Blob, Repository
from refinery_sources.parquet_part import write_part
from refinery_sources.source import RIGHTS, Flow, Occasion, Part, Received, Terms
from refinery_sources.web import Web
from refinery_sources.whole_part import write_whole

LICENSE = re.compile(r"(?i)(?:(?:un)?licen[cs]e|copying|notice|copyright)(?:[.-][\w.-]{1,20})?|LICENSES/[^/]+")
"""Files that say under which license a repository is: at its top, or of the REUSE specification."""

POINTER = b"version https://git-lfs.github.com/spec/v1"
"""How a file begins that stands for a large one elsewhere."""

TYPICAL = 20_000_000

_REVISION = re.compile(r"(?![-.])(?!.*\.\.)[\w./-]{1,200}")


@dataclass(frozen=True, slots=True)
class Git:
    """The files of `repository` (a local path, or a URL of https:// or file://) at a branch, a tag or a commit.

    With `include` those whose paths match a pattern of it, without those that match `exclude`. Symbolic links,
    submodules, files of Git LFS, and what is no text are left out, and counted.
    """

    repository: Anywhere
    revision: str = "HEAD"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    terms_text: Note = ""
    commit: str = ""
    snapshot: str = ""

    @property
    def cursor(self) -> str:
        return self.commit

    @property
    def terms(self) -> Terms:
        names = [blob.path for blob in self._licenses]
        stated = f"says its license in {', '.join(names)}" if names else "has no license file at its top"
        return Terms(self.repository, self.terms_text or f"The repository {stated} (commit {self.commit}).")

    @property
    def typical_bytes(self) -> int:
        return TYPICAL

    def query(self) -> Mapping[str, Any]:
        return {
            "source": "git",
            "repository": self.repository,
            "revision": self.revision,
            "include": list(self.include),
            "exclude": list(self.exclude),
            "commit": self.commit,
            "snapshot": self.snapshot,
        }

    def resolved(self, occasion: Occasion) -> "Git":
        """Return the query of a commit: that of a pull which began goes before what the revision is now."""
        _require_query(self)
        begun = asked_before(self.query(), ("commit", "snapshot"), occasion.unfinished)
        if begun:
            return replace(self, commit=require_commit(begun["commit"]), snapshot=begun["snapshot"])
        there = Repository(self.repository)
        commit = there.fetched(self.revision)
        moment = datetime.fromisoformat(there.committed(commit)).astimezone(UTC)
        return replace(self, commit=commit, snapshot=f"{occasion.name}-{moment:%Y%m%dT%H%M%SZ}-{commit[:12]}")

    @property
    def _licenses(self) -> list[Blob]:
        return [blob for blob in _blobs(self.repository, self.commit) if LICENSE.fullmatch(blob.path) and not blob.kind]

    @property
    def _chosen(self) -> list[Blob]:
        return [blob for blob in _blobs(self.repository, self.commit) if takes(blob.path, self.include, self.exclude)]

    @property
    def _groups(self) -> Sequence[Sequence[Blob]]:
        return grouped((blob, blob.bytes) for blob in self._chosen if not blob.kind)

    def parts(self, _web: Web) -> Sequence[Part]:
        if not self._groups:
            message = f"{self.repository} has no files that match at {self.commit}; correct include and exclude"
            raise RecipeError(message)
        place = f"{self.repository} at {self.commit}"
        return [
            *(Part(f"part-{number:05d}.parquet", place) for number in range(len(self._groups))),
            *(Part(_beside(blob), f"{place}: {blob.path}", blob.bytes) for blob in self._licenses),
        ]

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        there = Repository(self.repository)
        there.fetched(self.commit)
        if part.beside:
            blob = next(blob for blob in self._licenses if _beside(blob) == part.name)
            [(_, data)] = there.contents([blob])
            return write_whole(data, part, partial, flow)
        number = int(part.name[len("part-") : -len(".parquet")])
        left_out = Counter(blob.kind for blob in self._chosen if blob.kind) if number == 0 else Counter[str]()
        batches = batches_of(self._documents(there, self._groups[number], left_out), left_out)
        received = write_part(batches, COLUMNS, part, partial, web, flow)
        return replace(received, facts={"left_out": dict(sorted(left_out.items()))} if left_out else {})

    def _documents(self, there: Repository, blobs: Sequence[Blob], left_out: Counter[str]) -> Iterator[Document]:
        small = [blob for blob in blobs if blob.bytes <= LINE_CAP]
        if len(small) < len(blobs):
            left_out[OVERSIZE] += len(blobs) - len(small)
        for blob, data in there.contents(small):
            if data.startswith(POINTER):
                left_out["lfs"] += 1
            else:
                yield Document(blob.path, _url(self.repository, blob.path), data)


@lru_cache(maxsize=4)
def _blobs(place: str, commit: str) -> tuple[Blob, ...]:
    there = Repository(place)
    there.fetched(commit)
    return tuple(there.blobs(commit))


def _beside(blob: Blob) -> str:
    return f"{RIGHTS}{blob.path.replace('/', '-')}"


def _url(repository: str, path: str) -> str:
    """Return the address of a file, which is the same at each commit, so that one that has not changed is known."""
    if "://" not in repository:
        return f"{Path(repository).absolute().as_uri()}/{quote(path)}"
    base = repository.rstrip("/").removesuffix(".git")
    return f"{base}/{quote(path)}" if base.startswith("file://") else f"{base}/blob/HEAD/{quote(path)}"


def _require_query(query: Git) -> None:
    """Raise RecipeError for a query that makes no sense, or has a password."""
    place, parts = query.repository, urlsplit(query.repository)
    is_url = "://" in place
    is_wrong = parts.scheme not in ("https", "http", "file") or "@" in parts.netloc or parts.query
    if not place or place.startswith("-") or (is_url and is_wrong) or (not is_url and not Path(place).is_dir()):
        shown = place.rpartition("@")[2][:200]
        message = f"repository {shown!a}: name a local folder, or a URL of https:// or file:// without user and query"
        raise RecipeError(message)
    if not _REVISION.fullmatch(query.revision) and not COMMIT.fullmatch(query.revision):
        message = f"revision {query.revision[:100]!a}: name a branch, a tag or a commit"
        raise RecipeError(message)


SOURCE = Git
