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
from tests.small_build import DATASET
from tests.small_root import DAYS, RECIPE, SmallRoot

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "served"]

PHONE = {"width": 390, "height": 844}
"""CSS pixels of a common phone."""

LINKED = {"/ask/{name}", "/manifest/{path:path}", "/rejects/{recipe}/{snapshot}/{stage}", "/sample/{path:path}"}
"""Routes of pages that links have to lead to, so that a walk which finds few is no success."""

STORED = ("/files/", "/static/", "/card/", "/rejects/{recipe}/{snapshot}/{stage}/rows")
"""What is a file, without our layout."""

VERSIONS = ({"recipe": RECIPE, "snapshot": DAYS[0]}, {"recipe": DATASET, "snapshot": "build"})
"""A refined snapshot, and a training dataset."""

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


def pages(app: Any) -> dict[str, list[str]]:
    """Return by route the paths of the pages of whole versions, and of those that need none."""
    routes = [route.path for route in app.routes if "GET" in (getattr(route, "methods", None) or ())]
    named = {path: set(re.findall(r"{(\w+)", path)) for path in routes if not path.startswith(STORED)}
    whole = {path: names for path, names in named.items() if names <= {"recipe", "snapshot"}}
    return {path: [path.format(**version) for version in VERSIONS[: len(names) or 1]] for path, names in whole.items()}


def walk(app: Any, page: Page, served: str) -> Iterator[tuple[str, ...]]:
    """Open the pages of whole versions, and one of each other kind that links lead to; yield the kinds."""
    ahead = [f"{served}{path}" for paths in pages(app).values() for path in paths]
    whole, seen = set(ahead), set[tuple[str, ...]]()
    for address in ahead:  # grows
        kind = kind_of(app, address)
        if not kind or kind[0].startswith(STORED) or urlsplit(address).netloc != urlsplit(served).netloc:
            continue
        if kind in seen and address not in whole:
            continue
        whole.discard(address)
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
    for kind in walk(app, page, served):
        visited.add(kind[0])
        page.evaluate(LONG_WORDS)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert (kind, wide) == (kind, 0)
        assert (kind, page.locator("form.seek input[name=what]").count()) == (kind, 1)
        assert (kind, page.locator(".wide:not([tabindex='0'])").count()) == (kind, 0)
    assert visited >= pages(app).keys() | LINKED
    refused = re.compile("Failed to load resource: .* status of 4")  # a page that is asked for nothing, or has nothing
    assert [fault for fault in faults if not refused.match(fault)] == []


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
