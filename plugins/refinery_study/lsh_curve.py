"""Computes the probability that a pair of documents becomes a candidate, for a choice of bands and rows."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, print_result
from pipeline_tasks.text.near.minhash import curve, midpoint

SIMILARITIES = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

EDITED = 200
"""Words of the document for which the number of edited words is computed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Bands and rows under a name."""

    name: str
    bands: int
    rows: int


PRESETS = (
    Setting("FineWeb (datatrove)", 14, 8),
    Setting("NeMo Curator", 20, 13),
    Setting("OLMo 3 (duplodocus)", 26, 11),
    Setting("duplodocus, as documented", 10, 20),
    Setting("RedPajama-V2, 0.7", 14, 9),
    Setting("RedPajama-V2, 0.8", 9, 13),
    Setting("RedPajama-V2, 0.9", 5, 25),
    Setting("128 permutations", 16, 8),
    Setting("256 permutations", 32, 8),
    Setting("Spark MLlib, 5 tables", 5, 1),
)
"""Settings that others publish or use; their curves differ more than their nominal thresholds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the bands, rows, shingle size and threshold."""
    parser.add_argument("--bands", type=int, default=14, help="bands of a signature (14)")
    parser.add_argument("--rows", type=int, default=8, help="minima per band (8)")
    parser.add_argument("--ngram", type=int, default=5, help="words per shingle (5)")
    parser.add_argument("--threshold", type=float, default=0.8, help="Jaccard similarity of a near duplicate (0.8)")
    parser.add_argument("--presets", action="store_true", help="compare with the settings of published recipes")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the curve."""
    setting = checked(options.bands, options.rows, options.ngram, options.threshold)
    query = (setting, options.ngram, options.threshold, PRESETS if options.presets else ())
    print_result(options, curve_facts(*query), curve_lines(*query))
    return 0


def checked(bands: int, rows: int, ngram: int, threshold: float) -> Setting:
    """Return the requested setting; RecipeError where it makes no sense."""
    if min(bands, rows, ngram) < 1 or not 0 <= threshold <= 1:
        message = (
            f"--bands {bands} --rows {rows} --ngram {ngram} --threshold {threshold:g} makes no sense: "
            "bands, rows and ngram are 1 or more, the threshold is 0 to 1"
        )
        raise RecipeError(message)
    return Setting("requested", bands, rows)


def curve_lines(setting: Setting, ngram: int, threshold: float, presets: Sequence[Setting] = ()) -> Iterator[str]:
    """Yield the curve of a setting as lines for a person, then a table of it and `presets`, if there are any."""
    yield f"{setting.bands} bands x {setting.rows} rows = {setting.bands * setting.rows} permutations of {ngram}-grams"
    yield (
        f"midpoint (1/bands)**(1/rows) = {midpoint(setting.bands, setting.rows):.3f}; "
        f"half of the pairs of Jaccard {half(setting):.3f} are candidates"
    )
    yield ""
    yield f"{'Jaccard':<10}{'P(candidate)':>12}{'missed':>10}{'words changed':>16}"
    for similarity in sorted({*SIMILARITIES, threshold}):
        chance = curve(similarity, setting.bands, setting.rows)
        mark = "  <- threshold" if similarity == threshold else ""
        yield f"{similarity:<10.2f}{chance:>12.4f}{1 - chance:>10.4f}{edits(similarity, ngram):>16.1f}{mark}"
    yield ""
    yield f"Words changed: of {EDITED}, far apart. Candidates below the threshold are compared, and never removed."
    if presets:
        yield ""
        columns = "".join(f"{similarity:>7.2f}" for similarity in SIMILARITIES)
        yield f"{'P(candidate) at Jaccard':<36}{'half at':>8}{columns}"
        yield from (_row(preset) for preset in (setting, *presets))


def _row(setting: Setting) -> str:
    chances = "".join(f"{curve(similarity, setting.bands, setting.rows):>7.3f}" for similarity in SIMILARITIES)
    shape = f"{setting.bands} x {setting.rows}"
    return f"{setting.name:<28}{shape:>8}{half(setting):>8.3f}{chances}"


def half(setting: Setting) -> float:
    """Return the Jaccard similarity at which half of all pairs are candidates."""
    return float((1 - 0.5 ** (1 / setting.bands)) ** (1 / setting.rows))


def edits(similarity: float, ngram: int) -> float:
    """Return how many of `EDITED` words, replaced far apart, bring a text down to `similarity` with its original.

    Each changes `ngram` shingles: J = (n - k * ngram) / (n + k * ngram) for n shingles (of words) and k changed words.
    """
    shingles = max(EDITED - ngram + 1, 1)
    return shingles * (1 - similarity) / (1 + similarity) / ngram


def curve_facts(setting: Setting, ngram: int, threshold: float, presets: Sequence[Setting] = ()) -> dict[str, Any]:
    """Return the curves of a setting and of `presets` as plain JSON values."""
    settings = [
        {
            "name": preset.name,
            "bands": preset.bands,
            "rows": preset.rows,
            "half": half(preset),
            "midpoint": midpoint(preset.bands, preset.rows),
            "curve": {f"{similarity:g}": curve(similarity, preset.bands, preset.rows) for similarity in SIMILARITIES},
        }
        for preset in (setting, *presets)
    ]
    at = curve(threshold, setting.bands, setting.rows)
    return {"ngram": ngram, "threshold": threshold, "candidate_at_threshold": at, "settings": settings}
