"""Say what type a document is by rules of `document_types.json`: its URL, its structure, and phrases of its language.

Each rule that holds adds its weight to a type; `most` bounds what the phrases of a common type add up to. The type with
the largest sum is it, if the sum is at least `least` and no other comes nearer than `margin`; else the document is
`unknown`.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.text.kinds.measures import Measures
from pipeline_tasks.text.kinds.phrases import Phrases, phrase_table

UNKNOWN = "unknown"
ANY_LANGUAGE = -1
LEAST_LINES = 10
"""Lines of which shares are shares, at least: one short line makes no list."""
RULES = Path(__file__).with_name("document_types.json")
NOTICES = Path(__file__).with_name("license_notices.json")

Scores = npt.NDArray[np.int64]


class Cues(NamedTuple):
    """The phrases of types and notices: their table, what each says, the codes of languages, and what `kinds` are."""

    table: Phrases
    meanings: npt.NDArray[np.int64]
    languages: Mapping[str, int]
    types: tuple[str, ...]
    notices: tuple[str, ...]


@cache
def rules() -> Mapping[str, Any]:
    """Return the rules of types: their weights by URL, sign and phrase, and the two bounds."""
    found: Mapping[str, Any] = json.loads(RULES.read_text(encoding="utf-8"))
    return found


@cache
def cues() -> Cues:
    """Return the phrases of all types and notices as one table."""
    notices = json.loads(NOTICES.read_text(encoding="utf-8"))
    types = tuple(rules()["urls"])
    codes = sorted({code for by_language in rules()["phrases"].values() for code in by_language})
    languages = {code: number for number, code in enumerate(codes)}
    phrases: list[str] = []
    meanings: list[tuple[int, int, int, bool]] = []
    for kind, by_language in rules()["phrases"].items():
        for code, weights in by_language.items():
            phrases += weights
            meanings += [(types.index(kind), weight, languages[code], False) for weight in weights.values()]
    for kind, listed in notices["phrases"].items():
        phrases += listed
        meanings += [(notices["kinds"].index(kind), 0, ANY_LANGUAGE, True)] * len(listed)
    return Cues(phrase_table(phrases), np.array(meanings, np.int64), languages, types, tuple(notices["kinds"]))


def shares(measured: Measures) -> dict[str, npt.NDArray[np.float64]]:
    """Return the numbers that signs bound: shares of lines and of bytes, and how many sentences there are."""
    counts = measured.counts
    kinds = ("headings", "list_lines", "table_rows", "code_lines", "short_lines", "prose_lines")
    lines = np.maximum(sum(counts[name] for name in kinds), LEAST_LINES)
    size = np.maximum(counts["bytes"], 1)
    return {
        "heading_share": counts["headings"] / lines,
        "short_share": counts["short_lines"] / lines,
        "list_share": counts["list_lines"] / lines,
        "code_share": counts["code_bytes"] / size,
        "table_share": counts["table_bytes"] / size,
        "prose_share": counts["prose_bytes"] / size,
        "sentences": counts["sentences"].astype(np.float64),
    }


def document_types(measured: Measures, urls: pa.Array) -> pa.Array:
    """Return the type of each document, `unknown` where the rules do not decide."""
    types = cues().types
    most = np.array([rules()["most"].get(kind, np.iinfo(np.int64).max) for kind in types], np.int64)
    scores = np.minimum(measured.scores, most) + _by_url(urls, types) + _by_signs(measured, types)
    order = np.argsort(-scores, axis=1, kind="stable")
    rows = np.arange(len(scores))
    best, second = scores[rows, order[:, 0]], scores[rows, order[:, 1]]
    decided = (best >= rules()["least"]) & (best - second >= rules()["margin"])
    return pa.array(np.where(decided, np.array(types, object)[order[:, 0]], UNKNOWN), pa.string())


def _by_url(urls: pa.Array, types: tuple[str, ...]) -> Scores:
    """Return the largest weight of each type among the parts that a URL has."""
    scores = np.zeros((len(urls), len(types)), np.int64)
    known = pc.fill_null(pc.ascii_lower(pc.replace_substring_regex(urls.cast(pa.string()), r"^https?://|#.*$", "")), "")
    for number, kind in enumerate(types):
        for part, weight in rules()["urls"][kind].items():
            has = np.asarray(pc.match_substring(known, part).to_numpy(zero_copy_only=False), np.int64)
            scores[:, number] = np.maximum(scores[:, number], has * weight)
    return scores


def _by_signs(measured: Measures, types: tuple[str, ...]) -> Scores:
    scores, known = np.zeros((len(measured.scores), len(types)), np.int64), shares(measured)
    for kind, signs in rules()["signs"].items():
        for name, bound, weight in signs:
            below = name.endswith("_below")
            values = known[name.removesuffix("_below")]
            scores[:, types.index(kind)] += weight * (values < bound if below else values >= bound)
    return scores
