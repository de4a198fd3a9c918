"""Looks at every object below a root: of which kind it is, and those that no log entry and no manifest leads to."""

import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.kinds import Kind, kind_of
from pipeline_tasks.inspect.verify.objects import check_object
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import PUBLISH
from pipeline_tasks.report.summary import summarize, summary_path, unsealed_summary
from pipeline_tasks.sealed import require_digest
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import CERTIFICATES, CERTIFIED_ANEW, certificates
from pipeline_tasks.store.protocol import Entry

LONG = 7 * 86_400.0
"""Seconds after which what looks published and is in no log is no work in progress: a vacuum keeps orphans so long."""

_COMPUTED = "remove it: it is computed again"


def check_stored(root: str, versions: Sequence[Version], findings: Findings, *, full: bool) -> None:
    """Check the objects of a root that nothing names; `versions` are all that its logs have."""
    entries = list(storage.connect(root).list(""))
    by_path = {entry.path: kind_of(entry.path) for entry in entries}
    if unknown := [path for path, kind in by_path.items() if kind is None]:
        objects = counted(len(unknown), "object")
        findings.note(f"{root}/{unknown[0]}: Refinery stores no such object; {objects} of no kind were not checked")
    empty = {entry.path for entry in entries if not entry.bytes}  # an empty object is no commit
    check = partial(_check_object, root, findings, full=full)
    read = [(path, kind) for path, kind in by_path.items() if kind and kind.read and path not in empty]
    deque(storage.each(storage.connect(root), check, read), maxlen=0)
    for version in versions:
        _check_summary(root, version, findings)
    _check_unnamed(root, entries, versions, findings)
    with contextlib.suppress(ContractError):  # a damaged log is a problem of its own
        _check_certificates(root, entries, certificates(root), findings)


def _check_object(root: str, findings: Findings, each: tuple[str, Kind], *, full: bool) -> None:
    """Read an object that no other check reads."""
    path, kind = each
    with findings.guarded(f"{root}/{path}", kind.heal):
        findings.count("caches and copies")
        expected = kind.read(root, path) if kind.read else None
        if expected:
            check_object(expected, findings, full=full)


def _check_summary(root: str, version: Version, findings: Findings) -> None:
    """Compare the summary of a version, if it is there, with what it sums up, if that can be read."""
    path = summary_path(version.recipe, version.manifests, version.verdicts)
    if storage.connect(root).size(path):
        with findings.guarded(f"{root}/{path}", _COMPUTED):
            stored = unsealed_summary(root, path)
            findings.count("caches and copies")
            with contextlib.suppress(ContractError, RecipeError, FileNotFoundError):  # a manifest that is gone
                if stored != summarize(root, version.manifests, version.verdicts):
                    problem = "has other numbers than the manifests and verdicts that it sums up"
                    findings.add(Problem(f"{root}/{path}", problem, heal=_COMPUTED))


def _check_unnamed(root: str, entries: Iterable[Entry], versions: Iterable[Version], findings: Findings) -> None:
    """Find what was published, by its looks, and is in no log: a log that was removed would name it."""
    known = {version.prefix for version in versions} | {f"{PUBLISH}/shards"}
    newest, found = max((entry.modified for entry in entries), default=0.0), dict[str, float]()
    for entry in entries:
        prefix = "/".join(entry.path.split("/")[:2])
        if prefix.startswith(f"{PUBLISH}/") and prefix not in known:
            found[prefix] = max(found.get(prefix, 0.0), entry.modified)
    for prefix, modified in sorted(found.items()):
        if modified < newest - LONG:
            problem = "was written to be published, and no log names it"
            heal = (
                "restore `datasets/` from a backup if a log was removed from it; if a run was stopped there, run it "
                "again, or `refinery keep vacuum` removes it"
            )
            findings.add(Problem(f"{root}/{prefix}", problem, heal=heal))


def _check_certificates(root: str, entries: Iterable[Entry], named: dict[str, str], findings: Findings) -> None:
    """Compare the certificates of erasures with the log; one that an earlier release wrote is not in it."""
    store, last = storage.connect(root), max(named, default="")
    there = {entry.path for entry in entries if entry.path.startswith(f"{CERTIFICATES}/")}
    for path in sorted(there - named.keys()):
        findings.note(f"{root}/{path}: no entry of the log of erasures names it, as an earlier release wrote it")
    for path, digest in named.items():
        heal = CERTIFIED_ANEW if path == last else "restore it from a backup: only the newest is certified anew"
        with findings.guarded(f"{root}/{path}", heal):
            findings.count("certificates")
            require_digest(store.read(path), digest, f"{root}/{path}", heal)
