"""Words of a lexicon are found whatever hides them, and nothing else is."""

# ruff: noqa: RUF001 -- lookalikes are the subject

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.toxicity.lexicons import LABELS, Table, read_lexicon, table_of
from pipeline_tasks.text.toxicity.mentions import ALONE, ENTRY, FATE, FIRST, LAST, MENTIONED, ROW, USED, find_hits

LEXICON = """
# a lexicon of harmless words
obscene 2: badword*, blast, son of a gun
threat 3: i will tickle you
insult 1: daft, ninny?
adult 1: кусака
none: badwordsworth*, blast furnace
mention: slur, dictionary, term*
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    path = tmp_path_factory.mktemp("lexicon") / "xx.txt"
    path.write_text(LEXICON)
    return table_of((str(path),))


def found(table: Table, *texts: str, fate: int = USED) -> list[list[str]]:
    hits, _ = find_hits(pa.array(texts), [0] * len(texts), table)
    listed: list[list[str]] = [[] for _ in texts]
    for hit in hits[hits[:, FATE] == fate].tolist():
        listed[hit[ROW]].append(texts[hit[ROW]][hit[FIRST] : hit[LAST]])
    return listed


@pytest.mark.parametrize(
    "hidden",
    [
        "blast", "BLAST", "Blást", "b1ast", "bl@st", "bla$t", "b!ast", "b|ast", "bl4st", "8last", "bla5t", "bla57",
        "blaaaaast", "bbblllaaassst", "b*ast", "#sonofagun", "bl**t", "b•ast", "b l a s t", "b  l  a  s  t", "b.l.a.s.t", "b-l-a-s-t",
        "bl-ast", "b-ast", "b--st", "b_ast", "bla.st", "b\u200blast", "bl\u00adast", "b\u0336l\u0336a\u0336s\u0336t\u0336", "ｂｌａｓｔ", "𝓫𝓵𝓪𝓼𝓽",
        "𝕓𝕝𝕒𝕤𝕥", "ⓑⓛⓐⓢⓣ", "🅱🅻🅰🆂🆃", "ʙʟᴀsᴛ", "blаst", "blαst", "ｂ*ａst", "badword", "badwords", "b4dwordy",
        "son of a gun", "son  of a\tgun", "son\nof a gun", "s o n o f a g u n", "кусака", "kycaka", "кус4ка", "к*с*ка",
    ],
)  # fmt: skip
def test_a_word_is_found_in_disguise(hidden: str, table: Table) -> None:
    assert found(table, f"What a {hidden}, he said", f"{hidden}", f"(“{hidden}”)") == [[hidden.removeprefix("#")]] * 3


@pytest.mark.parametrize(
    "text",
    [
        "ablast blasts blastula", "bl ast", "b a s t", "blas t", "blst", "b****", "*****", "b5457", "l a s t",
        "B---T", "b-a-s-t", "bl-a-st-s", "b-l-s-t",
        "badwordsworth wrote it", "a blast furnace", "bad word", "bla", "last", "b3ast", "https://bl.as/t", "b-l",
        "b l a s t e d", "A B C D E F G", "今天blast天气", "son of", "sonofagunner", "sons of a gun", "",
    ],
)  # fmt: skip
def test_what_is_another_word_is_not(text: str, table: Table) -> None:
    assert found(table, text) == [[]]


def test_signs_end_a_word_that_they_are_no_letter_of(table: Table) -> None:
    assert found(table, "Stop!daft", "daft!", "*daft*", "daft@blast.com", "daft-blast", "$daft") == [
        ["daft"], ["daft"], ["daft"], ["daft", "blast"], ["daft", "blast"], ["daft"],
    ]  # fmt: skip


def test_an_unsure_word_counts_beside_a_sure_one_or_in_disguise(table: Table) -> None:
    far = "word " * 40
    assert found(table, "a ninny", "a daft ninny", f"daft {far} ninny", "a n1nny") == [
        [], ["daft", "ninny"], ["daft"], ["n1nny"],
    ]  # fmt: skip
    assert found(table, "a ninny", fate=ALONE) == [["ninny"]]


def test_two_cues_make_a_mention_and_one_does_of_a_word_in_quotes(table: Table) -> None:
    texts = ["blast is a slur", "blast is a slur says the dictionary", 'the slur "blast"', "the slur “blast.”"]
    assert found(table, *texts, fate=MENTIONED) == [[], ["blast"], ["blast"], ["blast"]]
    assert found(table, "terms and terminals: blast") == [["blast"]]  # twice the same cue
    assert found(table, f"slur dictionary {'word ' * 40} blast") == [["blast"]]


def test_a_phrase_is_one_hit_of_its_label(table: Table) -> None:
    hits, words = find_hits(pa.array(["Yes: I  will tickle you, daft one"]), [0], table)
    assert [LABELS[table.labels[hit[ENTRY]]] for hit in hits] == ["threat", "insult"]
    assert words.tolist() == [7]


def test_rows_are_measured_by_themselves_and_a_language_without_lexicon_is_not(table: Table) -> None:
    texts = ["daft"] * 5 + [None, "", "blast " * 3000]
    hits, words = find_hits(pa.array(texts), [0, -1, 0, -1, 0, 0, 0, 0], table)
    assert np.bincount(hits[:, ROW], minlength=8).tolist() == [1, 0, 1, 0, 1, 0, 0, 3000]
    assert words.tolist() == [1, 0, 1, 0, 1, 0, 0, 3000]
    sliced = pa.array(texts)[4:]
    assert find_hits(sliced, [0] * 4, table).words.tolist() == [1, 0, 0, 3000]


@given(
    st.lists(st.sampled_from(["blast", "b1", "-", " ", "*", "b l a", "\u200b", "$", "@", '"']) | st.text(max_size=5))
)
def test_any_text_has_hits_in_order_and_within(pieces: list[str]) -> None:
    text = "".join(pieces).encode("utf-8", "ignore").decode()
    hits, _ = find_hits(pa.array([text]), [0], _shipped())
    ends = [0, *hits[:, LAST].tolist()]
    for hit, before in zip(hits.tolist(), ends, strict=False):
        assert before <= hit[FIRST] < hit[LAST] <= len(text)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_utf_8_are_passed(data: bytes) -> None:
    broken = pa.Array.from_buffers(
        pa.large_string(), 1, [None, pa.py_buffer(np.array([0, len(data)], np.int64)), pa.py_buffer(data)]
    )
    assert (find_hits(broken, [0], _shipped()).hits[:, LAST] <= len(data)).all()


def _shipped() -> Table:
    from pipeline_tasks.text.toxicity.shipped import shipped_path

    return table_of((shipped_path("en"),))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("obscene 2: a1b\n", "line 1"),
        ("obscene 4: word\n", "line 1"),
        ("rude 2: word\n", "line 1"),
        ("mention: word\n", "no entry"),
        ("obscene 2: word\ninsult 1: word\n", "line 2"),
        ("obscene 2: two words*\n", "line 1"),
        (" word\n", "line 1"),
    ],
)
def test_a_file_that_is_no_lexicon_is_refused_without_its_words(content: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(content)
    with pytest.raises(RecipeError, match=named) as refused:
        read_lexicon(str(path))
    assert "a1b" not in str(refused.value)
    assert "two words" not in str(refused.value)
