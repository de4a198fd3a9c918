"""Checks the verdicts of a version, and the Data Docs page that each names, if any."""

from collections.abc import Mapping

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.verdicts import Verdict, judged_again, read_verdict
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.inspect.verify.objects import how_removed
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE, LAND, PUBLISH, VERDICT
from pipeline_tasks.sealed import path_of, sha256
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erased

VERSION_GAP = "version_gap"
"""The fact that compares a manifest with this release, and not with what there was when it was judged."""


def check_verdicts(root: str, version: Version, committed: Mapping[str, Committed], findings: Findings) -> None:
    """Check every verdict that a version names.

    The gate of the whole snapshot judges the last manifest, and that of a required verdict the first one.
    """
    last = list(committed.values())[-1] if len(committed) == len(version.manifests) else None
    whole = {PUBLISH: last, VERDICT: committed.get(LAND) or committed.get(COMPOSE)}
    for stage, referred in version.verdicts.items():
        if referred:
            where = f"{root}/{path_of(referred)}"
            with findings.guarded(where, heal_verdict(where, version)):
                _check(root, version, stage, whole.get(stage, committed.get(stage)), findings)


def heal_verdict(where: str, version: Version) -> str:
    """Return how to get a verdict and its page back."""
    folder = where.rpartition("/gate/")[0]
    return (
        f"restore it from a backup, or remove the folder {folder}/gate and {version.rerun}: "
        "it is judged again, and published with the new verdict"
    )


def _check(root: str, version: Version, stage: str, committed: Committed | None, findings: Findings) -> None:
    verdict = read_verdict(root, version.verdicts[stage])
    findings.count("verdicts")
    where = f"{root}/{verdict.path}"
    heal = heal_verdict(where, version)
    judged = version.manifests.get(stage if committed is None else committed.manifest.stage, "")
    if verdict.stage != stage:
        findings.add(Problem(where, "is the verdict of another gate", stage, verdict.stage, heal))
    elif judged and path_of(verdict.manifest) != path_of(judged):
        findings.add(Problem(where, "judges another manifest", judged, verdict.manifest, heal))
    elif committed is not None and verdict.fingerprint != committed.manifest.fingerprint:
        values = (committed.manifest.fingerprint, verdict.fingerprint)
        findings.add(Problem(where, "judges another manifest", *values, heal))
    _check_judgment(root, verdict, heal, findings)
    if verdict.outcome == "refuse":
        findings.add(Problem(where, "refuses what was published", "pass or warn", "refuse", heal))
    if verdict.docs:
        _check_page(root, verdict, heal, findings)


def _check_judgment(root: str, verdict: Verdict, heal: str, findings: Findings) -> None:
    """Check that a verdict decides as its gate does on its manifest now; expired rows may change other facts."""
    where = f"{root}/{verdict.path}"
    try:
        again = judged_again(root, verdict)
    except (ContractError, RecipeError):  # of what it judged something is damaged, or has been removed
        return
    if again is None or VERSION_GAP in {failure.column for failure in again.failures}:
        findings.note(f"{where} is not judged again: another release judged it, or other bounds than its place is of")
    elif _decision(again) != _decision(verdict):
        problem = "is not what its gate says of its manifest"
        findings.add(Problem(where, problem, _decision(again), _decision(verdict), heal))


def _decision(verdict: Verdict) -> str:
    """Return an outcome, and the facts whose bounds are broken."""
    return " ".join([verdict.outcome, *sorted({failure.column for failure in verdict.failures})])


def _check_page(root: str, verdict: Verdict, heal: str, findings: Findings) -> None:
    where = f"{root}/{verdict.docs}"
    with findings.guarded(where, heal):
        try:
            body = storage.connect(root).read(verdict.docs)
        except FileNotFoundError:
            if erased(root, verdict.docs, verdict.docs_digest) is None:
                raise
            findings.note(f"{where}: {how_removed(root, verdict.docs)}")
            return
        findings.count("Data Docs pages", len(body))
        if (digest := sha256(body)) != verdict.docs_digest:
            values = (f"SHA-256 {verdict.docs_digest}", f"SHA-256 {digest}")
            findings.add(Problem(where, "its bytes were changed", *values, heal))
