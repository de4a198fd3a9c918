"""Reject documents with items of evaluation sets, or cut those passages out, and record the place of every hit."""

import io
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
import orjson
import pyarrow as pa

from pipeline_tasks.constraints import Count, Range, Ratio
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Bound, Canceled, Requests, UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import DOCUMENT, SEAM_COLUMNS, SEAMS
from pipeline_tasks.stage import (
    Batches,
    Engine,
    FilePath,
    Idle,
    Layer,
    Section,
    Shards,
    Stage,
    always,
    reject,
    replace_column,
)

if TYPE_CHECKING:  # they load numba
    from pipeline_tasks.text.near.evaluation_index import Kind, Reference, Rules, Text
    from pipeline_tasks.text.near.matches import Bounds, Match

CONTAMINATED = "decontaminate:contaminated"
MOST_LINE = 1 << 24
"""Bytes of an item of a benchmark, with its passages."""

HITS_SHOWN = 20
"""Hits, and places of one hit, that evidence lists."""


@dataclass(frozen=True, slots=True)
class Params:
    """Which evaluation sets are searched, and what counts as a hit.

    `benchmarks` maps a name to a JSONL file (plain, .gz, .bz2, .zst) with one item per line. The fields `questions`,
    `answers` and `passages` of an item (a text or a list of texts) are searched in the documents; `question.stem` names
    a field within another. A line without any text in them is refused. Words are those of `text.near.shingles`: case,
    punctuation, spacing and Unicode's forms of one character do not matter.

    `ngram` finds any `ngram` consecutive words of a text (13, as GPT-3 and NeMo). A shorter text of at least
    `min_words` is found as a whole. The hits must cover at least the share `overlap` of the text's distinct n-grams.
    `sampled` finds edited texts, as allenai/decon does: n-grams of `gram` words with gaps of at most `misses` form one
    place. Its score is the share of the text's n-grams there, weighted by rarity. A place with a score of at least
    `score` is a hit. A text of fewer than 20 n-grams scores in proportion less. A question gains by an answer or a
    passage within 50 words of it. `both` is either. A passage alone is no hit, unless it is all that its item has.

    Only candidate documents are searched closely. A document is a candidate when sampled n-grams of `gram` words occur
    in the benchmarks, two of them near each other (one is enough where a text is too short for two). The samples miss
    no run of `min_words` words, so all that `ngram` finds is in candidates. An edited text without a run of `min_words`
    words may be missed. With `sketch` these samples (about one byte per word) are saved per document, so that
    `refinery look contamination --add` can list what a later benchmark hits without reading texts.

    n-grams in more than `max_items` texts of a benchmark are its template and no evidence; 0 counts them all. Passages
    that dozens of items share (reading comprehension whose `input` has the passage) are evidence, the instruction that
    hundreds begin with is none.
    `drop` rejects the document. `cut` removes the matching words and keeps the rest, under the same id.
    """

    benchmarks: Mapping[str, FilePath] = field(default_factory=dict)
    questions: tuple[str, ...] = ("question", "prompt", "problem", "text", "input")
    answers: tuple[str, ...] = ("answer", "solution", "canonical_solution", "choices", "target")
    passages: tuple[str, ...] = ("passage", "context")
    method: Literal["ngram", "sampled", "both"] = "both"
    ngram: Annotated[int, Range(1, 1000)] = 13
    min_words: Annotated[int, Range(1, 1000)] = 8
    overlap: Ratio = 0.0
    gram: Annotated[int, Range(1, 100)] = 5
    misses: Annotated[int, Range(0, 1000)] = 11
    score: Annotated[float, Range(0, 1, above=True)] = 0.4
    max_items: Count = 100
    action: Literal["drop", "cut"] = "drop"
    sketch: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.min_words <= self.ngram:
            message = f"decontaminate: min_words {self.min_words} must be between 1 and ngram {self.ngram}"
            raise RecipeError(message)
        if self.gram < 1 or self.misses < 0 or not 0 < self.score <= 1:
            bounds = f"gram {self.gram} must be 1 or more, misses {self.misses} 0 or more, score {self.score} in (0, 1]"
            message = f"decontaminate: {bounds}"
            raise RecipeError(message)
        for name in self.benchmarks:
            if "+" in name or not name:
                message = f"decontaminate: benchmark {name!r} needs another name: `contaminated_by` joins names with +"
                raise RecipeError(message)


def resources(params: Params) -> tuple[str, ...]:
    """Return the files whose content is part of the stage's identity."""
    return tuple(params.benchmarks.values())


def check_files(params: Params) -> None:
    """Raise RecipeError unless every line of every benchmark can be searched for."""
    for _ in read_texts(params):
        pass


def idle(params: Params, _: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return that no evaluation set is searched, if none is named."""
    if params.benchmarks:
        return ()
    return (
        Idle(
            "no evaluation sets", "name files in `benchmarks`; `refinery setup fetch evaluation-sets` gets public ones"
        ),
    )


def screen(docs: Batches, *, params: Params) -> Batches:
    """Sample every document in one compiled pass; search only the candidates closely."""
    if not params.benchmarks:
        for batch in docs:
            yield _drop(batch, {})
        return
    reference, bounds = read_reference(params), bounds_of(params)
    for batch in docs:
        matches = inspect(batch.column("text"), reference, bounds)
        yield _drop(batch, matches) if params.action == "drop" else _cut(batch, matches)


def inspect(texts: pa.Array, reference: "Reference", bounds: "Bounds") -> "dict[int, list[Match]]":
    """Return the matches in each text that has any, by row."""
    from pipeline_tasks.text.near.matches import find
    from pipeline_tasks.text.near.sketches import sample, sift

    rules = reference.rules
    rows = np.flatnonzero(sift(sample(texts, rules.sampled, rules.every), reference.sieve))
    matches = find(texts.take(pa.array(rows)), reference, bounds) if len(rows) else {}
    return {int(rows[at]): hits for at, hits in matches.items()}


def sketch(docs: Batches, *, params: Params) -> Batches:
    """Yield one row per kept document, in the same order: `sketch`, its sampled n-grams in 32 bits each."""
    from pipeline_tasks.text.near.sketches import sample

    rules = rules_of(params)
    for batch in docs:
        sketches = sample(batch.column("text"), rules.sampled, rules.every)
        yield pa.RecordBatch.from_arrays([sketches], names=["sketch"])


# --- Verdicts -------------------------------------------------------------------------------------------------


def _drop(batch: pa.RecordBatch, matches: "Mapping[int, list[Match]]") -> pa.RecordBatch:
    texts = batch.column("text")
    proofs = {row: evidence(texts[row].as_py(), hits) for row, hits in matches.items()}
    reasons = _by_row(dict.fromkeys(matches, CONTAMINATED), batch.num_rows)
    return reject(_named(batch, matches, {}), reasons, _by_row(proofs, batch.num_rows))


def _cut(batch: pa.RecordBatch, matches: "Mapping[int, list[Match]]") -> pa.RecordBatch:
    """Remove the matching bytes from the texts; `cut_evidence` has their places."""
    from pipeline_tasks.text.edits.seams import with_cut

    texts = {row: batch.column("text")[row].as_py() for row in sorted(matches)}
    proofs = {row: evidence(text, matches[row]) for row, text in texts.items()}
    left = pa.array([without(text, matches[row]) for row, text in texts.items()], pa.large_string())
    touched = pa.array([row in matches for row in range(batch.num_rows)], pa.bool_())
    return with_cut(_named(batch, matches, proofs), left, touched)


def without(text: str, matches: "Sequence[Match]") -> str:
    """Return the text without the words that match; a space separates words that a cut would join."""
    from pipeline_tasks.text.near.matches import merged

    raw, at = text.encode(), 0
    rest: list[str] = []
    for start, end in (*merged(span for match in matches for span in match.spans), (len(raw), len(raw))):
        piece, at = raw[at:start].decode(), end
        if piece:
            needs_space = bool(rest) and rest[-1][-1].isalnum() and piece[0].isalnum()
            rest.append(f" {piece}" if needs_space else piece)
    return "".join(rest)


def _named(batch: pa.RecordBatch, matches: "Mapping[int, list[Match]]", cuts: Mapping[int, str]) -> pa.RecordBatch:
    names = {row: "+".join(sorted({hit.part.benchmark for hit in hits})) for row, hits in matches.items()}
    marked = replace_column(batch, "contaminated_by", _by_row(names, batch.num_rows))
    return replace_column(marked, "cut_evidence", _by_row(cuts, batch.num_rows))


def _by_row(values: Mapping[int, str], rows: int) -> pa.Array:
    return pa.array([values.get(row) for row in range(rows)], pa.string()) if values else pa.nulls(rows, pa.string())


def evidence(text: str, matches: "Sequence[Match]") -> str:
    """Return canonical JSON of the matches: spans in characters of the text, never the text itself.

    `passages` counts the benchmark texts with a hit; at most `HITS_SHOWN` hits and places are listed.
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
        for match in matches[:HITS_SHOWN]
    ]
    passages = len({match.part for match in matches})
    return json.dumps({"hits": hits, "passages": passages}, sort_keys=True, separators=(",", ":"))


# --- The reference --------------------------------------------------------------------------------------------


def rules_of(params: Params) -> "Rules":
    """Return how texts are cut into n-grams and sampled."""
    from pipeline_tasks.text.near.evaluation_index import Rules

    return Rules(params.ngram, params.min_words, params.gram, params.misses, params.max_items)


def bounds_of(params: Params) -> "Bounds":
    """Return which methods count, and from which share and score on."""
    from pipeline_tasks.text.near.matches import Bounds, Method

    methods = get_args(Method) if params.method == "both" else (params.method,)
    return Bounds(methods, params.overlap, params.score)


def read_reference(params: Params) -> "Reference":
    """Read and index the evaluation sets; raises RecipeError, naming file and line, when one cannot be read."""
    from pipeline_tasks.text.near.evaluation_index import index

    return index(read_texts(params), rules_of(params))


def read_texts(params: Params) -> "Iterator[Text]":
    """Yield every text of the evaluation sets that is searched."""
    from pipeline_tasks.text.near.evaluation_index import Text

    fields: dict[str, Kind] = dict.fromkeys(params.passages, "passage")
    fields.update(dict.fromkeys(params.answers, "answer"))
    fields.update(dict.fromkeys(params.questions, "question"))
    for benchmark, path in sorted(params.benchmarks.items()):
        item = -1
        for item, line in _items(path):
            texts = [(name, text) for name in fields for text in _texts(line, name)]
            if not texts:
                message = (
                    f"decontaminate: {path} line {item + 1} has no text in any of the fields {list(fields)}: nothing "
                    "of it would be found; name its own in the recipe (`question.stem` for a field within another), or "
                    "remove the line"
                )
                raise RecipeError(message)
            is_passage = all(
                fields[name] == "passage" for name, _ in texts
            )  # it has nothing that may be leaked but that
            for name, text in texts:
                part = "question" if is_passage else fields[name]
                yield Text(benchmark, item, part, name, unicodedata.normalize("NFC", text))
        if item < 0:
            message = f"decontaminate: {path} has no item, so that nothing of it would be found; correct it"
            raise RecipeError(message)


def _texts(item: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts of a field, or of a field within another that a name with dots is the path of."""
    value: Any = item.get(name)
    if value is None and "." in name:
        top, _, rest = name.partition(".")
        inner = item.get(top)
        each = inner if isinstance(inner, list) else [inner]
        return [text for part in each if isinstance(part, dict) for text in _texts(part, rest)]
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]


def _items(path: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line number from 0, object) of a JSONL file."""
    from pipeline_tasks.text.base.unpacking import read_unpacked

    for number, line in enumerate(io.BytesIO(read_unpacked(path, "decontaminate: the benchmark"))):
        if line.strip():
            yield number, _item(line, f"decontaminate: {path} line {number + 1}")


def _item(line: bytes, where: str) -> Mapping[str, Any]:
    """Return the object of a line; RecipeError, which begins with `where`, if it is none."""
    way_out = "benchmarks are one object a line"
    if len(line) > MOST_LINE:
        message = f"{where} has more than {MOST_LINE:,} bytes; {way_out}"
        raise RecipeError(message)
    try:
        item = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        message = f"{where} is not JSON ({error}); {way_out}"
        raise RecipeError(message) from error
    if not isinstance(item, dict):
        message = f"{where} is JSON, but no object; {way_out}"
        raise RecipeError(message)
    return item


def writes_for(params: Params) -> pa.Schema:
    """Return the columns of a cut."""
    return SEAM_COLUMNS if params.benchmarks and params.action == "cut" else pa.schema([])


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Screen shard by shard, then sketch the kept documents; every screening task indexes the evaluation sets once."""
    stores = ("contaminated_by", "cut_evidence", *writes_for(params).names)
    layer = Layer(reads=("text",), stores=stores, changes=("text", "chars"))
    kept = on.map(partial(screen, params=params), shards, layer=layer)
    if params.sketch:
        on.save_history("sketches", on.map(partial(sketch, params=params), kept))
    return kept


SKETCHES = pa.schema([pa.field("sketch", pa.list_(pa.uint32()))])
"""One row per kept document, in the same order: its sampled n-grams."""


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    if not params.benchmarks:
        return  # `idle` says so
    if params.method == "ngram":
        for name in ("score", "misses"):
            yield Canceled(name, "`method: ngram` finds no edited texts", "write `method: both`")
    if params.method == "sampled":
        for name in ("ngram", "overlap"):
            yield Canceled(name, "`method: sampled` counts no runs of words", "write `method: both`")


def highest_scores(rejected: pa.RecordBatch) -> pa.Array:
    """Return the highest score of each row's hits; null where a run of equal words is a hit whatever its score."""
    return pa.array([_highest(evidence) for evidence in rejected.column("evidence").to_pylist()], pa.float64())


def _highest(evidence: str | None) -> float | None:
    hits = json.loads(evidence).get("hits", []) if evidence else []
    scores = [float(hit["score"]) if hit.get("method") == "sampled" else None for hit in hits]
    known = [score for score in scores if score is not None]
    return max(known) if known and len(known) == len(scores) else None


STAGE = Stage(
    name="decontaminate",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    idle=idle,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field("contaminated_by", pa.string()), pa.field("cut_evidence", pa.string())]),
    writes_for=writes_for,
    version=5,
    splits=True,
    libraries={UNICODE: always},
    history={"sketches": Section(SKETCHES)},
    reads_history=False,
    profiled=("contaminated_by", SEAMS),
    reasons=(CONTAMINATED,),
    title="evaluation sets out",
    canceled=canceled,
    bounds=lambda params: (
        Bound("score", params.score, CONTAMINATED, measured=highest_scores, rejects="from", side="higher"),
    ),
    cost=UnitCost(0.23, 1.00, 0.34, 4, requests=Requests(26, 6), rows=1.0),
    changes=("text", "chars"),
    derived_from=("text",),
)
