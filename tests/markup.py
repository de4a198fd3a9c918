"""Checks of a page's HTML that hold for every page of the web UI."""

import html
import re


def assert_inert(page: str, script: str) -> None:
    """Nothing of a hostile text runs or styles the page, and its headings and tables are whole."""
    assert script not in page
    assert "&lt;script&gt;" in page
    assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert page.count("<h1") == 1
    assert page.count("<table") == page.count("<caption")


def words(page: str) -> str:
    """Return what a reader sees of a page: its words with one space between them."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())
