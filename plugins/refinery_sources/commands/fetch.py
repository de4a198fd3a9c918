"""Fetch public evaluation sets and URL lists into a folder that a recipe can name, and pin what was fetched."""

import argparse
import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from operator import getitem
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pipeline_tasks.binding import require_known
from pipeline_tasks.cli.whole_file import replace_whole
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import DigestMismatch, RecipeError, Transient
from pipeline_tasks.stage import NO_FILE, FilePath
from refinery_sources.commands.public_sources import (
    EVALUATION_SETS,
    UT1,
    UT1_CATEGORIES,
    UT1_LICENCE,
    UT1_SUMS,
    EvaluationSet,
)

KINDS = ("evaluation-sets", "url-lists")

SET, LIST, LISTS = ".jsonl.gz", ".txt.gz", ("domains", "urls")
"""Endings of the files of sets and of lists, and the params of `filter_url` that lists are for."""

PINS = "fetched.json"
"""File of the folder that says what each of its files is: source, revision, licence and SHA-256."""

HTTP_CLIENTS = ("httpx", "httpx2")
"""Clients that releases of the hub's client use, whose errors are none of Python's own."""

MOST_BYTES = 1_000_000_000
"""Bytes of one file from outside, and of what an archive unpacks to."""

SECONDS = 60
"""A server that is silent for so long is not there."""

CATEGORY = re.compile(r"[a-z0-9_-]+")

WITHOUT_NETWORK = (
    "without internet run this command on another machine and copy the folder, name a mirror with --from, or name "
    "files of your own in the recipe"
)


class Fetched(NamedTuple):
    """A file that was fetched: its name, content, and what `PINS` says of it besides the digest."""

    name: str
    content: bytes
    facts: Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to fetch, and the folder to write to."""
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument(
        "--to",
        "--output",
        dest="output",
        required=True,
        metavar="FOLDER",
        help="folder to write to; its files are pinned there",
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a set, or a category of lists")
    parser.add_argument(
        "--from", "--source", dest="source", default="", metavar="URL", help="a mirror of the hub, or of the lists"
    )
    parser.add_argument("--update", action="store_true", help="replace files by newer ones than were pinned")


def answer(options: argparse.Namespace) -> int:
    """Fetch, verify and write the files; print their licences, and the lines of a recipe that name them."""
    folder = Path(options.output)
    pins = read_pins(folder)
    known = {} if options.update else pins
    if options.kind == "evaluation-sets":
        names = options.only or sorted(EVALUATION_SETS)
        require_known(names, tuple(EVALUATION_SETS), "evaluation set")
        files: Iterable[Fetched] = (evaluation_set(name, options.source, known) for name in names)
    else:
        files = url_lists(options.only or UT1_CATEGORIES, options.source or UT1)
    written = dict(pins)
    for fetched in files:
        written[fetched.name] = keep(folder, fetched, known)
        facts = written[fetched.name]
        amount = counted(facts["lines"], "line")
        sys.stdout.write(f"{fetched.name}: {amount}, licence {facts['licence']}, sha256 {facts['sha256']}\n")
        replace_whole(folder / PINS, json.dumps(written, indent=1, sort_keys=True).encode() + b"\n", parents=True)
    require_readable(folder, options.kind, written)
    sys.stdout.write("\n".join(["in the recipe:", *recipe_lines(folder, options.kind, written)]) + "\n")
    return 0


def read_pins(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the folder says of its files; RecipeError if it cannot be read."""
    path = folder / PINS
    try:
        pins: dict[str, dict[str, Any]] = json.loads(path.read_bytes()) if path.exists() else {}
    except (OSError, ValueError) as error:
        message = f"cannot read {path} ({error}); name another --to"
        raise RecipeError(message) from error
    return pins


def keep(folder: Path, fetched: Fetched, pins: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write a file and return what `PINS` has of it; DigestMismatch if another one was pinned."""
    digest = hashlib.sha256(fetched.content).hexdigest()
    pinned = pins.get(fetched.name, {}).get("sha256", digest)
    if digest != pinned:
        message = (
            f"{fetched.name} has the SHA-256 {digest}, and {folder / PINS} pins {pinned}: the source has changed; take "
            "the new one with --update, which gives the recipe another output, or keep the file that is there"
        )
        raise DigestMismatch(message)
    replace_whole(folder / fetched.name, fetched.content, parents=True)
    return {**fetched.facts, "sha256": digest}


def require_readable(folder: Path, kind: str, written: Mapping[str, Any]) -> None:
    """Raise RecipeError unless the stage that the files are for can read them all."""
    from pipeline_tasks.stages import decontaminate, filter_url

    if kind == "evaluation-sets":
        sets = {name.removesuffix(SET): FilePath(str(folder / name)) for name in written if name.endswith(SET)}
        decontaminate.check_files(decontaminate.Params(benchmarks=sets))
        return
    domains, urls = (
        FilePath(str(folder / f"{name}{LIST}")) if f"{name}{LIST}" in written else NO_FILE for name in LISTS
    )
    filter_url.check_files(filter_url.Params(domains=domains, urls=urls))


def recipe_lines(folder: Path, kind: str, written: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a recipe that name the files of a folder."""
    place = folder.absolute()
    if kind == "evaluation-sets":
        yield "  decontaminate:"
        yield "    benchmarks:"
        for name in sorted(name for name in written if name.endswith(SET)):
            yield f"      {name.removesuffix(SET)}: {place / name}"
    else:
        yield "  filter_url:"
        yield from (f"    {name}: {place / name}{LIST}" for name in LISTS if f"{name}{LIST}" in written)


# --- Evaluation sets ------------------------------------------------------------------------------------------


def evaluation_set(name: str, endpoint: str, pins: Mapping[str, Mapping[str, Any]]) -> Fetched:
    """Return a set of the hub as JSON lines, of the revision that is pinned or else of the newest.

    Transient if the hub cannot be reached; RecipeError without its client, or if it has no such files.
    """
    source, file = EVALUATION_SETS[name], f"{name}{SET}"
    client, failures = _hub()
    revision = pins.get(file, {}).get("revision")
    try:
        info = client.HfApi(endpoint=endpoint or None).dataset_info(source.repository, revision=revision)
        paths = split_files(source, [sibling.rfilename for sibling in info.siblings or ()])
        tables = [_parquet(client, source, path, info.sha, endpoint) for path in paths]
    except failures as error:
        message = f"cannot fetch {source.repository} of the hub ({error}); {WITHOUT_NETWORK}"
        raise Transient(message) from error
    items = [item for table in tables for item in table]
    lines = [json.dumps(chosen(item, source.fields), ensure_ascii=False, sort_keys=True) for item in items]
    licence = (info.card_data or {}).get("license") or "not stated"
    facts = {
        "source": source.repository,
        "revision": info.sha,
        "licence": ", ".join(licence) if isinstance(licence, list) else str(licence),
        "lines": len(lines),
    }
    return Fetched(file, gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0), facts)


def split_files(source: EvaluationSet, names: Iterable[str]) -> list[str]:
    """Return the Parquet files of a set's split, in order; RecipeError if there are none."""
    pattern = re.compile(rf"{re.escape(source.folder)}/{re.escape(source.split)}-\d+-of-\d+\.parquet")
    paths = sorted(name for name in names if pattern.fullmatch(name))
    if not paths:
        message = (
            f"{source.repository} has no {source.folder}/{source.split}-*.parquet; it was changed: leave it out with "
            "--only, and name a file of your own"
        )
        raise RecipeError(message)
    return paths


def chosen(item: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the texts of an item under the names that `decontaminate` reads."""
    return {name: reduce(getitem, path.split("."), item) for name, path in fields.items()}


def _hub() -> tuple[ModuleType, tuple[type[Exception], ...]]:
    """Return the hub's client, and the errors by which it says that the hub cannot be reached."""
    try:
        import huggingface_hub
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        message = f"evaluation sets come through the hub's client ({error}); install it: pip install huggingface_hub"
        raise RecipeError(message) from error
    clients = (import_module(name) for name in HTTP_CLIENTS if find_spec(name))
    return huggingface_hub, (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OSError,
        *(module.HTTPError for module in clients),
    )


def _parquet(
    client: ModuleType, source: EvaluationSet, path: str, revision: str, endpoint: str
) -> list[dict[str, Any]]:
    """Return the rows of a file of the hub."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix="refinery-fetch-") as folder:
        local = client.hf_hub_download(
            source.repository,
            path,
            repo_type="dataset",
            revision=revision,
            cache_dir=folder,
            endpoint=endpoint or None,
        )
        rows: list[dict[str, Any]] = pq.read_table(local).to_pylist()
    return rows


# --- URL lists ------------------------------------------------------------------------------------------------


def url_lists(categories: Iterable[str], base: str) -> Iterator[Fetched]:
    """Yield the hosts, and the URLs, of all categories together: sorted, each once.

    Transient if the server cannot be reached; DigestMismatch if an archive has another sum than the server says.
    """
    names = sorted(set(categories))
    sums = md5_sums(download(f"{base}/{UT1_SUMS}").decode("utf-8", "replace"))
    require_known(names, tuple(sums), "category")
    found: dict[str, set[bytes]] = {kind: set() for kind in LISTS}
    for name in names:
        archive = download(f"{base}/{name}.tar.gz")
        if hashlib.md5(archive, usedforsecurity=False).hexdigest() != sums[name]:
            message = f"{base}/{name}.tar.gz does not have the sum of {UT1_SUMS}; it may be changing: run this again"
            raise DigestMismatch(message)
        for kind in found:
            found[kind] |= listed(archive, f"{name}/{kind}")
    facts = {"source": base, "categories": names, "licence": UT1_LICENCE}
    for kind, lines in found.items():
        if lines:
            content = gzip.compress(b"".join(line + b"\n" for line in sorted(lines)), mtime=0)
            yield Fetched(f"{kind}{LIST}", content, {**facts, "lines": len(lines)})


def md5_sums(text: str) -> dict[str, str]:
    """Return the MD5 sum of each category's archive."""
    rows = (line.split() for line in text.splitlines())
    pairs = ((row[1].removesuffix(".tar.gz"), row[0]) for row in rows if len(row) == 2 and row[1].endswith(".tar.gz"))  # noqa: PLR2004 -- sum and name
    return {name: digest for name, digest in pairs if CATEGORY.fullmatch(name)}


def listed(archive: bytes, member: str) -> set[bytes]:
    """Return the lines of a file of an archive that are UTF-8; none if the archive does not have it."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
        for entry in files:
            if entry.name.removeprefix("./") == member and entry.isfile() and entry.size <= MOST_BYTES:
                content = files.extractfile(entry)
                lines = content.read().splitlines() if content else []
                return {line.strip() for line in lines if line.strip() and is_text(line)}
    return set()


def is_text(line: bytes) -> bool:
    """Return whether a line is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def download(url: str) -> bytes:
    """Return what a URL of HTTP or HTTPS has; Transient if it cannot be reached or is too large."""
    if not url.startswith(("https://", "http://")):
        message = f"--from {url}: name a URL of https:// or http://"
        raise RecipeError(message)
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as response:  # noqa: S310 -- the scheme is checked above
            content: bytes = response.read(MOST_BYTES + 1)
            length = response.headers.get("Content-Length")
    except (urllib.error.URLError, OSError) as error:
        message = f"cannot fetch {url} ({error}); {WITHOUT_NETWORK}"
        raise Transient(message) from error
    if len(content) > MOST_BYTES or (length is not None and len(content) != int(length)):
        message = f"{url} was cut short, or has more than {MOST_BYTES:,} bytes; run this again"
        raise Transient(message)
    return content
