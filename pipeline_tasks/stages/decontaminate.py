"""Removes documents that hold items of evaluation sets, or cuts those passages out, with the place of every hit."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Shards, Stage, replace_column, set_aside

CONTAMINATED = "decontaminate:contaminated"
_HITS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Params:
    """Which evaluation sets to look for, and what counts as finding one.

    `benchmarks` maps a name to a JSONL file (plain, .gz, .bz2, .zst); each of `fields` that an item has is one
    passage. Words are those of `text.shingles`: case, punctuation and spacing do not matter. A passage of `ngram`
    words or more is known by all its n-grams (13, as GPT-3 and NeMo), a shorter one of at least `min_words` by the
    whole of itself, a still shorter one not at all. A document is contaminated by a passage when it holds more
    than none, and at least the share `overlap`, of the passage's distinct n-grams. n-grams that occur in more than
    `max_items` passages are the benchmark's template and no evidence; 0 counts them all.
    `drop` sets the document aside; `cut` takes the matching words out and keeps the rest, under the same id.
    """

    benchmarks: Mapping[str, FilePath] = field(default_factory=dict)
    fields: tuple[str, ...] = (
        "question",
        "prompt",
        "text",
        "passage",
        "context",
        "problem",
        "answer",
        "solution",
        "canonical_solution",
    )
    ngram: int = 13
    min_words: int = 8
    overlap: float = 0.0
    max_items: int = 10
    action: Literal["drop", "cut"] = "drop"


def resources(params: Params) -> tuple[str, ...]:
    """Return the files whose content is part of the stage's identity."""
    return tuple(params.benchmarks.values())


class Passage(NamedTuple):
    """One field of one item, and how many distinct n-grams it is known by."""

    benchmark: str
    item: int
    field: str
    size: int


class Reference(NamedTuple):
    """All passages, the passages that each n-gram belongs to, and the table to probe."""

    passages: list[Passage]
    owners: dict[int, list[int]]
    table: Any


class Match(NamedTuple):
    """A passage found in a document: the share of its n-grams, and the document's bytes that match, merged."""

    passage: Passage
    share: float
    spans: list[tuple[int, int]]


def screen(docs: Batches, *, params: Params) -> Batches:
    """Probe every n-gram of every document in one compiled pass; only documents with hits are looked at again."""
    from pipeline_tasks.text.overlap import probe

    reference = read_reference(params)
    for batch in docs:
        hits = probe(batch.column("text"), reference.table)
        bounds = [*np.flatnonzero(np.diff(hits.docs, prepend=-1)).tolist(), len(hits.docs)]
        matches: dict[int, list[Match]] = {}
        for begin, end in pairwise(bounds):
            spans = zip(hits.starts[begin:end].tolist(), hits.ends[begin:end].tolist(), strict=True)
            found = _matches(hits.hashes[begin:end].tolist(), list(spans), reference, params.overlap)
            if found:
                matches[int(hits.docs[begin])] = found
        yield _drop(batch, matches) if params.action == "drop" else _cut(batch, matches)


def _matches(hashes: list[int], spans: list[tuple[int, int]], reference: Reference, overlap: float) -> list[Match]:
    """Return the passages that a document's hits amount to, in the order of the reference."""
    held: dict[int, set[int]] = defaultdict(set)
    places: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for one, span in zip(hashes, spans, strict=True):
        for owner in reference.owners[one]:
            held[owner].add(one)
            places[owner].append(span)
    passages = reference.passages
    shares = {owner: len(one) / passages[owner].size for owner, one in sorted(held.items())}
    return [
        Match(passages[owner], share, _merged(places[owner])) for owner, share in shares.items() if share >= overlap
    ]


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, with those that touch or overlap made one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _drop(batch: pa.RecordBatch, matches: Mapping[int, list[Match]]) -> pa.RecordBatch:
    texts = batch.column("text")
    told = [_evidence(texts[row].as_py(), matches[row]) if row in matches else None for row in range(batch.num_rows)]
    reasons = pa.array([CONTAMINATED if one else None for one in told], pa.string())
    return set_aside(_named(batch, matches, {}), reasons, pa.array(told, pa.string()))


def _cut(batch: pa.RecordBatch, matches: Mapping[int, list[Match]]) -> pa.RecordBatch:
    """Take the matching bytes out of the texts; what was taken is told in `cut_evidence`."""
    texts = batch.column("text").to_pylist()
    told = {row: _evidence(texts[row], found) for row, found in matches.items()}
    for row, found in matches.items():
        raw, at, rest = texts[row].encode(), 0, b""
        for start, end in _merged(span for match in found for span in match.spans):
            rest, at = rest + raw[at:start], end
        texts[row] = (rest + raw[at:]).decode()
    named = _named(batch, matches, told)
    shorter = replace_column(named, "text", pa.array(texts, pa.large_string()))
    lengths = pa.array([None if text is None else len(text) for text in texts], pa.int64())
    return replace_column(shorter, "chars", lengths)


def _named(batch: pa.RecordBatch, matches: Mapping[int, list[Match]], told: Mapping[int, str]) -> pa.RecordBatch:
    names = {row: "+".join(sorted({match.passage.benchmark for match in found})) for row, found in matches.items()}
    marked = replace_column(batch, "contaminated_by", _by_row(names, batch.num_rows))
    return replace_column(marked, "cut_evidence", _by_row(told, batch.num_rows))


def _by_row(values: Mapping[int, str], rows: int) -> Any:  # noqa: ANN401 -- an Arrow array
    return pa.array([values.get(row) for row in range(rows)], pa.string())


def _evidence(text: str, found: list[Match]) -> str:
    """Return canonical JSON of the matches: spans in characters of the text, never the text itself."""
    raw = text.encode()
    hits = [
        {
            "benchmark": match.passage.benchmark,
            "item": match.passage.item,
            "field": match.passage.field,
            "share": round(match.share, 6),
            "spans": [[len(raw[:start].decode()), len(raw[:end].decode())] for start, end in match.spans[:_HITS_SHOWN]],
        }
        for match in found[:_HITS_SHOWN]
    ]
    return json.dumps({"hits": hits, "passages": len(found)}, sort_keys=True, separators=(",", ":"))


# --- The reference --------------------------------------------------------------------------------------------


def read_reference(params: Params) -> Reference:
    """Read the evaluation sets; raises RecipeError, naming file and line, when one cannot be read."""
    from pipeline_tasks.text.overlap import table_of, text_grams

    known: list[tuple[Passage, set[int], int]] = []
    for benchmark, path in sorted(params.benchmarks.items()):
        for item, name, text in _texts(path, params.fields):
            found, words = text_grams(text, params.ngram)
            length = params.ngram
            if params.min_words <= words < params.ngram:
                found, length = text_grams(text, words)[0], words
            known.append((Passage(benchmark, item, name, 0), set(found.tolist()) - {0}, length))
    often = Counter(one for _, hashes, _ in known for one in hashes)
    most = params.max_items or len(known)
    known = [(passage, {one for one in hashes if often[one] <= most}, length) for passage, hashes, length in known]
    owners: dict[int, list[int]] = defaultdict(list)
    passages = [passage._replace(size=len(hashes)) for passage, hashes, _ in known]
    for owner, (_, hashes, _) in enumerate(known):
        for one in hashes:
            owners[one].append(owner)
    lengths = [length for _, hashes, length in known if hashes]
    return Reference(passages, dict(owners), table_of(np.array(sorted(owners), np.uint64), lengths))


def _texts(path: str, fields: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (line number from 0, field, text) of a JSONL file."""
    with pa.input_stream(path, compression="detect") as stream:
        lines = stream.read().splitlines()
    for number, line in enumerate(lines):
        try:
            item = orjson.loads(line) if line.strip() else {}
        except orjson.JSONDecodeError as error:
            message = f"decontaminate: {path} line {number + 1} is not JSON ({error}); benchmarks are one object a line"
            raise RecipeError(message) from error
        for name in fields:
            if isinstance(item, dict) and isinstance(item.get(name), str):
                yield number, name, item[name]


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Screen shard by shard; every task reads the evaluation sets once (MMLU, GSM8K and HumanEval: 1 second)."""
    if not 0 < params.min_words <= params.ngram:
        message = f"decontaminate: min_words {params.min_words} must be between 1 and ngram {params.ngram}"
        raise RecipeError(message)
    return on.map(partial(screen, params=params), shards)


STAGE = Stage(
    name="decontaminate",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field("contaminated_by", pa.string()), pa.field("cut_evidence", pa.string())]),
    version=1,
    splits=True,
    measures=("contaminated_by",),
    fires=(CONTAMINATED,),
    title="evaluation sets out",
)
