"""What a removal leaves behind goes with it, in any language; what may be content stays, and is counted."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.schema import BLOCK, SEAMS
from pipeline_tasks.text.edits.seams import KINDS, count_seams, mend, with_cut

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


LOOKS = (
    f"{FIRST}\n\nEels\n\nEels\n\n# Pikes\n\n# Corn\n\n{{}}\n\n.\n\n{{}}\n\nAs follows:\n\n# Carps\n\n{FIRST}\n\nMore"
)
"""Five seams by the look of them, of which those around what is put in are none until something goes there."""

GONE = "The abbot writes to the miller, and asks him for the eels of the whole year before the lent."


@pytest.mark.parametrize(
    ("before", "after", "seams"),
    [
        (LOOKS.format(PROSE, GONE), None, 0),
        (LOOKS.format(PROSE, GONE), LOOKS.format(PROSE, GONE).replace(f"\n\n{PROSE}", ""), 1),  # the sign is behind it
        (LOOKS.format(PROSE, GONE), LOOKS.format(PROSE, GONE).replace(GONE, "The abbot writes."), 1),
        (LOOKS.format(PROSE, GONE) + f"\n\n{GONE}", LOOKS.format(PROSE, GONE), 0),  # mended
        (f"{PROSE}\n\nEels\n\nEels\n\n{GONE}\n\n{FIRST}", f"{PROSE}\n\nEels\n\nEels\n\n{FIRST}", 0),
        (f"{PROSE}\n\n{FIRST}\n\n{GONE}\n\n{FIRST}", f"{PROSE}\n\n{FIRST}\n\n{FIRST}", 1),
        (f"{PROSE}\n\n# Eels\n\n{GONE} {GONE}", f"{PROSE}\n\n# Eels", 0),  # mended
    ],
)
def test_a_seam_is_where_a_stage_took_something_out(before: str, after: str | None, seams: int) -> None:
    batch = pa.record_batch({"text": [before, LOOKS, None], "chars": [0, 0, 0], SEAMS: [7, 7, 7]})
    touched = pa.array([after is not None, False, False])
    done = with_cut(batch, pa.array([after] if after else [], pa.string()), touched)
    assert done[SEAMS].to_pylist() == [seams, 0, 0]
    assert with_cut(batch.drop_columns([SEAMS]), pa.array([after] if after else [], pa.string()), touched)[
        SEAMS
    ].equals(done[SEAMS])


def test_a_seam_of_a_page_is_where_a_block_was_left_out() -> None:
    lines = LOOKS.format(PROSE, GONE).split("\n\n")
    text, at, blocks = "\n\n".join(lines), 0, []
    for line in lines:
        blocks.append({"start": at, "end": at + len(line)})
        at += len(line) + 2
    gone, pieces = {"start": None, "end": None}, range(len(blocks) + 1)
    without = [[*blocks[:place], gone, *blocks[place:]] for place in pieces]
    rows = [blocks, [*blocks[:1], gone, *blocks[-1:]], [], None, *without]
    counts = count_seams(pa.array([text] * len(rows)), pa.array(rows, pa.list_(BLOCK))).to_pylist()
    assert counts[:4] == [0, 0, 0, 5]
    assert counts[4:] == [int(place in {2, 4, 6, 7, 9, len(blocks)}) for place in pieces]
    assert sum(counts[4:]) == 6  # a sign has two edges
    assert count_seams(pa.array(["", text]), pa.array([[gone], blocks], pa.list_(BLOCK))).to_pylist() == [0, 0]
