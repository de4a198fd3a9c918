"""Checks a root against a signed statement: its files, what they were made from, and the heads of its logs.

The statement is kept where the root's writers cannot write. So a log that was rewritten as a whole, which nothing
inside the root shows, is found: it does not have the entries that the statement names.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from pipeline_tasks.counted import counted
from pipeline_tasks.engines.each import Work
from pipeline_tasks.errors import RecipeError, SignatureRefused
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.objects import Expected, check_object, check_objects
from pipeline_tasks.inspect.versions import uncounted
from pipeline_tasks.publish.logs import ablation_log, version_log
from pipeline_tasks.publish.logs.version_log import Version, version_path
from pipeline_tasks.sealed import canonical, parse
from pipeline_tasks.stage import LANDING
from pipeline_tasks.store import erasures, storage, taken_down
from pipeline_tasks.store.erasures import erased
from pipeline_tasks.store.log_chain import Log, dataset_log, read_chain
from refinery_rights.statements.envelope import open_envelope
from refinery_rights.statements.keys import PublicKey
from refinery_rights.statements.statement import (
    PAYLOAD_TYPE,
    Resource,
    Signed,
    dependencies,
    read_statement,
    stated_versions,
    verdicts,
)

HEAL = "restore the root from a backup: the statement is what was signed"


@dataclass(slots=True)
class Checked:
    """What a root is against a statement: the statement, the id of the key that signed it, and what was found.

    `lost` are the ways in which delivered files were lost since: `erased`, `expired`.
    """

    signed: Signed
    key: str
    mode: str
    findings: Findings = field(default_factory=Findings)
    lost: set[Literal["erased", "expired"]] = field(default_factory=set)


def read_signed(path: str, key: PublicKey) -> tuple[Signed, str]:
    """Return the statement in a file and the id of its key.

    RecipeError if there is no file, SignatureRefused unless the key has signed it, ContractError if it says nothing of
    a version.
    """
    try:
        body = Path(path).read_bytes()
    except OSError as error:
        way_out = "name the file that `refinery keep sign` has written"
        message = f"{path}: the statement cannot be read ({error.strerror}); {way_out}"
        raise RecipeError(message) from error
    opened = open_envelope(body, key, path)
    if opened.payload_type != PAYLOAD_TYPE:
        message = f"{path} is signed, and is no in-toto statement but {opened.payload_type[:100]!r}; name another file"
        raise SignatureRefused(message)
    return read_statement(parse(opened.payload, path, "name the statement of a version"), path), opened.key


def check_statement(root: str, path: str, key: PublicKey, *, full: bool) -> Checked:
    """Check the signature of the statement in a file, and compare the root with it: see `check_signed`."""
    return check_signed(root, *read_signed(path, key), full=full)


def check_signed(root: str, signed: Signed, key: str, *, full: bool) -> Checked:
    """Compare a root with a statement; what differs is a problem, and what was erased since is a note.

    With `full` every byte that the version delivers is read, else sizes and small objects. Nothing outside the root is
    asked, but landed files of a snapshot where they still are.
    """
    storage.require_root(root)
    checked = Checked(signed, key, "full" if full else "fast")
    findings = checked.findings
    intact = _check_entries(root, signed, findings)
    version = _version(root, signed, findings) if intact else None
    if version is not None:
        _check_materials(root, signed, version, findings)
        _note_state(root, signed, version, findings)
        _note_sources(root, signed, version, findings)
    check_objects(Work("verify", root, ""), list(_objects(root, checked, version)), findings, full=full)
    _note_takedowns(root, signed, findings)
    return checked


def _check_entries(root: str, signed: Signed, findings: Findings) -> bool:
    """Compare the entries that a statement names with the logs; return whether the version's own entry is there."""
    own, intact = version_path(signed.recipe, signed.number), True
    for log, named in _by_log(signed):
        digests: dict[int, str] = {}
        with findings.guarded(f"{root}/{log.folder}", log.way_out):
            digests = {entry.number: entry.digest for entry in read_chain(root, log)}
        for entry in named:
            findings.count("entries of logs")
            if digests.get(_number(entry)) != entry["digest"]["sha256"]:
                findings.add(_entry_problem(root, signed, log, entry, digests))
                intact &= entry["name"] != own
    return intact


def _by_log(signed: Signed) -> Iterator[tuple[Log, list[Resource]]]:
    """Yield the logs that a statement names, each with the entries that it names of it."""
    known = {log.folder: log for log in (taken_down.LOG, erasures.LOG, ablation_log.LOG)}
    named = defaultdict[str, list[Resource]](list)
    for entry in signed.entries:
        named[str(entry["annotations"]["log"])].append(entry)
    for folder in sorted(named):
        yield known.get(folder) or dataset_log(folder.partition("/")[2]), named[folder]


def _number(entry: Resource) -> int:
    return int(entry["annotations"]["number"])


def _entry_problem(root: str, signed: Signed, log: Log, entry: Resource, digests: Mapping[int, str]) -> Problem:
    """Return what is wrong with an entry that a statement names: its log was written anew, or was cut."""
    number, signed_digest = _number(entry), f"SHA-256 {entry['digest']['sha256']}"
    subject = f"{log.entry.format(number=number)}, which the statement of {signed.title} names,"
    where = f"{root}/{log.entry_path(number)}"
    if number in digests:
        problem = f"{subject} is another entry now: the log was written anew since it was signed"
        return Problem(where, problem, signed_digest, f"SHA-256 {digests[number]}", log.way_out)
    now = f"the log ends with entry {max(digests, default=0)}"
    return Problem(where, f"{subject} is not in the log: it was cut or removed since", signed_digest, now, log.way_out)


def _version(root: str, signed: Signed, findings: Findings) -> Version | None:
    """Return the version of a statement from the log, which has the entry that was signed."""
    with findings.guarded(f"{root}/{version_path(signed.recipe, signed.number)}", HEAL):
        return {each.number: each for each in version_log.versions(root, signed.recipe)}[signed.number]
    return None


def _check_materials(root: str, signed: Signed, version: Version, findings: Findings) -> None:
    """Compare what a statement says that a version was made from with its manifests and verdicts."""
    where = f"{root}/{version_path(signed.recipe, signed.number)}"
    with findings.guarded(where, HEAL):
        stated = stated_versions(root, version)
        known = {canonical(each) for each in (*dependencies(stated), *verdicts(root, stated))}
        for each in (*signed.dependencies, *signed.byproducts):
            findings.count("materials")
            if "log" not in each["annotations"] and canonical(each) not in known:
                problem = f"{each['name']} is not what the manifests and verdicts of {signed.title} say"
                findings.add(Problem(where, problem, f"SHA-256 {each['digest']['sha256']}", "", HEAL))


def _objects(root: str, checked: Checked, version: Version | None) -> Iterator[Expected]:
    """Yield every file that was delivered, and the landed ones that are still where they were."""
    for subject in checked.signed.subjects:
        if not _note_erased(root, subject, checked):
            yield _expected(root, subject)
    if version is not None and version.landing:
        yield from _landed(checked.signed, version)


def _expected(root: str, subject: Resource) -> Expected:
    path, size = str(subject["name"]), int(subject["annotations"].get("bytes", 0))
    return Expected(f"{root}/{path}", "delivered files", (size,), (subject["digest"]["sha256"],), HEAL, root=root)


def _note_erased(root: str, subject: Resource, checked: Checked) -> bool:
    """Note a delivered file that an erasure has rewritten or removed, or that has expired; return whether there is one.

    What came in its place has the digest that the log of erasures says, which the chain of that log protects: it is
    compared, and is not what was signed.
    """
    path, findings = str(subject["name"]), checked.findings
    with findings.guarded(f"{root}/{path}", erasures.LOG.way_out):
        erasure = erased(root, path, subject["digest"]["sha256"])
        if erasure is None:
            return False
        if (expiry := erasures.expired(root).get(path)) is not None:
            checked.lost.add("expired")
            findings.note(f"{root}/{path}: expired since it was signed, by the retention policy {expiry.retention}")
            return True
        checked.lost.add("erased")
        after = erasure.after
        became = "removed" if after is None else f"rewritten as {after.path}"
        findings.note(
            f"{root}/{path}: {became} by an erasure since it was signed ({counted(erasure.rows, 'row')} of it); a copy "
            "that has the signed bytes has what was erased"
        )
        if after is not None:
            expected = Expected(
                f"{root}/{after.path}", "erased files", (after.bytes,), (after.digest,), HEAL, root=root
            )
            check_object(expected, findings, full=True)
    return True


def _landed(signed: Signed, version: Version) -> Iterator[Expected]:
    """Yield the landed files of the version's own snapshot, each with its pieces in order."""
    pieces = defaultdict[str, list[Resource]](list)
    prefix = f"{LANDING}{version.snapshot}/"
    for each in signed.dependencies:
        if each["name"].startswith(prefix):
            pieces[each["name"].removeprefix(prefix)].append(each)
    heal = "bring the file back that was refined"
    for name, parts in pieces.items():
        parts.sort(key=lambda part: int(part["annotations"].get("start", 0)))
        sizes, digests = zip(*((part["annotations"]["bytes"], part["digest"]["sha256"]) for part in parts), strict=True)
        yield Expected(f"{version.landing}/{name}", "landed files", sizes, digests, heal, optional=True)


def _note_state(root: str, signed: Signed, version: Version, findings: Findings) -> None:
    """Note a version that does not count any more: the statement is true of it, and another one is read now."""
    for line in uncounted(root, [version]):
        findings.note(f"{signed.title} is {line.state}: {line.note}; the statement is of it, and of no other")


def _note_sources(root: str, signed: Signed, version: Version, findings: Findings) -> None:
    """Note the snapshots that a training dataset was built from and that do not count any more."""
    where = f"{root}/{version_path(signed.recipe, signed.number)}"
    with findings.guarded(where, HEAL):
        for line in uncounted(root, (each.version for each in stated_versions(root, version)[1:])):
            findings.note(
                f"version {line.number} of {line.recipe}, from which {signed.title} was built, is {line.state}: "
                f"{line.note}"
            )


def _note_takedowns(root: str, signed: Signed, findings: Findings) -> None:
    """Note what was taken down since a statement was signed: the version may have it until it is erased."""
    then = max((_number(each) for each in signed.entries if each["annotations"]["log"] == taken_down.FOLDER), default=0)
    with findings.guarded(f"{root}/{taken_down.FOLDER}", taken_down.LOG.way_out):
        later = [each for each in taken_down.takedowns(root) if each.number > then]
        if later:
            findings.note(
                f"{counted(len(later), 'entry', 'entries')} of the log of takedowns came after it was signed: what is "
                f"taken down may be in {signed.title}, until `refinery erase`"
            )


# --- For people and programs ------------------------------------------------------------------------------------------


def statement_facts(checked: Checked) -> dict[str, Any]:
    """Return what was found as JSON values."""
    signed, findings = checked.signed, checked.findings
    return {
        "recipe": signed.recipe,
        "snapshot": signed.snapshot,
        "version": signed.number,
        "key": checked.key,
        "mode": checked.mode,
        "subjects": len(signed.subjects),
        "checked": dict(sorted(findings.checked.items())),
        "bytes": findings.bytes,
        "notes": sorted(findings.notes),
        "problems": [asdict(problem) for problem in sorted(findings.problems, key=str)],
    }


def statement_lines(checked: Checked) -> Iterator[str]:
    """Yield what was found but for notes and problems: what was signed, by which key, and what was compared."""
    signed, findings = checked.signed, checked.findings
    yield f"signed     {signed.title}, snapshot {signed.snapshot}, by key {checked.key}"
    compared = ", ".join(f"{count:,} {kind}" for kind, count in sorted(findings.checked.items()))
    yield f"checked    {compared}; {findings.bytes / 1e6:,.1f} MB read ({checked.mode})"


def statement_conclusion(checked: Checked) -> str:
    """Return what holds, in a line."""
    signed, findings = checked.signed, checked.findings
    if findings.problems:
        return counted(len(findings.problems), "problem")
    but = ", but for what was erased since" if "erased" in checked.lost else ""
    but += f"{',' if not but else ' and'} but for what has expired since" if "expired" in checked.lost else ""
    whole = "every byte" if checked.mode == "full" else "every size and small object"
    return f"{signed.title} is what was signed, and no log that it names was rewritten since: {whole} was compared{but}"
