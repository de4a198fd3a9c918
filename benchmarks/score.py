"""Measures what the score of `score_quality` as shipped tells apart, by language, on documents that no model has seen.

    refinery run ROOT --no-build --recipe web --input .../dev-2026-45    # and the same for dev-2026-46
    python benchmarks/score.py ROOT [--stage filter_language] [--least 10] [--json]

Documents are those that `--stage` kept in ROOT, with the language that it has for them. `auc` is the area under the ROC
curve: the share of pairs (document, nonsense) in which the document scores higher, .5 if the score does not see it.
Nonsense is made of the same documents: their words in disorder (letters in Chinese and Japanese), the words of each
line in disorder, their sentences in disorder, and the sentences of two documents in turns. `order` is the AUC of the
component `perplexity` alone for words in disorder. `kept` and `words rejected` are the shares of documents and of their
words in disorder that the bounds of the stage reject.
"""

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.stages.score_quality import Params, score
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.text.words.languages import UNSPACED

COLUMNS = ("id", "text", "chars", "language", "language_score")

SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")  # noqa: RUF001

Floats = npt.NDArray[np.float64]
Make = Callable[[Sequence[str], str, random.Random], list[str]]


def documents(root: Path, stage: str) -> pa.Table:
    """Return the documents that a stage kept in any snapshot of a root, each text once."""
    batches = []
    for path in sorted(root.glob(f"{stage}/*/manifest.json")):
        manifest = read_manifest(str(root), str(path.relative_to(root)))
        batches += [batch.select(COLUMNS) for batch in read_shards(str(root), manifest.shards)]
    table = pa.Table.from_batches(batches)
    first = {identity: row for row, identity in reversed(list(enumerate(table["id"].to_pylist())))}
    return table.take(sorted(first.values()))


def words(texts: Sequence[str], language: str, draws: random.Random) -> list[str]:
    """Return texts with their words, or letters, in disorder."""
    return [disordered(text, language, draws) for text in texts]


def words_of_lines(texts: Sequence[str], language: str, draws: random.Random) -> list[str]:
    """Return texts with the words of each line in disorder."""
    return ["\n".join(disordered(line, language, draws) for line in text.split("\n")) for text in texts]


def disordered(text: str, language: str, draws: random.Random) -> str:
    """Return the words of a text in disorder."""
    parts = list(text) if language in UNSPACED else text.split()
    return ("" if language in UNSPACED else " ").join(draws.sample(parts, len(parts)))


def sentences(texts: Sequence[str], _: str, draws: random.Random) -> list[str]:
    """Return texts with their sentences in disorder."""
    parts = [cut(text) for text in texts]
    return ["\n".join(draws.sample(part, len(part))) for part in parts]


def interleaved(texts: Sequence[str], _: str, draws: random.Random) -> list[str]:
    """Return each text with another one's sentences between its own, as long as the shorter one lasts."""
    others = draws.sample(list(texts), len(texts))
    pairs = [zip(cut(one), cut(other), strict=False) for one, other in zip(texts, others, strict=True)]
    return ["\n".join(part for pair in both for part in pair) for both in pairs]


def cut(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    return [part for part in SENTENCE.split(text) if part.strip()]


KINDS: dict[str, Make] = {
    "words": words,
    "words of lines": words_of_lines,
    "sentences": sentences,
    "interleaved": interleaved,
}


def scored(texts: Sequence[str], language: str, confidence: Sequence[float]) -> pa.RecordBatch:
    """Return the rows of the stage with its default params."""
    batch = pa.record_batch(
        {
            "text": pa.array(texts, pa.large_string()),
            "chars": pa.array([len(text) for text in texts], pa.int64()),
            "language": pa.array([language] * len(texts), pa.string()),
            "language_score": pa.array(confidence, pa.float64()),
        }
    )
    (rows,) = score(iter([batch]), params=Params())
    return rows


def area(documents: pa.Array, nonsense: pa.Array) -> float:
    """Return the area under the ROC curve; NaN where nothing is known."""
    texts, rubble = (known(column) for column in (documents, nonsense))
    if not len(texts) or not len(rubble):
        return float("nan")
    differences = texts[:, None] - rubble[None, :]
    return float(np.mean(differences > 0) + np.mean(differences == 0) / 2)


def known(column: pa.Array) -> Floats:
    """Return the values that are not null."""
    values: Floats = column.drop_null().to_numpy(zero_copy_only=False)
    return values


def rejected(rows: pa.RecordBatch) -> float:
    """Return the share of rejected rows."""
    kept: float = rows.column("reason").null_count / rows.num_rows
    return 1 - kept


def measured(table: pa.Table, language: str) -> dict[str, float]:
    """Return the measures of one language."""
    texts, confidence = table["text"].to_pylist(), table["language_score"].to_pylist()
    rows = scored(texts, language, confidence)
    draws = random.Random(5)  # noqa: S311 -- the same nonsense in every run
    nonsense = {kind: scored(make(texts, language, draws), language, confidence) for kind, make in KINDS.items()}
    areas = {f"auc {kind}": area(rows.column("score"), made.column("score")) for kind, made in nonsense.items()}
    order = area(rows.column("perplexity"), nonsense["words"].column("perplexity"))
    shares = {"rejected": rejected(rows), "words rejected": rejected(nonsense["words"])}
    return {"documents": len(texts), **areas, "order": order, **shares}


def shown(value: float) -> str:
    """Return a count as it is, and a share by three digits; none where it is unknown."""
    return str(value) if isinstance(value, int) else "" if np.isnan(value) else f"{value:.3f}"


def main() -> None:
    """Print a table by language, the largest first; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--stage", default="filter_language")
    parser.add_argument("--least", type=int, default=1, help="documents that a language must have")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = documents(options.root, options.stage)
    rows: dict[str, list[int]] = defaultdict(list)
    for row, language in enumerate(table["language"].to_pylist()):
        rows[language].append(row)
    facts = {}
    for language in sorted(rows, key=lambda code: (-len(rows[code]), code)):
        if len(rows[language]) >= options.least:
            facts[language] = measured(table.take(rows[language]), language)
    names = list(next(iter(facts.values())))
    print("| |", " | ".join(names), "|\n|---|" + "---:|" * len(names))
    for language, values in facts.items():
        print(f"| {language} |", " | ".join(shown(value) for value in values.values()), "|")
    if options.json:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
