"""Verifies a root: from the log of versions to the manifests, their shards, and the published files."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from pipeline_tasks.engines.each import HERE, On, Work
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.unpublished import stopped_runs
from pipeline_tasks.inspect.verify.caches import check_compactions, check_leftovers, compacted_segments
from pipeline_tasks.inspect.verify.exports import exported_files
from pipeline_tasks.inspect.verify.findings import Account, Findings, found, is_sound
from pipeline_tasks.inspect.verify.log import (
    Log,
    check_ablations,
    check_accesses,
    check_archived,
    check_erasures,
    check_log,
    check_models,
    check_takedowns,
)
from pipeline_tasks.inspect.verify.manifests import Committed, Manifests, check_version
from pipeline_tasks.inspect.verify.objects import Expected, check_objects
from pipeline_tasks.inspect.verify.published import Pairs, check_entry, check_published, published_files
from pipeline_tasks.inspect.verify.recomputed import check_again, recomputes
from pipeline_tasks.inspect.verify.rows import check_rows
from pipeline_tasks.inspect.verify.scores import Rescored, Sample, check_scores, classifiers_of
from pipeline_tasks.inspect.verify.stored import check_stored
from pipeline_tasks.inspect.verify.tokenizers import check_pin
from pipeline_tasks.inspect.verify.verdicts import check_verdicts
from pipeline_tasks.ledger.lost_log import recorded_datasets
from pipeline_tasks.libraries import release
from pipeline_tasks.nearest import nearest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, is_trial, untried
from pipeline_tasks.sealed import digest_of, path_of
from pipeline_tasks.seams import all_parts
from pipeline_tasks.stage import LANDING, Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import newest

CHECKS = "refinery.checks"
"""The seam of further checks of a root: functions of the root and of the `Findings` that they add to."""

PATIENCE = 86_400.0
"""Seconds for which it counts that an object was sound, for a verification that goes on where one was killed."""


@dataclass(slots=True)
class Report:
    """What was verified, to be printed or archived; `root_logs` are those of takedowns, erasures and ablations."""

    root: str
    mode: str
    logs: list[Log] = field(default_factory=list)
    root_logs: list[Log] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    scores: list[Rescored] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)


@dataclass(frozen=True, slots=True)
class Scope:
    """What to verify: `recipe` and `snapshot` choose versions ("": all), `full` reads every byte.

    `archived` is the digest of a log's head from an earlier report ("": none). `scores` is what is scored again. `on`
    is where bytes and rows are read.
    """

    recipe: str = ""
    snapshot: str = ""
    full: bool = True
    archived: str = ""
    scores: Sample = field(default_factory=Sample)
    on: On = HERE


def verify(root: str, scope: Scope | None = None) -> Report:
    """Verify a root. Problems are collected; RecipeError only where there is nothing to verify."""
    scope = scope or Scope()
    storage.require_root(root)
    report = Report(root, "full" if scope.full else "fast")
    findings = report.findings
    findings.full = scope.full
    names = [scope.recipe] if scope.recipe else sorted({*version_log.recipes(root), *recorded_datasets(root)})
    report.logs = [check_log(root, name, findings) for name in names]
    manifests = Manifests(root, findings, complete=all(log.whole for log in report.logs))
    every = [version for log in report.logs for version in log.versions]
    committed = {(version.recipe, version.number): manifests.of(version) for version in every}
    chosen = [version for version in current(every) if scope.snapshot in ("", version.snapshot)]
    if not chosen and not findings.problems:
        raise RecipeError(_nothing(root, scope))
    _read_history_of_trials(report, manifests)
    _read_sources(report, manifests, [read[COMPOSE] for read in committed.values() if COMPOSE in read])
    for version in chosen:
        read = committed[version.recipe, version.number]
        report.accounts.append(check_version(version, read, findings, manifests))
        check_entry(root, version, read, findings)
    every_manifest = [each.manifest for read in committed.values() for each in read.values()]
    takedowns, held = check_takedowns(root, every_manifest, findings)
    report.root_logs = [takedowns, check_erasures(root, findings), check_ablations(root, findings)]
    if scope.archived:
        check_archived(root, [*report.logs, *report.root_logs], scope.archived, findings)
    for log in report.logs:
        check_pin(root, log.recipe, log.versions, findings)
    check_accesses(root, findings)
    check_models(root, findings)
    for part in all_parts(CHECKS).values():
        check: Callable[[str, Findings], None] = part.load()
        check(root, findings)
    pairs = [(version, committed[version.recipe, version.number]) for version in chosen]
    if not scope.recipe and not scope.snapshot:
        check_stored(root, every, findings, full=scope.full)
    if not scope.snapshot:
        for merged, heal in check_compactions(root, manifests.by_fingerprint, findings):
            held += compacted_segments(root, merged, heal)
    deque(storage.each(storage.connect(root), partial(_check_verdicts, root, findings), pairs), maxlen=0)
    _read_all(_work(root, scope), held, pairs, findings, full=scope.full)
    report.scores = list(_rescored(root, pairs, scope.scores, findings))
    return report


def _read_all(work: Work, held: Iterable[Expected], pairs: Pairs, findings: Findings, *, full: bool) -> None:
    """Check the objects that are held, and those that versions name; with `full` each byte and each row."""
    check_objects(work, [*held, *_all_expected(work.place, pairs, findings)], findings, full=full)
    check_published(work, pairs, findings, full=full)
    if full:
        _check_content(work, pairs, findings)
    if work.folder:
        work.forget()


def _work(root: str, scope: Scope) -> Work:
    """Return the work over a root. Who compares it with what lies outside believes no receipt that is in it."""
    named = digest_of([release(), scope.recipe, scope.snapshot, scope.full, newest(root)])
    return Work("verify", root, "" if scope.archived else f"requests/verify-{named}", scope.on, PATIENCE)


def _check_verdicts(root: str, findings: Findings, pair: tuple[Version, Mapping[str, Committed]]) -> None:
    check_verdicts(root, *pair, findings)


def _check_content(work: Work, pairs: Pairs, findings: Findings) -> None:
    """Check what objects say of each other: the rows of all manifests, and what is beside these."""
    reads = {read.path: read for _, committed in pairs for read in committed.values()}
    check_rows(work, reads.values(), findings, {read.manifest.fingerprint: read for read in reads.values()})
    for facts in work.each(
        "leftovers",
        partial(_leftovers, work.place),
        [(f"{read.path}@sha256:{read.digest}", _damaged(work.place, read, findings)) for read in reads.values()],
        key=list,
        weight=lambda _: 0,
        keeps=is_sound,
    ):
        findings.take(facts)


def _damaged(root: str, read: Committed, findings: Findings) -> list[str]:
    return [shard.path for shard in read.manifest.stored if findings.is_damaged(f"{root}/{shard.path}")]


def _leftovers(root: str, beside: tuple[str, list[str]]) -> dict[str, Any]:
    return found(partial(check_leftovers, root, *beside))


def _read_sources(report: Report, manifests: Manifests, composed: Sequence[Committed]) -> None:
    """Read the manifests that training datasets were composed of, which may be of recipes that are not verified."""
    named = [version for read in composed for version in read.manifest.params["versions"]]
    paths = {version["manifest"] for version in named}
    for recipe in sorted({version["recipe"] for version in named}):
        for version in _versions_too(report, manifests, recipe):
            if path_of(version.refined) in paths:
                manifests.read(version.refined, version)


def _read_history_of_trials(report: Report, manifests: Manifests) -> None:
    """Read the manifests of the recipes that trials are of: they read its history."""
    for log in report.logs:
        for version in _versions_too(report, manifests, untried(log.recipe)) if is_trial(log.recipe) else ():
            manifests.of(version)


def _versions_too(report: Report, manifests: Manifests, recipe: str) -> list[Version]:
    """Return the versions of a recipe that others were made of; its log is checked if it is not verified anyway."""
    known = {log.recipe: log for log in report.logs}
    log = known[recipe] if recipe in known else check_log(report.root, recipe, report.findings)
    manifests.complete &= log.whole
    return log.versions


def _nothing(root: str, scope: Scope) -> str:
    subject = (
        f"snapshot {scope.snapshot}" if scope.snapshot else f"recipe {scope.recipe}" if scope.recipe else "nothing"
    )
    negation = "has been published" if subject == "nothing" else "has not been published"
    if stopped := stopped_runs(root, scope.recipe, scope.snapshot):
        return f"{root}: {subject} {negation} there, so that there is nothing to verify: {stopped}"
    return f"{root}: {subject} {negation} there{_meant(root, scope)}; name the root that `refinery run` wrote to"


def _meant(root: str, scope: Scope) -> str:
    """Return which recipe or snapshot of the root is most like the one that is named, "" for none."""
    recipes = version_log.recipes(root)
    if not scope.snapshot:
        return nearest(scope.recipe, recipes)
    own = [scope.recipe] if scope.recipe in recipes else recipes
    return nearest(
        scope.snapshot, {version.snapshot for recipe in own for version in version_log.versions(root, recipe)}
    )


def current(versions: Sequence[Version]) -> list[Version]:
    """Return the versions without those that a later one of the same snapshot and the same manifests replaces.

    A version is published again with the same data when its verdict or its report was lost: the new ones count.
    """
    newest = {
        (version.recipe, version.snapshot, tuple(sorted(version.manifests.items()))): version for version in versions
    }
    return sorted(newest.values(), key=lambda version: (version.recipe, version.number))


def _all_expected(root: str, pairs: Pairs, findings: Findings) -> list[Expected]:
    """Return every object that the versions name."""
    return [
        expected
        for version, committed in pairs
        for expected in (*_expected(root, version, committed), *exported_files(root, version, findings))
    ]


def _rescored(root: str, pairs: Pairs, sample: Sample, findings: Findings) -> Iterator[Rescored]:
    """Yield what came of scoring a sample of each manifest again; a note says that nobody asked for it."""
    scored = {read.path: (version.recipe, read) for version, committed in pairs for read in committed.values()}
    for recipe, read in scored.values():
        if sample.documents:
            yield from check_scores(root, recipe, read, sample, findings)
            yield from check_again(root, recipe, read, sample, findings)
        elif recomputes(read.manifest):
            findings.note(f"{read.where}: what its model computed was not computed again; --scores N does so")
        elif names := ", ".join(sorted(classifiers_of(read.manifest))):
            findings.note(f"{read.where}: scores of {names} were not computed again; --scores N does so")


def _expected(root: str, version: Version, committed: Mapping[str, Committed]) -> Iterator[Expected]:
    """Yield the files that a version and its manifests name."""
    yield from published_files(root, version)
    for read in committed.values():
        yield from _landed_files(version, [shard for shard in read.manifest.shards if shard.is_landed])
        for shard in read.manifest.stored:
            if not shard.is_landed:
                heal = heal_shard(root, read.path, version)
                yield Expected(f"{root}/{shard.path}", "shards", (shard.bytes,), (shard.digest,), heal, root=root)


def _landed_files(version: Version, shards: Sequence[Shard]) -> Iterator[Expected]:
    """Yield the landed files of a manifest, each with the bytes and digests of its pieces."""
    heal = "bring the file back that was refined, or refine the changed one as another snapshot"
    for path, alike in groupby(shards, key=lambda shard: shard.path):
        uri, pieces = f"{version.landing}/{path.removeprefix(LANDING)}", [*alike]
        sizes, digests = zip(*((shard.bytes, shard.digest) for shard in pieces), strict=True)
        yield Expected(uri, "landed files", sizes, digests, heal, optional=True)


def heal_shard(root: str, manifest: str, version: Version) -> str:
    """Return how to get a shard back: without it and its manifest, a run writes it again."""
    return (
        f"restore it from a backup, or remove it, {root}/{manifest} and partitions/ beside that, and {version.again}: "
        "only what is missing is written again"
    )


# --- For a program ----------------------------------------------------------------------------------------------


def report_facts(report: Report) -> dict[str, Any]:
    """Return the report as JSON values; archive it, and compare a later log with its `heads` by `--head`."""
    findings = report.findings
    return {
        "root": report.root,
        "release": release(),
        "mode": report.mode,
        "heads": {log.recipe: log.head for log in report.logs},
        "root_heads": {log.recipe: log.head for log in report.root_logs if log.digests},
        "checked": dict(sorted(findings.checked.items())),
        "bytes": findings.bytes,
        "versions": [_account_facts(account) for account in report.accounts],
        "scores": [asdict(rescored) for rescored in report.scores],
        "notes": sorted(findings.notes),
        "problems": [
            {name: getattr(problem, name) for name in ("object", "problem", "expected", "actual", "heal")}
            for problem in sorted(findings.problems, key=str)
        ],
    }


def _account_facts(account: Account) -> dict[str, Any]:
    names = ("recipe", "version", "snapshot", "records", "copies", "offspring", "published", "rejected")
    return {name: getattr(account, name) for name in names}
