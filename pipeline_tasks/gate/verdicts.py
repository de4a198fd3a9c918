"""Judges a stage's manifest against its suites of expectations: pass, warn, or refuse."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.gate.subject import Facts
from pipeline_tasks.gate.suites import EVERY, Bounds, Expectation, apply_bounds, load_suite, split_judgeable
from pipeline_tasks.gate.validation import validate
from pipeline_tasks.manifest import stage_prefix
from pipeline_tasks.sealed import digest_of, reference, require_digest, seal, sha256, split_reference, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest

Outcome = Literal["pass", "warn", "refuse"]


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that was not met: the observed value and the allowed limits, as numbers only."""

    expectation: str
    column: str
    observed: float | None
    bound: Mapping[str, Any]
    severity: str
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's decision about one manifest, and the facts that it is based on.

    `manifest` and `previous` are references; `path` and `docs` are the paths of this verdict and its Data Docs page,
    relative to the root, and `docs_digest` is the SHA-256 of the page. `skipped` names the
    expectations that were not judged, each with the reason (too few rows, nothing to compare with).
    """

    stage: str
    fingerprint: str
    manifest: str
    previous: str
    outcome: Outcome
    override: str
    failures: tuple[Failure, ...]
    evaluated: int
    skipped: tuple[str, ...]
    facts: Facts
    path: str
    docs: str
    docs_digest: str = ""


def judge(
    root: str, manifest_path: str, previous_path: str = "", bounds: Bounds | None = None, override: str = ""
) -> Verdict:
    """Judge a committed manifest by `every_stage` and its stage's own suite, and store the verdict with it.

    `previous_path` is the manifest of the same stage in the last published snapshot. `override` is a person's
    reason to accept refused data: a refusal becomes a warning that carries it. The same suites, bounds, previous
    manifest and override give the verdict that is already stored.
    """
    manifest = read_manifest(root, manifest_path)
    expectations = load_suite(EVERY) + load_suite(manifest.stage)
    name = digest_of([expectations, bounds or {}, previous_path, override])
    prefix = f"{stage_prefix(manifest.stage, manifest.fingerprint)}/gate/{name}"
    store = storage.connect(root)
    if store.size(f"{prefix}/verdict.json") is not None:
        return read_verdict(root, f"{prefix}/verdict.json")
    previous = read_manifest(root, previous_path) if previous_path else None
    facts = compute_facts(root, manifest, previous)
    evaluated, skipped = split_judgeable(apply_bounds(expectations, bounds or {}, facts), facts)
    results, page = validate(manifest.stage, manifest.fingerprint, facts, evaluated)
    pairs = zip(evaluated, results, strict=True)
    failures = tuple(_failure(expectation, facts) for expectation, is_met in pairs if not is_met)
    verdict = Verdict(
        stage=manifest.stage,
        fingerprint=manifest.fingerprint,
        manifest=manifest_path,
        previous=previous_path,
        outcome=_outcome(failures, override),
        override=override,
        failures=failures,
        evaluated=len(evaluated),
        skipped=skipped,
        facts={key: None if value is None else round(value, 6) for key, value in sorted(facts.items())},
        path=f"{prefix}/verdict.json",
        docs=f"{prefix}/docs/index.html",
        docs_digest=sha256(storage.keep(store, f"{prefix}/docs/index.html", page)),
    )
    storage.commit(store, verdict.path, seal(verdict))
    return verdict


def verdict_reference(verdict: Verdict) -> str:
    """Return the reference of a stored verdict: its path and the digest of its bytes."""
    return reference(verdict.path, sha256(seal(verdict)))


def read_verdict(root: str, referred: str) -> Verdict:
    """Load a stored verdict by its path or reference; RecipeError when there is none.

    ContractError when it is damaged, or is the verdict of another path; DigestMismatch unless it has the digest of
    its reference.
    """
    path, digest = split_reference(referred)
    where, way_out = f"{root}/{path}", "restore it from a backup, or remove it and judge again"
    try:
        body = storage.connect(root).read(path)
        raw = unseal(body, where, way_out)
        require_digest(body, digest, where, way_out)
        raw["failures"] = tuple(Failure(**failure) for failure in raw["failures"])
        raw["skipped"] = tuple(raw["skipped"])
        verdict = Verdict(**raw)
    except FileNotFoundError as error:
        message = f"{where}: no such verdict; judge that manifest first, or correct the path"
        raise RecipeError(message) from error
    except ContractError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        message = f"{where} is not a verdict ({error}); {way_out}"
        raise ContractError(message) from error
    if verdict.path != path:
        message = f"{where} is the verdict of {verdict.path}; {way_out}"
        raise ContractError(message)
    return verdict


def _outcome(failures: Iterable[Failure], override: str) -> Outcome:
    severities = {failure.severity for failure in failures}
    if "critical" in severities and not override:
        return "refuse"
    return "warn" if severities & {"critical", "warning"} else "pass"


def _failure(expectation: Expectation, facts: Facts) -> Failure:
    kwargs = {key: value for key, value in expectation["kwargs"].items() if value is not None}
    column = str(kwargs.pop("column"))
    observed = facts[column]
    return Failure(
        expectation=expectation["type"],
        column=column,
        observed=None if observed is None else round(observed, 6),
        bound=kwargs,
        severity=expectation["severity"],
        why=expectation["notes"],
    )
