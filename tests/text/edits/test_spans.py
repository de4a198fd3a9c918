"""What a trace leaves is what the edit leaves, to the byte, for any text."""

from collections.abc import Mapping
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.filters import Filter, c4, cc_net, dclm
from pipeline_tasks.stages.filter_quality import Params, filter_texts
from pipeline_tasks.text.base import buffers
from pipeline_tasks.text.edits import spans
from tests.documents import documents
from tests.stages.test_filter_quality import PROSE

PIECES = (
    "A sentence here.", "Two words", "[1]", "[edit]", "[citation needed]", "[foo]", "[", "]", "[٣]", "javascript is on",
    "use cookies here now", "\n", "\n", "\n", "\n\n\n", "\r\n", " ", "  ", "\t", "x" * 12, "é中。", "lorem ipsum dolor", "{",
    "...", ". ", "a b c", "\xa0", "LOUD LINE HERE", "1234", "3 likes", "12 items in cart", "Read more...", "Sign-in now",
)  # fmt: skip
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), max_size=4)
LIMITS: list[tuple[Filter, Mapping[str, float]]] = [
    (c4.FILTER, {}),
    (c4.FILTER, {"require_terminal_punctuation": 1}),
    (c4.FILTER, {"min_words_per_line": -1, "max_word_length": 10}),
    (c4.FILTER, {"remove_citations": 0, "filter_policy": 0, "filter_javascript": 0}),
    (dclm.FILTER, {}),
    (dclm.FILTER, {"max_uppercase_per_line": 0.1, "min_words_per_line": 0, "max_words_of_notice": 3}),
    (cc_net.FILTER, {}),
    (cc_net.FILTER, {"remove_repeats": 0}),
]


def left(card: Filter, texts: list[str], limits: Mapping[str, float]) -> list[str]:
    column = pa.array(texts, pa.large_string())
    assert card.cuts is not None
    languages = pa.array(["en"] * len(texts), pa.string())
    computed = card.compute_signals(column, languages, 0, card.limits(**limits))
    marks = card.cuts.trace(column, computed.removed, card.limits(**limits))
    offsets, data = buffers.views(column)
    assert int(marks.max(initial=0)) <= len(card.cuts.rules)
    return [bytes(data[begin:end][marks[begin:end] == 0]).decode() for begin, end in pairwise(offsets)]


@pytest.mark.parametrize(
    ("card", "limits"), LIMITS, ids=lambda value: value.name if isinstance(value, Filter) else str(value)
)
@given(texts=TEXTS)
def test_what_is_not_marked_is_what_the_filter_leaves(
    card: Filter, limits: Mapping[str, float], texts: list[str]
) -> None:
    column, languages = pa.array(texts, pa.large_string()), pa.array(["en"] * len(texts), pa.string())
    assert (
        left(card, texts, limits) == card.compute_signals(column, languages, 0, card.limits(**limits)).texts.to_pylist()
    )


@given(st.lists(st.lists(st.tuples(st.sampled_from("aé中\U0001f600"), st.integers(0, 2)), max_size=9), max_size=4))
def test_spans_are_runs_of_marks_in_code_points(rows: list[list[tuple[str, int]]]) -> None:
    texts = ["".join(letter for letter, _ in row) for row in rows]
    offsets, data = buffers.views(pa.array(texts, pa.large_string()))
    marks = np.array([mark for row in rows for letter, mark in row for _ in letter.encode()], np.uint8)
    lists = spans.span_lists([spans.find_spans(offsets, data, marks, ("one", "two"))], len(rows)).to_pylist()
    painted = [[0] * len(row) for row in rows]
    for row, row_spans in zip(painted, lists, strict=True):
        for span in row_spans:
            row[span["start"] : span["end"]] = [{"one": 1, "two": 2}[span["rule"]]] * (span["end"] - span["start"])
    assert painted == [[mark for _, mark in row] for row in rows]
    runs = [[mark for mark, _ in groupby(row) if mark] for row in painted]
    assert [[{"one": 1, "two": 2}[span["rule"]] for span in row_spans] for row_spans in lists] == runs


def cut(text: str, text_spans: list[dict[str, object]], profile: str) -> str:
    of_profile = [span for span in text_spans if str(span["rule"]).startswith(f"{profile}:")]
    removed = {at for span in of_profile for at in range(span["start"], span["end"])}  # type: ignore[call-overload]
    return "".join(letter for at, letter in enumerate(text) if at not in removed)


def test_a_reader_re_creates_what_each_profile_removed() -> None:
    text = f"HOME AND MORE\n{PROSE}[1]\nWe use cookies\n12 likes\nTwo words\n{PROSE.splitlines()[0]}\n  "
    docs = documents([text, PROSE, "Short."], language=pa.array(["en"] * 3))
    lax = dict.fromkeys(("max_removed_ratio", "line_char_frac", *(f"dup_{n}_gram" for n in range(5, 11))), 1)
    params = Params(profiles=("c4", "dclm", "cc_net"), limits={"dclm": lax}, edit=True, mend=False)
    (out,) = filter_texts(iter(docs.to_batches()), params=params)
    assert out["reason"].to_pylist() == [None, None, "c4:too_few_sentences"]
    spans = out["edit_spans"].to_pylist()
    assert spans[1:] == [[], []]
    for profile in params.profiles:
        text = cut(text, spans[0], profile)
    assert text == out["text"][0].as_py() == PROSE
    assert {span["rule"] for span in spans[0]} == {
        "c4:citation", "c4:policy", "c4:few_words", "dclm:uppercase", "cc_net:repeated_paragraph",
    }  # fmt: skip
    (without,) = filter_texts(iter(docs.to_batches()), params=Params(profiles=("c4",)))
    assert without["edit_spans"].to_pylist() == [[], [], []]
