"""The map in a real browser: drawn and accessible in both themes, and a point opens its document.

Only a browser says whether Vega draws so many points under the pages' policy, and where a click leads.
"""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.map_root import RECIPE, SNAPSHOT, given_map, published
from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "served"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("map")
    given_map(root, published(root))
    return root


@pytest.mark.parametrize(("width", "theme"), [(1024, "dark"), pytest.param(1440, "light", marks=pytest.mark.nightly)])
def test_points_are_drawn_and_open_their_documents(browser: Browser, served: str, width: int, theme: Any) -> None:
    faults: list[str] = []
    address = f"{served}/map/{RECIPE}/{SNAPSHOT}?by=kind"
    page = opened(browser, address, faults, viewport={"width": width, "height": 1000}, color_scheme=theme)
    points = page.locator("[data-drawn=yes] .mark-symbol.role-mark path")
    expect(points).to_have_count(30)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page).response["violations"]
    assert [fault["id"] for fault in violations if fault["impact"] in ("serious", "critical")] == []
    circle = page.locator('[data-drawn=yes] path[aria-label*="group: court"]').nth(3)
    circle.hover()
    expect(page.locator("#vg-tooltip-element.visible")).to_contain_text("Page")
    circle.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("ocument")
    assert f"/document/{RECIPE}/{SNAPSHOT}?doc=" in page.url
    assert faults == []
