"""Erases what a survey found, and certifies it. What a kill left of that is done by the next erasure."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.sealed import reference, require_digest, seal, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import (
    CERTIFICATES,
    CERTIFIED_ANEW,
    LOG,
    Erased,
    certificates,
    erased_by_path,
    erasures,
    expired,
    newest,
)
from pipeline_tasks.store.log_chain import read_chain
from pipeline_tasks.store.taken_down import Takedown
from pipeline_tasks.upkeep.rewriting.replacing import TOGETHER, commit, meanwhile
from refinery_rights.erasing.survey import Survey, Work

OUTSIDE = (
    "landed files, which have the documents as they were crawled: `landed` names the records",
    "backups and earlier versions of objects that a bucket keeps",
    "exports, samples and copies that were written outside the root",
    "vectors in a store outside the root: `refinery keep index` removes them there",
    "temporary files of machines on which runs were killed, and what a disk keeps of removed files",
    "models that were trained on the tokens, or on the texts, below this root too",
)
"""What no erasure reaches, as the certificate lists it."""

STAYS = (
    "the log of takedowns with what was asked for, and ids of texts, by which they are refused in future",
    "places of records (file, offset, length), counts and numbers of rows",
    "hashes and sketches in history, by which later snapshots are compared, and keys of addresses in that of dedup_url",
    "addresses of documents in the evidence of other documents",
    "the URL or site that was asked for, as the address of erased rows: it is taken down by the same entry",
    "host names in profiles of manifests and receipts, whose digests others name: `names_in` lists these objects",
    "robots.txt files of a host in the history of check_rights, by which later opt-outs are known",
)
"""What is left of a document below the root."""


def finish(root: str) -> int:
    """Remove the objects that an erasure has replaced and that a kill left; return how many there were."""
    store, left, by_policy = storage.connect(root), [], expired(root)
    for path, erased in erased_by_path(root).items():
        if (
            path not in by_policy
            and store.size(path) == erased.before.bytes
            and sha256(store.read(path)) == erased.before.digest
        ):
            left.append(path)
    store.delete_many(left)
    return len(left)


def fence(root: str, takedown: int, by: str) -> None:
    """Log that an erasure begins, once for each takedown: what runs read before is not committed from then on."""
    if all(entry.takedown != takedown for entry in erasures(root)):
        commit(root, (), by, newest(root), takedown=takedown)


def erase(found: Survey, takedown: int, by: str) -> None:
    """Do the work of a survey, in its order; each entry of the log names up to `TOGETHER` objects."""
    for start in range(0, len(found.work), TOGETHER):
        works = found.work[start : start + TOGETHER]
        since = newest(found.root)
        try:
            objects = [work.do() for work in works]
        except FileNotFoundError as error:
            raise meanwhile(found.root) from error
        commit(found.root, objects, by, since, takedown=takedown)


def planned(work: Sequence[Work]) -> dict[str, int]:
    """Return the cost of work: objects, rows, and bytes that are written again and removed."""
    return {
        "objects": len(work),
        "rows": sum(each.rows for each in work),
        "rewritten_bytes": sum(each.bytes for each in work if each.action == "rewrite"),
        "removed_bytes": sum(each.bytes for each in work if each.action == "remove"),
    }


def certify(found: Survey, log: Sequence[Takedown], by: str) -> tuple[str, dict[str, Any]]:
    """Store the certificate of what was erased after the last takedown; return its path and what it says.

    It has digests, paths and counts, and nothing that a document said; of what was asked for it has the SHA-256.
    """
    every = erasures(found.root)
    entries = [entry for entry in every if entry.takedown == log[-1].number]
    last = max((entry.number for entry in every if not entry.certificate), default=0)
    objects = [each for entry in entries for each in entry.objects]
    facts = {
        "certificate": f"{log[-1].number}-{last}",
        "root": found.root,
        "at": entries[-1].at if entries else datetime.now(UTC).isoformat(timespec="seconds"),
        "by": sorted({entry.by for entry in entries} or {by}),
        "takedowns": [_takedown(each) for each in log],
        "looked_at": {"objects": found.objects, "bytes": found.bytes},
        "counts": counts(objects),
        "unfinished": sorted(found.unfinished),
        "objects": [asdict(each) for each in objects],
        "log": {"entries": [entry.number for entry in entries], "head": _head(found.root, last)},
        "documents": len(found.documents.ids),
        "same_text_elsewhere": sorted(found.documents.others),
        "stays": list(STAYS),
        "outside": list(OUTSIDE),
        "names_in": sorted(found.names_in),
        "landed": found.documents.places(),
    }
    path = f"{CERTIFICATES}/{log[-1].number:012d}-{last:012d}.json"
    _log_certificate(found.root, path, seal(facts), by)
    return path, facts


def _log_certificate(root: str, path: str, body: bytes, by: str) -> None:
    """Store a certificate if it is absent, and have the log name it, and the ledger the log.

    DigestMismatch if the one that is stored is another than the log names.
    """
    stored, named = storage.keep(storage.connect(root), path, body), certificates(root).get(path, "")
    if stored != body:
        require_digest(stored, named, f"{root}/{path}", CERTIFIED_ANEW)
    if named != sha256(stored):
        commit(root, (), by, newest(root), certificate=reference(path, sha256(stored)))
    with Ledger.open(ledger_of(root)) as ledger:
        ledger.record_log(root, LOG)


def _head(root: str, last: int) -> str:
    return read_chain(root, LOG)[last - 1].digest if last else ""


def _takedown(takedown: Takedown) -> dict[str, Any]:
    asked = [_asked(entry) for entry in takedown.entries]
    if takedown.listed:
        asked = [{"kind": "segment", "sha256": takedown.listed.digest}]
    return {"number": takedown.number, "at": takedown.at, "undo": takedown.undo, "asked": asked}


def _asked(entry: tuple[str, str]) -> dict[str, str]:
    return {"kind": entry[0], "sha256": sha256(entry[1].encode())}


def counts(objects: Sequence[Erased]) -> dict[str, int]:
    """Return how much was erased: objects by what became of them, rows, and tokens."""
    return {
        "rewritten": sum(each.after is not None for each in objects),
        "removed": sum(each.after is None for each in objects),
        "rows": sum(each.rows for each in objects),
        "tokens": sum(stop - start for each in objects for start, stop in each.spans),
    }
