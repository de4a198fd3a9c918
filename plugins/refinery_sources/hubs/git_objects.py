"""Reads a commit of a Git repository by Git's own program: its files are listed and read, and never checked out."""

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pipeline_tasks.constraints import on_web
from pipeline_tasks.errors import ContractError, RecipeError, SourceBusy
from pipeline_tasks.store.temporary import user_folder
from refinery_sources.admission import require_host, require_links_within, require_place
from refinery_sources.fields import COMMIT

SECONDS = 3600
"""Seconds after which a fetch is taken for one that hangs."""

_SHORT = re.compile(r"[0-9a-f]{4,39}")

_SAFE = (
    *("-c", "protocol.allow=never", "-c", "protocol.https.allow=always"),
    *("-c", "protocol.http.allow=always", "-c", "protocol.file.allow=always"),
    *("-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"),
)
"""Settings of every call: no other protocol, and no program of a repository. Git checks the digest of each object."""

_KINDS = {"120000": "symlink", "160000": "submodule"}


class Blob(NamedTuple):
    """A file of a commit: its path, its content's name and bytes; `kind` is other than "" where it is no file."""

    path: str
    name: str
    bytes: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at a place, and the bare one of this user in which what was fetched of it is kept."""

    place: str

    @property
    def _local(self) -> Path:
        return Path(self.place.removeprefix("file://")).absolute()

    @property
    def _address(self) -> str:
        """The place as Git takes it from any folder: the path that was admitted, with no name beside it to try."""
        if on_web(self.place):
            return self.place
        pointer = self._local / ".git"
        folder = next(_named_by(self._local)) if pointer.is_file() else pointer if pointer.is_dir() else self._local
        return f"{os.path.realpath(folder)}/."

    @property
    def kept(self) -> Path:
        """The folder of what was fetched."""
        place = self.place if "://" in self.place else str(self._local)
        return user_folder() / f"git-{hashlib.sha256(place.encode()).hexdigest()[:16]}"

    def fetched(self, revision: str) -> str:
        """Fetch a branch, a tag or a commit, without what came before it; return the commit.

        RecipeError where it is not there; SourceBusy for a fetch that fails otherwise.
        """
        self._require_admitted()
        if COMMIT.fullmatch(revision) and self._has(revision):
            return revision
        with self._locked():
            self._git("init", "-q", "--bare", str(self.kept))
            self._fetch(revision)
            return self._said("rev-parse", "--verify", "-q", "FETCH_HEAD^{commit}")

    def _require_admitted(self) -> None:
        """Raise RecipeError for a place that was not declared, and a repository that has its objects elsewhere.

        A `.git` that names another folder, links and alternates are data.
        """
        if on_web(self.place):
            require_host(self.place)
            return
        require_place(self.place)
        top = self._local
        folders = [top, top / ".git"]
        for folder in folders:  # which grow by those that they name
            folders += [named for named in _named_by(folder) if named not in folders]
        for folder in folders[0 if (top / "objects").is_dir() else 1 :]:
            require_place(str(folder))
            require_links_within(str(folder))

    def _fetch(self, revision: str) -> None:
        words = ("-q", "--depth", "1", "--no-tags", "--no-write-commit-graph", "--", self._address, revision)
        try:
            self._git("-C", str(self.kept), "fetch", *words)
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode("utf-8", "replace").strip().splitlines()
            shown = " ".join(said)[:300]
            if "couldn't find remote ref" in shown or "not our ref" in shown or "does not appear to be a git" in shown:
                digits = "; a commit has to have its 40 digits" if _SHORT.fullmatch(revision) else ""
                message = (
                    f"{self.place} has no revision {revision}, or is no repository ({shown!a}){digits}; correct the "
                    "recipe"
                )
                raise RecipeError(message) from error
            message = f"{self.place}: {revision} cannot be fetched ({shown!a}); try again later"
            raise SourceBusy(message) from error

    def committed(self, commit: str) -> str:
        """Return when a commit was made (ISO 8601)."""
        return self._said("show", "-s", "--format=%cI", commit)

    def blobs(self, commit: str) -> list[Blob]:
        """List the files of a commit, in Git's order of paths."""
        listed = self._run("ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0")
        return [_blob(entry) for entry in listed if entry]

    def contents(self, blobs: Iterable[Blob]) -> Iterator[tuple[Blob, bytes]]:
        """Yield files with their content; ContractError for one that is not there."""
        words = ["git", *_SAFE, "-C", str(self.kept), "cat-file", "--batch"]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, env=_environment()) as reader:  # noqa: S603 -- our words
            assert reader.stdin is not None
            assert reader.stdout is not None
            try:
                for blob in blobs:
                    reader.stdin.write(f"{blob.name}\n".encode())
                    reader.stdin.flush()
                    if reader.stdout.readline().split() != [blob.name.encode(), b"blob", b"%d" % blob.bytes]:
                        message = f"{self.place}: {blob.path} is not the file of {blob.bytes} bytes that was listed"
                        raise ContractError(message)
                    data = reader.stdout.read(blob.bytes)
                    reader.stdout.read(1)
                    yield blob, data
            finally:
                reader.kill()

    def _has(self, commit: str) -> bool:
        return self.kept.is_dir() and self._answers("cat-file", "-e", f"{commit}^{{tree}}")

    def _answers(self, *words: str) -> bool:
        try:
            self._run(*words)
        except subprocess.CalledProcessError:
            return False
        return True

    def _said(self, *words: str) -> str:
        return self._run(*words).decode().strip()

    def _run(self, *words: str) -> bytes:
        return self._git("-C", str(self.kept), *words)

    def _git(self, *words: str) -> bytes:
        try:
            whole = ["git", *_SAFE, *words]
            done = subprocess.run(  # noqa: S603 -- our words
                whole, check=True, capture_output=True, env=_environment(), timeout=SECONDS
            )
        except FileNotFoundError as error:
            message = "repositories are read by Git's own program, which is not installed here: install git"
            raise RecipeError(message) from error
        except subprocess.TimeoutExpired as error:
            message = f"{self.place}: Git has not answered for {SECONDS:,} seconds; try again later"
            raise SourceBusy(message) from error
        return done.stdout

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time fetch from a repository."""
        with self.kept.with_suffix(".lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


def _named_by(folder: Path) -> Iterator[Path]:
    """Yield the folders in which Git looks because files of a folder name them; RecipeError for a foreign one."""
    for pointer, base in ((".git", folder), ("commondir", folder), ("objects/info/alternates", folder / "objects")):
        path = folder / pointer
        for line in path.read_text(errors="replace").splitlines() if path.is_file() else ():
            named = line.removeprefix("gitdir:").strip()
            if named.startswith('"'):  # as Git quotes paths that need it
                message = f"{path} names a folder in quotes, which is not read; name the repository itself"
                raise RecipeError(message)
            if named:
                place = Path(require_place(os.path.normpath(base / named)))
                yield place.parent if place.name == "objects" else place


def _environment() -> dict[str, str]:
    """Return an environment in which Git asks nobody, and reads no settings of users."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"}
    return {**kept, **quiet, "GIT_LFS_SKIP_SMUDGE": "1"}


def _blob(entry: bytes) -> Blob:
    about, _, path = entry.partition(b"\t")
    mode, _, name, size = about.split()
    kind = _KINDS.get(mode.decode(), "")
    return Blob(path.decode("utf-8", "replace"), name.decode(), 0 if size == b"-" else int(size), kind)
