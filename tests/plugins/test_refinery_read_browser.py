"""The reading page in a real browser: judged by keys alone, accessible in both themes, and without a fault of a script."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from refinery_study.read.answers import answers

from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served
from tests.plugins.test_refinery_read import PATH, refined_once, root

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "refined_once", "root", "served"]


@pytest.fixture
def address(served: str) -> str:
    """The address of the reading page."""
    return f"{served}{PATH}"


def test_a_sample_is_judged_by_keys(browser: Browser, address: str, root: Path) -> None:
    faults: list[str] = []
    page = opened(browser, address, faults)
    expect(page.get_by_text("document 1 of 3")).to_be_visible()
    page.keyboard.press("g")
    expect(page.get_by_text("document 2 of 3")).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_text("document 3 of 3")).to_be_visible()
    page.keyboard.press("b")
    expect(page.get_by_label("Why", exact=True)).to_be_focused()
    page.keyboard.type("gone by half")  # letters that are keys elsewhere
    page.keyboard.press("Enter")
    expect(page.get_by_text("document 2 of 3")).to_be_visible()
    page.get_by_label("Keys").uncheck()
    page.keyboard.press("g")
    page.get_by_role("link", name="Skip s").click()
    expect(page.get_by_text("document 2 of 3")).to_be_visible()  # the only one that is left
    expect(page.get_by_label("Keys")).not_to_be_checked()
    page.get_by_role("button", name="Bad").click()  # without a reason the browser does not send it
    expect(page.get_by_text("document 2 of 3")).to_be_visible()
    page.get_by_role("button", name="Good").click()
    expect(page.get_by_text("You have judged all 3 documents")).to_be_visible()
    given = [(answer.verdict, answer.why) for answer in answers(str(root), "tiny")]
    assert given == [("good", ""), ("bad", "gone by half"), ("good", "")]
    assert faults == []


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (1024, "dark"),
        pytest.param(1440, "light", marks=pytest.mark.nightly),
        pytest.param(1024, "light", marks=pytest.mark.nightly),
        pytest.param(1440, "dark", marks=pytest.mark.nightly),
    ],
)
def test_it_is_whole_and_accessible(browser: Browser, address: str, theme: Any, width: int) -> None:
    faults: list[str] = []
    size = {"width": width, "height": 900}
    page = opened(browser, address, faults, viewport=size, color_scheme=theme)
    for at in range(4):  # also after an answer, and behind the last document
        expect(page.get_by_text(f"document {at + 1} of 3" if at < 3 else "You have judged all")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        violations = Axe().run(page).response["violations"]
        assert [fault["id"] for fault in violations if fault["impact"] in ("serious", "critical")] == []
        page.keyboard.press("g")
    assert faults == []
