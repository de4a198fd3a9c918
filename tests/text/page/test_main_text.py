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


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
def test_a_list_is_kept_however_near_the_top_it_is(depth: int) -> None:
    """Resiliparse takes one near the top for navigation; what a page marks as that is left out still."""
    prose = "<p>The ferry leaves the harbor every morning before the fog has lifted from the water.</p>" * 4
    inside = (
        "<div>" * depth
        + f"<h1>T</h1>{prose}<ul><li>You may take your data with you.</li></ul>{prose}"
        + "</div>" * depth
    )
    html = f"<!doctype html><html><body><nav><ul><li>Home</li></ul></nav>{inside}</body></html>"
    text = main_text(html, "blocks").text
    assert "You may take your data with you." in text
    assert "Home" not in text


@pytest.mark.parametrize("method", METHODS)
def test_a_script_that_seems_closed_is_no_text(method: str) -> None:
    code = "(function() { register(menu, configuration, 'and, with many words, all the parts of it'); })()\n" * 20
    script = f'<script type="text/javascript"/>\n{code}</script>'
    html = f"<html><body><ul><li>Menu</li></ul>{script}<div><div><p>The ferry leaves at dawn.</p></div></div></body></html>"
    assert "register" not in main_text(html, method).text


def test_beginnings_of_scripts_take_linear_time() -> None:
    html = f"<html><body><p>{'A sentence of a page with many scripts. ' * 20}</p>{'<script ' * 100_000}</body></html>"
    for method in METHODS:
        assert "A sentence" in main_text(html, method).text


@pytest.mark.parametrize("method", METHODS[:-1])
@pytest.mark.parametrize("later", ["", "<script>var a = 1;</script>"])
def test_an_empty_script_of_xhtml_takes_no_text_with_it(method: str, later: str) -> None:
    prose = "".join(f"<p>The bridge of the year {year} was built when the river changed.</p>" for year in range(9))
    html = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><script src="a.js"/></head><body>{prose}{later}</body></html>'
    assert main_text(html, method).text.count("The bridge") == 9


def test_empty_scripts_of_xhtml_take_linear_time() -> None:
    html = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>A sentence.</p>{"<script a/>" * 50_000}{"a" * 500_000}'
    assert "A sentence" in main_text(html, "resiliparse").text
