"""A verdict in a real browser: its plots are drawn and the page is accessible in both themes.

Only a browser says whether Vega draws intervals and bands under the pages' policy.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from refinery_ablate.statistics import SAME

from pipeline_tasks.publish.logs.ablation_log import ATTRIBUTION, AblatedArm, ablations, record_ablation
from tests.ablated_root import given_verdict, made
from tests.plugins.browser import NEEDS_CHROMIUM, browser, opened, served

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]

__all__ = ["browser", "served"]


def changed_in(arm: AblatedArm, stage: str) -> dict[str, str]:
    """Return what the recipe of an arm chooses, but for a stage."""
    return dict(arm.choices["base"]) | {stage: ""}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ablated")
    given_verdict(folder, made(folder), -0.05)
    (known,) = ablations(str(folder / "root"))
    first, second = known.arms
    for stage, shift, outcome in (("extract", 0.03, "worse"), ("dedup_exact", -0.07, "better"), ("ingest", 0.0, SAME)):
        without = replace(second, digest=stage, choices=dict(second.choices) | {"mine": changed_in(first, stage)})
        changed = tuple(replace(each, value=shift, low=shift - 0.01, high=shift + 0.01) for each in known.differences)
        of_stage = replace(known, kind=ATTRIBUTION, arms=(first, without), outcome=outcome, differences=changed)
        record_ablation(str(folder / "root"), of_stage)
    return folder / "root"


@pytest.mark.parametrize(("width", "theme"), [(1024, "dark"), pytest.param(1440, "light", marks=pytest.mark.nightly)])
def test_intervals_and_curves_are_drawn(browser: Browser, served: str, width: int, theme: Any) -> None:
    faults: list[str] = []
    look: dict[str, Any] = {"viewport": {"width": width, "height": 1000}, "color_scheme": theme}
    listed = opened(browser, f"{served}/verdicts", faults, **look)
    listed.get_by_role("link", name="mine_set@1").click()
    expect(listed.get_by_role("heading", level=1)).to_contain_text("mine_set@1 beside base_set@1")
    page = opened(browser, f"{served}/verdicts/1", faults, **look)
    expect(page.locator("[data-drawn=yes]")).to_have_count(3)  # the forest, and the curves of two rates
    expect(page.locator("[data-drawn=yes] .mark-area.role-mark path")).to_have_count(4)  # a band of each arm
    attributed = opened(browser, f"{served}/verdicts/2", faults, **look)
    expect(attributed.get_by_role("table", name="without a stage").get_by_role("row")).to_have_count(4)
    for shown in (listed, page, attributed):
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        violations = Axe().run(shown).response["violations"]
        assert [fault["id"] for fault in violations if fault["impact"] in ("serious", "critical")] == []
    assert faults == []
