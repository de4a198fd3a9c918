"""What is to be pasted elsewhere has a button that copies it, in a browser with a clipboard and in one without."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install it (apt-get install chromium)"),
]

SCRIPT = Path(__file__).parents[2] / "plugins" / "refinery_airflow" / "templates" / "static" / "refinery.js"

PARAMS = '{"weights": {"en": 3.0}, "snapshots": ["<b>&amp;\u00e9"]}'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_a_button_copies_the_params_as_they_are(browser: Any, tmp_path: Path, *, has_clipboard: bool) -> None:
    escaped = PARAMS.replace("&", "&amp;").replace("<", "&lt;")
    page_file = tmp_path / "page.html"
    page_file.write_text(
        f'<meta charset="utf-8"><script data-vega="none">{SCRIPT.read_text()}</script>'
        f'<pre data-copy="Copy the params">{escaped}</pre><textarea></textarea>'
    )
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"] if has_clipboard else [])
    page = context.new_page()
    if not has_clipboard:
        page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.goto(page_file.as_uri())
    page.get_by_role("button", name="Copy the params").click()
    page.get_by_role("status").get_by_text("Copied").wait_for()
    page.locator("textarea").focus()
    page.keyboard.press("Control+V")
    assert page.locator("textarea").input_value() == PARAMS
    context.close()
