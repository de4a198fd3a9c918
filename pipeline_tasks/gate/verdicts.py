"""Judges a stage's manifest against its suites of expectations: pass, warn, or refuse."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.checks import bounded, check_reason, over_batches, suites_of
from pipeline_tasks.gate.estimates import Facts, exact
from pipeline_tasks.gate.explaining import explain, notes_on
from pipeline_tasks.gate.facts import facts_of
from pipeline_tasks.gate.facts.amounts import Amounts, amounts_of, earlier_amounts
from pipeline_tasks.gate.facts.snapshots import compute_snapshot_facts, refined_manifests, snapshot_amounts
from pipeline_tasks.gate.facts.spent import SPENT
from pipeline_tasks.gate.facts.subject import Subject
from pipeline_tasks.gate.judging import (
    FINDINGS,
    Failure,
    Judgment,
    Render,
    compare_facts,
    failures_of,
    interval_of,
    judge_facts,
    judge_here,
    rounded,
)
from pipeline_tasks.gate.learning import LearnedBound, learn, learned_bounds
from pipeline_tasks.gate.suites import Bounds, Expectation, split_judgeable
from pipeline_tasks.gate.validating import validate, validator_here
from pipeline_tasks.manifest import Manifest, stage_prefix
from pipeline_tasks.recipe import PUBLISH, VERDICT
from pipeline_tasks.sealed import digest_of, reference, require_digest, seal, sha256, split_reference, unseal
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, whole_line

Outcome = Literal["pass", "warn", "refuse"]

METHOD = 6
"""How facts are judged; a verdict of another method is not used again.

2: by intervals, from one row on. 3: with bounds that are learned from trailing snapshots. 4: by population stability
without what chance gives on average, and reasons of snapshots that both have earlier ones or none. 5: quantiles and
means by their histogram's bins, and languages of which nothing is left. 6: reasons of builds as those of snapshots.
"""


FIRST = "great_expectations"
"""The judge of verdicts that name none: the only one that there was."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's decision about one manifest, and the facts that it is based on.

    `manifest` and `previous` are references; `path` and `docs` are the paths of this verdict and its Data Docs page,
    relative to the root, and `docs_digest` is the SHA-256 of the page. `failures` are bounds that are violated,
    `undecided` those for which the rows are too few, `bounds` those of the recipe. `skipped` names the expectations
    that were not judged, each with the reason (nothing to compare with). `intervals` are [low, high, rows] of facts
    that have one. `learned` are the bounds that were learned from the manifests `trailing`, violated or not. `judge` is
    who compared; without Great Expectations there is no page. `notes` are lines on what was found and is not bounded.
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
    bounds: Bounds = field(default_factory=dict)
    judge: str = field(default=FIRST, metadata={OMITTED: FIRST})
    notes: tuple[str, ...] = field(default=(), metadata={OMITTED: ()})

    @property
    def page(self) -> str:
        """The path of what people read: the Data Docs page, or the verdict itself where there is none."""
        return self.docs or self.path


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
        return digest_of([*asked, *self.poison, *self.evidence, *over_batches(self.gate)])


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
    spent: Mapping[str, float] | None = None,
) -> Verdict:
    """Judge a committed manifest by `every_stage` and its stage's own suite, and store the verdict with it.

    `previous_path` is the manifest of the same stage in the last published snapshot, `trailing_paths` are those of the
    last ones, in order; without them, bounds are learned from the previous one alone. `override` is a person's
    reason to accept refused data: a refusal becomes a warning that carries it. `spent` has what the snapshot cost so
    far, where something bounds it. A verdict that is stored already is not read: it is judged again, and the same
    suites, bounds, earlier manifests, override and costs give the same.
    """
    manifest, spent = read_manifest(root, manifest_path), spent or {}
    trailing = tuple(trailing_paths) or ((previous_path,) if previous_path else ())
    asked = (manifest.stage, manifest_path, previous_path, bounds or {}, override, trailing, manifest.poison)
    measured = _measured_stage(root, manifest, previous_path, trailing, spent)
    return _answer(root, Question(*asked, _evidence(spent)), manifest, measured)


def _measured_stage(
    root: str, manifest: Manifest, previous: str, trailing: Sequence[str], spent: Mapping[str, float]
) -> Measured:
    before = read_manifest(root, previous) if previous else None
    subject = Subject(root, manifest, before, tuple(read_manifest(root, path) for path in trailing), spent)
    return Measured(facts_of(subject), amounts_of(subject), earlier_amounts(subject))


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
    measured = _measured_snapshots(*([*each.values()] for each in (*earlier, by_stage)))
    return _answer(root, question, by_stage[last], measured)


def _measured_snapshots(*snapshots: Sequence[Manifest]) -> Measured:
    """Return what is judged of the last of some snapshots, by the manifests of each in order."""
    amounts = [snapshot_amounts(manifests) for manifests in snapshots]
    previous = snapshots[-2] if snapshots[:-1] else None
    return Measured(compute_snapshot_facts(snapshots[-1], previous), amounts[-1], amounts[:-1])


def judge_recipe(root: str, manifest_path: str, facts: Mapping[str, float | None], override: str = "") -> Verdict:
    """Judge what ablations say of a recipe before its first stage; store the verdict with what it would refine.

    `manifest_path` is the manifest of the landing or of the composition, and `facts` are those of `VERDICT_FACTS`.
    """
    manifest = read_manifest(root, manifest_path)
    question = Question(VERDICT, manifest_path, "", {}, override, (), manifest.poison, _evidence(facts))
    return _answer(root, question, manifest, _measured_ablations(facts))


def _measured_ablations(facts: Mapping[str, float | None]) -> Measured:
    return Measured({name: exact(value) for name, value in facts.items()}, {}, ())


def _answer(root: str, question: Question, manifest: Manifest, measured: Measured) -> Verdict:
    """Judge and store the verdict on a question."""
    if question.override:
        check_reason(question.gate, question.override)
    judge = partial(judge_facts, question.gate, manifest.fingerprint)
    verdict, page = _judged(root, question, manifest, measured, judge)
    verdict, store = replace(verdict, judge=judge_here()[0]), storage.connect(root)
    for placed in _places(question, manifest, verdict):
        files = ((placed.docs, page), (placed.path, seal(placed)))
        if all(storage.keep(store, path, body) == body for path, body in files if path):
            return placed
    folder = f"{root}/{stage_prefix(manifest.stage, manifest.fingerprint)}/gate"
    message = f"{folder} has other verdicts in the places of those that its gates give; remove it and judge again"
    raise ContractError(message)


def _places(question: Question, manifest: Manifest, verdict: Verdict) -> Iterator[Verdict]:
    """Yield a verdict with the paths at which it may be stored: the first that has no other.

    The first follows from the question. Where something else is stored there, somebody changed it, or another release
    judged otherwise, and a version may name it: it stays, and this one's paths follow from what it says.
    """
    asked = question.digest()
    for name in (asked, digest_of([asked, replace(verdict, path="", docs="")])):
        folder = f"{stage_prefix(manifest.stage, manifest.fingerprint)}/gate/{name}"
        docs = f"{folder}/docs/index.html" if verdict.docs_digest else ""
        yield replace(verdict, path=f"{folder}/verdict.json", docs=docs)


def judged_again(root: str, verdict: Verdict) -> Verdict | None:
    """Return what a stored verdict has to say; None if other suites or another release judged, or none here can.

    Bounds are judged by plain comparisons, and without a page. Facts that are evidence are taken as they are stored:
    the log of ablations and the ledger have grown since. RecipeError if a manifest is gone that it was compared with.
    """
    if over_batches(verdict.stage) and validator_here() is None:
        return None
    manifest = read_manifest(root, verdict.manifest)
    measured = _measured_again(root, verdict, manifest)
    question = asked_of(verdict, verdict.bounds, manifest.poison)
    again, _ = _judged(root, question, manifest, measured, compare_facts)
    again = replace(again, docs_digest=verdict.docs_digest, judge=verdict.judge)
    places = _places(question, manifest, again)
    return next((placed for placed in places if placed.path == verdict.path), None)


def _measured_again(root: str, verdict: Verdict, manifest: Manifest) -> Measured:
    """Return what a verdict has judged."""
    if verdict.stage == VERDICT:
        return _measured_ablations(verdict.facts)
    if verdict.stage == PUBLISH:
        ends = [read_manifest(root, end) for end in (*verdict.trailing, verdict.manifest)]
        return _measured_snapshots(*(whole_line(root, end)[::-1] for end in ends))
    return _measured_stage(root, manifest, verdict.previous, verdict.trailing, _spent(verdict))


def asked_of(verdict: Verdict, bounds: Bounds, poison: tuple[str, ...] = ()) -> Question:
    """Return the question that a verdict answers, if these were the recipe's bounds."""
    asked = (verdict.stage, verdict.manifest, verdict.previous, bounds, verdict.override, verdict.trailing, poison)
    return Question(*asked, _evidence(verdict.facts if verdict.stage == VERDICT else _spent(verdict)))


def _spent(verdict: Verdict) -> Mapping[str, float]:
    """Return what had been spent when a verdict was asked for, where that was judged."""
    known = ((name, verdict.facts.get(name)) for name in SPENT.meanings)
    return {name: value for name, value in known if value is not None}


def _evidence(facts: Mapping[str, float | None]) -> tuple[object, ...]:
    """Return facts that are not of the manifest as a question names them."""
    return tuple(sorted(facts.items()))


Judge = Callable[[Facts, Sequence[Expectation]], tuple[list[Judgment], Render | None]]
"""Judges facts: `judge_facts`, or `compare_facts` without a page."""


def _judged(
    root: str, question: Question, manifest: Manifest, measured: Measured, judge: Judge
) -> tuple[Verdict, bytes]:
    """Return the verdict on a question, without the paths at which it is stored, and its page, empty for none."""
    expectations = bounded(question.gate, question.bounds, measured.facts)
    lesson = learn(expectations, measured.now, measured.before)
    facts = lesson.facts | measured.facts
    limited = [expectation for expectation in expectations if not expectation["learned"]]
    judgeable, skipped = split_judgeable([*limited, *lesson.expectations], facts)
    judgments, render = judge(facts, judgeable)
    validated = validate(root, manifest, measured.facts, over_batches(question.gate))
    judged = {finding: failures_of(judgments, finding) + validated.found[finding] for finding in FINDINGS}
    failures, undecided = judged["violated"], judged["undecided"]
    outcome = _outcome(failures, undecided, question.override)
    notes = notes_on(facts, (*failures, *undecided))
    lines = explain(failures, undecided, notes)
    page = render(f"Gate of {question.gate}: {outcome}", lines, judged) if render else b""
    page = page.replace(b"</body>", validated.html.encode() + b"</body>")
    verdict = Verdict(
        stage=question.gate,
        fingerprint=manifest.fingerprint,
        manifest=question.manifest,
        previous=question.previous,
        outcome=outcome,
        override=question.override,
        failures=failures,
        evaluated=sum(map(len, judged.values())),
        skipped=skipped + lesson.skipped + validated.skipped,
        facts={name: rounded(estimate.value) if estimate else None for name, estimate in sorted(facts.items())},
        path="",
        docs="",
        docs_digest=sha256(page) if page else "",
        undecided=undecided,
        intervals={name: interval for name, estimate in sorted(facts.items()) if (interval := interval_of(estimate))},
        trailing=question.trailing,
        learned=learned_bounds(lesson),
        bounds=question.bounds,
        notes=notes,
    )
    return verdict, page


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
            raw[bounds] = tuple(
                Failure(**{**failure, "examples": tuple(failure.get("examples", ()))})
                for failure in raw.get(bounds, ())
            )
        raw["skipped"], raw["trailing"] = tuple(raw["skipped"]), tuple(raw.get("trailing", ()))
        raw["notes"] = tuple(raw.get("notes", ()))
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
