"""Reading ease and structure, by texts whose words, sentences, syllables and lines are counted by hand."""

import numpy as np
import pyarrow as pa
import pytest

from pipeline_tasks.stages.enrich import enrich
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.kinds.document_types import cues
from pipeline_tasks.text.kinds.measures import COUNTS, Measures, measures
from pipeline_tasks.text.kinds.reading import FORMULAS, reading_ease, reading_levels


def measured(*texts: str, silent: bool = False) -> Measures:
    known = cues()
    rows = len(texts)
    numbers, flags = np.full(rows, -2, np.int64), np.full(rows, silent, np.bool_)
    texts_of = views(pa.array(texts, pa.large_string()))
    return measures(texts_of, numbers, flags, known.table, known.meanings, len(known.types))


def counts(text: str, *names: str, silent: bool = False) -> tuple[int, ...]:
    found = measured(text, silent=silent).counts
    return tuple(int(found[name][0]) for name in names)


@pytest.mark.parametrize(
    ("text", "silent", "words", "sentences", "syllables"),
    [
        ("The cat sat on the mat. It was happy.", True, 9, 2, 10),
        ("He made a cake, a table and the dough.", True, 9, 1, 10),  # made, cake: one; table: two; the: one
        ("He made a cake, a table and the dough.", False, 9, 1, 12),
        ("Die Übung dauert zwei Stunden!", False, 5, 1, 7),  # dau-ert has one group of vowels
        ("Мама мыла раму? Да.", False, 4, 2, 7),
        (
            "No stop at the end of this line, which goes on beyond what a short line without a stop may have",
            True,
            21,
            1,
            22,  # be-yond has one group of vowels
        ),
        ("3.14 is no end. «Is it?» — “No.”", False, 8, 3, 8),
    ],
)
def test_words_sentences_and_syllables(text: str, silent: bool, words: int, sentences: int, syllables: int) -> None:
    assert counts(text, "words", "sentences", "syllables", silent=silent) == (words, sentences, syllables)


def test_lines_of_every_kind() -> None:
    text = """# Title

A sentence that stands on its own.

Steps

- one
  * two
3. three
• four

| a | b |
c\td

```
plain words in a fence
```
    indented();
$ make
menu
more"""
    kinds = ("headings", "list_lines", "table_rows", "code_lines", "short_lines", "prose_lines")
    assert counts(text, *kinds) == (2, 4, 2, 3, 2, 1)
    assert counts(text, "bytes")[0] == sum(len(line.strip().encode()) for line in text.split("\n") if line != "```")


def test_a_broken_text_is_read_to_its_end() -> None:
    broken = pa.array([b"\xc3", b"a\xff\xfe b.", b"\xe3\x81", b"- \xf0\x9f", b"\n\n\t \n"], pa.large_binary())
    known = cues()
    column = pa.Array.from_buffers(pa.large_string(), len(broken), broken.buffers())
    numbers = np.full(len(broken), -2, np.int64)
    found = measures(views(column), numbers, numbers > 0, known.table, known.meanings, len(known.types))
    assert found.counts["bytes"].tolist() == [1, 6, 2, 4, 0]


def test_every_formula_is_that_of_its_source() -> None:
    """100 words in 5 sentences with 150 syllables: 20 words a sentence, 1.5 syllables a word."""
    given = {name: np.zeros(len(FORMULAS), np.int64) for name in COUNTS}
    given |= {name: np.full(len(FORMULAS), number) for name, number in (("words", 100), ("sentences", 5))}
    given["syllables"] = np.full(len(FORMULAS), 150)
    ease = reading_ease(Measures(given, np.zeros((0, 0), np.int64), np.zeros((0, 3), np.int64)), [*FORMULAS])
    by_hand = {"en": 59.64, "de": 72.25, "fr": 76.3, "es": 93.39, "it": 88.5, "nl": 72.74, "pt": 101.64, "ru": 90.69}
    assert dict(zip(FORMULAS, ease.tolist(), strict=True)) == pytest.approx(by_hand, abs=0.011)


def test_levels_and_what_is_unknown() -> None:
    ease = np.array([-5.0, 29.99, 30.0, 50.0, 69.99, 70.0, 120.0, np.nan])
    levels = ["very_hard", "very_hard", "hard", "standard", "standard", "easy", "easy", "unknown"]
    assert reading_levels(ease).to_pylist() == levels
    easy = "The cat sat on the mat. " * 20
    hard = (
        "Constitutional interpretation necessitates jurisprudential deliberation concerning institutional authority. "
    )
    texts = [easy, hard * 13, easy[:200], easy]
    table = pa.table(
        {"text": pa.array(texts, pa.large_string()), "url": ["u"] * 4, "language": ["en", "en", "en", "fi"]}
    )
    [batch] = enrich(iter(table.to_batches()))
    assert batch["reading_level"].to_pylist() == ["easy", "very_hard", "unknown", "unknown"]
    assert batch["reading_ease"].null_count == 2
