"""The page of sources in a real browser: whole and accessible in both themes, without a fault of a script."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served
from tests.plugins.test_refinery_standing import root

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "root", "served"]


@pytest.mark.parametrize(("width", "theme"), [pytest.param(1024, "dark", marks=pytest.mark.nightly), (1440, "light")])
def test_it_is_whole_and_accessible(browser: Browser, served: str, root: Path, theme: Any, width: int) -> None:
    faults: list[str] = []
    size = {"width": width, "height": 1100}
    page = opened(browser, f"{served}/sources", faults, viewport=size, color_scheme=theme)
    expect(page.get_by_role("link", name="Sources")).to_have_attribute("aria-current", "page")
    page.get_by_text("Terms and query").first.click()
    expect(page.get_by_text("Take it").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page).response["violations"]
    assert [fault["id"] for fault in violations if fault["impact"] in ("serious", "critical")] == []
    assert faults == []
    page.screenshot(path=root.parent / f"sources-{width}.png")
    assert (root.parent / f"sources-{width}.png").stat().st_size > 0
