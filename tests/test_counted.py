"""A count agrees with its noun."""

import pytest

from pipeline_tasks.counted import counted


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 places"),
        (1, "1 place"),
        (2, "2 places"),
        (1234, "1,234 places"),
        (0.5, "0.5 places"),
        (54.0, "54 places"),
    ],
)
def test_a_count_agrees_with_its_noun(count: float, text: str) -> None:
    assert counted(count, "place") == text


def test_a_plural_that_is_not_formed_by_an_s_is_named() -> None:
    assert (counted(1, "copy", "copies"), counted(2, "copy", "copies")) == ("1 copy", "2 copies")
