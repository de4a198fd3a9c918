"""The page of columns in a real browser: values are pressed, the question is shared by its address, and it is accessible.

Only a browser says which button a form sends when Enter is pressed.
"""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.described_root import RECIPE, SNAPSHOT, published
from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "served"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("columns")
    published(root)
    return root


@pytest.mark.parametrize(("width", "theme"), [(1024, "dark"), pytest.param(1440, "light", marks=pytest.mark.nightly)])
def test_values_are_pressed_and_typed(browser: Browser, served: str, width: int, theme: Any) -> None:
    faults: list[str] = []
    address = f"{served}/columns/{RECIPE}/{SNAPSHOT}"
    page = opened(browser, address, faults, viewport={"width": width, "height": 900}, color_scheme=theme)
    field = page.get_by_label("Only where")
    page.get_by_role("button", name="recipe", exact=True).click()
    expect(field).to_have_value("document_type=recipe")
    page.get_by_role("button", name="forum", exact=True).click()
    expect(field).to_have_value("document_type=recipe,forum")
    field.fill("document_type=recipe, topic!=t0003")
    field.press("Enter")
    expect(field).to_have_value("document_type=recipe, topic!=t0003")
    expect(page.get_by_label("Lines for the recipe of a build")).to_contain_text("none_of: [t0003]")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page).response["violations"]
    assert [fault["id"] for fault in violations if fault["impact"] in ("serious", "critical")] == []
    page.get_by_role("link", name="Show these documents").click()
    expect(page.get_by_label("Only where")).to_have_value("document_type=recipe, topic!=t0003")
    assert faults == []
