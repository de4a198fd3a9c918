"""Checks the chain of a dataset's log: every entry, its link to the one before, its head, and what was archived."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.publish.log_chain import dataset_log, entry_path, head_body, head_path, numbers, way_out
from pipeline_tasks.publish.version_log import Retraction, Version, entry_of
from pipeline_tasks.sealed import sha256, unseal
from pipeline_tasks.store import storage


@dataclass(slots=True)
class Log:
    """The readable entries of a recipe, oldest first, and the digest of each entry by its number."""

    recipe: str
    entries: list[Version | Retraction] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)

    @property
    def head(self) -> dict[str, Any]:
        """The number and the digest of the last entry."""
        last = max(self.digests, default=0)
        return {"number": last, "sha256": self.digests.get(last, "")}

    @property
    def versions(self) -> list[Version]:
        """The versions among the entries."""
        return [entry for entry in self.entries if isinstance(entry, Version)]


def check_log(root: str, recipe: str, findings: Findings) -> Log:
    """Read every entry of a recipe's log; a damaged one is a problem, and the others are read."""
    log, store = Log(recipe), storage.connect(root)
    entries, heads = numbers(store, dataset_log(recipe))
    last = max(entries | heads, default=0)
    for number in range(1, last + 1):
        _check_entry(root, log, number, findings)
        _check_head(root, log, number, findings, exists=number in heads, last=number == last)
    return log


def _check_entry(root: str, log: Log, number: int, findings: Findings) -> None:
    path = entry_path(log.recipe, number)
    where, heal = f"{root}/{path}", way_out(log.recipe)
    with findings.guarded(where, heal):
        body = storage.connect(root).read(path)
        findings.count("log entries", len(body))
        log.digests[number] = sha256(body)
        fields = unseal(body, where, heal)
        before = log.digests.get(number - 1, "") if number > 1 else ""
        expected = {"number": number, "recipe": log.recipe, "previous": before}
        if number > 1 and not before:
            del expected["previous"]  # the entry before it is gone, which is a problem of its own
        for name, value in expected.items():
            if fields.get(name) != value:
                problem = f"is not the entry that follows: its field {name} is wrong"
                findings.add(Problem(where, problem, str(value), str(fields.get(name)), heal))
        named = {key: value for key, value in fields.items() if key != "previous"}
        log.entries.append(entry_of(root, log.recipe, {**named, "number": number}))


def _check_head(root: str, log: Log, number: int, findings: Findings, *, exists: bool, last: bool) -> None:
    """Check the witness of an entry; only that of the last one may be missing, after a crash."""
    path, digest = head_path(log.recipe, number), log.digests.get(number, "")
    where = f"{root}/{path}"
    heal = f"if the entry is right, store its digest there: {digest} and a newline" if digest else way_out(log.recipe)
    if not exists and last:
        findings.note(f"{where}: not written yet; the next entry of the log writes it")
        return
    with findings.guarded(where, heal):
        body = storage.connect(root).read(path)
        findings.count("log heads", len(body))
        if digest and body != head_body(digest):
            actual = body[:64].decode("utf-8", "replace").strip()
            findings.add(Problem(where, "does not name its entry", f"SHA-256 {digest}", actual, heal))


def check_archived(root: str, logs: Sequence[Log], archived: str, findings: Findings) -> None:
    """Check that the entry whose digest was archived is still part of a log: a log that has grown still has it."""
    if not any(archived in log.digests.values() for log in logs):
        heal = "compare with a backup: a log only grows, so it was rewritten since"
        now = ", ".join(f"{log.recipe} {log.head['sha256']}" for log in logs)
        findings.add(Problem(f"{root}/datasets", "no log has the archived head", f"SHA-256 {archived}", now, heal))
