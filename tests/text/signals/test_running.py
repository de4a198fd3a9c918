"""The letters of a text that are in running sentences, in code and tables, or in neither, in any script."""

# ruff: noqa: RUF001 -- texts in many scripts

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.signals.running import running_letters

SENTENCES = {
    "en": "The river was low that summer. “Who walks across on the stones?” (asked the very old miller).",
    "de": "Im Sommer führte der Fluß wenig Wasser! Gingen die Kinder darum zur Mühle, z. B. am 3. Mai?",
    "ru": "Летом река обмелела, и дети переходили её по камням.",
    "el": "Το καλοκαίρι το ποτάμι είχε λίγο νερό. Πού πήγαν όμως τα παιδιά του χωριού εκείνη τη μέρα;\nΠήγαν στον μύλο.",
    "ar": "كان النهر منخفضا في ذلك الصيف، فهل عبره الأطفال؟ نعم، عبره كل أطفال القرية.",
    "hi": "उस गर्मी में नदी का पानी बहुत कम था और बच्चे पुरानी चक्की तक पहुँच जाते थे।",
    "am": "በዚያ በጋ የወንዙ ውሃ በጣም ዝቅተኛ ነበር፣ ልጆቹም በድንጋዮች ላይ ተሻገሩ።",
    "zh": "那年夏天河水很浅，孩子们踩着石头走到老磨坊。",
    "ja": "その夏は川の水がとても少なかった。子どもたちは石の上を歩いて渡っていった。",
    "th": "ฤดูร้อนปีนั้นน้ำในแม่น้ำลดลงมาก เด็กๆ จึงเดินข้ามก้อนหินไปยังโรงสีเก่าที่อยู่อีกฝั่งหนึ่ง",
    "km": "នៅរដូវក្តៅឆ្នាំនោះ ទឹកទន្លេបានស្រកចុះយ៉ាងខ្លាំង ហើយក្មេងៗបានដើរឆ្លងកាត់ថ្មទៅកាន់ម៉ាស៊ីនកិនស្រូវចាស់។",
}
CONTENTS = "1. Introduction\n1.1. What is a river?\n- Chapter 2. Mills and wheels\n- 2.1. Water\n- 3. Where to go on"
CODE = "def mill(river):\n    return river.flow * 2  # litres\nfor (;;) { wheel[i] += turn(&river); }"
TABLE = "Mill\tBuilt\tWheels\nOld mill\t1824\t2"
POEM = "The river sleeps, the mill is old,\nthe wheel has turned to moss and mold.\nWho walks across? A child, no more:\nthe summer left it on the shore."


def shares(text: str) -> tuple[float, float]:
    """Return the shares of running letters, and of those of code and tables."""
    [[running, apart, letters]] = running_letters(*views(pa.array([text], pa.large_string()))).tolist()
    return running / letters, apart / letters


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_of_every_script_run(language: str) -> None:
    running, apart = shares(SENTENCES[language])
    assert running > 0.85
    assert apart == 0


@pytest.mark.parametrize(
    "text", [CONTENTS, "Home\nAbout us\nAll rights reserved.", "def\nclass\nModule one", "河\n水\n石头"]
)
def test_lists_do_not_run(text: str) -> None:
    assert shares(text) == (0, 0)


def test_a_wide_mark_ends_a_sentence_within_a_line() -> None:
    assert shares("孩子们踩着石头走到老磨坊。水")[0] > 0.9


def test_code_and_tables_are_apart() -> None:
    assert shares(f"{CODE}\n{TABLE}") == (0, pytest.approx(1, abs=0.2))
    assert shares("  - an inner item of a list") == (0, 0)


def test_a_sentence_goes_on_in_the_next_line_of_text_that_is_wrapped() -> None:
    wrapped = "The river was low that summer, and the children walked\nacross it on stones to the mill.\n"
    assert shares(wrapped) == (1, 0)
    assert shares(wrapped.replace("\n", "\n\n"))[0] < 0.5
    assert shares(wrapped.replace("\n", "\n- "))[0] < 0.5
    assert shares(POEM)[0] > 0.25


@pytest.mark.parametrize(
    "line",
    [
        "Written for example.org and version 2.5 of it",
        "Chapter one, section A. 12",
        "On the way to the old mills, section 12. Water",
        "Fig. 7. Mill",
    ],
)
def test_a_stop_within_a_name_or_after_a_number_ends_nothing(line: str) -> None:
    assert shares(line) == (0, 0)


@given(st.lists(st.sampled_from([*SENTENCES.values(), CONTENTS, CODE, TABLE, POEM, "", "x"]), min_size=1))
def test_paragraphs_add_up(paragraphs: list[str]) -> None:
    texts = pa.array(["\n\n".join(paragraphs), *paragraphs], pa.large_string())
    whole, *parts = running_letters(*views(texts)).tolist()
    assert whole == [sum(column) for column in zip(*parts, strict=True)]


@given(st.text(max_size=200))
def test_kinds_are_parts_of_all_letters(text: str) -> None:
    [[running, apart, letters]] = running_letters(*views(pa.array([text], pa.large_string()))).tolist()
    assert running >= 0
    assert apart >= 0
    assert running + apart <= letters
