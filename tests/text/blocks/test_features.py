"""Features of blocks: what surrounds them counts, names of classes do not, and a hidden page is read as shown."""

import numpy as np
import pytest

from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.features import NAMES, block_features, shown_blocks

LONG = "The river rises in the hills above the town, and it turns to the south where the railway crosses it."
PAGE = (
    "<html><head><title>The river</title>{head}</head><body><nav class='{a}'><a href=/>Home</a></nav>"
    "<div class='{b}' id='{a}'><h1>The river</h1><p class='{c}'>{text}</p><p>{text} It was built in 1987.</p></div>"
    "<ul><li class='{b}'>Map $ 12.50</li><li>Boat 3,00 €</li><li>Tent £9</li></ul></body></html>"
)


def features(page: str) -> dict[str, list[int]]:
    data = np.frombuffer(page.encode(), np.uint8)
    rows = block_features(read_blocks(data), data)
    return {name: rows[:, nth].tolist() for nth, name in enumerate(NAMES)}


def page(a: str = "menu", b: str = "sidebar", c: str = "comment", head: str = "", text: str = LONG) -> str:
    return PAGE.format(a=a, b=b, c=c, head=head, text=text)


def test_no_name_of_a_class_or_id_is_read() -> None:
    assert features(page()) == features(page("x1", "x2", "x3"))


def test_prices_and_years_are_counted() -> None:
    found = features(page())
    assert found["years"] == [0, 0, 0, 1, 0, 0, 0]
    assert set(found["page_prices"]) == {3}


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('<script type="application/ld+json">{"@type": "Product", "name": "x"}</script>', "page_stated_product"),
        ('<script type="application/ld+json">{"@type":["NewsArticle"]}</script>', "page_stated_article"),
        ('<meta itemscope itemtype="https://schema.org/Offer">', "page_stated_offer"),
        ('<meta property="og:type" content="article">', "page_open_graph"),
        ('<meta content="product" property="og:type">', "page_open_graph"),
    ],
)
def test_what_a_page_states_about_its_type_is_counted(head: str, name: str) -> None:
    assert set(features(page())[name]) == {0}
    assert min(features(page(head=head))[name]) > 0


@pytest.mark.parametrize(
    "head",
    [
        f'<meta name="description" content="{LONG}">',
        f"<META content='{LONG}' PROPERTY=og:description />",
        f'<meta name="x"><meta property="twitter:description" data-x=1 content="On rivers. {LONG} It is > all">',
    ],
)
def test_what_a_page_says_of_itself_is_known_in_its_text(head: str) -> None:
    assert set(features(page())["is_description"]) == {0}
    found = features(page(head=head))["is_description"]
    assert found[2] == 255
    assert max(found[4:]) < 128


@pytest.mark.parametrize("head", [f'<meta name="keywords" content="{LONG}">', "<meta name=description", "<meta <meta"])
def test_other_facts_of_a_page_describe_nothing(head: str) -> None:
    assert set(features(page(head=head))["is_description"]) == {0}


@pytest.mark.parametrize(
    ("hidden", "shown", "expected"),
    [
        (f"<p>{LONG}</p><p>{LONG}</p>", "<p>Please turn scripts on.</p>", True),
        (f"<p>{LONG}</p>", f"<p>{LONG}</p><p>{LONG}</p>", False),
        ("<p>Print</p>", f"<p>{LONG}</p>", False),
    ],
)
def test_hidden_text_is_shown_where_it_is_most_of_the_page(hidden: str, shown: str, *, expected: bool) -> None:
    blocks = read_blocks(np.frombuffer(f"<noscript>{hidden}</noscript>{shown}".encode(), np.uint8))
    assert shown_blocks(blocks)[0] == expected
    assert shown_blocks(blocks)[-1]
