"""The C4 edit equals a plain reading of its rules, for any text, and returns the outline of the edited text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import buffers
from pipeline_tasks.text.edits import c4
from pipeline_tasks.text.words import cutting, outline
from tests.text import plain
from tests.text.texts import BATCHES, rules, views


@given(BATCHES, st.booleans())
def test_c4_lines(texts: list[str], terminal: bool) -> None:
    limits = c4.LineRules(1000, 3, terminal, *[True] * 3)
    edited, counts, removed = c4.edit(*views(texts), rules(texts, cutting.SPLIT), limits)
    edited.validate(full=True)
    expected = [plain.c4(text, terminal=terminal) for text in texts]
    assert list(zip(edited.to_pylist(), counts.tolist(), strict=True)) == expected
    for text, marks, count in zip(texts, removed.to_pylist(), counts, strict=True):
        assert len(marks) == len(text.splitlines())
        assert [marks.count(rule) for rule in range(1, 6)] == count[c4.LONG_WORD : c4.POLICY + 1].tolist()


@given(BATCHES)
def test_the_outline_that_c4_sets_is_the_outline_of_the_edited_text(texts: list[str]) -> None:
    limits = c4.LineRules(1000, 2, *[False, True, True, True])
    edited = c4.edit(*views(texts), rules(texts, cutting.SPLIT), limits).texts
    cached, read = outline.outline_of(*buffers.views(edited)), outline.read_outline(*buffers.views(edited))
    for name in set(outline.Outline._fields) - {"traits"}:
        assert getattr(cached, name).tolist() == getattr(read, name).tolist(), name
    assert ((cached.traits & read.traits) == read.traits).all()


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("One. Two? Three!", 3),
        ("Version 3.5 of e.g. this", 2),
        ('She said "No." He left.', 2),
        ("Wait... what?!", 2),
        ("今日は。明日は。", 2),
        ("no end", 1),
        ("...", 0),
        ("", 0),
    ],
)
def test_sentences(line: str, count: int) -> None:
    limits = c4.LineRules(1000, 0, *[False] * 4)
    counts = c4.edit(*views([line]), rules([line], cutting.SPLIT), limits).counts
    assert counts[0][c4.SENTENCES] == count
