"""Records what a comparison, or an attribution, says in the root of each arm, and in the ledger."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.libraries import release
from pipeline_tasks.publish.logs.ablation_log import (
    ATTRIBUTION,
    LOG,
    AblatedArm,
    Ablation,
    RateDifference,
    ablations,
    record_ablation,
)
from refinery_ablate.arms.versions import ArmVersion, arm_version
from refinery_ablate.attribution import Attribution, verdict_without
from refinery_ablate.evidence import Evidence, evidence_of, keep_evidence
from refinery_ablate.job import jobs_of
from refinery_ablate.statistics import Difference
from refinery_ablate.verdict import Verdict


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
    return list(entered(ablation, evidence_of(verdict, folder), roots, root))


def record_attribution(found: Attribution, folder: Path, root: str = "") -> list[Recorded]:
    """Record what an attribution says of each stage, as `record` does: the recipe without it, beside the whole one."""
    entries: list[Recorded] = []
    for number in range(1, len(found.plan.arms)):
        verdict = verdict_without(folder, found, number)
        ablation, roots = _ablation(verdict, "")
        evidence = evidence_of(verdict, folder, (0, number))
        entries += entered(replace(ablation, kind=ATTRIBUTION), evidence, roots, root)
    return entries


def _ablation(verdict: Verdict, override: str) -> tuple[Ablation, list[str]]:
    """Return a verdict as an entry of the log, and the roots of its arms."""
    plan = verdict.plan
    versions = [arm_version(arm) for arm in plan.arms]
    arms = zip(plan.arms, versions, strict=True)
    first, second = (ablated_arm(arm.name, arm.digest, published) for arm, published in arms)
    ablation = Ablation(
        (first, second),
        plan.size,
        plan.tokens,
        len(plan.seeds),
        plan.held_out,
        intervals(verdict.differences),
        verdict.outcome,
        verdict.detectable,
        round(verdict.seconds * len(list(jobs_of(plan))), 1),
        release(),
        override,
        documents=verdict.shared["left"],
    )
    return ablation, list(dict.fromkeys(published.root for published in versions if published))


def intervals(differences: Mapping[float, Difference]) -> tuple[RateDifference, ...]:
    """Return differences by rate as an entry has them, the largest rate first."""
    by_rate = sorted(differences.items(), reverse=True)
    return tuple(RateDifference(rate, compared.value, compared.low, compared.high) for rate, compared in by_rate)


def ablated_arm(
    dataset: str, digest: str, published: ArmVersion | None, weights: Mapping[str, float] = MappingProxyType({})
) -> AblatedArm:
    """Return an arm as an entry has it: ROOT/NAME@VERSION, the digest of what was read, and its version if it is there.

    `weights` are those of a mixture.
    """
    if published is None:
        name = dataset.rstrip("/").rpartition("/")[2].partition("@")[0]
        return AblatedArm(dataset, name, 0, (), {}, "", digest, weights=dict(weights))
    version = published.version
    return AblatedArm(
        dataset,
        version.recipe,
        version.number,
        published.made_from(),
        dict(version.manifests),
        published.fingerprint(),
        digest,
        published.choices(),
        dict(weights),
    )


def entered(ablation: Ablation, evidence: Evidence, roots: list[str], also: str) -> Iterator[Recorded]:
    """Record an entry with its evidence in some roots and one more, if it is not ""; yield where it is."""
    for root in dict.fromkeys(filter(None, (*roots, also))):
        recorded = record_ablation(root, replace(ablation, evidence=keep_evidence(root, evidence)))
        with Ledger.open(ledger_of(root)) as ledger:
            ledger.record_ablations(root, ablations(root))
            ledger.record_log(root, LOG)
        yield Recorded(root, recorded.number)
