"""Summarizes a version: the few numbers of each manifest and verdict that lists and trends of snapshots show.

A summary is derived and may be lost: it is stored when a version is published, and computed from the manifests where it
is missing or damaged. Its path follows from the digests of what it summarizes, so it cannot be out of date. It names
them too, so that it is not taken for another's, and a seal shows damage. Which versions are stale is read from
summaries alone.
"""

import contextlib
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pipeline_tasks.cards import has_sequences, is_stage
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError
from pipeline_tasks.gate.facts.rows import no_pages
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.manifest import PARTITION, Manifest
from pipeline_tasks.profiles.origins import generated_kept
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import PUBLISH, VERDICT
from pipeline_tasks.sealed import digest_of, seal, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_in_order

FORMAT = 3
"""Version of the layout of a summary, part of its path."""

SUMMARIZED = "path"
"""Field of a stored summary: its own path, which follows from what it summarizes."""

KEPT = 4096
"""Summaries that a process keeps; of about a kilobyte each."""

_WAY_OUT = "remove it: it is computed again"

_References = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StageSummary:
    """The numbers of one stage's manifest and of its verdict; `outcome` is "" without a verdict.

    `means` are those of the profiled columns of kept rows. `history` are the fingerprints of the history that was
    read, and `saves_history` is whether the stage saved some for later snapshots. `partial` are the rows that were
    quarantined with their partitions, which failed every try; `no_page` those that were rejected as they bring no new
    page. `offspring_in` are generated texts that became rows beside those that came in, `generated` kept documents that
    are such rows.
    """

    stage: str
    fingerprint: str
    history: tuple[str, ...]
    saves_history: bool
    rows_in: int
    rows: int
    bytes_in: int
    rejected: int
    quarantined: int
    tokens: int
    means: Mapping[str, float]
    outcome: str = ""
    override: str = ""
    partial: int = 0
    no_page: int = 0
    offspring_in: int = 0
    generated: int = 0

    @property
    def kept(self) -> float | None:
        """The share of rows that was kept; None where rows become sequences, or are used several times."""
        due = self.rows_in + self.offspring_in
        if has_sequences(self.stage) or not due or self.rows > due:
            return None
        return self.rows / due


@dataclass(frozen=True, slots=True)
class Summary:
    """The stages of a version in order, and the outcome of the gate of the whole snapshot ("" without one).

    `required` is why a person let the gate of a required verdict of models pass, "" where nobody did.
    """

    stages: tuple[StageSummary, ...]
    outcome: str = ""
    override: str = ""
    required: str = ""

    @property
    def overrides(self) -> dict[str, str]:
        """Why a person let a refused gate pass, by gate."""
        reasons = {stage.stage: stage.override for stage in self.stages}
        reasons |= {VERDICT: self.required, PUBLISH: self.override}
        return {gate: reason for gate, reason in reasons.items() if reason}

    @property
    def partial(self) -> dict[str, int]:
        """The rows of partitions that failed every try, by stage; empty for a whole snapshot."""
        return {stage.stage: stage.partial for stage in self.stages if stage.partial}

    @property
    def lacking(self) -> str:
        """The rows of `partial` in words, "" for a whole snapshot."""
        return ", ".join(f"{counted(rows, 'row')} of {stage}" for stage, rows in self.partial.items())

    @property
    def generated(self) -> int:
        """Generated documents behind the last stage of documents."""
        return next((stage.generated for stage in reversed(self.stages) if not has_sequences(stage.stage)), 0)

    def mean(self, column: str) -> float | None:
        """Return the mean of a column after the last stage that profiled it; None if none did."""
        means = [stage.means[column] for stage in self.stages if column in stage.means]
        return means[-1] if means else None


def store_summary(root: str, version: Version) -> None:
    """Store the summary of a published version, if it is absent."""
    path = summary_path(version.recipe, version.manifests, version.verdicts)
    summary = summarize(root, version.manifests, version.verdicts)
    fields = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    storage.keep(storage.connect(root), path, seal({SUMMARIZED: path, **fields}))


def read_summary(root: str, version: Version) -> Summary:
    """Return the summary of a version: stored, else computed from its manifests and verdicts."""
    return _summary(root, version.recipe, tuple(version.manifests.items()), tuple(version.verdicts.items()))


def forget() -> None:
    """Forget the summaries that this process keeps, as a new process does."""
    _summary.cache_clear()


@lru_cache(maxsize=KEPT)
def _summary(root: str, recipe: str, manifests: _References, verdicts: _References) -> Summary:
    stored = _stored(root, summary_path(recipe, dict(manifests), dict(verdicts)))
    return stored or summarize(root, dict(manifests), dict(verdicts))


def _stored(root: str, path: str) -> Summary | None:
    """Return a stored summary, None if it is missing, damaged, or that of other manifests or verdicts."""
    with contextlib.suppress(FileNotFoundError, ContractError, ValueError, TypeError, KeyError):
        return unsealed_summary(root, path)
    return None


def unsealed_summary(root: str, path: str) -> Summary:
    """Return the summary at a path; ContractError if it is damaged or that of another version."""
    fields = unseal(storage.connect(root).read(path), f"{root}/{path}", _WAY_OUT)
    if fields.pop(SUMMARIZED) != path:
        message = f"{root}/{path} is the summary of another version; {_WAY_OUT}"
        raise ContractError(message)
    stages = [{**stage, "history": tuple(stage["history"])} for stage in fields.pop("stages")]
    return Summary(**fields | {"stages": tuple(StageSummary(**stage) for stage in stages)})


def summary_path(recipe: str, manifests: Mapping[str, str], verdicts: Mapping[str, str]) -> str:
    """Return the path of the summary of a recipe's manifests and verdicts."""
    return f"datasets/{recipe}/summaries/{digest_of([FORMAT, manifests, verdicts], 32)}.json"


def summarize(root: str, manifests: Mapping[str, str], verdicts: Mapping[str, str]) -> Summary:
    """Return the summary of manifests and verdicts, which are references by stage."""
    judged = {gate: read_verdict(root, referred) for gate, referred in verdicts.items() if referred}
    known = {stage: referred for stage, referred in manifests.items() if is_stage(stage)}
    stages = [_stage_summary(each, judged.get(stage)) for stage, each in read_in_order(root, known).items()]
    whole = judged.get(PUBLISH)
    required = override_of(judged.get(VERDICT))
    return Summary(tuple(stages), whole.outcome if whole else "", override_of(whole), required)


def _stage_summary(manifest: Manifest, verdict: Verdict | None) -> StageSummary:
    kept: Mapping[str, Any] = manifest.metrics["kept"]
    return StageSummary(
        stage=manifest.stage,
        fingerprint=manifest.fingerprint,
        history=tuple(manifest.parents[1:]),
        saves_history=bool(manifest.history_shards),
        rows_in=manifest.rows_in,
        rows=manifest.rows,
        bytes_in=manifest.bytes_in,
        rejected=sum(manifest.rejected.values()),
        quarantined=sum(manifest.quarantined.values()),
        partial=manifest.quarantined.get(PARTITION, 0),
        no_page=no_pages(manifest),
        offspring_in=manifest.offspring_in,
        generated=generated_kept(manifest),
        tokens=manifest.tokens,
        means={name: mean for name in sorted(kept) if (mean := mean_of(kept[name])) is not None},
        outcome=verdict.outcome if verdict else "",
        override=override_of(verdict),
    )


def override_of(verdict: Verdict | None) -> str:
    """Return why a person let data pass that the gate refuses; "" if the gate does not refuse it."""
    refused = verdict and any(failure.severity == "critical" for failure in verdict.failures)
    return verdict.override if verdict and refused else ""


def mean_of(profile: Mapping[str, Any]) -> float | None:
    """Return the mean of a profiled column of numbers, that of hundredths from the middle of each; None without any."""
    if profile["kind"] == "name" or not profile["count"]:
        return None
    if profile["kind"] == "whole":
        return round(float(profile["sum"] / profile["count"]), 6)
    hundredths = sum(int(key) * count for key, count in profile["bins"].items())
    return round(float(hundredths / profile["count"] + 0.5) / 100, 6)
