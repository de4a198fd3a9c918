"""Judges a stage's manifest against its suites of expectations: pass, warn, or refuse."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.checks import bounded, check_reason, suites_of
from pipeline_tasks.gate.docs_page import with_bounds
from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.explaining import explain
from pipeline_tasks.gate.facts import facts_of
from pipeline_tasks.gate.facts.amounts import Amounts, amounts_of, earlier_amounts
from pipeline_tasks.gate.facts.snapshots import compute_snapshot_facts, refined_manifests, snapshot_amounts
from pipeline_tasks.gate.facts.subject import Subject
from pipeline_tasks.gate.judging import FINDINGS, Failure, failures_of, interval_of, judge_facts, rounded
from pipeline_tasks.gate.learning import LearnedBound, learn, learned_bounds
from pipeline_tasks.gate.suites import Bounds, split_judgeable
from pipeline_tasks.manifest import Manifest, stage_prefix
from pipeline_tasks.recipe import PUBLISH, VERDICT
from pipeline_tasks.sealed import digest_of, reference, require_digest, seal, sha256, split_reference, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest

Outcome = Literal["pass", "warn", "refuse"]

METHOD = 5
"""How facts are judged; a verdict of another method is not used again.

2: by intervals, from one row on. 3: with bounds that are learned from trailing snapshots. 4: by
population stability without what chance gives on average, and reasons of snapshots that both have earlier ones or none.
5: quantiles and means by their histogram's bins, and languages of which nothing is left.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's decision about one manifest, and the facts that it is based on.

    `manifest` and `previous` are references; `path` and `docs` are the paths of this verdict and its Data Docs page,
    relative to the root, and `docs_digest` is the SHA-256 of the page. `failures` are bounds
    that are violated, `undecided` those for which the rows are too few. `skipped` names the expectations that were not
    judged, each with the reason (nothing to compare with). `intervals` are [low, high, rows] of facts that have one.
    `learned` are the bounds that were learned from the manifests `trailing`, violated or not.
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
    facts: Mapping[str, float | None]
    path: str
    docs: str
    docs_digest: str = ""
    undecided: tuple[Failure, ...] = ()
    intervals: Mapping[str, tuple[float | None, float | None, int]] = field(default_factory=dict)
    trailing: tuple[str, ...] = ()
    learned: tuple[LearnedBound, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What a gate is asked: which manifest (of a snapshot: its last one), and what a person wants otherwise.

    `trailing` are the references of the manifests that bounds are learned from, in the order of their snapshots.
    `poison` is the manifest's: a partial manifest lies beside the whole one, and has verdicts of its own. `evidence` is
    what is judged besides the manifest.
    """

    gate: str
    manifest: str
    previous: str
    bounds: Bounds
    override: str
    trailing: tuple[str, ...] = ()
    poison: tuple[str, ...] = ()
    evidence: tuple[object, ...] = ()

    def digest(self) -> str:
        """Return the name under which the verdict is stored next to the manifest."""
        asked = [METHOD, suites_of(self.gate), self.bounds, self.previous, self.override, self.trailing]
        return digest_of([*asked, *self.poison, *self.evidence])


@dataclass(frozen=True, slots=True)
class Measured:
    """What is judged: facts, the amounts that bounds are learned of, and those of the trailing snapshots in order."""

    facts: Facts
    now: Amounts
    before: Sequence[Amounts]


def judge(
    root: str,
    manifest_path: str,
    previous_path: str = "",
    bounds: Bounds | None = None,
    override: str = "",
    trailing_paths: Sequence[str] = (),
) -> Verdict:
    """Judge a committed manifest by `every_stage` and its stage's own suite, and store the verdict with it.

    `previous_path` is the manifest of the same stage in the last published snapshot, `trailing_paths` are those of the
    last ones, in order; without them, bounds are learned from the previous one alone. `override` is a person's
    reason to accept refused data: a refusal becomes a warning that carries it. The same suites, bounds, earlier
    manifests and override give the verdict that is already stored.
    """
    manifest = read_manifest(root, manifest_path)
    trailing = tuple(trailing_paths) or ((previous_path,) if previous_path else ())

    def measure() -> Measured:
        previous = read_manifest(root, previous_path) if previous_path else None
        subject = Subject(root, manifest, previous, tuple(read_manifest(root, path) for path in trailing))
        return Measured(facts_of(subject), amounts_of(subject), earlier_amounts(subject))

    question = Question(manifest.stage, manifest_path, previous_path, bounds or {}, override, trailing, manifest.poison)
    return _answer(root, question, manifest, measure)


def judge_snapshot(
    root: str,
    manifests: Mapping[str, str],
    bounds: Bounds | None = None,
    override: str = "",
    trailing: Sequence[Mapping[str, str]] = (),
) -> Verdict:
    """Judge all manifests of a snapshot, by stage, before it is published; store the verdict with the last one.

    `trailing` are those of the last published snapshots, in order. The verdict names the last manifest of each, whose
    fingerprint follows from the others.
    """
    by_stage = refined_manifests(root, manifests)
    last = list(by_stage)[-1]
    earlier = [refined_manifests(root, snapshot) for snapshot in trailing]
    ends = tuple(snapshot[list(read)[-1]] for snapshot, read in zip(trailing, earlier, strict=True))
    question = Question(PUBLISH, manifests[last], "", bounds or {}, override, ends, by_stage[last].poison)

    def measure() -> Measured:
        before = [snapshot_amounts(snapshot.values()) for snapshot in earlier]
        return Measured(compute_snapshot_facts(by_stage.values()), snapshot_amounts(by_stage.values()), before)

    return _answer(root, question, by_stage[last], measure)


def judge_recipe(root: str, manifest_path: str, facts: Mapping[str, float | None], override: str = "") -> Verdict:
    """Judge what ablations say of a recipe before its first stage; store the verdict with what it would refine.

    `manifest_path` is the manifest of the landing or of the composition, and `facts` are those of `VERDICT_FACTS`.
    """
    manifest = read_manifest(root, manifest_path)
    question = Question(VERDICT, manifest_path, "", {}, override, (), manifest.poison, tuple(sorted(facts.items())))
    return _answer(root, question, manifest, lambda: Measured({name: exact(facts[name]) for name in facts}, {}, ()))


def _answer(root: str, question: Question, manifest: Manifest, measure: Callable[[], Measured]) -> Verdict:
    """Return the stored verdict on a question, or judge and store it."""
    store = storage.connect(root)
    prefix = f"{stage_prefix(manifest.stage, manifest.fingerprint)}/gate/{question.digest()}"
    if store.size(f"{prefix}/verdict.json") is not None:
        return read_verdict(root, f"{prefix}/verdict.json")
    if question.override:
        check_reason(question.gate, question.override)
    measured = measure()
    expectations = bounded(question.gate, question.bounds, measured.facts)
    lesson = learn(expectations, measured.now, measured.before)
    facts = lesson.facts | measured.facts
    limited = [expectation for expectation in expectations if not expectation["learned"]]
    judgeable, skipped = split_judgeable([*limited, *lesson.expectations], facts)
    judgments, page = judge_facts(question.gate, manifest.fingerprint, facts, judgeable)
    failures, undecided, met = (failures_of(judgments, finding) for finding in FINDINGS)
    outcome = _outcome(failures, undecided, question.override)
    lines, judged = explain(failures, undecided), dict(zip(FINDINGS, (failures, undecided, met), strict=True))
    shown = with_bounds(page, f"Gate of {question.gate}: {outcome}", lines, judged)
    verdict = Verdict(
        stage=question.gate,
        fingerprint=manifest.fingerprint,
        manifest=question.manifest,
        previous=question.previous,
        outcome=outcome,
        override=question.override,
        failures=failures,
        evaluated=len(judgments),
        skipped=skipped + lesson.skipped,
        facts={name: rounded(estimate.value) if estimate else None for name, estimate in sorted(facts.items())},
        path=f"{prefix}/verdict.json",
        docs=f"{prefix}/docs/index.html",
        docs_digest=sha256(storage.keep(store, f"{prefix}/docs/index.html", shown)),
        undecided=undecided,
        intervals={name: interval for name, estimate in sorted(facts.items()) if (interval := interval_of(estimate))},
        trailing=question.trailing,
        learned=learned_bounds(lesson),
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
        for bounds in ("failures", "undecided"):
            raw[bounds] = tuple(Failure(**failure) for failure in raw.get(bounds, ()))
        raw["skipped"], raw["trailing"] = tuple(raw["skipped"]), tuple(raw.get("trailing", ()))
        raw["learned"] = tuple(LearnedBound(**bound) for bound in raw.get("learned", ()))
        raw["intervals"] = {name: tuple(interval) for name, interval in raw.get("intervals", {}).items()}
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


def _outcome(failures: Iterable[Failure], undecided: Iterable[Failure], override: str) -> Outcome:
    severities = {failure.severity for failure in failures}
    if "critical" in severities and not override:
        return "refuse"
    return "warn" if severities & {"critical", "warning"} or any(undecided) else "pass"
