"""Records what a comparison, or an attribution, says in the root of each arm, and in the ledger."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version as release
from pathlib import Path

from pipeline_tasks.ablate.arm_versions import ArmVersion, arm_version
from pipeline_tasks.ablate.attribution import Attribution, verdict_without
from pipeline_tasks.ablate.evidence import Evidence, evidence_of, keep_evidence
from pipeline_tasks.ablate.job import Arm, jobs_of
from pipeline_tasks.ablate.verdict import Verdict
from pipeline_tasks.publish.ablation_log import (
    ATTRIBUTION,
    LOG,
    AblatedArm,
    Ablation,
    RateDifference,
    ablations,
    record_ablation,
)
from pipeline_tasks.publish.ledger import Ledger, ledger_of


@dataclass(frozen=True, slots=True)
class Recorded:
    """An entry of the log of a root, by its number; as text it is its path."""

    root: str
    number: int

    def __str__(self) -> str:
        return f"{self.root}/{LOG.entry_path(self.number)}"


def record(verdict: Verdict, folder: Path, override: str = "", root: str = "") -> list[Recorded]:
    """Record a comparison, with who let it pass and why; return the entries, one in each root that is still there.

    `folder` is that of the comparison, and `root` one that is to have it besides those of the arms. What is recorded
    already is not recorded again.
    """
    ablation, roots = _ablation(verdict, override)
    return list(_entries(ablation, evidence_of(verdict, folder), roots, root))


def record_attribution(found: Attribution, folder: Path, root: str = "") -> list[Recorded]:
    """Record what an attribution says of each stage, as `record` does: the recipe without it, beside the whole one."""
    entries: list[Recorded] = []
    for number in range(1, len(found.plan.arms)):
        verdict = verdict_without(folder, found, number)
        ablation, roots = _ablation(verdict, "")
        evidence = evidence_of(verdict, folder, (0, number))
        entries += _entries(replace(ablation, kind=ATTRIBUTION), evidence, roots, root)
    return entries


def _ablation(verdict: Verdict, override: str) -> tuple[Ablation, list[str]]:
    """Return a verdict as an entry of the log, and the roots of its arms."""
    plan = verdict.plan
    versions = [arm_version(arm) for arm in plan.arms]
    first, second = (_arm(arm, published) for arm, published in zip(plan.arms, versions, strict=True))
    ablation = Ablation(
        (first, second),
        plan.size,
        plan.tokens,
        len(plan.seeds),
        plan.held_out,
        tuple(
            RateDifference(rate, compared.value, compared.low, compared.high)
            for rate, compared in sorted(verdict.differences.items(), reverse=True)
        ),
        verdict.outcome,
        verdict.detectable,
        round(verdict.seconds * len(list(jobs_of(plan))), 1),
        release("refinery"),
        override,
    )
    return ablation, list(dict.fromkeys(published.root for published in versions if published))


def _arm(arm: Arm, published: ArmVersion | None) -> AblatedArm:
    if published is None:
        name = arm.name.rstrip("/").rpartition("/")[2].partition("@")[0]
        return AblatedArm(arm.name, name, 0, (), {}, "", arm.digest)
    version = published.version
    return AblatedArm(
        arm.name,
        version.recipe,
        version.number,
        published.made_from(),
        dict(version.manifests),
        published.fingerprint(),
        arm.digest,
        published.choices(),
    )


def _entries(ablation: Ablation, evidence: Evidence, roots: list[str], also: str) -> Iterator[Recorded]:
    for root in dict.fromkeys(filter(None, (*roots, also))):
        recorded = record_ablation(root, replace(ablation, evidence=keep_evidence(root, evidence)))
        with Ledger.open(ledger_of(root)) as ledger:
            ledger.record_ablations(root, ablations(root))
        yield Recorded(root, recorded.number)
