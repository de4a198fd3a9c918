"""Citations are cut out of lines as a pattern would, and nothing else is."""

import re
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.phrases import Phrases, encode_phrases
from pipeline_tasks.text.edits.citations import MARKERS, copy_without_citations

CITATION = re.compile(r"\[(?:\d*|edit|citation needed)\]")
PIECES = ["[", "]", "1", "٣", "23", "edit", "Edit", "citation needed", " ", "é", "[]", "[12]", "[edit]"]


@compiled
def _copy(data: Any, markers: Any, table: Any, out: Any) -> Any:
    return copy_without_citations(data, 0, len(data), markers, table, out, 0)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_citations_are_those_of_the_pattern(line: str) -> None:
    data = np.frombuffer(line.encode(), np.uint8)
    out = np.empty(len(data) + 1, np.uint8)
    markers: Phrases = encode_phrases(MARKERS)
    size, count = _copy(data, markers, classes(), out)
    assert out[:size].tobytes().decode() == CITATION.sub("", line)
    assert count == len(CITATION.findall(line))
