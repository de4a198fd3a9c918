"""Character counts equal a plain reading of their definitions, for any text."""

from hypothesis import given

from pipeline_tasks.text.signals import character_counts
from tests.text import plain_profiles
from tests.text.texts import PROFILE_BATCHES, views


@given(PROFILE_BATCHES)
def test_characters(texts: list[str]) -> None:
    counts = character_counts.count_characters(*views(texts))
    for row, text in enumerate(texts):
        assert {name: values[row] for name, values in counts.items()} == plain_profiles.signs(text)
