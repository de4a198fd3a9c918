"""The main text of a page by each method, and pages that are too deep for some."""

import pytest

from pipeline_tasks.text.page.main_text import DEEPEST, METHODS, load, main_text

PROSE = "The river was low that summer, and the children walked across it on stones to the mill. " * 8
HTML = f"<html lang=en><head><title>The  mill</title></head><body><nav><a href=/>Home</a></nav><p>{PROSE}</p></body></html>"


@pytest.mark.parametrize("method", METHODS)
def test_the_main_text_is_found(method: str) -> None:
    load(method)
    main = main_text(HTML, method)
    assert main.text.strip() == PROSE.strip()
    assert (main.metadata.title, main.metadata.language, main.metadata.published) == ("The mill", "en", None)


@pytest.mark.parametrize("method", METHODS)
def test_a_page_too_deep_gives_all_of_its_text(method: str) -> None:
    deep = "<div>" * (DEEPEST + 1) + "<nav>Home</nav><p>Words</p>"
    assert main_text(deep, method, depth=DEEPEST + 1).text.split() == ["Home", "Words"]
