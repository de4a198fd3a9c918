"""What a removal leaves behind goes with it, in any language; what may be content stays, and is counted."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.edits.seams import KINDS, count_seams, mend

FIRST = "The miller counts his eels."
PROSE = "The mill stands by the river, and it grinds the corn of three villages all the year round."


def mended(before: list[str] | None, *after: str) -> tuple[str, list[str]]:
    """Return what is left of a text after a removal, and the kinds of lines that went."""
    old = None if before is None else pa.array(["\n\n".join(before)])
    found = mend(old, pa.array(["\n\n".join(after)]))
    return found.texts[0].as_py(), [KINDS[kind - 1] for kind in found.kinds.tolist()]


@pytest.mark.parametrize(
    "lead_in", ["Do as follows:", "Сделайте следующее:", "次のように行います\uff1a", "افعل ما يلي:"]
)
def test_a_lead_in_goes_with_what_it_led_to(lead_in: str) -> None:
    for gone in (PROSE, "- one eel", "    count(eels)"):
        for rest in ([], [PROSE + " Again."]):
            assert mended([FIRST, lead_in, gone, *rest], FIRST, lead_in, *rest) == (
                "\n\n".join([FIRST, *rest]),
                ["lead_in"],
            )


def test_a_lead_in_stays_where_a_list_goes_on_or_it_says_more() -> None:
    for rest in ("- two eels", "eels\t2", "    count(pikes)"):
        assert mended([FIRST, "As follows:", "- one eel", rest], FIRST, "As follows:", rest)[1] == []
    long = f"{PROSE} It does as follows:"
    assert mended([FIRST, long, PROSE, PROSE[4:]], FIRST, long, PROSE[4:])[1] == []
    assert mended([PROSE, FIRST, "As follows:", PROSE[4:]], FIRST, "As follows:", PROSE[4:])[1] == []


def test_a_heading_goes_where_the_text_ends_or_its_like_follows() -> None:
    assert mended([FIRST, "Eels, pikes", PROSE], FIRST, "Eels, pikes") == (FIRST, ["heading"])
    assert mended([FIRST, "Eels, pikes", "- one", "Corn", PROSE], FIRST, "Eels, pikes", "Corn", PROSE)[1] == []
    for after, kinds in (("## Corn", ["heading"]), ("# Corn", ["heading"]), ("### Corn", [])):
        assert mended([FIRST, "## Eels", PROSE, after, PROSE[4:]], FIRST, "## Eels", after, PROSE[4:])[1] == kinds
    assert mended([FIRST, "git-log(1), git-show(1)", "Part of the suite"], FIRST, "git-log(1), git-show(1)")[1] == []


def test_lines_that_a_removal_brings_together_are_one() -> None:
    assert mended([FIRST, "Eels", PROSE, "Eels", FIRST[:-1]], FIRST, "Eels", "Eels", FIRST[:-1])[1] == ["doubled"]
    assert mended([FIRST, "- Eels", PROSE, "- Eels", FIRST[:-1]], FIRST, "- Eels", "- Eels", FIRST[:-1])[1] == []
    assert mended([PROSE, FIRST, "Eels", FIRST, "- Corn"], PROSE, FIRST, FIRST, "- Corn")[1] == []
    assert mended([FIRST, "Eels", "Eels", PROSE, FIRST[:-1]], FIRST, "Eels", "Eels", FIRST[:-1])[1] == []


@pytest.mark.parametrize(
    ("last", "kinds"),
    [
        ("Take Quiz", ["scrap"]), ("扩展阅读", ["scrap"]), ("المزيد من المقالات", ["scrap"]), ("More from us:", ["lead_in"]),
        ("Kim Gump, Dallas", []), ("2 slices", []), ("- Eels", []), ("eels\tpikes", []), ("}", []), ("Stand: 04.02.2022", []),
        ("one two three four", []),
    ],
)  # fmt: skip
def test_the_end_of_a_page_loses_bare_words_alone(last: str, kinds: list[str]) -> None:
    assert mended(None, "Eels", PROSE, last) == ("\n\n".join(["Eels", PROSE, *([] if kinds else [last])]), kinds)
    assert mended(None, "Eels", PROSE[:-1], "Take Quiz")[1] == []


def test_a_headline_that_is_there_twice_is_there_once() -> None:
    assert mended(None, "Eels and pikes", "Eels and pikes", PROSE) == (f"Eels and pikes\n\n{PROSE}", ["doubled"])
    assert mended(None, "Eel", "Eel", "Eel", PROSE)[1] == []
    assert mended(None, PROSE, PROSE, FIRST)[1] == []


LINES = st.lists(
    st.sampled_from([FIRST, PROSE, "As follows:", "- one", "Eels", "# A", "## B", "    x = 1", "}", ":"]), max_size=9
)


@given(LINES, st.data())
def test_only_whole_lines_go_and_never_prose_nor_the_first(lines: list[str], drawn: st.DataObject) -> None:
    kept = [line for line in lines if drawn.draw(st.booleans())]
    found = mend(pa.array(["\n".join(lines)]), pa.array(["\n".join(kept)]))
    text, left = "\n".join(kept), found.texts[0].as_py()
    gone = {at for start, end in found.spans.tolist() for at in range(start, end)}
    assert "".join(sign for at, sign in enumerate(text) if at not in gone) == left
    assert left.count(PROSE) == text.count(PROSE)
    assert left.split("\n")[0] == text.split("\n")[0]


def test_seams_are_counted_by_the_text_alone() -> None:
    texts = {
        f"Eels\n\n{PROSE}": 0,
        f"Eels\n\nEels\n\n{PROSE}": 1,
        f"{PROSE}\n\n.\n\n{PROSE[:-1]}": 1,
        f"# Eels\n\n## Pikes\n\n## Corn\n\n{PROSE}": 1,
        f"{FIRST}\n\nAs follows:\n\n# Corn\n\n{PROSE}\n\nTake Quiz": 2,
        f"{FIRST}\n- one\n- one\n    }}\n    }}\n{PROSE}\n\nMore:": 1,
        "": 0,
    }
    assert count_seams(pa.array([*texts])).to_pylist() == [*texts.values()]
