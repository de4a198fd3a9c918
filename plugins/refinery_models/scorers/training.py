"""Trains a quality model on good texts and a crawl: sites are held out whole, and languages are matched."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.report import digest_of_model
from pipeline_tasks.scorers.scorer import Column
from pipeline_tasks.stage import FilePath
from pipeline_tasks.text.base.sampling import uniform_draws
from pipeline_tasks.text.page.identity import identity
from refinery_models.measures import area, joined
from refinery_models.planted import KINDS, Pool, Text
from refinery_models.scorers.comparison import compare
from refinery_models.scorers.judges import Judge, of_classifier
from refinery_models.scorers.texts import KIND, read_texts
from refinery_models.training import HIGH, LOW, train_head

HELD_OUT = 5
"""One text in so many is held out, with all others of its site."""

LEAST = 20
"""Texts of each label, to train on and held out, that a model needs."""

SPARE = 4
"""Times as many other texts are read, since not all are in the languages of the good ones."""

MARK = "__label__"

Against = Callable[[str], Judge | None]
"""Returns the scorer that a model of some digest is compared with, None for none."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Texts with targets (True: good), and which of them are held out; `inputs` are the digests of what was read."""

    texts: pa.Table
    targets: npt.NDArray[np.bool_]
    held_out: npt.NDArray[np.bool_]
    inputs: Mapping[str, str]
    is_matched: bool

    def part(self, *, held_out: bool) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """Return the held-out texts with their targets, or the others."""
        rows = np.flatnonzero(self.held_out == held_out)
        return self.texts.take(pa.array(rows)), self.targets[rows]


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What a model was trained on, and what it tells apart on held-out sites; figures are [value, low, high, pairs]."""

    model: str
    kind: str
    label: str
    inputs: Mapping[str, str]
    seed: int
    texts: Mapping[str, int]
    sites: Mapping[str, int]
    is_matched: bool
    held_out: Sequence[float]
    by_language: Mapping[str, Sequence[float]]
    trained: Sequence[float]
    against: Mapping[str, Any] | None = None
    method: int = 1


def gather(positives: Sequence[str], negatives: Sequence[str], most: int, seed: int) -> Examples:
    """Read good texts and others, at most `most` of each; no text is both, and no site is on both sides.

    Of each language there are as many of both, so that no model learns a language for quality, unless good texts have
    no language. Without `negatives` the others are nonsense that is made of the good texts (`planted.KINDS`, in turns),
    so that both have the same sites and subjects. RecipeError if a side has too few, such as texts of one site alone.
    """
    good, inputs = read_texts(positives, most, seed)
    matched = any(good.column("language").to_pylist())
    if not negatives:
        chosen = good, nonsense_of(good)
    else:
        other, others = read_texts(negatives, most * SPARE, seed)
        inputs = inputs | others
        known = set(good.column("id").to_pylist())
        other = other.filter(pa.array([key not in known for key in other.column("id").to_pylist()]))
        chosen = _matched(good, other, seed) if matched else _equal(good, other, seed)
    texts = pa.concat_tables(chosen)
    targets = np.repeat([True, False], [len(part) for part in chosen])
    examples = Examples(texts, targets, held_out_of(texts, targets), inputs, matched)
    _require_both(examples)
    return examples


def nonsense_of(texts: pa.Table) -> pa.Table:
    """Return a piece of nonsense of each text, of a kind that follows from its id; a text of no site is its own."""
    rows: list[dict[str, Any]] = []
    columns = texts.to_pydict()
    for language in sorted(set(columns["language"])):
        own = [row for row, code in enumerate(columns["language"]) if code == language]
        pool = Pool(language, [Text(columns["id"][row], columns["text"][row]) for row in own])
        for row, document in zip(own, pool.texts, strict=True):
            made = _nonsense(document, pool)
            if made is not None:
                source = columns["source"][row] or document.id
                rows.append({"id": identity(made), "text": made, "language": language, "source": source, "type": ""})
    return pa.Table.from_pylist(rows, KIND)


def _nonsense(document: Text, pool: Pool) -> str | None:
    """Return nonsense of the kind that is a text's turn, else of the next that it has enough for."""
    names, turn = list(KINDS), xxh3_64_intdigest(document.id.encode())
    made = (KINDS[names[(turn + step) % len(names)]](document, pool) for step in range(len(names)))
    return next((text for text in made if text is not None), None)


def _matched(good: pa.Table, other: pa.Table, seed: int) -> tuple[pa.Table, pa.Table]:
    counts = [Counter(part.column("language").to_pylist()) for part in (good, other)]
    least = {code: min(count, counts[1][code]) for code, count in counts[0].items()}
    return _first(good, least, seed), _first(other, least, seed)


def _equal(good: pa.Table, other: pa.Table, seed: int) -> tuple[pa.Table, pa.Table]:
    """Return as many of both, those with the lowest draws."""
    least = min(len(good), len(other))
    draws = [uniform_draws(part.column("id").combine_chunks(), seed) for part in (good, other)]
    first, second = (np.sort(np.argsort(drawn, kind="stable")[:least]) for drawn in draws)
    return good.take(pa.array(first)), other.take(pa.array(second))


def _first(texts: pa.Table, wanted: Mapping[str, int], seed: int) -> pa.Table:
    """Return as many texts of each language as are wanted, those with the lowest draws, in their order."""
    draws, left, rows = uniform_draws(texts.column("id").combine_chunks(), seed), dict(wanted), []
    languages = texts.column("language").to_pylist()
    for row in np.argsort(draws, kind="stable").tolist():
        if left.get(languages[row], 0):
            left[languages[row]] -= 1
            rows.append(row)
    return texts.take(pa.array(sorted(rows), pa.int64()))


def held_out_of(texts: pa.Table, targets: npt.NDArray[np.bool_], parts: int = HELD_OUT) -> npt.NDArray[np.bool_]:
    """Return which texts, one in `parts`, are held out: all of a site are, or none; a text of no site is its own.

    Sites are held out in the order of their hashes while either side has less than its share held out. A site that
    would take more than twice the share of a side is trained on.
    """
    columns = texts.select(["source", "id"]).to_pydict()
    names = np.array([site or key for site, key in zip(columns["source"], columns["id"], strict=True)], object)
    sites, places = np.unique(names, return_inverse=True)
    counts = np.stack([np.bincount(places, targets == target, len(sites)) for target in (True, False)], axis=1)
    least, held = counts.sum(axis=0) / parts, np.zeros(2)
    chosen = np.zeros(len(sites), np.bool_)
    for at in np.argsort([xxh3_64_intdigest(site.encode()) for site in sites.tolist()], kind="stable").tolist():
        is_wanted = bool(((counts[at] > 0) & (held < least)).any())
        if is_wanted and bool((held + counts[at] <= 2 * least).all()):
            chosen[at] = True
            held += counts[at]
    return np.asarray(chosen[places], np.bool_)


def _require_both(examples: Examples) -> None:
    for held_out, use in ((False, "to train on"), (True, "held out")):
        _, targets = examples.part(held_out=held_out)
        for target, name in ((True, "good"), (False, "other")):
            count = int((targets == target).sum())
            if count < LEAST:
                message = (
                    f"{count} {name} texts are {use}, and a model needs {LEAST}: one text in {HELD_OUT} "
                    "is held out with its whole site; name texts of more sites and of the same languages on both sides"
                )
                raise RecipeError(message)


def train(examples: Examples, embeddings: str, output: Path, against: Against, seed: int) -> TrainingReport:
    """Train a model, write it to `output`, and report on it: fastText, or a head where `embeddings` are named."""
    label = HIGH if embeddings else MARK + HIGH
    texts, targets = examples.part(held_out=False)
    if embeddings:
        train_head(Path(embeddings), texts.column("text").to_pylist(), targets, output)
    else:
        _write_fasttext(texts, targets, output)
    judge = of_classifier(Classifier(FilePath(str(output)), label=label))
    held, held_targets = examples.part(held_out=True)
    values, digest = judge.scores(held).values, digest_of_model(str(output))
    old = against(digest)
    return TrainingReport(
        model=digest,
        kind=judge.kind,
        label=label,
        inputs=examples.inputs,
        seed=seed,
        texts=_counts(examples),
        sites={
            "trained": len(set(texts.column("source").to_pylist())),
            "held_out": len(set(held.column("source").to_pylist())),
        },
        is_matched=examples.is_matched,
        held_out=_area(values, held_targets),
        by_language=_areas(values, held_targets, held),
        trained=_area(judge.scores(texts).values, targets),
        against=_against(old, values, held, held_targets) if old else None,
    )


def _write_fasttext(texts: pa.Table, targets: npt.NDArray[np.bool_], output: Path) -> None:
    from pipeline_tasks.text.words.fasttext_training import train as train_fasttext

    column = texts.column("text").combine_chunks()
    content = train_fasttext(column, targets.astype(np.int64), (MARK + LOW, MARK + HIGH))
    try:
        output.write_bytes(content)
    except OSError as error:
        message = f"cannot write {output}: {error}; name another --to"
        raise RecipeError(message) from error


def _counts(examples: Examples) -> dict[str, int]:
    return {
        f"{name}_{use}": int((examples.targets[examples.held_out == held_out] == target).sum())
        for held_out, use in ((False, "trained"), (True, "held_out"))
        for target, name in ((True, "good"), (False, "other"))
    }


def _area(values: Column, targets: npt.NDArray[np.bool_]) -> tuple[float, ...]:
    """Return the area between good texts and others, with its interval and pairs; empty where there is no pair."""
    known = ~np.isnan(values)
    measure = joined([area(values[known & targets], values[known & ~targets])])
    return tuple(round(value, 6) for value in measure) if measure else ()


def _areas(values: Column, targets: npt.NDArray[np.bool_], texts: pa.Table) -> dict[str, tuple[float, ...]]:
    languages = np.array(texts.column("language").to_pylist(), object)
    found = {}
    for code in sorted(set(languages.tolist())):
        rows = np.flatnonzero(languages == code)
        if figures := _area(values[rows], targets[rows]):
            found[code] = figures
    return found


def _against(old: Judge, new: Column, texts: pa.Table, targets: npt.NDArray[np.bool_]) -> dict[str, Any]:
    before = old.scores(texts).values
    return {"old": old.model, **compare(before, new, texts), "held_out": _area(before, targets)}
