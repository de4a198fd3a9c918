"""The share of a page's own sentences that a text has, in any script, whatever else the page shows."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.coverage import OMITTED, coverages

SENTENCES = {
    "en": "The river was low that summer, and the children walked across it on stones to the old mill.",
    "de": "Im Sommer führte der Fluß so wenig Wasser, daß die Kinder auf Steinen zur alten Mühle gingen.",
    "ru": "Летом река обмелела, и дети переходили её по камням, чтобы добраться до старой мельницы.",
    "ar": "كان النهر منخفضا في ذلك الصيف، وكان الأطفال يعبرونه على الحجارة ليصلوا إلى الطاحونة القديمة.",
    "hi": "उस गर्मी में नदी का पानी बहुत कम था और बच्चे पत्थरों पर चलकर पुरानी चक्की तक पहुँच जाते थे।",
    "ja": "その夏は川の水がとても少なく、子どもたちは石の上を歩いて古い水車小屋まで渡っていった。",
    "th": "ฤดูร้อนปีนั้นน้ำในแม่น้ำลดลงมาก เด็กๆ จึงเดินข้ามก้อนหินไปยังโรงสีเก่าที่อยู่อีกฝั่งหนึ่ง",
}
OTHER = "Nobody had repaired the roof of the barn since the great storm, and so the rain came in for years."

CHANCE = 0.1
"""More than what few windows are found by chance."""


def covered(page: str, text: str) -> float:
    pages, texts = pa.array([page.encode()], pa.large_binary()), pa.array([text], pa.large_string())
    return float(coverages(pages, [0], texts)[0])


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_in_the_text_or_not(language: str) -> None:
    sentence = SENTENCES[language]
    page = f"<title>x</title><p>{sentence}</p>"
    assert covered(page, f"Before. {sentence}\nAfter") == 1
    assert covered(page, OTHER) < CHANCE
    assert covered(page, "") == 0


def test_the_share_is_that_of_letters() -> None:
    page = "".join(f"<p>{sentence}</p>" for sentence in [*SENTENCES.values(), OTHER])
    text = "\n".join(SENTENCES.values())
    whole = sum(map(len, SENTENCES.values()))
    assert covered(page, text) == pytest.approx(whole / (whole + len(OTHER)), abs=0.05)


@pytest.mark.parametrize(
    "clutter",
    [
        "<p>A heading of many words without a full stop, although it is as long as many a sentence is</p>",
        "<p>Short. Very short.</p>",
        "<p>Written by many hands for example.org/and/other/places/of/the/world and for www.example.net/as/well</p>",
        f"<p><a href=/>{OTHER}</a></p>",
        f"<a href=/><h2>{OTHER}</h2></a>",
        f"<p><a href=/>{OTHER}{OTHER}</a> Read on where we left you, if you can, in the large archive of all of our older stories.",
        f"<!-- <p>{OTHER}</p> -->",
        *(f"<{name} class=x>{OTHER}</{name}>" for name in OMITTED),
    ],
)
def test_what_is_no_sentence_of_the_page_does_not_count(clutter: str) -> None:
    page = f"{clutter}<p>{SENTENCES['en']}</p>{clutter}"
    assert covered(page, SENTENCES["en"]) == 1
    assert math.isnan(covered(clutter, SENTENCES["en"]))


def test_marks_and_links_within_a_sentence_change_nothing() -> None:
    page = (
        "<P>The <b>river</b> was low that&nbsp;summer, and <a href='/children'>the children</a> walked<br>across it "
        "on <EM>stones</EM> &#8212; to the <!-- very --> old mill.</p>"
    )
    assert covered(page, SENTENCES["en"].replace("stones", "stones\u2014")) == 1
    assert covered(page, OTHER) < CHANCE


def test_letters_that_are_references_are_not_looked_for() -> None:
    page = f"<p>{SENTENCES['de']}</p>".replace("ü", "&uuml;").replace("ß", "&#223;")
    assert covered(page, SENTENCES["de"]) == 1


def test_a_name_and_an_unclosed_tag_do_not_hide_the_rest() -> None:
    page = f"<svg>{OTHER}<p class='sidebar hidden' id=comment>{SENTENCES['en']}"
    assert covered(page, SENTENCES["en"]) == pytest.approx(0.5, abs=0.1)


@given(st.lists(st.sampled_from([*SENTENCES.values(), OTHER]), max_size=6), st.integers(0, 6), st.integers(1, 3))
def test_more_text_never_covers_less(sentences: list[str], first: int, copies: int) -> None:
    page = "".join(f"<p>{sentence}</p>" for sentence in sentences) * copies
    some, every = ("\n".join(part) for part in (sentences[:first], sentences))
    if not sentences:
        assert math.isnan(covered(page, every))
    else:
        assert 0 <= covered(page, some) <= 1
        assert covered(page, every) == 1


@given(st.binary(max_size=300), st.text(max_size=100))
def test_any_bytes_have_a_share_or_none(page: bytes, text: str) -> None:
    share = coverages(
        pa.array([b"<p>", page, b""], pa.large_binary()), [1], pa.array(["", text, ""], pa.large_string())
    )
    assert math.isnan(share[0]) or 0 <= share[0] <= 1
