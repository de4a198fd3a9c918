"""A text that a library chose takes the layout of the page, and what stands between two of its lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.merging import STRUCTURE, merge

ONE, TWO = (f"The {name} was low that summer, and the children walked across it." for name in ("river", "brook"))


@pytest.mark.parametrize(
    ("chosen", "laid", "merged"),
    [
        (f"{ONE}\n{TWO}", f"Home\n\n{ONE}\n\n{TWO}\n\nShare", f"{ONE}\n\n{TWO}"),
        (f"{ONE}\n{TWO}", f"{ONE}\n\n- a\n- b\n\n{TWO}", f"{ONE}\n\n- a\n- b\n\n{TWO}"),
        (f"{ONE}\n{TWO}", f"{ONE}\n\nRead more\n\n{TWO}", f"{ONE}\n\n{TWO}"),
        (f"{ONE}\n{TWO}", f"{ONE}\n\n{STRUCTURE * 2}On brooks\n\n{TWO} {ONE}", f"{ONE}\n{TWO}"),
        (
            f"{ONE}\n{TWO} {ONE}",
            f"{ONE}\n\n{STRUCTURE * 2}On brooks\n\n{TWO} {ONE}",
            f"{ONE}\n\nOn brooks\n\n{TWO} {ONE}",
        ),
        (f"{ONE}\nAbout us", f"{ONE}\n\n{STRUCTURE * 2}Also read\n\nAbout us", f"{ONE}\n\nAbout us"),
        (f"Home {ONE} {TWO} {ONE} Share", f"{ONE}\n\n{STRUCTURE * 2}X\n\n{TWO}\n{ONE}", f"{ONE}\n\n\n{TWO}\n{ONE}"),
        (f"Home {ONE} {TWO} {ONE}", f"| Tools |\n| --- |\n\n{ONE}\n```\n{TWO}\n```", f"\n{ONE}\n```\n{TWO}\n```"),
        (f"{ONE}\n   About", TWO, f"{ONE}\nAbout"),
        (f"{ONE} {TWO}", f"{ONE}\n\n{TWO}", f"{ONE}\n\n{TWO}"),
        ("a | b\nc | d", "a\tb\nc\td", "a\tb\nc\td"),
        (
            f"{ONE}\nif x: return 1",
            f"{ONE}\n\n{STRUCTURE}if x:\n{STRUCTURE}    return 1",
            f"{ONE}\n\nif x:\n    return 1",
        ),
        (
            f"{ONE}\n{TWO}",
            f"{ONE}\n\n{STRUCTURE}if x:\n{STRUCTURE}\n{STRUCTURE}y\n\n{TWO}",
            f"{ONE}\n\nif x:\n\ny\n\n{TWO}",
        ),
        (f"{ONE}\nOnly here.\n{TWO}", f"{ONE}\n\n{TWO}", f"{ONE}\nOnly here.\n\n{TWO}"),
        (f"{TWO}\n{ONE}", f"{ONE}\n{TWO}", f"{TWO}\n{ONE}"),
        ("The river was low", f"{ONE} {TWO}", "The river was low"),
        ("", ONE, ""),
    ],
)
def test_examples(chosen: str, laid: str, merged: str) -> None:
    assert merge(chosen, laid) == merged


LINES = st.lists(st.sampled_from(["", ONE, TWO, "- a", "b\tc", "Home", "日本", "---", f"{ONE} {TWO}"]), max_size=9)


@given(LINES, LINES)
def test_every_word_that_is_chosen_stays(chosen: list[str], laid: list[str]) -> None:
    merged = merge("\n".join(chosen), "\n".join(laid))
    assert {word for line in chosen for word in line.split() if word != "---"} <= set(merged.split()) | {"-"}


@given(LINES)
def test_a_text_is_laid_out_as_itself(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert merge(text, text).split() == [word for line in lines if line != "---" for word in line.split()]
