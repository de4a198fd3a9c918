"""Removes documents that hold items of evaluation sets, or cuts those passages out, with the place of every hit."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import orjson
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Section, Shards, Stage, reject, replace_column

if TYPE_CHECKING:  # they load numba
    from pipeline_tasks.text.near.evaluation_index import Kind, Reference, Rules, Text
    from pipeline_tasks.text.near.matches import Bounds, Match

CONTAMINATED = "decontaminate:contaminated"
HITS_SHOWN = 20
"""Hits, and places of one hit, that evidence lists."""


@dataclass(frozen=True, slots=True)
class Params:
    """Which evaluation sets to look for, and what counts as finding one.

    `benchmarks` maps a name to a JSONL file (plain, .gz, .bz2, .zst), one item a line; what stands in a field of
    `questions`, `answers` or `passages` (a text or a list of texts) is looked for. Words are those of
    `text.shingles`: case, punctuation and spacing do not matter.

    `ngram` finds any `ngram` words in a row of a text (13, as GPT-3 and NeMo), and texts of at least `min_words`
    that are shorter as a whole, if they make up at least the share `overlap` of its distinct n-grams.
    `sampled` finds edited texts, in the manner of allenai/decon: n-grams of `gram` words with gaps of at most
    `misses` are one place, scored by the share of the text's n-grams there, rare ones counting more. From a score
    of `score` on it is a hit. A text of fewer than 20 n-grams scores in proportion less, but a question gains by an
    answer and a passage within 50 words of it; a passage by itself is no hit. `both` is either.

    Only documents with a reason to are looked at closely: those whose n-grams of `gram` words, sampled so that no
    `min_words` words in a row escape, occur in the benchmarks, two of them near each other unless a text is so short
    that it may have one only. All that `ngram` finds has such n-grams; an edited text without `min_words` words
    in a row left may be missed. With `sketch` these samples (about one byte per word) are stored per document, so
    that `refinery contamination --add` can tell what a later benchmark hits without reading texts.

    n-grams in more than `max_items` texts of a benchmark are its template and no evidence; 0 counts them all.
    `drop` sets the document aside; `cut` takes the matching words out and keeps the rest, under the same id.
    """

    benchmarks: Mapping[str, FilePath] = field(default_factory=dict)
    questions: tuple[str, ...] = ("question", "prompt", "problem", "text")
    answers: tuple[str, ...] = ("answer", "solution", "canonical_solution", "choices")
    passages: tuple[str, ...] = ("passage", "context")
    method: Literal["ngram", "sampled", "both"] = "both"
    ngram: int = 13
    min_words: int = 8
    overlap: float = 0.0
    gram: int = 5
    misses: int = 11
    score: float = 0.4
    max_items: int = 10
    action: Literal["drop", "cut"] = "drop"
    sketch: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.min_words <= self.ngram:
            message = f"decontaminate: min_words {self.min_words} must be between 1 and ngram {self.ngram}"
            raise RecipeError(message)
        if self.gram < 1 or self.misses < 0 or not 0 < self.score <= 1:
            told = f"gram {self.gram} must be 1 or more, misses {self.misses} 0 or more, score {self.score} in (0, 1]"
            message = f"decontaminate: {told}"
            raise RecipeError(message)
        for name in self.benchmarks:
            if "+" in name or not name:
                message = f"decontaminate: benchmark {name!r} needs another name: `contaminated_by` joins names with +"
                raise RecipeError(message)


def resources(params: Params) -> tuple[str, ...]:
    """Return the files whose content is part of the stage's identity."""
    return tuple(params.benchmarks.values())


def screen(docs: Batches, *, params: Params) -> Batches:
    """Sample every document in one compiled pass; only those that the samples point at are looked at again."""
    if not params.benchmarks:
        for batch in docs:
            yield _drop(batch, {})
        return
    reference, bounds = read_reference(params), bounds_of(params)
    for batch in docs:
        found = inspect(batch.column("text"), reference, bounds)
        yield _drop(batch, found) if params.action == "drop" else _cut(batch, found)


def inspect(texts: pa.Array, reference: "Reference", bounds: "Bounds") -> "dict[int, list[Match]]":
    """Return the matches in each text that has any, by row."""
    from pipeline_tasks.text.near.matches import find
    from pipeline_tasks.text.near.sketches import sample, sift

    rules = reference.rules
    rows = np.flatnonzero(sift(sample(texts, rules.sampled, rules.every), reference.sieve))
    found = find(texts.take(pa.array(rows)), reference, bounds) if len(rows) else {}
    return {int(rows[at]): matches for at, matches in found.items()}


def jot(docs: Batches, *, params: Params) -> Batches:
    """Yield one row per document that is kept, in the same order: `sketch`, its sampled n-grams in 32 bits each."""
    from pipeline_tasks.text.near.sketches import sample

    rules = rules_of(params)
    for batch in docs:
        sketches = sample(batch.column("text"), rules.sampled, rules.every)
        yield pa.RecordBatch.from_arrays([sketches], names=["sketch"])


# --- Verdicts -------------------------------------------------------------------------------------------------


def _drop(batch: pa.RecordBatch, found: "Mapping[int, list[Match]]") -> pa.RecordBatch:
    texts = batch.column("text")
    told = {row: evidence(texts[row].as_py(), matches) for row, matches in found.items()}
    reasons = _by_row(dict.fromkeys(found, CONTAMINATED), batch.num_rows)
    return reject(_named(batch, found, {}), reasons, _by_row(told, batch.num_rows))


def _cut(batch: pa.RecordBatch, found: "Mapping[int, list[Match]]") -> pa.RecordBatch:
    """Take the matching bytes out of the texts; what was taken is told in `cut_evidence`."""
    if not found:
        return _named(batch, {}, {})
    texts, chars = batch.column("text").to_pylist(), batch.column("chars").to_pylist()
    told = {row: evidence(texts[row], matches) for row, matches in found.items()}
    for row, matches in found.items():
        texts[row] = without(texts[row], matches)
        chars[row] = len(texts[row])
    shorter = replace_column(_named(batch, found, told), "text", pa.array(texts, pa.large_string()))
    return replace_column(shorter, "chars", pa.array(chars, pa.int64()))


def without(text: str, found: "Sequence[Match]") -> str:
    """Return the text without the words that match; words that a cut would join are kept apart by a space."""
    from pipeline_tasks.text.near.matches import merged

    raw, at, rest = text.encode(), 0, ""
    for start, end in merged(span for match in found for span in match.spans):
        rest, at = _joined(rest, raw[at:start].decode()), end
    return _joined(rest, raw[at:].decode())


def _joined(left: str, right: str) -> str:
    glued = left[-1:].isalnum() and right[:1].isalnum()
    return f"{left} {right}" if glued else left + right


def _named(batch: pa.RecordBatch, found: "Mapping[int, list[Match]]", told: Mapping[int, str]) -> pa.RecordBatch:
    names = {row: "+".join(sorted({one.part.benchmark for one in matches})) for row, matches in found.items()}
    marked = replace_column(batch, "contaminated_by", _by_row(names, batch.num_rows))
    return replace_column(marked, "cut_evidence", _by_row(told, batch.num_rows))


def _by_row(values: Mapping[int, str], rows: int) -> Any:  # noqa: ANN401 -- an Arrow array
    return pa.array([values.get(row) for row in range(rows)], pa.string()) if values else pa.nulls(rows, pa.string())


def evidence(text: str, found: "Sequence[Match]") -> str:
    """Return canonical JSON of the matches: spans in characters of the text, never the text itself.

    `passages` counts the texts of the benchmarks that were found; at most `HITS_SHOWN` hits and places are listed.
    """
    raw = text.encode()
    hits = [
        {
            "benchmark": match.part.benchmark,
            "item": match.part.item,
            "part": match.part.part,
            "field": match.part.field,
            "method": match.method,
            "score": round(match.score, 6),
            "spans": [[len(raw[:start].decode()), len(raw[:end].decode())] for start, end in match.spans[:HITS_SHOWN]],
        }
        for match in found[:HITS_SHOWN]
    ]
    passages = len({match.part for match in found})
    return json.dumps({"hits": hits, "passages": passages}, sort_keys=True, separators=(",", ":"))


# --- The reference --------------------------------------------------------------------------------------------


def rules_of(params: Params) -> "Rules":
    """Return how texts are known."""
    from pipeline_tasks.text.near.evaluation_index import Rules

    return Rules(params.ngram, params.min_words, params.gram, params.misses, params.max_items)


def bounds_of(params: Params) -> "Bounds":
    """Return what counts as found."""
    from pipeline_tasks.text.near.matches import Bounds, Method

    methods = get_args(Method) if params.method == "both" else (params.method,)
    return Bounds(methods, params.overlap, params.score)


def read_reference(params: Params) -> "Reference":
    """Read and index the evaluation sets; raises RecipeError, naming file and line, when one cannot be read."""
    from pipeline_tasks.text.near.evaluation_index import index

    return index(read_texts(params), rules_of(params))


def read_texts(params: Params) -> "Iterator[Text]":
    """Yield every text of the evaluation sets that is looked for."""
    from pipeline_tasks.text.near.evaluation_index import Text

    fields: dict[str, Kind] = dict.fromkeys(params.passages, "passage")
    fields.update(dict.fromkeys(params.answers, "answer"))
    fields.update(dict.fromkeys(params.questions, "question"))
    for benchmark, path in sorted(params.benchmarks.items()):
        found = 0
        for item, line in _items(path):
            for name, part in fields.items():
                value = line.get(name)
                for text in value if isinstance(value, list) else [value]:
                    if isinstance(text, str):
                        found += 1
                        yield Text(benchmark, item, part, name, text)
        if not found:
            message = f"decontaminate: {path} has none of the fields {list(fields)}; name its own in the recipe"
            raise RecipeError(message)


def _items(path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line number from 0, object) of a JSONL file."""
    with pa.input_stream(path, compression="detect") as stream:
        try:
            lines = stream.read().splitlines()
        except OSError as error:
            message = f"decontaminate: {path} cannot be decompressed ({error}); bring it whole, or name a plain file"
            raise RecipeError(message) from error
    for number, line in enumerate(lines):
        try:
            item = orjson.loads(line) if line.strip() else {}
        except orjson.JSONDecodeError as error:
            message = f"decontaminate: {path} line {number + 1} is not JSON ({error}); benchmarks are one object a line"
            raise RecipeError(message) from error
        if isinstance(item, dict):
            yield number, item


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Screen shard by shard, then sketch what is kept; every task of the first indexes the evaluation sets once."""
    kept = on.map(partial(screen, params=params), shards)
    if params.sketch:
        on.save_history("sketches", on.map(partial(jot, params=params), kept))
    return kept


SKETCHES = pa.schema([pa.field("sketch", pa.list_(pa.uint32()))])
"""One row per document that is kept, in the same order: its sampled n-grams."""

STAGE = Stage(
    name="decontaminate",
    run=run,
    params=Params,
    resources=resources,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field("contaminated_by", pa.string()), pa.field("cut_evidence", pa.string())]),
    version=2,
    splits=True,
    history={"sketches": Section(SKETCHES)},
    reads_history=False,
    profiled=("contaminated_by",),
    reasons=(CONTAMINATED,),
    title="evaluation sets out",
)
