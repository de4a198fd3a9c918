"""Phrases are counted as `str.count` counts them."""

from hypothesis import given

from pipeline_tasks.text.base import phrases
from tests.text.texts import PROFILE_BATCHES, views


@given(PROFILE_BATCHES)
def test_counts(texts: list[str]) -> None:
    sought = ("#", "...", ". . .", "…")
    counts = phrases.count(*views(texts), phrases.encode_phrases(sought))
    assert counts.tolist() == [sum(map(text.count, sought)) for text in texts]
