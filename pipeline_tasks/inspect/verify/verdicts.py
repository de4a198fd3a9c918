"""Checks the verdicts of a version, and the Data Docs page that each names."""

from collections.abc import Mapping

from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.sealed import path_of, sha256
from pipeline_tasks.store import storage


def check_verdicts(root: str, version: Version, committed: Mapping[str, Committed], findings: Findings) -> None:
    """Check every verdict that a version names."""
    for stage, referred in version.verdicts.items():
        if referred:
            where = f"{root}/{path_of(referred)}"
            with findings.guarded(where, heal_verdict(where, version)):
                _check(root, version, stage, committed.get(stage), findings)


def heal_verdict(where: str, version: Version) -> str:
    """Return how to get a verdict and its page back."""
    folder = where.rpartition("/gate/")[0]
    return (
        f"restore it from a backup, or remove the folder {folder}/gate and run snapshot {version.snapshot} of recipe "
        f"{version.recipe} again: it is judged again, and published with the new verdict"
    )


def _check(root: str, version: Version, stage: str, committed: Committed | None, findings: Findings) -> None:
    verdict = read_verdict(root, version.verdicts[stage])
    findings.count("verdicts")
    where = f"{root}/{verdict.path}"
    heal = heal_verdict(where, version)
    if committed is not None and (verdict.stage, verdict.fingerprint) != (stage, committed.manifest.fingerprint):
        expected, actual = f"{stage}/{committed.manifest.fingerprint}", f"{verdict.stage}/{verdict.fingerprint}"
        findings.add(Problem(where, "judges another manifest", expected, actual, heal))
    elif verdict.manifest not in (version.manifests.get(stage, ""), path_of(version.manifests.get(stage, ""))):
        findings.add(
            Problem(where, "judges another manifest", version.manifests.get(stage, ""), verdict.manifest, heal)
        )
    if verdict.outcome == "refuse":
        findings.add(Problem(where, "refuses what was published", "pass or warn", "refuse", heal))
    _check_page(root, verdict, heal, findings)


def _check_page(root: str, verdict: Verdict, heal: str, findings: Findings) -> None:
    where = f"{root}/{verdict.docs}"
    with findings.guarded(where, heal):
        body = storage.connect(root).read(verdict.docs)
        findings.count("Data Docs pages", len(body))
        if (digest := sha256(body)) != verdict.docs_digest:
            values = (f"SHA-256 {verdict.docs_digest}", f"SHA-256 {digest}")
            findings.add(Problem(where, "its bytes were changed", *values, heal))
