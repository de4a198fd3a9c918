"""Character counts equal a plain reading of their definitions, for any text."""

from hypothesis import given

from pipeline_tasks.text.signals import character_counts
from tests.text import plain_profiles
from tests.text.texts import PROFILE_BATCHES, views


@given(PROFILE_BATCHES)
def test_characters(texts: list[str]) -> None:
    counts = character_counts.count_characters(*views(texts))
    rows = zip(*(values.tolist() for values in counts.values()), strict=True)
    assert [dict(zip(counts, row, strict=True)) for row in rows] == [plain_profiles.signs(text) for text in texts]
