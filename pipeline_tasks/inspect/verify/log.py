"""Checks the chain of a log: every entry, its link to the one before, its head, and what was archived.

An entry has witnesses that name its digest: its head, the entry after it, and the ledger. An entry that none of them
names was replaced; where one of them names it, the others are wrong. The last entries may be removed together with
their heads, or a log as a whole: the ledger is a witness of these, and of takedowns so are the lists that landings pin.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RefineryError, Transient
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.objects import Expected
from pipeline_tasks.ledger.lost_log import Recorded, last_and_recorded
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish import takedowns
from pipeline_tasks.publish.logs import ablation_log, model_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version, entry_of
from pipeline_tasks.sealed import require_digest, sha256, split_reference, unseal
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import access_log, erasures, log_chain, storage, taken_down
from pipeline_tasks.store.log_chain import dataset_log, head_body, numbers


@dataclass(slots=True)
class Log:
    """The entries of a recipe that can be trusted, oldest first, and the digest of each entry by its number.

    The digest of a damaged entry is that which a witness names. `whole` is whether all entries can be trusted.
    """

    recipe: str
    entries: list[Version | Retraction] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)
    whole: bool = True

    @property
    def head(self) -> dict[str, Any]:
        """The number and the digest of the last entry."""
        last = max(self.digests, default=0)
        return {"number": last, "sha256": self.digests.get(last, "")}

    @property
    def versions(self) -> list[Version]:
        """The versions among the entries."""
        return [entry for entry in self.entries if isinstance(entry, Version)]


@dataclass(slots=True)
class _Link:
    """A number of a log: the fields and the digest of its entry (none of a damaged one), and what others say of that.

    `head` is the digest that its head names, `recorded` the one that the ledger has, "" if there is none.
    """

    number: int
    where: str
    fields: dict[str, Any] | None = None
    digest: str = ""
    head: str = ""
    recorded: str = ""

    @property
    def previous(self) -> str:
        """The digest that it names of the entry before it."""
        return str((self.fields or {}).get("previous", ""))


def check_log(root: str, recipe: str, findings: Findings) -> Log:
    """Read every entry of a recipe's log; a damaged one is a problem, and the others are read."""
    log = Log(recipe)
    links = list(_check_chain(root, dataset_log(recipe), findings))
    for link, digest in links:
        if digest:
            log.digests[link.number] = digest
        fields = {name: value for name, value in (link.fields or {}).items() if name != "previous"}
        if not findings.is_damaged(link.where):
            with findings.guarded(link.where, dataset_log(recipe).way_out):
                log.entries.append(entry_of(root, recipe, fields))
        if findings.is_damaged(link.where):
            log.whole = False
            findings.note(f"{link.where}: what it names is not verified before it is healed")
    return log


def check_takedowns(root: str, manifests: Sequence[Manifest], findings: Findings) -> tuple[Log, list[Expected]]:
    """Check the log of takedowns, what witnesses say of it, and the lists that manifests pin.

    Return its digests, and the segments that hold the rows of its last entry, of these lists, and of entries of many.
    """
    checked = list(_check_chain(root, taken_down.LOG, findings))
    links, log = [link for link, _ in checked], _digests(taken_down.FOLDER, checked)
    shards = {shard.path: shard for shard in _check_lists(root, manifests, findings)}
    if _is_whole(root, taken_down.LOG, checked, findings):
        shards |= {shard.path: shard for shard in taken_down.segments_of(taken_down.takedowns(root))}
        _check_pinned(root, len(links), manifests, findings)
    kind, heal = "segments of takedowns", taken_down.LOG.way_out
    held = [Expected(f"{root}/{path}", kind, (each.bytes,), (each.digest,), heal) for path, each in shards.items()]
    return log, held


def check_erasures(root: str, findings: Findings) -> Log:
    """Check the log of erasures, and that what it says to be gone is gone; return its digests."""
    checked = list(_check_chain(root, erasures.LOG, findings))
    if _is_whole(root, erasures.LOG, checked, findings):
        store, expired = storage.connect(root), erasures.expired(root)
        for path, gone in erasures.erased_by_path(root).items():
            findings.count("expired objects" if path in expired else "erased objects")
            if path in expired:  # it may be made again; the next application of a policy looks at it
                continue
            where = f"{root}/{path}"
            with findings.guarded(where, erasures.LOG.way_out):
                if store.size(path) == gone.before.bytes and sha256(store.read(path)) == gone.before.digest:
                    heal = "run `refinery erase` again: it removes the object, in whose place another one is read"
                    findings.add(Problem(where, "was erased, and is there", heal=heal))
    return _digests(erasures.FOLDER, checked)


def _is_whole(root: str, log: log_chain.Log, checked: Iterable[tuple[_Link, str]], findings: Findings) -> bool:
    """Return whether all entries of a log can be read: none has a problem, and no head has."""
    heads = (f"{root}/{log.head_path(link.number)}" for link, _ in checked)
    return not any(map(findings.is_damaged, (*(link.where for link, _ in checked), *heads)))


def _digests(name: str, checked: Iterable[tuple[_Link, str]]) -> Log:
    """Return a log of a root without what its entries say."""
    return Log(name, digests={link.number: digest for link, digest in checked if digest})


def _check_pinned(root: str, entries: int, manifests: Sequence[Manifest], findings: Findings) -> None:
    """Check that the log of takedowns has all that landings pin."""
    with findings.guarded(f"{root}/{taken_down.FOLDER}", taken_down.LOG.way_out):
        log = taken_down.takedowns(root)
        landings = (manifest for manifest in manifests if manifest.landed)
        lost = sorted({takedowns.unrecorded(root, landing) for landing in landings} - {""})
        if lost and not findings.is_damaged(f"{root}/{taken_down.LOG.entry_path(entries + 1)}"):
            problem, found = "lacks what was taken down before a snapshot landed", counted(len(log), "entry", "entries")
            findings.add(Problem(f"{root}/{taken_down.FOLDER}", problem, lost[0], found, taken_down.LOG.way_out))


def check_ablations(root: str, findings: Findings) -> Log:
    """Check the log of ablations, that it has what the ledger knows of it, and its evidence; return its digests."""
    checked = list(_check_chain(root, ablation_log.LOG, findings))
    referred = {str((link.fields or {}).get("evidence", "")) for link, _ in checked}
    check = partial(_check_evidence, root, findings)
    deque(storage.each(storage.connect(root), check, sorted(referred - {""})), maxlen=0)
    return _digests(ablation_log.FOLDER, checked)


def _check_evidence(root: str, findings: Findings, referred: str) -> None:
    path, digest = split_reference(referred)
    with findings.guarded(f"{root}/{path}", ablation_log.LOG.way_out):
        body = storage.connect(root).read(path)
        findings.count("evidence of ablations", len(body))
        require_digest(body, digest, f"{root}/{path}", ablation_log.LOG.way_out)


def check_models(root: str, findings: Findings) -> None:
    """Check the log of each name by which the root publishes models."""
    paths = (entry.path.split("/") for entry in storage.connect(root).list(model_log.MODELS))
    for name in sorted({path[1] for path in paths if "log" in path[2:3]}):
        for _ in _check_chain(root, model_log.log_of(name), findings):
            pass


def check_accesses(root: str, findings: Findings) -> None:
    """Check the seal and the name of each entry of the access log. They are no chain: nothing shows a removed one."""
    paths = access_log.look_paths(root)
    deque(storage.each(storage.connect(root), partial(_check_look, root, findings), paths), maxlen=0)


def _check_look(root: str, findings: Findings, path: str) -> None:
    with findings.guarded(f"{root}/{path}", access_log.WAY_OUT):
        access_log.read_look(root, path)
        findings.count("looks")


def _check_lists(root: str, manifests: Iterable[Manifest], findings: Findings) -> Iterator[Shard]:
    """Check the bytes of the lists of takedowns that manifests pin; yield the segments that they name."""
    pinned = {takedowns.list_of(root, pins): pins for pins in map(takedowns.pins_of, manifests) if pins}
    for where, pins in sorted(pinned.items()):
        with findings.guarded(where, "restore it from a backup"):
            listed = takedowns.pinned(root, pins)
            findings.count("lists of takedowns", listed.bytes)
            yield from listed.shards


def _check_end(root: str, log: log_chain.Log, findings: Findings) -> Recorded:
    """Check that a log does not end before what the ledger has of it: it was cut together with its heads.

    Returns what the ledger has.
    """
    try:
        last, known = last_and_recorded(root, log)
    except Transient:
        raise
    except RefineryError as error:
        findings.note(f"the ledger cannot be read, so that it is no witness of logs that were cut ({error})")
        return Recorded("")
    if last < known.last:
        missing = f"{root}/{log.entry_path(last + 1)}"
        numbers = (f"entry {known.last} in the ledger {known.dsn}", f"the log ends with entry {last}")
        findings.add(Problem(missing, "was removed with its head", *numbers, log.way_out))
    return known


def _check_chain(root: str, log: log_chain.Log, findings: Findings) -> Iterator[tuple[_Link, str]]:
    """Check the entries and heads of a log; yield each number with the digest that its entry has to have."""
    store, recorded = storage.connect(root), _check_end(root, log, findings)
    entries, heads = numbers(store, log)
    last = max(entries | heads, default=0)
    links = [_read(root, log, number, findings) for number in range(1, last + 1)]
    for link in links:
        link.recorded = recorded.digests.get(link.number, "")
    for link in links:
        _read_head(root, log, link, findings, exists=link.number in heads, last=link.number == last)
    for path in log_chain.page_faults(store, log):
        problem = "is a page with other entries than the log, which has them"
        findings.add(Problem(f"{root}/{path}", problem, "", "", "remove it: it is a cache"))
    known = {link.digest for link in links if link.digest}
    for link, following in zip(links, [*links, _Link(last + 1, "")][1:], strict=True):
        if link.head in known - {link.digest}:  # of another entry
            findings.add(_wrong_head(root, log, link, link.head))
            link.head = ""
        yield link, _witnessed(root, log, (link, following), findings)
    _check_recorded(links, recorded, findings)


def _check_recorded(links: Sequence[_Link], recorded: Recorded, findings: Findings) -> None:
    """Check that the ledger has the entries that are here: of a log that was written anew it has others."""
    for link in links:
        if link.recorded and link.digest and link.recorded != link.digest and not findings.is_damaged(link.where):
            problem = f"is not the entry that the ledger {recorded.dsn} has: this log was written anew, from here on"
            digests = (f"SHA-256 {link.recorded}", f"SHA-256 {link.digest}")
            heal = (
                "restore it from a backup; or if it is right, `refinery keep ledger` has the ledger take it for right"
            )
            findings.add(Problem(link.where, problem, *digests, heal))
            return


def _read(root: str, log: log_chain.Log, number: int, findings: Findings) -> _Link:
    """Read an entry; one that cannot be read, or that is of another number or log, is a problem."""
    path = log.entry_path(number)
    link = _Link(number, f"{root}/{path}")
    with findings.guarded(link.where, log.way_out):
        body = storage.connect(root).read(path)
        findings.count("log entries", len(body))
        fields = unseal(body, link.where, log.way_out)
        expected = {"number": number, **log.facts, **({"previous": ""} if number == 1 else {})}
        for name, value in expected.items():
            if fields.get(name) != value:
                problem = f"is not the entry of its place: its field {name} is wrong"
                findings.add(Problem(link.where, problem, str(value), str(fields.get(name)), log.way_out))
        if not findings.is_damaged(link.where):
            link.fields, link.digest = fields, sha256(body)
    return link


def _read_head(root: str, log: log_chain.Log, link: _Link, findings: Findings, *, exists: bool, last: bool) -> None:
    """Read the head of an entry; only that of the last one may be missing, after a crash."""
    path = log.head_path(link.number)
    where = f"{root}/{path}"
    if not exists and last:
        findings.note(f"{where}: not written yet; the next entry of the log writes it")
        return
    with findings.guarded(where, _heal_head(log, link)):
        body = storage.connect(root).read(path)
        findings.count("log heads", len(body))
        text = body[:65].decode("ascii", "replace").strip()
        if re.fullmatch("[0-9a-f]{64}", text) and body == head_body(text):
            link.head = text
        else:
            findings.add(_wrong_head(root, log, link, text))


def _witnessed(root: str, log: log_chain.Log, pair: tuple[_Link, _Link], findings: Findings) -> str:
    """Compare an entry with what others name; return the digest that it has to have.

    A log that was written anew with its heads agrees with itself, and not with the ledger: that is looked at later.
    """
    link, following = pair
    named = Counter(digest for digest in (link.head, following.previous, link.recorded) if digest)
    supported = named.pop(link.digest, 0)
    [(witness, others)] = named.most_common(1) or [("", 0)]
    if not link.digest or findings.is_damaged(link.where):
        return witness
    if others > supported:
        problem = "is not the entry that its head, the next entry or the ledger names: it was replaced"
        heal = log.way_out
        if others == 1 and witness == link.head:  # the two contradict each other: nothing says which of them is right
            heal += f"; or if it is right, store its digest in {root}/{log.head_path(link.number)}: {link.digest}"
        findings.add(Problem(link.where, problem, f"SHA-256 {witness}", f"SHA-256 {link.digest}", heal))
        return witness
    if link.head not in {"", link.digest}:
        findings.add(_wrong_head(root, log, link, link.head))
    if following.previous not in {"", link.digest}:
        problem = "is not the entry that follows: its field previous is wrong"
        digests = (f"SHA-256 {link.digest}", f"SHA-256 {following.previous}")
        findings.add(Problem(following.where, problem, *digests, log.way_out))
    return link.digest


def _wrong_head(root: str, log: log_chain.Log, link: _Link, actual: str) -> Problem:
    where = f"{root}/{log.head_path(link.number)}"
    expected = f"SHA-256 {link.digest}" if link.digest else ""
    return Problem(where, "does not name its entry", expected, actual, _heal_head(log, link))


def _heal_head(log: log_chain.Log, link: _Link) -> str:
    if link.digest:
        return f"if the entry is right, store its digest there: {link.digest} and a newline"
    return log.way_out


def check_archived(root: str, logs: Sequence[Log], archived: str, findings: Findings) -> None:
    """Check that the entry whose digest was archived is still part of a log: a log that has grown still has it.

    The logs are those of recipes, of takedowns, of erasures, and of ablations.
    """
    if not any(archived in log.digests.values() for log in logs):
        heal = "compare with a backup: a log only grows, so it was rewritten since"
        now = ", ".join(f"{log.recipe} {log.head['sha256']}" for log in logs)
        findings.add(Problem(f"{root}/datasets", "no log has the archived head", f"SHA-256 {archived}", now, heal))
