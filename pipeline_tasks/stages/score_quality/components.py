"""Compute the components of a score: numbers between 0 and 1 per document, NaN where a component has no source."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.text.words.languages import UNSPACED

if TYPE_CHECKING:  # importing it compiles loops
    from pipeline_tasks.text.words.language_model import LanguageModel

ModelOf: TypeAlias = "Callable[[str], LanguageModel | None]"
"""Returns the model of a language, or None if there is none."""

Column = npt.NDArray[np.float64]
"""One component, a value in 0..1 per row; NaN where it is unknown."""

_SIGNALS = "signals_"
"""Prefix of the columns of signals that `filter_quality` writes, one per profile."""

_REPETITION = f"{_SIGNALS}gopher_repetition"

_PHRASE, _UNSPACED_PHRASE = 5, 10
"""Words of a repeated phrase; where no spaces are written a letter counts as a word (UAX #29)."""

_FEW_WORDS, _ENOUGH_WORDS, _MANY_WORDS = 50, 500, 50_000
_CHARS_PER_UNSPACED_WORD = 2  # mean word length of Chinese and Japanese text, rounded
_PLAIN_LETTERS = 0.75  # prose has at least this share of letters among its visible bytes (Gopher: 0.8 of words)
_PLAIN_PUNCTUATION = 0.10  # prose has at most this share of punctuation; code and tables have more
_PLAIN_STOP_WORDS = 0.15  # English prose has about 0.2 of these words
_STOP_WORDS = {  # the most frequent function words; a language that is not listed is scored without them
    "en": "the of and to in a is that for it as with be are this on by not or have",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als",
    "fr": "de la le et les des en un une du est que dans pour qui par au sur pas ne",
    "es": "de la que el en y los se del las un por con una para es al lo como no",
    "it": "di e il la che in per un del una con non le si da i dei al come è",
    "pt": "de a o que e do da em um para com não uma os no se na por as dos",
    "nl": "de het een van en in is dat op te zijn met voor niet aan er om die ook als",
    "ru": "и в не на что с по как это из у к за от для но или его а то",  # noqa: RUF001 -- Russian
    "pl": "i w na z do się nie że to jest o jak dla od po za przez ale są czy",
}


def components(batch: pa.RecordBatch, model_of: ModelOf) -> dict[str, Column]:
    """Return the components that the documents themselves and the models of their languages give."""
    languages = _languages(batch)
    counts = _signs(batch.column("text"), languages)
    words = _word_counts(batch, counts, languages)
    confidence: Any = batch.column("language_score").cast(pa.float64())
    return {
        "length": _length(words),
        "language": np.clip(confidence.to_numpy(zero_copy_only=False), 0.0, 1.0),
        "duplication": _duplication(batch),
        "redundancy": _redundancy(batch, languages),
        "density": _density(counts, words),
        "perplexity": _perplexity(batch, languages, model_of),
    }


def _languages(batch: pa.RecordBatch) -> list[str | None]:
    if batch.schema.get_field_index("language") < 0:
        return [None] * batch.num_rows
    return [language and str(language).partition("-")[0] for language in batch.column("language").to_pylist()]


def _word_counts(batch: pa.RecordBatch, counts: dict[str, Column], languages: list[str | None]) -> Column:
    """Return words per row: runs between spaces, or characters by mean word length where none are written."""
    spaced = counts["words"]
    chars: Any = batch.column("chars").cast(pa.float64()).fill_null(0.0)
    unspaced = np.isin(np.array(languages, dtype=object), UNSPACED)
    return np.where(unspaced, chars.to_numpy(zero_copy_only=False) / _CHARS_PER_UNSPACED_WORD, spaced)


def _length(words: Column) -> Column:
    """Return 0..1: half at 50 words, full from 500 to 50,000, falling beyond."""
    few = 0.5 * words / _FEW_WORDS
    some = 0.5 + 0.5 * np.log(np.maximum(words, 1) / _FEW_WORDS) / np.log(_ENOUGH_WORDS / _FEW_WORDS)
    return np.minimum(np.where(words < _FEW_WORDS, few, np.minimum(some, 1.0)), _MANY_WORDS / np.maximum(words, 1))


def _duplication(batch: pa.RecordBatch) -> Column:
    """Return the share of characters outside repeated lines.

    Where `filter_quality` ran, it is 1 - the worst signal of `gopher_repetition`, unknown without that profile.
    """
    if batch.schema.get_field_index(_REPETITION) >= 0:
        signals: Any = batch.column(_REPETITION)
        names = [part.name for part in signals.type if part.name.startswith("dup")]
        values: list[Any] = [pc.struct_field(signals, name).cast(pa.float64()) for name in names]
        worst = np.fmax.reduce([value.to_numpy(zero_copy_only=False) for value in values])
        return np.asarray(1.0 - np.clip(worst, 0.0, 1.0), np.float64)
    if any(name.startswith(_SIGNALS) for name in batch.schema.names):
        return np.full(batch.num_rows, np.nan)
    texts = batch.column("text").to_pylist()
    return np.array([1.0 - _repeated_share(text or "") for text in texts], np.float64)


def _redundancy(batch: pa.RecordBatch, languages: list[str | None]) -> Column:
    """Return the share of characters of words that are in no phrase which the text has twice; DCLM's definition."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals.ngrams import SMALLEST
    from pipeline_tasks.text.signals.repeated_ngrams import DCLM, ngram_shares

    repeated = ngram_shares(*views(batch.column("text")), DCLM)
    unspaced = np.isin(np.array(languages, dtype=object), UNSPACED)
    share = np.where(unspaced, repeated[:, _UNSPACED_PHRASE - SMALLEST], repeated[:, _PHRASE - SMALLEST])
    return np.asarray(1.0 - np.clip(share, 0.0, 1.0), np.float64)


def _perplexity(batch: pa.RecordBatch, languages: list[str | None], model_of: ModelOf) -> Column:
    """Return the calibrated gain of the words' order by the model of the row's language; NaN without one."""
    from pipeline_tasks.text.words.language_model import order_scores

    scores = np.full(batch.num_rows, np.nan)
    named = np.array([language or "" for language in languages], dtype=object)
    for code in sorted(set(named.tolist())):
        model = model_of(code)
        if model is not None:
            rows = np.flatnonzero(named == code)
            scores[rows] = order_scores(model, batch.column("text").take(pa.array(rows)))
    return scores


def _repeated_share(text: str) -> float:
    """Return the share of characters in second and later copies of a line."""
    lines = Counter(line for line in text.split("\n") if line)
    whole = sum(len(line) * count for line, count in lines.items())
    unique = sum(map(len, lines))
    return (whole - unique) / whole if whole else 0.0


def _density(counts: dict[str, Column], words: Column) -> Column:
    """Return the mean of three signs of prose: letters, little punctuation, function words (where known)."""
    visible = np.maximum(counts["visible"], 1.0)
    letters = np.minimum(counts["letters"] / visible / _PLAIN_LETTERS, 1.0)
    over = np.maximum(counts["punctuation"] / visible / _PLAIN_PUNCTUATION, 1.0)
    stops = np.minimum(counts["stops"] / np.maximum(words, 1.0) / _PLAIN_STOP_WORDS, 1.0)
    signs = np.stack([letters, 1.0 / over, stops])
    density = np.where(np.isnan(stops), (signs[0] + signs[1]) / 2, (signs[0] + signs[1] + np.nan_to_num(stops)) / 3)
    return np.where(counts["visible"] > 0, density, 0.0)


def _signs(texts: pa.Array, languages: list[str | None]) -> dict[str, Column]:
    """Return the counts of `prose_signs`; no function words (NaN) of a language without a list, English if unnamed."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.signals.prose_signs import NO_LIST, prose_signs

    ranks = {language: rank for rank, language in enumerate(_STOP_WORDS)}
    lists = np.array([ranks.get(language or "en", NO_LIST) for language in languages], np.int64)
    counts = prose_signs(*views(texts), lists, tuple(tuple(words.split()) for words in _STOP_WORDS.values()))
    return counts | {"stops": np.where(lists == NO_LIST, np.nan, counts["stops"])}
