"""The page of the foreign document in a real browser: answered by keys, accessible in both themes, no fault of a script."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from refinery_study.intruder.answers import answers

from tests.intruder_root import RECIPE
from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served
from tests.plugins.test_refinery_intruder import PAGE, drawn_of, root

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "root", "served"]


def test_draws_are_answered_by_keys(browser: Browser, served: str, root: Path) -> None:
    faults: list[str] = []
    page = opened(browser, f"{served}{PAGE}?by=topic", faults)
    expect(page.get_by_text("draw 1")).to_be_visible()
    page.keyboard.press(str(drawn_of(root, "topic").place + 1))
    expect(page.get_by_text("Right.", exact=True)).to_be_visible()
    page.keyboard.press("1")  # the draw is answered
    page.keyboard.press("n")
    expect(page.get_by_text("draw 2")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_text("draw 3")).to_be_visible()
    page.get_by_role("button", name=f"Document {(drawn_of(root, 'topic', 3).place + 1) % 5 + 1}").click()
    expect(page.get_by_text("Wrong.", exact=True)).to_be_visible()
    assert [(answer.seed, answer.is_right) for answer in answers(str(root), RECIPE)] == [(1, True), (3, False)]
    assert faults == []


@pytest.mark.parametrize(("width", "theme"), [pytest.param(1024, "dark", marks=pytest.mark.nightly), (1440, "light")])
def test_it_is_whole_and_accessible(browser: Browser, served: str, root: Path, theme: Any, width: int) -> None:
    faults: list[str] = []
    size = {"width": width, "height": 900}
    page = opened(browser, f"{served}{PAGE}?by=level", faults, viewport=size, color_scheme=theme)
    for key in ("", "2", "n"):  # before and after an answer, and the next draw
        page.keyboard.press(key) if key else None
        expect(
            page.get_by_text({"": "Nobody has looked", "2": "the others are of", "n": "draw 2"}[key]).first
        ).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        violations = Axe().run(page).response["violations"]
        assert [fault["id"] for fault in violations if fault["impact"] in ("serious", "critical")] == []
    assert faults == []
