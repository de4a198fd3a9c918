"""Parts of texts and their edges equal a plain reading of their definitions, for any text."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import phrases
from pipeline_tasks.text.signals import line_parts
from tests.text import plain_profiles
from tests.text.texts import PROFILE_BATCHES, views


@given(PROFILE_BATCHES, st.sampled_from([1, 2]), st.sampled_from([0, 1, 2]))
def test_parts(texts: list[str], newlines: int, cut: int) -> None:
    counts = line_parts.count_parts(*views(texts), newlines, cut)
    rows = zip(*(values.tolist() for values in counts.values()), strict=True)
    assert [list(row) for row in rows] == [plain_profiles.parts(text, newlines, cut) for text in texts]


@given(PROFILE_BATCHES, st.booleans())
def test_edges(texts: list[str], bare: bool) -> None:
    starts, finishes = ("•", "*", "the"), ("...", "…", ". . .", "read more")
    cut = line_parts.RAW if bare else line_parts.FILLED
    counts = line_parts.count_edges(
        *views(texts), cut, phrases.encode_phrases(starts), phrases.encode_phrases(finishes)
    )
    assert counts.tolist() == [plain_profiles.edges(text, starts, finishes, bare=bare) for text in texts]


@given(PROFILE_BATCHES)
def test_parts_that_contain_a_phrase(texts: list[str]) -> None:
    counts = line_parts.count_containing(*views(texts), 2, phrases.encode_phrases(("read more", "http")))
    assert counts.tolist() == [
        sum("read more" in part.lower() or "http" in part.lower() for part in text.split("\n\n")) for text in texts
    ]


@given(PROFILE_BATCHES, st.sampled_from([0, 5, 12.5]))
def test_long_lines(texts: list[str], least: float) -> None:
    counts = line_parts.count_long_lines(*views(texts), least)
    assert counts.tolist() == [sum(len(line) >= least for line in text.split("\n")) for text in texts]
