"""The target on the what-if page: its estimates, the bounds that give it, and an address that keeps it."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from refinery_study.plan.token_target import target_estimate

from pipeline_tasks.inspect.whatif import whatif
from pipeline_tasks.publish.logs import version_log
from tests.judged_root import RECIPE, SNAPSHOT, TOKENS, judged_root

PAGE = f"/whatif/{RECIPE}/{SNAPSHOT}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(judged_root(tmp_path_factory.mktemp("judged")))


def tiles(page: str) -> dict[str, str]:
    pairs = re.findall(r"<dt>([^<]+)</dt><dd>([^<]*)<", page)
    return {name: " ".join(value.split()) for name, value in pairs}


def test_a_page_without_a_target_offers_a_slider(visitor: Any) -> None:
    page = visitor.get(PAGE).text
    assert (
        f'name="target_tokens" type="number" value="" placeholder="none" step="any" min="1" data-slider="{4 * TOKENS}"'
        in page
    )
    assert "Bytes to land" not in page


def test_a_target_is_answered_for_the_chosen_bounds(visitor: Any, root: Path) -> None:
    change = {"gopher_quality.min_doc_words": "90"}
    version = version_log.current(str(root), RECIPE)
    now, then = whatif(str(root), version, ["gopher_quality.min_doc_words=90"]).characters
    for fields, share in (({}, 1.0), (change, then / now)):
        shown = tiles(visitor.get(PAGE, params={"target_tokens": "5e6", **fields}).text)
        estimate = target_estimate(str(root), version, 5e6, share)
        assert shown["Snapshots like this one"] == f"{estimate.snapshots:,.0f}"
        assert shown["Bytes to land"] == f"{estimate.demand.landed / 1e6:.1f} MB"
        assert "Cost of compute" in shown


def test_looser_bounds_lead_to_pages_that_reach_the_target(visitor: Any) -> None:
    page = visitor.get(PAGE, params={"target_tokens": str(TOKENS * 1.2)}).text
    links = [html.unescape(link) for link in re.findall(r'href="/refinery([^"]+)" aria-label="Try ', page)]
    assert links
    for link in links:
        assert "the target is reached by what has landed" in visitor.get(link).text
    page = visitor.get(PAGE, params={"target_tokens": "1e9"}).text
    assert "No looser bound alone gives the target" in page
    assert 'aria-label="Try ' not in page


def test_the_target_is_kept_in_the_address(visitor: Any) -> None:
    sent = {"gopher_quality.min_doc_words": "30", "language": "", "packs": "builtin", "target_tokens": " 2e6 "}
    answer = visitor.get(PAGE, params=sent, follow_redirects=False)
    kept = "target_tokens=2e6&gopher_quality.min_doc_words=30"
    assert answer.headers["location"] == f"/refinery{PAGE}?{kept}"
    assert f'href="/refinery{PAGE}?target_tokens=2e6"' in visitor.get(f"{PAGE}?{kept}").text, "take back"


def test_what_is_no_number_is_said_and_kept_as_typed(visitor: Any) -> None:
    page = visitor.get(PAGE, params={"target_tokens": "<script>"}).text
    assert "write a number of tokens from 1 to 1e+18" in html.unescape(page)
    assert 'type="text" value="&lt;script&gt;"' in page
    assert "<script>" not in page
    assert "Kept" in tiles(page) or "Share that is kept" in page


def test_bounds_that_keep_nothing_have_no_estimate(visitor: Any) -> None:
    fields = {"target_tokens": "5e6", "gopher_quality.min_doc_words": "99999"}
    page = visitor.get(PAGE, params=fields).text
    assert "These bounds keep nothing" in page
    assert "Bytes to land" not in page
