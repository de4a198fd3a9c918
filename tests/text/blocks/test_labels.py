"""Labels of blocks: marked text is found in order, once, in every script."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.blocks.labels import label_blocks

FIRST = "The river rises in the hills above the town and turns to the south."
SECOND = "Its banks were cleared of trees when the railway came through the valley."
THIRD = "Boats of shallow draft still carry gravel down to the harbor every week."


def labels(blocks: list[str], gold: str) -> list[int]:
    texts = [block.encode() for block in blocks]
    ends = np.cumsum([len(text) + 1 for text in texts]).astype(np.int32) - 1
    starts = np.array([end - len(text) for end, text in zip(ends, texts, strict=True)], np.int32)
    text = np.frombuffer(b"\n".join(texts) + b"\n", np.uint8)
    return label_blocks(text, starts, ends.astype(np.int32), np.frombuffer(gold.encode(), np.uint8)).tolist()


def test_a_text_that_the_page_has_twice_is_main_text_once() -> None:
    assert labels([FIRST, SECOND, "Menu", FIRST, SECOND], f"{FIRST}\n{SECOND}") == [255, 255, 0, 0, 0]


def test_a_headline_is_the_copy_before_its_text() -> None:
    blocks = ["The river", "Home", "The river", FIRST, "The river"]
    assert labels(blocks, f"The river\n{FIRST}") == [0, 0, 255, 255, 0]


def test_a_short_label_counts_only_at_its_place() -> None:
    blocks = ["Length", "About us", FIRST, "Length", "42 km", SECOND, "Length"]
    assert labels(blocks, f"{FIRST}\nLength\n42 km\n{SECOND}") == [0, 0, 255, 255, 255, 255, 0]


def test_a_long_block_counts_at_another_place_of_the_marked_text() -> None:
    assert labels([THIRD, FIRST, SECOND], f"{FIRST}\n{SECOND}\n{THIRD}") == [255, 255, 255]


def test_a_block_that_is_marked_in_part_has_its_share() -> None:
    (share,) = labels([f"{FIRST} {THIRD}"], FIRST)
    assert 100 < share < 150


@pytest.mark.parametrize(
    "lines",
    [
        ["川は町の北の丘から流れ出て南へ向かう。", "岸の木は鉄道が通ったときに切られた。"],
        ["Ποταμός πηγάζει στους λόφους της πόλης.", "Δέντρα στις όχθες κόπηκαν παλιά."],
        ["แม่น้ำไหลมาจากเนินเขาทางเหนือของเมือง", "ต้นไม้ริมฝั่งถูกตัดไปนานแล้ว"],
        ["ينبع النهر من التلال شمال المدينة ثم يتجه جنوبا.", "قطعت الأشجار على ضفافه منذ زمن."],
        ["नदी नगर के उत्तर की पहाड़ियों से निकलती है।", "किनारे के पेड़ बहुत पहले काटे गए।"],
    ],
)
def test_every_script_is_aligned(lines: list[str]) -> None:
    assert labels(["menu", lines[0], "x", lines[1]], "\n".join(lines)) == [0, 255, 0, 255]


def test_nothing_is_main_text_where_nothing_is_marked() -> None:
    assert labels([FIRST, "..."], "") == [0, 0]
    assert labels([], FIRST) == []


WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "1", "川"]), min_size=1, max_size=12)


@given(st.lists(WORDS.map(" ".join), max_size=12))
def test_a_page_that_is_marked_whole_is_main_text_whole(blocks: list[str]) -> None:
    assert labels(blocks, "\n".join(blocks)) == [255] * len(blocks)
