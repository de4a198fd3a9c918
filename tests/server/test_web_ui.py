"""Refinery in Airflow's web UI, in a real browser: the form, the approval of a refused gate, and every page."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.airflow_server import Airflow, Server, land
from tests.archives import http, response, zipped

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: install it (apt-get install chromium)"),
]

DATASET, DAG = "shown", "refine_shown"
DAY, LATER = "2026-11-20", "2026-11-21"
SCRIPT = "<script>document.title = 'taken over'</script>"
SECONDS = 60.0
"""Time in which a page has to answer, also where tests run beside each other on two cores."""

expect.set_options(timeout=SECONDS * 1000)

FAULTS = ("serious", "critical")
"""Impacts of axe-core that no page of ours may have."""


@dataclass(frozen=True, slots=True)
class Site:
    """Airflow's web server, and the browser."""

    airflow: Airflow
    browser: Browser
    root: str
    logins: dict[str, Any] = field(default_factory=dict)

    def context(self, user: str, **settings: Any) -> BrowserContext:
        """Return a window in which a user is logged in: once by the form, and then by the cookies of that."""
        context = self.browser.new_context(storage_state=self.logins.get(user), **settings)
        context.set_default_timeout(SECONDS * 1000)
        if user not in self.logins:
            self.log_in(context, user)
            self.logins[user] = context.storage_state()
        return context

    def log_in(self, context: BrowserContext, user: str) -> None:
        """Log a user in."""
        page = context.new_page()
        page.goto(self.airflow.url)
        page.locator("[name=username]").fill(user)
        page.locator("[name=password]").fill(self.airflow.passwords[user])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda url: "login" not in url)
        page.close()


@pytest.fixture(scope="module")
def site(server: Server) -> Iterator[Site]:
    hostile = response(f"https://x.example.org/?{SCRIPT}", http(b"<html><body></body></html>"))
    land(server.landing(DATASET), DAY, 0, listed=True, more=b"".join(zipped([hostile])))
    with server.airflow(DATASET) as airflow, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Site(airflow, browser, server.root(DATASET))
        browser.close()


@pytest.fixture(scope="module")
def published(site: Site) -> Site:
    """The site after a run that was started from the form, and whose refused gate a person approved in the browser."""
    with site.context("ada", viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{site.airflow.url}/dags/{DAG}")
        page.get_by_role("button", name="Trigger").first.click()
        form = page.get_by_role("dialog")
        expect(form.get_by_text("Its name, as it landed; empty: the date of the run")).to_be_visible()
        expect(form.get_by_role("button", name="Trigger", exact=True)).to_be_enabled()  # with nothing filled in
        form.locator("[name=element_snapshot]").fill(DAY)
        form.get_by_role("button", name="Trigger", exact=True).click()
        expect(form).to_be_hidden()
        run = started_by_hand(site.airflow)
        approve(page, site.airflow, run)
        site.airflow.waits_until(run, "success")
    publish_again(site.root)
    return site


def publish_again(root: str) -> None:
    """Publish the same documents as those of a later day, so that there are two versions to compare."""
    [version] = version_log.versions(root, DATASET)
    same = {entry.name: getattr(version, entry.name) for entry in fields(version) if entry.name != "number"}
    version_log.append(root, same | {"snapshot": LATER, "documents": version.documents - 1})


def approve(page: Page, airflow: Airflow, run: str) -> None:
    """Approve in the browser what the gate refuses, until it lets pass."""
    gate = "extract.gate"

    def answer() -> None:
        page.goto(f"{airflow.url}/dags/{DAG}/runs/{run}/tasks/{gate}/required_actions")
        expect(page.get_by_text("What is out of bounds")).to_be_visible()
        expect(page.get_by_role("button", name="Approve")).to_be_disabled()
        page.locator("[name=element_reason]").fill("a small trial crawl")
        with page.expect_response(lambda reply: reply.request.method == "PATCH"):
            page.get_by_role("button", name="Approve").click()

    airflow.decide(run, gate, answer, lambda: airflow.state(run, gate) == "success")


def started_by_hand(airflow: Airflow) -> str:
    """Return the id of the one run that the form started."""
    [run] = [run for run in airflow.runs() if run["run_type"] == "manual"]
    return str(run["dag_run_id"])


def open_page(context: BrowserContext, url: str) -> tuple[Page, list[str]]:
    """Open a page; return it, and what went wrong in it: errors of scripts, and requests to other hosts."""
    page, faults = context.new_page(), list[str]()

    def keep_error(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(message.text)

    def keep_stranger(request: Any) -> None:
        if urlsplit(request.url).netloc not in (urlsplit(url).netloc, ""):
            faults.append(f"asks {request.url}")

    page.on("console", keep_error)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", keep_stranger)
    page.goto(url)
    page.wait_for_load_state("networkidle")
    return page, faults


@pytest.fixture(scope="module")
def paths(published: Site) -> list[str]:
    """The paths of Refinery's pages, as their own links name them."""
    site = published
    with site.context("admin") as context:
        page, _ = open_page(context, f"{site.airflow.url}/refinery/snapshot/{DATASET}/{DAY}")
        links = {str(link.get_attribute("href")) for link in page.locator("main a[href^='/refinery/']").all()}
    kinds = {link.split("/")[2]: link for link in sorted(links)}  # one of each kind
    fixed = ["/refinery/page", f"/refinery/snapshot/{DATASET}/{DAY}", "/refinery/find?site=x.example.org"]
    kept = f"/refinery/document/{DATASET}/{DAY}?doc={kept_document(site.root)}"
    texts = f"/refinery/search/{DATASET}/{DAY}?phrase=the"
    return [*fixed, f"/refinery/compare/{DATASET}", kept, texts, *kinds.values()]


def kept_document(root: str) -> str:
    """Return the id of a document that was kept."""
    version = version_log.current(root, DATASET, DAY)
    shards = read_manifest(root, version.manifests["filter_quality"]).shards
    return str(next(read_shards(root, shards, ["id"])).column("id")[0])


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (1024, "dark"),
        (1440, "light"),
        pytest.param(1024, "light", marks=pytest.mark.nightly),
        pytest.param(1440, "dark", marks=pytest.mark.nightly),
    ],
)
def test_pages_are_whole_and_accessible(published: Site, paths: list[str], theme: Any, width: int) -> None:
    """No script fails, nothing is asked of another host, no page is wider than the window, axe-core finds no fault."""
    assert {"rejects", "manifest", "files", "whatif", "document", "ask"} <= {path.split("/")[2] for path in paths}, (
        paths
    )
    with published.context("admin", viewport={"width": width, "height": 900}, color_scheme=theme) as context:
        for path in paths:
            page, faults = open_page(context, f"{published.airflow.url}{path}")
            assert faults == [], path
            assert page.title() != "taken over"
            if path.startswith("/refinery/files/"):
                continue  # a page as it is stored, without our layout
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate("document.documentElement.dataset.theme") == theme, path
            violations = Axe().run(page).response["violations"]
            assert [(fault["id"], path) for fault in violations if fault["impact"] in FAULTS] == []
            assert page.locator("[data-drawn=no]").count() == 0, path
            page.close()


def test_other_bounds_are_tried_with_the_keyboard_and_the_slider(published: Site) -> None:
    with published.context("ada", viewport={"width": 1024, "height": 900}) as context:
        page, faults = open_page(context, f"{published.airflow.url}/refinery/whatif/{DATASET}/{DAY}")
        field = page.get_by_label("min_doc_words", exact=True)
        page.get_by_label("min_doc_words, as a slider").press("End")
        expect(field).to_have_value("80")
        field.fill("1000")
        field.press("Enter")
        page.wait_for_url(f"**/refinery/whatif/{DATASET}/{DAY}?gopher_quality.min_doc_words=1000")
        expect(page.get_by_label("Lines for the recipe")).to_contain_text("min_doc_words: 1000")
        expect(page.get_by_text("-9 rows")).to_be_visible()
        page.get_by_role("link", name="Take back gopher_quality.min_doc_words").click()
        page.wait_for_url(f"**/refinery/whatif/{DATASET}/{DAY}")
        assert faults == []


def test_the_page_is_in_airflows_navigation_and_works_from_the_keyboard(published: Site) -> None:
    with published.context("ada", viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto(published.airflow.url)
        page.get_by_role("link", name="Refinery").click()
        frame = page.frame_locator("iframe")
        expect(frame.get_by_role("heading", name="Snapshots", exact=True)).to_be_visible()
        link = frame.get_by_role("link", name=DAY).first
        link.focus()
        page.keyboard.press("Enter")
        expect(frame.get_by_role("heading", name=DAY)).to_be_visible()
        expect(frame.get_by_text("approved").first).to_be_visible()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") == "IFRAME"


def test_a_viewer_sees_numbers_and_no_text_of_the_crawl(published: Site) -> None:
    with published.context("vera") as context:
        overview, faults = open_page(context, f"{published.airflow.url}/refinery/snapshot/{DATASET}/{DAY}")
        assert faults == []
        assert "extract:empty" in overview.content()
        refused, _ = open_page(context, f"{published.airflow.url}/refinery/rejects/{DATASET}/{DAY}/extract")
        expect(refused.get_by_role("heading", name="Not allowed")).to_be_visible()
        assert "x.example.org" not in refused.content()


def test_a_curator_reads_what_was_kept_and_nothing_that_was_rejected(published: Site) -> None:
    with published.context("ada") as context:
        kept = f"/refinery/document/{DATASET}/{DAY}?doc={kept_document(published.root)}"
        document, faults = open_page(context, f"{published.airflow.url}{kept}")
        assert faults == []
        expect(document.get_by_role("heading", name="Not allowed")).to_have_count(0)
        assert kept_document(published.root) in document.content()
        refused, _ = open_page(context, f"{published.airflow.url}/refinery/rejects/{DATASET}/{DAY}/extract")
        expect(refused.get_by_role("heading", name="Not allowed")).to_be_visible()
        assert "x.example.org" not in refused.content()


def test_a_script_of_the_crawl_stays_text(published: Site) -> None:
    with published.context("admin") as context:
        page, faults = open_page(context, f"{published.airflow.url}/refinery/rejects/{DATASET}/{DAY}/extract")
        assert faults == []
        assert "&lt;script&gt;" in page.content()
        assert page.title() != "taken over"
