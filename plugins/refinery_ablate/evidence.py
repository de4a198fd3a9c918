"""What a verdict rests on, as it is kept in the root of its log: intervals, curves, and what both arms were made of.

It is what a page draws when the folder of the comparison is gone. It has no text of a document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import ContractError, cause
from pipeline_tasks.publish.logs.ablation_log import LOG, Ablation
from pipeline_tasks.sealed import digest_of, reference, require_digest, seal, sha256, split_reference, unseal
from pipeline_tasks.store import storage
from refinery_ablate.arms.versions import ArmVersion, arm_version
from refinery_ablate.plots import curve_rows
from refinery_ablate.statistics import Difference
from refinery_ablate.verdict import Verdict

FOLDER = f"{LOG.folder}/evidence"

MOST_GROUPS = 200
"""Groups of the mixtures that are kept, those with most tokens."""

DIGITS = 5
"""Digits after the point of a curve: a pixel is more."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Numbers of a comparison, as `Verdict` has them.

    `curves` are rows of `plots.curve_rows` by rate. `by` is the column of the mixtures, "" where an arm has none or its
    root was gone, and `mixture` are their groups with the documents (None of a search's proxies) and tokens of both
    arms. `arms` have `documents` (None where the root was gone), `tokens` and `sequences`. `seconds` are those of a run
    on average.
    """

    differences: Mapping[float, Difference]
    groups: Mapping[str, Difference]
    means: Sequence[float]
    deviation: float
    seconds: float
    shared: Mapping[str, Any]
    curves: Mapping[float, Sequence[Row]]
    arms: Sequence[Row]
    by: str
    mixture: Sequence[Row]


def evidence_of(verdict: Verdict, folder: Path, runs: tuple[int, int] = (0, 1)) -> Evidence:
    """Return what a verdict rests on; `folder` has the results of its runs, and `runs` are the numbers of its arms."""
    plan = verdict.plan
    versions = [arm_version(arm) for arm in plan.arms]
    arms = [
        {"documents": own.version.documents if own else None, "tokens": arm.tokens, "sequences": arm.sequences}
        for arm, own in zip(plan.arms, versions, strict=True)
    ]
    return Evidence(
        verdict.differences,
        verdict.groups,
        verdict.means,
        verdict.deviation,
        verdict.seconds,
        verdict.shared,
        {rate: [rounded(row) for row in curve_rows(folder, plan, rate, runs)] for rate in plan.rates},
        arms,
        _column(versions),
        _mixture(versions),
    )


def rounded(row: Row) -> dict[str, Any]:
    """Return a row of a curve with `DIGITS` digits."""
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in row.items()}


def _column(versions: Sequence[ArmVersion | None]) -> str:
    """Return the column of the mixtures of both arms; "" unless both have the same."""
    columns = {own.mixed_by() if own else "" for own in versions}
    return columns.pop() if len(columns) == 1 else ""


def _mixture(versions: Sequence[ArmVersion | None]) -> list[dict[str, Any]]:
    """Return the groups of the mixtures of both arms, most tokens first."""
    if not _column(versions):
        return []
    by_arm = [{row["group"]: row for row in own.groups()} for own in versions if own]
    none = {"documents": 0, "taken": 0}
    rows = [
        {
            "group": group,
            "documents": [arm.get(group, none)["documents"] for arm in by_arm],
            "tokens": [arm.get(group, none)["taken"] for arm in by_arm],
        }
        for group in sorted({group for arm in by_arm for group in arm})
    ]
    return sorted(rows, key=lambda row: -max(row["tokens"]))[:MOST_GROUPS]


# --- In a root --------------------------------------------------------------------------------------------------------


def keep_evidence(root: str, evidence: Evidence) -> str:
    """Store evidence in a root, if it is absent; return its reference."""
    raw = asdict(evidence)
    for name in ("differences", "curves"):
        raw[name] = {f"{rate:g}": value for rate, value in raw[name].items()}
    body = seal(raw)
    path = f"{FOLDER}/{digest_of(raw)}.json"
    storage.keep(storage.connect(root), path, body)
    return reference(path, sha256(body))


def read_evidence(root: str, ablation: Ablation) -> Evidence | None:
    """Return what an ablation rests on, None for an entry of an earlier release, which has none.

    ContractError if it is gone or damaged.
    """
    if not ablation.evidence:
        return None
    path, digest = split_reference(ablation.evidence)
    where = f"{root}/{path}"
    try:
        body = storage.connect(root).read(path)
        require_digest(body, digest, where, LOG.way_out)
        return _evidence(unseal(body, where, LOG.way_out))
    except FileNotFoundError as error:
        message = f"{where} is gone, and ablation {ablation.number} rests on it; {LOG.way_out}"
        raise ContractError(message) from error
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, ContractError):
            raise
        message = f"{where} is no evidence of this release ({cause(error)}); {LOG.way_out}"
        raise ContractError(message) from error


def _evidence(raw: Mapping[str, Any]) -> Evidence:
    differences = {float(rate): Difference(**compared) for rate, compared in raw["differences"].items()}
    groups = {name: Difference(**compared) for name, compared in raw["groups"].items()}
    curves = {float(rate): rows for rate, rows in raw["curves"].items()}
    return Evidence(**{**raw, "differences": differences, "groups": groups, "curves": curves})
