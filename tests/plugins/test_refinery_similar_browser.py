"""The page of `look similar` in a real browser: reached from a document, whole and accessible in both themes.

Only the login is not Airflow's, as of the reading page (`test_refinery_read_browser.py`).
"""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from refinery_vectors.syncing import sync
from refinery_vectors.table import is_installed

from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served
from tests.vector_root import DAYS, RECIPE, VectorRoot, texts, vector_root

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "served"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> VectorRoot:
    """A root whose store has two of three days, where pylance is installed."""
    made = vector_root(tmp_path_factory.mktemp("similar"))
    if is_installed():
        sync(made.root, RECIPE)
    made.publish(DAYS[2], texts(9, 15))
    return made


@pytest.fixture(scope="module")
def root(published: VectorRoot) -> Path:
    return Path(published.root)


@pytest.mark.parametrize(("width", "theme"), [pytest.param(1024, "dark", marks=pytest.mark.nightly), (1440, "light")])
def test_it_leads_from_document_to_document_and_is_accessible(
    browser: Browser, served: str, published: VectorRoot, width: int, theme: Any
) -> None:
    faults: list[str] = []
    one = next(iter(published.stored(DAYS[0]).values()))
    address = f"{served}/ask/look-similar/{RECIPE}?document={one['id']}&where=language%3Dde"
    page = opened(browser, address, faults, viewport={"width": width, "height": 900}, color_scheme=theme)
    expect(page.get_by_role("heading", name="Similar documents")).to_be_visible()
    expect(page.get_by_role("cell", name=one["url"])).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page).response["violations"]
    assert [fault["id"] for fault in violations if fault["impact"] in ("serious", "critical")] == []
    page.locator(f'a[href*="/document/{RECIPE}/"]').nth(1).click()
    page.get_by_role("link", name="More like this").click()
    expect(page.get_by_role("heading", name="Similar documents")).to_be_visible()
    wanted = page.get_by_label("A published document")
    expect(wanted).not_to_have_value(one["id"])
    wanted.fill("nothing")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert [fault for fault in faults if "422" not in fault] == []
