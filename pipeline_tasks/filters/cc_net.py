"""Remove repeated paragraphs of a text and reject short texts, as cc_net does before its models.

Rules are those of facebookresearch/cc_net (arXiv 1911.00359): `cc_net/process_wet_file.py` (length), and
`cc_net/{dedup,text_normalizer}.py` (paragraphs are lines, equal ones compared after `normalize_for_dedup`). cc_net
removes a paragraph seen anywhere in its shard of the crawl; this filter compares paragraphs within one text. Its
language and perplexity are stages of their own.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.constraints import Limit, Switch
from pipeline_tasks.filters import Computed, Cuts, Filter, Rule

SIGNALS = ("paragraphs", "length", "repeated_paragraphs")
"""Lines that are not blank; their code points, stripped and joined by newlines, before any is removed (upstream skips
the first line as the title); lines that repeat an earlier one, which are removed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Minimum length (code points), and two switches: remove repeats, turn Unicode punctuation into ASCII."""

    min_len: Limit = 300
    remove_repeats: Switch = 1
    ascii_punctuation: Switch = 0


RULES = (Rule("too_short", "length", "min", "min_len"),)


def compute_signals(texts: pa.Array, _languages: pa.Array, _words: int, limits: Limits) -> Computed:
    """Return the SIGNALS of each text, shape (rows, 3), and the texts without repeated paragraphs."""
    from pipeline_tasks.text.edits import cc_net

    unrepeated, counts = cc_net.remove_repeats(texts)
    edited = unrepeated if limits.remove_repeats else texts
    return Computed(np.ascontiguousarray(counts), cc_net.ascii_marks(edited) if limits.ascii_punctuation else edited)


TAKEN = ("repeated_paragraph", "blank")
"""Rules that remove lines; `blank` is a newline before the first line that is not empty."""


def trace(texts: pa.Array, _removed_lines: pa.ListArray | None, limits: Limits) -> npt.NDArray[np.uint8]:
    """Return for every byte of the texts an index of TAKEN + 1, or 0 if it is kept."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.edits import cc_net

    return cc_net.mark_repeats(texts) if limits.remove_repeats else np.zeros(len(views(texts)[1]), np.uint8)


FILTER = Filter("cc_net", SIGNALS, Limits, RULES, compute_signals, cuts=Cuts(TAKEN, trace))
