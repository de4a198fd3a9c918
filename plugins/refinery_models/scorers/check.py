"""Checks a scorer on a sample: what it tells from nonsense, whether it sorts by source, and what its scores mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.gate.estimates import Estimate, Facts, exact
from pipeline_tasks.gate.judging import Failure, failures_of, judge_facts
from pipeline_tasks.gate.suites import load_suite, split_judgeable
from pipeline_tasks.scorers.calibration import ALL
from pipeline_tasks.scorers.report import REFUSE, CheckReport
from pipeline_tasks.text.base.sampling import uniform_draws
from refinery_models import measures
from refinery_models.measures import Measure, area, joined
from refinery_models.planted import KINDS, Pool, Text
from refinery_models.scorers.judges import Judge

SUITE = "scorer_check"
"""The suite of bounds, `expectations/scorer_check.json`."""

LEAST = 5
"""Documents of a language of which nonsense is made."""

Column = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scored:
    """A sample with its scores: only rows that have one."""

    ids: Sequence[str]
    texts: Sequence[str]
    languages: Sequence[str]
    groups: Sequence[str]
    sources: Sequence[str]
    labels: Column
    values: Column
    halves: npt.NDArray[np.bool_]


def check(judge: Judge, texts: pa.Table, inputs: Mapping[str, str], seed: int = 1) -> CheckReport:
    """Return the report of a scorer on a sample; the same scorer, sample and seed give the same report.

    `texts` are those of `texts.read_texts`. Documents of a group have one type and language: what differs between types
    is no fault of a scorer.
    """
    scores = judge.scores(texts)
    scored = _scored(texts, scores.values, seed)
    planted = _planted(judge, texts, scored)
    sources = measures.by_source(scored.values, scored.groups, scored.sources)
    tables = {"planted": _by_language(planted), "ranks": _ranks(scored), "sources": _rounded(sources)}
    measured: dict[str, Measure | None] = {
        "documents": _count(len(scores.values)),
        "unscored_share": measures.share(int(np.isnan(scores.values).sum()), len(scores.values)),
        "seen_share": _seen(scores.seen),
        **{f"auc.{kind}": joined(area(*columns) for _, columns in sorted(planted[kind].items())) for kind in KINDS},
        "rank_correlation": measures.joined_correlation((row["value"], row["documents"]) for row in tables["ranks"]),
        "source_auc": measures.source_area(scored.values, scored.groups, scored.sources, scored.halves),
        **_spread(scored, sources),
    }
    sample = _sample(texts, scored, inputs, seed)
    return _judged(judge, sample, measured, tables, _calibration(scored))


def _scored(texts: pa.Table, values: Column, seed: int) -> Scored:
    known = np.flatnonzero(~np.isnan(values))
    rows = texts.take(pa.array(known))
    columns = {name: rows.column(name).to_pylist() for name in ("id", "text", "language", "source", "type")}
    groups = [f"{kind}/{language}" for kind, language in zip(columns["type"], columns["language"], strict=True)]
    halves = np.asarray(uniform_draws(rows.column("id"), seed + 1) & 1, np.bool_)
    labels = np.asarray(rows.column("label").to_numpy(), np.float64)
    named = (columns["id"], columns["text"], columns["language"], groups, columns["source"])
    return Scored(*named, labels, np.asarray(values[known], np.float64), halves)


def _count(value: int) -> Measure:
    return Measure(value, value, value, value)


def _seen(seen: Column) -> Measure | None:
    known = seen[~np.isnan(seen)]
    return Measure(float(known.mean()), float(known.mean()), float(known.mean()), len(known)) if len(known) else None


# --- Nonsense -------------------------------------------------------------------------------------------------

Planted = Mapping[str, Mapping[str, tuple[Column, Column]]]
"""Kind -> language -> scores of documents, and of what was made of them."""


def _planted(judge: Judge, texts: pa.Table, scored: Scored) -> Planted:
    """Return the scores of the documents of each language, and of each kind of nonsense that was made of them."""
    confidence = dict(zip(texts.column("id").to_pylist(), texts.column("language_score").to_pylist(), strict=True))
    found: dict[str, dict[str, tuple[Column, Column]]] = {kind: {} for kind in KINDS}
    for language in sorted(set(scored.languages)):
        rows = [row for row, own in enumerate(scored.languages) if own == language]
        pool = Pool(language, [Text(scored.ids[row], scored.texts[row]) for row in rows])
        if len(rows) < LEAST:
            continue
        for kind, plant in KINDS.items():
            made = [
                (row, text) for row, document in zip(rows, pool.texts, strict=True) if (text := plant(document, pool))
            ]
            if made:
                table = _table([text for _, text in made], language, [confidence[scored.ids[row]] for row, _ in made])
                nonsense = np.nan_to_num(judge.scores(table).values, nan=0.0)
                found[kind][language] = (scored.values[[row for row, _ in made]], nonsense)
    return found


def _table(texts: Sequence[str], language: str, confidence: Sequence[float | None]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([f"{row:032x}" for row in range(len(texts))], pa.string()),
            "text": pa.array(texts, pa.large_string()),
            "language": pa.array([language] * len(texts), pa.string()),
            "language_score": pa.array(confidence, pa.float64()),
        }
    )


def _by_language(planted: Planted) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "language": language, **_shown(joined([area(*columns)]))}
        for kind, languages in planted.items()
        for language, columns in sorted(languages.items())
    ]


def _shown(measure: Measure | None) -> dict[str, Any]:
    if measure is None:
        return {}
    return {name: round(value, 6) for name, value in measure._asdict().items()}


# --- Ranks, sources and calibration ---------------------------------------------------------------------------


def _groups_of(scored: Scored) -> dict[str, npt.NDArray[np.intp]]:
    """Return the labelled rows of each group."""
    rows: dict[str, list[int]] = {}
    for row in np.flatnonzero(~np.isnan(scored.labels)).tolist():
        rows.setdefault(scored.groups[row], []).append(row)
    return {group: np.array(own) for group, own in sorted(rows.items())}


def _ranks(scored: Scored) -> list[dict[str, Any]]:
    found = []
    for group, rows in _groups_of(scored).items():
        value = measures.rank_correlation(scored.values[rows], scored.labels[rows])
        if value is not None:
            found.append({"group": group, "value": round(value, 6), "documents": len(rows)})
    return found


def _rounded(sources: Sequence[measures.Source]) -> list[dict[str, Any]]:
    return [
        {name: round(value, 6) if isinstance(value, float) else value for name, value in source._asdict().items()}
        for source in sources
    ]


def _spread(scored: Scored, sources: Sequence[measures.Source]) -> dict[str, Measure | None]:
    """Return how much sources spread: those without any, the median of a spread, and what the source explains."""
    flat = sum(source.deviation < measures.FLAT for source in sources)
    between = measures.variance_between(scored.values, scored.groups, scored.sources)
    whole = float(scored.values.std()) if len(scored.values) else 0.0
    median = float(np.median([source.deviation for source in sources])) if sources else None
    return {
        "sources": _count(len(sources)),
        "flat_source_share": measures.share(flat, len(sources)),
        "source_spread": None if median is None or not whole else _exact(median / whole, len(sources)),
        "source_variance": None if between is None else _exact(between, len(sources)),
        "distinct_scores": _count(len(np.unique(scored.values))),
    }


def _exact(value: float, count: int) -> Measure:
    return Measure(value, value, value, count)


def _calibration(scored: Scored) -> dict[str, Any]:
    groups = _groups_of(scored)
    everything = {ALL: np.concatenate(list(groups.values()))} if groups else {}
    found = {}
    for group, rows in (everything | _languages_of(groups) | groups).items():
        steps = measures.calibrated(scored.values[rows], scored.labels[rows])
        if steps is not None:
            found[group] = steps._asdict()
    return found


def _languages_of(groups: Mapping[str, npt.NDArray[np.intp]]) -> dict[str, npt.NDArray[np.intp]]:
    """Return the rows of each language that has several types."""
    languages: dict[str, list[npt.NDArray[np.intp]]] = {}
    for group, rows in groups.items():
        languages.setdefault(group.rpartition("/")[2], []).append(rows)
    return {f"{ALL}/{code}": np.concatenate(own) for code, own in languages.items() if len(own) > 1}


def _sample(texts: pa.Table, scored: Scored, inputs: Mapping[str, str], seed: int) -> dict[str, Any]:
    languages = {code: scored.languages.count(code) for code in sorted(set(scored.languages))}
    labelled = int((~np.isnan(scored.labels)).sum())
    return {"inputs": dict(inputs), "seed": seed, "texts": len(texts), "languages": languages, "labelled": labelled}


# --- Verdict --------------------------------------------------------------------------------------------------


def _judged(
    judge: Judge,
    sample: Mapping[str, Any],
    measured: Mapping[str, Measure | None],
    tables: Mapping[str, Any],
    calibration: Mapping[str, Any],
) -> CheckReport:
    facts: Facts = {name: _estimate(measure) for name, measure in measured.items()}
    judgeable, skipped = split_judgeable(load_suite(SUITE), facts)
    judgments, _ = judge_facts(SUITE, judge.model, facts, judgeable)
    failures, undecided = (failures_of(judgments, finding) for finding in ("violated", "undecided"))
    return CheckReport(
        model=judge.model,
        kind=judge.kind,
        params=judge.params,
        hardware=judge.hardware,
        outcome=_outcome(failures, undecided),
        sample=sample,
        facts={name: None if one is None else [round(value, 6) for value in one] for name, one in measured.items()},
        failures=tuple(map(_plain, failures)),
        undecided=tuple(map(_plain, undecided)),
        skipped=skipped,
        tables=tables,
        calibration=calibration,
    )


def _estimate(measure: Measure | None) -> Estimate | None:
    if measure is None:
        return None
    if measure.low == measure.high:
        return exact(measure.value)
    return Estimate(measure.value, measure.low, measure.high, measure.size)


def _plain(failure: Failure) -> dict[str, Any]:
    names = ("column", "observed", "bound", "severity", "low", "high", "rows", "why", "remedy")
    return {name: getattr(failure, name) for name in names}


def _outcome(failures: Iterable[Failure], undecided: Sequence[Failure]) -> str:
    severities = {failure.severity for failure in failures}
    if "critical" in severities:
        return REFUSE
    return "warn" if severities or undecided else "pass"
