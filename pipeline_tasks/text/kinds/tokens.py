"""Estimate the tokens of a text from its bytes, by rates of its language."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.kinds.measures import Measures

RATES = Path(__file__).with_name("token_rates.json")
OTHER = "other"


@cache
def rates() -> Mapping[str, tuple[float, float]]:
    """Return by language the bytes per token of prose, and of code and tables; `other` is for all languages besides.

    They are those of the default tokenizer of `tokenize` over the pages that the file's `measured` names.
    """
    found: Mapping[str, tuple[float, float]] = json.loads(RATES.read_text(encoding="utf-8"))["bytes_per_token"]
    return found


def token_estimates(measured: Measures, languages: list[str]) -> npt.NDArray[np.int64]:
    """Return the estimated tokens of each text, rounded to whole ones."""
    known = rates()
    table = np.array([known.get(code, known[OTHER]) for code in languages], np.float64).reshape(-1, 2)
    counts = measured.counts
    dense = counts["code_bytes"] + counts["table_bytes"]
    return np.round((counts["bytes"] - dense) / table[:, 0] + dense / table[:, 1]).astype(np.int64)
