"""A real browser, and a web server of this process that serves the pages of a test's root to it.

Only the login is not Airflow's: what serves the pages is a web server on loopback. It takes seconds, where the pages of a
whole Airflow take minutes (`tests/server`).
"""

import shutil
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

SECONDS = 60
"""Within which a page has to show what a test expects of it; it is a bound against hanging, and not a promise."""

expect.set_options(timeout=SECONDS * 1000)

NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine: install it (apt-get install chromium)"
)


@pytest.fixture
def served(visitor: Any, app: Any) -> Iterator[str]:
    """The address of the pages, which a web server of this process serves."""
    import uvicorn
    from fastapi import FastAPI, Response

    outer = FastAPI()
    outer.mount("/refinery", app)
    outer.add_api_route("/favicon.ico", lambda: Response(status_code=204))
    server = uvicorn.Server(uvicorn.Config(outer, host="127.0.0.1", port=0, log_level="warning"))
    listener = server.config.bind_socket()
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/refinery"
    server.should_exit = True
    thread.join()
    listener.close()


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Browser, address: str, faults: list[str], **settings: Any) -> Page:
    """Return the page at an address; faults of its scripts are added to `faults`."""
    context = browser.new_context(**settings)
    context.set_default_timeout(SECONDS * 1000)
    page = context.new_page()
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    return page
