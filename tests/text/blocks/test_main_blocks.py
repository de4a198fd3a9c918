"""What belongs together of a page's blocks, whatever their scores: here every block has the same one."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline_tasks.text.blocks import features
from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.coupling import RELATIONS
from pipeline_tasks.text.blocks.main_blocks import main_blocks
from pipeline_tasks.text.blocks.model import LEAF, Model

ALL = Model(
    features=np.array([LEAF], np.uint16),
    thresholds=np.zeros(1, np.uint8),
    jumps=np.zeros(1, np.uint16),
    values=np.zeros(1, np.int16),
    roots=np.zeros(1, np.int32),
    couplings=np.zeros(4 * RELATIONS, np.int16),
    base=1 << 13,
    card={},
)
LONG_ALONE = replace(
    ALL,
    features=np.array([features.NAMES.index("words"), LEAF, LEAF], np.uint16),
    thresholds=np.array([12, 0, 0], np.uint8),
    jumps=np.array([2, 0, 0], np.uint16),
    values=np.array([0, -(1 << 14), 0], np.int16),
)
"""A tree that keeps blocks of over 12 words."""

NAMES = ("Before you begin", "Install the pump", "Check the valves")
TEXT = "<p>The pump is in the cellar, below the stairs, and its valves are numbered from the left.</p>"


def linked(*names: str) -> str:
    return "".join(f"<li><a href='#{nth}'>{name}</a></li>" for nth, name in enumerate(names))


def sections(*names: str) -> str:
    return "".join(f"<h2 id={nth}>{name}</h2>{TEXT}" for nth, name in enumerate(names))


def kept(page: str, model: Model = ALL) -> list[str]:
    data = np.frombuffer(page.encode(), np.uint8)
    blocks = read_blocks(data)
    chosen = main_blocks(blocks, data, model, 1.0).chosen
    texts = [blocks.text[a:b].tobytes().decode() for a, b in zip(blocks.starts, blocks.ends, strict=True)]
    return [text for text, is_kept in zip(texts, chosen, strict=True) if is_kept]


@pytest.mark.parametrize(
    "contents",
    [
        f"<h2>Contents</h2><ul>{linked(*NAMES)}</ul>",
        f"<p>On this page:</p><ul>{linked(*NAMES)}</ul>",
        f"<ul>{linked(*(f'{nth}.1 {name}' for nth, name in enumerate(NAMES)))}</ul>",
        f"<ul>{linked(NAMES[0], NAMES[1], NAMES[2].upper())}</ul>",
        f"<ol>{linked(*NAMES[:2])}<li><ol>{linked(*NAMES[2:])}</ol></ol>",
        "".join(f"<div><a href='#x'>{name}</a></div>" for name in NAMES),
    ],
)
def test_a_list_of_contents_is_no_text(contents: str) -> None:
    body = f"{TEXT}{contents}{sections(*NAMES)}"
    assert kept(f"<h1>Pumps</h1>{body}") == kept(f"<h1>Pumps</h1>{TEXT}{sections(*NAMES)}")


def test_a_link_of_another_list_goes_with_none_of_contents() -> None:
    body = f"<ul>{linked(*NAMES)}</ul><ul>{linked('Errata')}</ul>{sections(*NAMES)}"
    assert kept(f"<h1>Pumps</h1>{TEXT}{body}")[:3] == ["Pumps", TEXT[3:-4], "Errata"]


@pytest.mark.parametrize(
    ("page", "headline"),
    [
        (
            "<title>The old mill - News</title><h3>The old mill</h3><h2>How to see the old mill and the news</h2>",
            "The old mill",
        ),
        ("<title>mill(1)</title><h1>mill(1) Manual Page</h1><h2>NAME</h2>", "mill(1) Manual Page"),
        ("<title>The Old Mill</title><div>The Old Mill</div><div>Table of contents</div>", "The Old Mill"),
        ("<title>On mills</title><h1><a href=/>The Valley Post</a></h1><div>3 May</div>", ""),
        ("<title>On mills</title><h1>One of us</h1><h1>Another</h1>", ""),
    ],
)
def test_the_headline_is_kept_whatever_its_score(page: str, headline: str) -> None:
    assert kept(f"{page}{TEXT * 3}", LONG_ALONE)[0] == (headline or TEXT[3:-4])


@pytest.mark.parametrize(
    ("listed", "headed"),
    [
        (linked(*NAMES), NAMES[:1]),  # of other pages
        (linked(*NAMES[:2]), NAMES[:2]),  # two are no list
        ("".join(f"<li>{name}</li>" for name in NAMES), NAMES),  # a summary is text
        (linked("All about the pumps of the house", *NAMES[:2], "Help", "News"), NAMES[:2]),
        (linked(*(f"Chapter {nth}" for nth in range(1, 9))), ["Chapter 9"]),
        (linked(*(f"Chapter {nth}" for nth in (1, 1, 1, 1))), ["Chapter 1"]),
    ],
)
def test_other_lists_are(listed: str, headed: tuple[str, ...]) -> None:
    items = kept(f"<h1>Pumps</h1>{TEXT}<ul>{listed}</ul>{sections(*headed)}")
    assert len(items) == 2 + listed.count("<li>") + 2 * len(headed)


def test_a_list_that_follows_its_headings_is_none_of_contents() -> None:
    assert kept(f"<h1>Pumps</h1>{sections(*NAMES)}<ul>{linked(*NAMES)}</ul>")[-3:] == list(NAMES)
