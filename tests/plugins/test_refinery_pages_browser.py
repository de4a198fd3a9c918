"""Every page in a real browser, found by itself from link to link: none is wider than a phone, and none fails."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.routing import Match

from tests import small_build
from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served
from tests.small_root import SmallRoot

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "served"]

PHONE = {"width": 390, "height": 844}
"""CSS pixels of a common phone."""

FOUND = {"page", "sources", "find", "ask", "verdicts", "snapshot", "compare", "rejects", "manifest", "build"}
"""First words of the addresses of pages that links have to lead to, so that a walk which finds few is no success."""

STORED = ("/files/", "/static/", "/rejects/{recipe}/{snapshot}/{stage}/rows")
"""What is a file, without our layout."""

LINKS = "[...document.querySelectorAll('a[href]:not([data-airflow], [download])')].map((each) => each.href)"

LONG_WORDS = """() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode())
    if (texts.currentNode.data.trim() && !texts.currentNode.parentElement.closest("svg, select, label, .state, .n, .nowrap, summary, thead, button, caption"))
      texts.currentNode.data += "w".repeat(120);
}"""
"""Opens what is folded, and gives each text a word that no line holds: pages show what others have named."""

KEEP_WHAT_IS_SAID = """() => {
  const place = document.querySelector(".waits");
  new MutationObserver(() => { sessionStorage.said = place.textContent; }).observe(place, {childList: true});
}"""
"""Keeps the last words about waiting for the page behind this one."""


@pytest.fixture(scope="module")
def root(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of snapshots, one of them retracted, and a training dataset."""
    whole = small_build.copied(small_root, tmp_path_factory.mktemp("walk"))
    small_build.build(whole, judged=True)
    return Path(whole.root)


def kind_of(app: Any, address: str) -> tuple[str, ...]:
    """Return of which kind the page of an address is: its route, the question that it asks, and what it is given."""
    split = urlsplit(address)
    scope = {"type": "http", "method": "GET", "path": split.path.removeprefix("/refinery"), "root_path": ""}
    for route in app.routes:
        match, found = route.matches(scope)
        if match is Match.FULL:
            asked = str(found["path_params"].get("name", ""))
            return route.path, asked, *sorted({name for name, _ in parse_qsl(split.query)})
    return ()


def walk(app: Any, page: Page, first: str) -> Iterator[tuple[str, ...]]:
    """Open one page of each kind that links lead to from the first on; yield its kind."""
    seen, ahead = set[tuple[str, ...]](), [first]
    for address in ahead:  # grows
        kind = kind_of(app, address)
        if not kind or kind in seen or kind[0].startswith(STORED) or urlsplit(address).netloc != urlsplit(first).netloc:
            continue
        seen.add(kind)
        response = page.goto(address)
        assert response is not None
        assert response.status < 500, address
        yield kind
        ahead += page.evaluate(LINKS)


def test_no_page_is_wider_than_a_phone(browser: Browser, served: str, app: Any) -> None:
    """Also where names are long; and each has the box that asks why, and tables that are scrolled by keys."""
    faults: list[str] = []
    page = opened(browser, f"{served}/page", faults, viewport=PHONE)
    page.route(re.compile("vega"), lambda route: route.fulfill(body=""))
    visited = set()
    for kind in walk(app, page, f"{served}/page"):
        visited.add(kind[0])
        page.evaluate(LONG_WORDS)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert (kind, wide) == (kind, 0)
        assert (kind, page.locator("form.seek input[name=what]").count()) == (kind, 1)
        assert (kind, page.locator(".wide:not([tabindex='0'])").count()) == (kind, 0)
    assert {path.split("/")[1] for path in visited} >= FOUND
    assert faults == []


def test_a_page_that_is_left_says_that_the_next_one_is_being_made(browser: Browser, served: str) -> None:
    """In Airflow's frame the browser shows nothing of it, and a first page that loads models takes long."""
    faults: list[str] = []
    page = opened(browser, f"{served}/ask", faults)
    expect(page.locator(".waits")).to_be_hidden()
    page.evaluate(KEEP_WHAT_IS_SAID)
    page.get_by_role("link", name="Sources").click()
    expect(page.get_by_role("heading", name="Sources")).to_be_visible()
    assert page.evaluate("sessionStorage.said") == "The next page is being made ..."
    expect(page.locator(".waits")).to_be_hidden()
    page.go_back()
    expect(page.get_by_role("heading", name="Questions")).to_be_visible()
    expect(page.locator(".waits")).to_be_hidden()
    assert faults == []
