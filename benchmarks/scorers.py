"""Measures scorers on sites that none was trained on: what they tell from nonsense, by language, and the source alone.

    refinery run ROOT --no-build --recipe web --input .../dev-2026-45    # and the same for dev-2026-46
    python benchmarks/scorers.py ROOT@web:dev-2026-45 ROOT@web:dev-2026-46 [--embeddings FOLDER] [--json]

Half of the texts are held out with their whole sites (`train-quality-model` holds out a fifth). Compared are the score
of the recipe `web`; fastText and, with `--embeddings`, a linear head over static embeddings, both trained on the other
half against nonsense that is made of it; and fastText trained on news articles (../shared/data/gold) against the other
half, as published models are trained on a reference against a crawl.

Rows are those of `refinery model check`: `auc` of each kind of nonsense, with an interval in which it is with 98 %,
`source_auc` and `source_variance`; these two are of all texts, for half of them has too few sources. `graded` is the
rank correlation, within each language, with the share of the words of each text that are in disorder: 0, a quarter, a
half, three quarters or all of them, by its id.
"""

import argparse
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from refinery_models.measures import joined_correlation, rank_correlation, source_area, variance_between
from refinery_models.planted import KINDS, Pool, Text, draws
from refinery_models.scorers import training
from refinery_models.scorers.check import check
from refinery_models.scorers.judges import Judge, of_classifier, of_recipe
from refinery_models.scorers.texts import read_texts
from refinery_models.training import train_head

from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.stage import FilePath
from pipeline_tasks.text.base.sampling import uniform_draws
from pipeline_tasks.text.words.fasttext_training import Size, train

GOLD = Path(__file__).parents[2] / "shared" / "data" / "gold"

LANGUAGES = 5
"""Languages that are shown, those with the most texts."""

GRADES = 5
NAMES = ("__label__low", "__label__high")


def main() -> None:
    """Print a table of scorers; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", help="as `refinery model check --sample` takes them")
    parser.add_argument("--embeddings", default="", help="folder of static embeddings")
    parser.add_argument("--most", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    texts, _ = read_texts(options.texts, options.most)
    held = held_out(texts)
    trained_on, sample = texts.filter(pa.array(~held)), largest(texts.filter(pa.array(held)))
    print(f"{len(trained_on):,} texts to train on, {len(sample):,} of other sites", flush=True)
    facts = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, judge in judges(trained_on, options.embeddings, Path(folder)):
            facts[name] = measured(judge, sample, texts)
            print(name, json.dumps(facts[name]["facts"]), flush=True)
    for line in table(facts):
        print(line)
    if options.json:
        print(json.dumps(facts))


def held_out(texts: pa.Table) -> Any:  # noqa: ANN401 -- an array of bools
    """Return which texts are held out, half of them."""
    return training.held_out_of(texts, np.ones(len(texts), np.bool_), 2)


def largest(texts: pa.Table) -> pa.Table:
    """Return the texts in the languages that have the most."""
    counts = Counter(texts.column("language").to_pylist())
    kept = {code for code, _ in counts.most_common(LANGUAGES)}
    return texts.filter(pa.array([code in kept for code in texts.column("language").to_pylist()]))


def judges(texts: pa.Table, embeddings: str, folder: Path) -> Iterable[tuple[str, Judge]]:
    """Yield scorers by name."""
    yield "recipe web", of_recipe("web")
    nonsense = training.nonsense_of(texts)
    both = pa.concat_tables([texts, nonsense])
    targets = np.repeat([1, 0], [len(texts), len(nonsense)])
    yield "fastText, nonsense", fasttext(both, targets, folder / "nonsense.bin")
    if embeddings:
        train_head(Path(embeddings), both.column("text").to_pylist(), targets > 0, folder / "head")
        yield "embeddings, nonsense", of_classifier(Classifier(FilePath(str(folder / "head")), label="high"))
    good = articles()
    if good:
        reference = pa.concat_arrays([pa.array(good, pa.large_string()), texts.column("text").combine_chunks()])
        labels = np.repeat([1, 0], [len(good), len(texts)])
        path = folder / "articles.bin"
        path.write_bytes(train(reference, labels, NAMES, Size()))
        yield "fastText, articles", of_classifier(Classifier(FilePath(str(path)), label=NAMES[1]))


def fasttext(texts: pa.Table, targets: Any, path: Path) -> Judge:  # noqa: ANN401 -- an array of numbers
    """Train a fastText model of the default size."""
    path.write_bytes(train(texts.column("text").combine_chunks(), targets, NAMES, Size()))
    return of_classifier(Classifier(FilePath(str(path)), label=NAMES[1]))


def articles() -> list[str]:
    """Return the annotated texts of news articles, none where there are none."""
    found = []
    for name, text in (("fundus-articles", "paragraphs"), ("readability", "expected_text")):
        path = GOLD / f"{name}.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                values = [json.loads(line).get(text) or "" for line in lines]
            found += ["\n".join(value) if isinstance(value, list) else value for value in values]
    return [text for text in found if text]


def measured(judge: Judge, sample: pa.Table, texts: pa.Table) -> dict[str, Any]:
    """Return the facts of a check, the AUC by kind and language, and the rank correlation with graded damage."""
    report = check(judge, sample, {})
    by_language = {f"{row['kind']} {row['language']}": round(row["value"], 3) for row in report.tables["planted"]}
    return {
        "outcome": report.outcome,
        "facts": dict(report.facts) | {"graded": graded(judge, sample)} | by_source(judge, texts),
        "by_language": by_language,
    }


def by_source(judge: Judge, texts: pa.Table) -> dict[str, list[float] | None]:
    """Return what the source alone tells of all texts, held out or not: half of them has too few sources."""
    values = judge.scores(texts).values
    rows = texts.take(pa.array(np.flatnonzero(~np.isnan(values))))
    halves = np.asarray(uniform_draws(rows.column("id").combine_chunks(), 2) & 1, np.bool_)
    named = rows.column("language").to_pylist(), rows.column("source").to_pylist()
    area = source_area(values[~np.isnan(values)], *named, halves)
    between = variance_between(values[~np.isnan(values)], *named)
    return {
        "source_auc": None if area is None else [round(value, 6) for value in area],
        "source_variance": None if between is None else [round(between, 6)] * 3 + [0.0],
    }


def graded(judge: Judge, sample: pa.Table) -> list[float] | None:
    """Return the rank correlation of scores with the order that is left in texts, within each language."""
    columns = sample.to_pydict()
    texts, labels = [], []
    for key, text, language in zip(columns["id"], columns["text"], columns["language"], strict=True):
        grade = int(draws(Text(key, text), "grade", 1)[0] % np.uint64(GRADES)) / (GRADES - 1)
        texts.append(damaged(Text(key, text), Pool(language, []), grade))
        labels.append(1 - grade)
    table = sample.set_column(sample.column_names.index("text"), "text", pa.array(texts, pa.large_string()))
    values, codes = judge.scores(table).values, np.array(columns["language"], object)
    groups = []
    for code in sorted(set(columns["language"])):
        rows = np.flatnonzero((codes == code) & ~np.isnan(values))
        value = rank_correlation(values[rows], np.array(labels)[rows])
        if value is not None:
            groups.append((value, len(rows)))
    measure = joined_correlation(groups)
    return None if measure is None else [round(value, 6) for value in measure]


def damaged(document: Text, pool: Pool, share: float) -> str:
    """Return a text of which a share of the words, the last ones, are in disorder."""
    words = pool.words(document.text)
    kept = len(words) - round(share * len(words))
    rest = KINDS["words"](Text(document.id, pool.joined(words[kept:])), pool) or pool.joined(words[kept:])
    return pool.joined([*words[:kept], rest])


ROWS: tuple[tuple[str, Callable[[dict[str, Any]], Any]], ...] = (
    *((f"auc {kind}", lambda facts, kind=kind: facts[f"auc.{kind}"]) for kind in KINDS),
    ("graded", lambda facts: facts["graded"]),
    ("source_auc", lambda facts: facts["source_auc"]),
    ("source_variance", lambda facts: facts["source_variance"]),
)


def table(facts: dict[str, Any]) -> Iterable[str]:
    """Yield a table of all languages together, then one by language, in Markdown."""
    names = list(facts)
    yield f"| | {' | '.join(names)} |"
    yield "|---|" + "---:|" * len(names)
    for title, value in ROWS:
        yield f"| {title} | {' | '.join(shown(value(facts[name]['facts'])) for name in names)} |"
    yield f"| verdict | {' | '.join(facts[name]['outcome'] for name in names)} |"
    yield ""
    languages = sorted({key.partition(" ")[2] for key in facts[names[0]]["by_language"]})
    yield f"| auc | {' | '.join(f'{name}, {code}' for name in names for code in languages)} |"
    yield "|---|" + "---:|" * len(names) * len(languages)
    for kind in KINDS:
        cells = [facts[name]["by_language"].get(f"{kind} {code}") for name in names for code in languages]
        yield f"| {kind} | {' | '.join('' if cell is None else f'{cell:.2f}' for cell in cells)} |"


def shown(figures: list[float] | None) -> str:
    """Return a figure with its interval."""
    if figures is None:
        return "-"
    value, low, high, _ = figures
    return f"{value:.2f}" + ("" if low == high else f" ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
