"""The report of a scorer's check, without which nobody knows what it sorts by; one that is refused may not decide."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.sealed import digest_of_folder, unseal, visible
from pipeline_tasks.stage import FilePath

COMPUTING = ("label", "lowest", "highest", "length", "windows", "pool", "numerics")
"""Params of a classifier that its scores follow from, beside the model."""

FACTS: Mapping[str, str] = {
    "documents": "texts of the sample",
    "unscored_share": "share of them without a score: the model knows no token of theirs",
    "seen_share": "mean share of a text that the model reads",
    "auc.<kind>": "share of pairs of a text and nonsense in which the text scores higher, by kind of nonsense",
    "rank_correlation": "Spearman's correlation of scores and labels within each type and language",
    "source_auc": "share of pairs above and below the median that the mean of the source's other half tells; .5: none",
    "sources": "sources with eight documents of one type and language",
    "flat_source_share": "share of them whose scores deviate by less than 1/1,024",
    "source_spread": "median of the standard deviation within a source, by that of all scores",
    "source_variance": "share of the variance of scores that the source explains, beyond chance",
    "distinct_scores": "different scores",
}
"""What each fact of a check means; a source is a site, unless the sample names another."""

NONSENSE: Mapping[str, str] = {
    "words": "its words in disorder",
    "sentences": "sentences of other documents in turns",
    "listing": "a list of links and prices that have its words",
    "repeated": "one sentence of it again and again",
    "generated": "a text that a machine made of pairs of words",
    "threats": "itself with a threat behind every second sentence",
    "keywords": "its longest words in ever new pairs",
    "misread": "the text as a poor optical reader has it",
}
"""What each kind of nonsense in `auc.<kind>` has in place of a text."""

REFUSE = "refuse"

_WAY_OUT = "check the model again with `refinery model check`"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check of a scorer found; it has names of sources, and nothing of any text.

    `model` is the digest of its file or folder, `params` those of `COMPUTING`. `facts` are [value, low, high, size]
    by name, None where the sample says nothing. `failures` are bounds that are violated, `undecided` those for which
    the sample is too small, `skipped` those that it cannot say anything about. `tables` has the figures by language,
    group and source; `calibration` maps a group (`type/language`, `*` for all) to ascending steps.
    """

    model: str
    kind: str
    params: Mapping[str, Any]
    hardware: str
    outcome: str
    sample: Mapping[str, Any]
    facts: Mapping[str, list[float] | None]
    failures: tuple[Mapping[str, Any], ...] = ()
    undecided: tuple[Mapping[str, Any], ...] = ()
    skipped: tuple[str, ...] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)
    calibration: Mapping[str, Any] = field(default_factory=dict)
    method: int = 1


def read_report(path: str) -> CheckReport:
    """Read a report; RecipeError if there is none, ContractError if it was changed, or is no report of a check."""
    try:
        body = Path(path).read_bytes()
    except OSError as error:
        message = f"cannot read {path} ({error.strerror or error}); {_WAY_OUT}"
        raise RecipeError(message) from error
    raw = unseal(body, path, _WAY_OUT)
    try:
        raw |= {name: tuple(raw[name]) for name in ("failures", "undecided", "skipped")}
        return CheckReport(**raw)
    except (KeyError, TypeError) as error:
        message = f"{path} is no report of a scorer's check ({error}); {_WAY_OUT}"
        raise ContractError(message) from error


def computing_params(classifier: Classifier) -> dict[str, Any]:
    """Return the params of a classifier that its scores follow from."""
    return {name: getattr(classifier, name) for name in COMPUTING}


def require_admitted(name: str, classifier: Classifier, digest: Callable[[FilePath], str]) -> None:
    """Raise RecipeError if a classifier's report is that of another, or refuses it and nobody has accepted it.

    `digest` returns that of its model, and is asked only where there is a report.
    """
    if not classifier.report:
        return
    report = read_report(classifier.report)
    other = [key for key, value in computing_params(classifier).items() if report.params.get(key) != value]
    if report.model != digest(classifier.model):
        other = ["model"]
    if other:
        message = (
            f"classifiers.{name}: {classifier.report} is the check of another scorer ({', '.join(other)}); {_WAY_OUT}"
        )
        raise RecipeError(message)
    if report.outcome == REFUSE and not classifier.accepted:
        message = (
            f"classifiers.{name}: its check refuses {classifier.model}: {refusing_bounds(report)} "
            f"({classifier.report}); choose another model, or write why it may decide all the same: `classifiers: "
            f"{name}: accepted: WHY`, which the manifest records"
        )
        raise RecipeError(message)


def refusing_bounds(report: CheckReport) -> str:
    """Return the critical bounds that a model violates, with what was observed."""
    return ", ".join(_named(failure) for failure in report.failures if failure.get("severity") == "critical")


def _named(failure: Mapping[str, Any]) -> str:
    limits = ", ".join(f"{name} {value:g}" for name, value in sorted(failure["bound"].items()))
    return f"{failure['column']} {failure['observed']:g} ({limits})"


def digest_of_model(path: str) -> str:
    """Return the digest of a model's file or folder here, which is that of `store.files.digest_of_named`."""
    where = Path(path)
    if not where.is_dir():
        return _digest_of(path, _stamp(where))
    names = visible(file.relative_to(where).as_posix() for file in where.rglob("*") if file.is_file())
    return digest_of_folder({name: _digest_of(f"{path}/{name}", _stamp(where / name)) for name in names})


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError as error:
        message = f"cannot read {path} ({error.strerror or error}); correct the path in the recipe"
        raise RecipeError(message) from error
    return status.st_size, status.st_mtime_ns, status.st_ino


@lru_cache(maxsize=256)
def _digest_of(path: str, _state: tuple[int, int, int]) -> str:
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
