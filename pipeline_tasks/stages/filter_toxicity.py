"""Reject or redact texts that offend or are adult content, by words and models; a word that is mentioned is no hit."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Count, Limit, Ratio
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Bound, Canceled, Spans, UnitCost
from pipeline_tasks.filters.packs import known_language
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.nearest import nearest
from pipeline_tasks.schema import DOCUMENT, TOXIC_SPAN
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.scorer import check
from pipeline_tasks.stage import Batches, Engine, FilePath, Idle, Layer, Shards, Stage, always, reject, replace_columns
from pipeline_tasks.stages.score_quality.classifying import MEASURED, classify_all, failures_first, least_seen
from pipeline_tasks.stages.score_quality.stored import numbers
from pipeline_tasks.text.toxicity.shipped import SHA256 as SHIPPED
from pipeline_tasks.text.toxicity.shipped import shipped_path
from pipeline_tasks.text.words.languages import UNSPACED

if TYPE_CHECKING:  # importing it compiles loops
    from pipeline_tasks.text.toxicity.lexicons import Table

pc: Any = pyarrow.compute

Floats = npt.NDArray[np.float64]

LABELS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate", "adult")
"""The six labels of Jigsaw's toxic comments (2018), and adult content.

A word has one of the last five. `toxic` has all words but those of adult content, `severe_toxic` the heaviest of these.
"""

COLUMNS = tuple(f"toxicity_{label}" for label in LABELS)
"""Weights of the words of a label that count, per 1,000 words of the text; null where its language has no lexicon."""

HITS, SPANS, SEEN = "toxic_hits", pa.field("toxic_spans", pa.list_(TOXIC_SPAN)), "toxicity_seen"
PLACEHOLDER = "<TOXIC>"

KINDS = LABELS[2:]
"""Labels of words, and so the kinds of spans."""

FEWEST_WORDS = 100
"""Words that a text is taken to have at least: one word of a headline is no rate."""

PER = 1000.0
BOUNDS: Mapping[str, float] = MappingProxyType(
    {
        "toxic": 10.0,
        "severe_toxic": 5.0,
        "obscene": 10.0,
        "threat": 5.0,
        "insult": 10.0,
        "identity_hate": 5.0,
        "adult": 10.0,
    }
)

FAILED = "error:filter_toxicity"


@dataclass(frozen=True, slots=True)
class Params:
    """What is done about texts that offend, and when a text does.

    `drop` rejects documents above a bound. `redact` also writes `<TOXIC>` for each word that counts, in the text and
    the title of all documents. `annotate` rejects and changes nothing. Columns and spans are stored by any action.

    `bounds` are by label, in weight of the words that count per 1,000 words (a text of less than 100 words has 100); a
    label that is not named has none. A document with less than `fewest` words that count passes. Words come from a
    lexicon of the document's language: one of `lexicons`, else with `shipped_lexicons` that of the package (en, de, es,
    fr, it, ja, pt, ru, zh). Documents in other languages pass, and their columns are null. Words are found in other
    letter styles and scripts, with digits, signs or nothing visible between or for letters, and spelled apart. In a
    language that is written without blanks the longest words are found, and two letters count as a word. A word that is
    mentioned (`text.toxicity.mentions`) does not count; its span is stored with `used: false`.

    `classifiers` maps a label to a model (`scorers.Classifier`) whose `label` is the bad one; its score is the column
    `score_toxicity_<label>`, and a document above the label's bound in `most` is rejected. A document that a model
    fails on is quarantined.
    """

    action: Literal["annotate", "redact", "drop"] = "drop"
    bounds: Mapping[str, Limit] = field(default_factory=lambda: dict(BOUNDS))
    fewest: Count = 3
    lexicons: Mapping[str, FilePath] = field(default_factory=dict)
    shipped_lexicons: bool = True
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)
    most: Mapping[str, Ratio] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise RecipeError for an unknown label or language, and for a classifier and a bound without each other."""
        for name in ("bounds", "classifiers", "most"):
            for label in getattr(self, name):
                if label not in LABELS:
                    known = ", ".join(LABELS)
                    message = (
                        f"filter_toxicity: {name}: no label is called {label!r}{nearest(label, LABELS)}; "
                        f"labels are {known}"
                    )
                    raise RecipeError(message)
        for code in self.lexicons:
            known_language(code, "filter_toxicity: lexicons")
        for label, model in self.classifiers.items():
            if model.minimum or model.report or model.accepted:
                message = (
                    f"filter_toxicity.classifiers.{label}: `minimum`, `report` and `accepted` are of models that "
                    "prefer good texts; the bound of a toxic label is the most that a document may have: "
                    f"filter_toxicity.most.{label}"
                )
                raise RecipeError(message)
        for label in sorted({*self.most} ^ {*self.classifiers}):
            if label in self.most or self.action != "annotate":
                message = (
                    f"filter_toxicity: classifiers.{label} and most.{label} need each other: a model without a bound "
                    "decides nothing, and a bound without a model has no score"
                )
                raise RecipeError(message)
        if not (self.lexicons or self.shipped_lexicons or self.classifiers):
            message = (
                "filter_toxicity: shipped_lexicons is false, and neither `lexicons` nor `classifiers` names a file: "
                "nothing would be found; name one, or remove the stage"
            )
            raise RecipeError(message)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages with a lexicon, in alphabetical order."""
        return tuple(sorted({*self.lexicons, *(SHIPPED if self.shipped_lexicons else ())}))


@dataclass(frozen=True, slots=True)
class Lexicons:
    """What of the params decides which words are found and count: not the action, nor the bounds."""

    paths: Mapping[str, FilePath]
    shipped: bool


def lexicons_of(params: Params) -> Lexicons:
    """Return what of the params decides which words count."""
    return Lexicons(params.lexicons, params.shipped_lexicons)


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the lexicons and models whose digests are part of the stage's identity."""
    named = [params.lexicons[code] for code in sorted(params.lexicons)]
    return (*named, *(params.classifiers[label].model for label in sorted(params.classifiers)))


def check_files(params: Params) -> None:
    """Raise RecipeError unless every lexicon and model can be read, and the model has the label that is asked."""
    _table(lexicons_of(params))
    for label in sorted(params.classifiers):
        check(params.classifiers[label])


def idle(params: Params, profiles: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return the languages of the kept rows without a lexicon, unless a model reads them."""
    rows: Mapping[str, int] = profiles.get("language", {}).get("bins", {})
    unknown = languages_without_lexicon(params, rows)
    if not unknown:
        return ()
    named = ", ".join(f"{language} ({counted(rows[language], 'document')})" for language in unknown)
    return (Idle(f"no lexicon of {named}", REMEDY),)


REMEDY = "name one in `lexicons`, or a model that reads the language in `classifiers`"


def unread(params: Params, languages: Iterable[str]) -> tuple[Idle, ...]:
    """Return that there is no lexicon of some of these languages."""
    unknown = ", ".join(languages_without_lexicon(params, languages))
    return (Idle(f"no lexicon of {unknown}", REMEDY),) if unknown else ()


def languages_without_lexicon(params: Params, languages: Iterable[str]) -> list[str]:
    """Return the languages of which no word can be found and no model reads the texts."""
    if params.classifiers:
        return []
    return sorted(language for language in languages if language.partition("-")[0] not in params.languages)


def _table(lexicons: Lexicons) -> "tuple[tuple[str, ...], Table]":
    """Return the languages with a lexicon, and the table of their lexicons; RecipeError for a file that is none."""
    from pipeline_tasks.text.base.cached import regular
    from pipeline_tasks.text.toxicity.lexicons import table_of

    shipped = {code: shipped_path(code) for code in SHIPPED} if lexicons.shipped else {}
    paths = {**shipped, **lexicons.paths}
    languages = tuple(sorted(paths))
    states = (regular(paths[code]) for code in languages)
    stamps = tuple((state.st_size, state.st_mtime_ns, state.st_ino) for state in states)
    unspaced = tuple(code in UNSPACED for code in languages)
    return languages, table_of(tuple(str(paths[code]) for code in languages), stamps, unspaced)


# --- Measuring ------------------------------------------------------------------------------------------------------


def measure(documents: Batches, *, lexicons: Lexicons) -> Batches:
    """Append the columns, the count of the words that count, and the spans; nothing is decided, no text is changed."""
    languages, table = _table(lexicons)
    for batch in documents:
        yield _measured(batch, languages, table)


def _measured(batch: pa.RecordBatch, languages: Sequence[str], table: "Table") -> pa.RecordBatch:
    from pipeline_tasks.text.toxicity.lexicons import LABELS as WORD_LABELS
    from pipeline_tasks.text.toxicity.lexicons import SEVERE
    from pipeline_tasks.text.toxicity.mentions import ENTRY, FATE, FIRST, LAST, ROW, USED, find_hits

    ranks = _ranks(batch, languages)
    hits, words = find_hits(batch.column("text"), ranks, table)
    labels, weights = table.labels[hits[:, ENTRY]], table.weights[hits[:, ENTRY]]
    used = hits[:, FATE] == USED
    sums = np.zeros((batch.num_rows, len(LABELS)))
    for place, name in enumerate(WORD_LABELS):
        chosen = used & (labels == place)
        np.add.at(sums, (hits[chosen, ROW], LABELS.index(name)), weights[chosen])
        if name != "adult":
            np.add.at(sums, (hits[chosen, ROW], LABELS.index("toxic")), weights[chosen])
            severe = chosen & (weights == SEVERE)
            np.add.at(sums, (hits[severe, ROW], LABELS.index("severe_toxic")), weights[severe])
    rates = np.round(sums * PER / np.maximum(words, FEWEST_WORDS)[:, None], 6)
    unknown = np.array(ranks) < 0
    columns = {name: pa.array(rates[:, at].copy(), pa.float64(), mask=unknown) for at, name in enumerate(COLUMNS)}
    counts = np.bincount(hits[used, ROW], minlength=batch.num_rows).astype(np.int32)
    columns[HITS] = pa.array(counts, pa.int32(), mask=unknown)
    kinds = pa.array(WORD_LABELS).take(pa.array(labels))
    spans = [kinds, pa.array(hits[:, FIRST].copy()), pa.array(hits[:, LAST].copy()), pa.array(used)]
    places = pa.nulls(len(hits), pa.int64())
    offsets = np.concatenate([[0], np.cumsum(np.bincount(hits[:, ROW], minlength=batch.num_rows))])
    structs = pa.StructArray.from_arrays([*spans, places], fields=list(TOXIC_SPAN))
    columns[SPANS.name] = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)
    return replace_columns(batch, columns)


def _ranks(batch: pa.RecordBatch, languages: Sequence[str]) -> list[int]:
    """Return the place of each row's language among those with a lexicon, -1 for none."""
    places = {language: place for place, language in enumerate(languages)}
    return [places.get((code or "").partition("-")[0], -1) for code in batch.column("language").to_pylist()]


# --- Deciding -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """What of the params decides on what was measured; it names no model, so that none is fetched to decide.

    `labels` are those that a model scores, in alphabetical order. `lexicons` are those that titles are redacted by,
    None where nothing is redacted.
    """

    action: str
    bounds: Mapping[str, float]
    fewest: int
    most: Mapping[str, float]
    labels: tuple[str, ...]
    lexicons: Lexicons | None


def decision_of(params: Params) -> Decision:
    """Return what of the params decides."""
    lexicons = lexicons_of(params) if params.action == "redact" else None
    return Decision(
        params.action, params.bounds, params.fewest, params.most, tuple(sorted(params.classifiers)), lexicons
    )


def decide(measured: Batches, *, decision: Decision) -> Batches:
    """Reject rows above a bound with all of these as evidence, and with `redact` replace the words that count.

    Rows that a model failed on are quarantined.
    """
    for batch in measured:
        classified = {name: batch.column(MEASURED + name) for name in map(_name, decision.labels)}
        columns = {f"score_{name}": pc.struct_field(answers, "score") for name, answers in classified.items()}
        columns[SEEN] = least_seen(classified.values(), batch.num_rows)
        scored = replace_columns(batch.drop_columns([MEASURED + name for name in classified]), columns)
        judged = reject(scored, *failures_first(*_verdicts(scored, decision), classified, FAILED))
        yield _redacted(judged, decision.lexicons) if decision.lexicons else judged


def _name(label: str) -> str:
    return f"toxicity_{label}"


def _verdicts(batch: pa.RecordBatch, decision: Decision) -> tuple[pa.Array, pa.Array]:
    """Return the reason why each row is rejected and all bounds that it fails; null for kept rows."""
    failures: list[list[dict[str, float | str]]] = [[] for _ in range(batch.num_rows)]
    if decision.action != "annotate":
        hits = numbers(batch.column(HITS))
        for label in ORDER:
            words, score = numbers(batch.column(_name(label))), f"score_{_name(label)}"
            bound = decision.bounds.get(label, np.inf)
            _collect(failures, (words > bound) & (hits >= decision.fewest), words, bound, reason_of(label))
            if label in decision.most:
                scores, most = numbers(batch.column(score)), decision.most[label]
                _collect(failures, scores > most, scores, most, score_reason_of(label))
    reasons = pa.array([failed[0]["rule"] if failed else None for failed in failures], pa.string())
    return reasons, pa.array([_evidence(failed) for failed in failures], pa.string())


ORDER = ("severe_toxic", "threat", "identity_hate", "adult", "obscene", "insult", "toxic")
"""Labels from the gravest to the widest: the first that a document fails is its reason."""


def reason_of(label: str) -> str:
    """Return the reason of documents with too many words of a label."""
    return f"filter_toxicity:{label}"


def score_reason_of(label: str) -> str:
    """Return the reason of documents that a model scores too high."""
    return f"filter_toxicity:score_{label}"


def _collect(
    failures: list[list[dict[str, float | str]]], failed: npt.NDArray[np.bool_], values: Floats, bound: float, rule: str
) -> None:
    for row in np.flatnonzero(failed).tolist():
        failures[row].append({"bound": round(bound, 6), "rule": rule, "value": round(float(values[row]), 6)})


def _evidence(failed: Sequence[Mapping[str, float | str]]) -> str | None:
    """Return failed bounds as canonical JSON, null for none; no word of the text is in it."""
    return json.dumps(failed, sort_keys=True, separators=(",", ":")) if failed else None


# --- Redacting ------------------------------------------------------------------------------------------------------


def _redacted(batch: pa.RecordBatch, lexicons: Lexicons) -> pa.RecordBatch:
    """Replace the words that count in texts and titles, and say in the spans where their placeholders are."""
    spans = batch.column(SPANS.name).to_pylist()
    texts = batch.column("text")
    rows = [row for row, found in enumerate(spans) if any(span["used"] for span in found)]
    if rows:
        written = {row: _replaced(texts[row].as_py(), spans[row]) for row in rows}
        mask = pa.array([row in written for row in range(batch.num_rows)])
        values: Any = pa.array([written[row] for row in rows], pa.large_string())
        texts = pc.replace_with_mask(texts, mask, values.cast(texts.type))
        lengths = pc.replace_with_mask(batch.column("chars"), mask, pc.cast(pc.utf8_length(values), pa.int64()))
        batch = replace_columns(batch, {"text": texts, "chars": lengths})
    return _with_redacted_titles(replace_columns(batch, {SPANS.name: pa.array(spans, SPANS.type)}), lexicons)


def _replaced(text: str, spans: Sequence[dict[str, Any]]) -> str:
    """Return a text with its used spans replaced; each gets the place `at` of its placeholder."""
    pieces, last, place = [], 0, 0
    for span in spans:
        if span["used"]:
            kept = text[last : span["start"]]
            place += len(kept)
            span["at"] = place
            place += len(PLACEHOLDER)
            pieces += [kept, PLACEHOLDER]
            last = span["end"]
    return "".join([*pieces, text[last:]])


def _with_redacted_titles(batch: pa.RecordBatch, lexicons: Lexicons) -> pa.RecordBatch:
    if "title" not in batch.schema.names:
        return batch
    from pipeline_tasks.text.toxicity.mentions import FATE, FIRST, LAST, ROW, USED, find_hits

    languages, table = _table(lexicons)
    titles = batch.column("title")
    hits, _ = find_hits(titles, _ranks(batch, languages), table)
    values: dict[int, list[dict[str, Any]]] = {}
    for hit in hits[hits[:, FATE] == USED].tolist():
        values.setdefault(hit[ROW], []).append({"start": hit[FIRST], "end": hit[LAST], "used": True})
    if not values:
        return batch
    texts = [_replaced(title, values[row]) if row in values else title for row, title in enumerate(titles.to_pylist())]
    return replace_columns(batch, {"title": pa.array(texts, titles.type)})


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Ask each model, find the words, then judge each document by all: other bounds and actions find the measures."""
    scored = classify_all(shards, {_name(label): model for label, model in params.classifiers.items()}, on)
    words = Layer(reads=("text", "language"), stores=(*COLUMNS, HITS, SPANS.name), shared=True)
    measured = on.map(partial(measure, lexicons=lexicons_of(params)), scored, layer=words)
    classified = tuple(MEASURED + _name(label) for label in sorted(params.classifiers))
    scores = tuple(f"score_{_name(label)}" for label in sorted(params.classifiers))
    if params.action == "redact":
        layer = Layer(stores=(*scores, SEEN, SPANS.name), changes=("text", "title", "chars"))
    else:
        layer = Layer(reads=(*COLUMNS, HITS, *classified), stores=(*scores, SEEN))
    return on.map(partial(decide, decision=decision_of(params)), measured, layer=layer)


def writes_for(params: Params) -> pa.Schema:
    """Return the columns of the scores of models."""
    return pa.schema([pa.field(f"score_{_name(label)}", pa.float64()) for label in sorted(params.classifiers)])


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    if params.action == "annotate":
        for name in ("bounds", "fewest", "most"):
            yield Canceled(name, "`action: annotate` rejects no document", "write another `action`")
    elif not params.bounds:
        yield Canceled("fewest", "`bounds` names no label", "name labels in `bounds`")


def bounds(params: Params) -> tuple[Bound, ...]:
    """Return the bound of each label on its words: with `annotate` none rejects anything."""
    now = {} if params.action == "annotate" else params.bounds
    return tuple(
        Bound(
            f"bounds.{label}",
            now.get(label, math.inf),
            reason_of(label),
            columns=(column, HITS),
            measured=partial(_decided_by, column=column, fewest=params.fewest),
            rejects="above",
            most=math.inf,
        )
        for label, column in zip(LABELS, COLUMNS, strict=True)
    )


def _decided_by(batch: pa.RecordBatch, *, column: str, fewest: int) -> pa.Array:
    """Return the rates of rows on which a bound decides alone: kept ones with enough hits, and rejected by no other."""
    if "evidence" in batch.schema.names:
        alone = [len(json.loads(evidence)) == 1 for evidence in batch.column("evidence").to_pylist()]
        decides = pa.array(alone, pa.bool_())
    else:
        decides = pc.greater_equal(batch.column(HITS), fewest)
    return pc.if_else(decides, batch.column(column), pa.scalar(None, pa.float64()))


def remarks(params: Params) -> Iterator[str]:
    """Yield that the params reject nothing, and do not say that it is on purpose."""
    bounds = (*params.bounds.values(), *params.most.values())
    if params.action == "drop" and not any(bound < math.inf for bound in bounds):
        yield "`bounds` and `most` have no bound, so no document is rejected; `action: annotate` says so"


STAGE = Stage(
    name="filter_toxicity",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    idle=idle,
    has_state=lambda params: bool(params.classifiers),
    reads=pa.schema([*DOCUMENT, pa.field("language", pa.string())]),
    writes=pa.schema(
        [
            *DOCUMENT,
            pa.field("language", pa.string()),
            *(pa.field(name, pa.float64()) for name in (*COLUMNS, SEEN)),
            pa.field(HITS, pa.int32()),
            SPANS,
        ]
    ),
    writes_for=writes_for,
    version=3,
    splits=True,
    libraries={UNICODE: always},
    profiled=(*COLUMNS, HITS, "language"),
    reasons=(*map(reason_of, LABELS), *map(score_reason_of, LABELS)),
    title="Take out what offends, and adult content",
    canceled=canceled,
    bounds=bounds,
    remarks=remarks,
    unread=unread,
    spans=Spans(SPANS.name, KINDS),
    cost=UnitCost(0.2, 1.02, 0.02, 4),
    changes=("text", "title", "chars"),
    derived_from=("text", "title", "language"),
)
