"""The page of a comparison: what it says in words, its plots, and what it leaves unsaid."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import vl_convert
from refinery_ablate.comparison import LEAST_DOCUMENTS, Wanted, judge, prepare
from refinery_ablate.held_out import load_held_out
from refinery_ablate.job import HELD_OUT, PLAN, read_plan
from refinery_ablate.plots import COLORS, LEFT_OUT, SIDES, curves_plot, forest_plot
from refinery_ablate.report import PAGE, SMOKED, unsaid, words
from refinery_ablate.statistics import BETTER, SAME, UNDECIDED, WORSE
from refinery_ablate.verdict import Verdict

from pipeline_tasks.plots.drawing import COLORS as DRAWABLE
from tests.ablate import planted


@pytest.fixture
def folder(arms: tuple[str, str], sets: str, tmp_path: Path) -> Path:
    """A comparison that is prepared."""
    prepare(Wanted(arms, (sets,)), tmp_path / "to")
    return tmp_path / "to"


def judged(folder: Path, shift: float, shift_of_small: float | None = None) -> Verdict:
    planted.put_results(folder, read_plan(folder), shift, shift_of_small)
    return judge(folder)


def text_of(folder: Path) -> str:
    """The words of a page, without its style and tags."""
    html = (folder / PAGE).read_text()
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", re.sub(r"(?s)<style>.*?</style>", "", html)))


@pytest.mark.parametrize(
    ("shifts", "outcome", "said"),
    [
        ((-0.05, None), BETTER, "fewer"),
        ((0.05, None), WORSE, "more"),
        ((0.0, 0.0), SAME, "no proof of equality"),
        ((0.05, -0.05), UNDECIDED, "the other sign"),
        ((0.0, 0.05), UNDECIDED, "at another rate there is one"),
    ],
)
def test_an_outcome_is_said_in_words(folder: Path, shifts: tuple[float, float | None], outcome: str, said: str) -> None:
    verdict = judged(folder, *shifts)
    assert verdict.outcome == outcome
    assert any(said in sentence for sentence in words(verdict))
    assert said in text_of(folder)


def test_the_page_has_intervals_arms_groups_and_prices_and_fetches_nothing(folder: Path, arms: tuple[str, str]) -> None:
    verdict = judged(folder, -0.05)
    html, text = (folder / PAGE).read_text(), text_of(folder)
    assert "<script" not in html
    assert set(re.findall(r"https?://[^\"' )]+", html)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    for found in (*verdict.differences.values(), *verdict.groups.values()):
        assert f"{found.low:+.4f}" in text
    assert all(arm in text for arm in arms)
    assert f"crawl 120 120 {verdict.plan.arms[0].tokens:,} {verdict.plan.arms[1].tokens:,}" in text
    assert f"{verdict.deviation:.4f}" in text
    assert "3 (this comparison)" in text
    assert "US dollars" not in text
    judge(folder, usd_per_hour=100.0)
    assert "12.00 US dollars" in text_of(folder)  # 12 runs of 36 seconds


def test_a_page_is_written_where_the_roots_of_the_arms_are_gone(folder: Path, tmp_path: Path) -> None:
    raw = json.loads((folder / PLAN).read_bytes())
    for arm in raw["arms"]:
        arm["name"] = f"{tmp_path}/gone/{arm['name'].rpartition('/')[2]}"
    (folder / PLAN).write_text(json.dumps(raw))
    judged(folder, -0.05)
    assert "The root of an arm is not here" in text_of(folder)


def test_names_of_held_out_groups_are_escaped(arms: tuple[str, str], tmp_path: Path) -> None:
    rows = [{"text": " ".join(words), "domain": "<b>&bold"} for words in planted.texts(30, 8)]
    (tmp_path / "set.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    prepare(Wanted(arms, (str(tmp_path / "set.jsonl"),)), tmp_path / "to")
    judged(tmp_path / "to", -0.05)
    html = (tmp_path / "to" / PAGE).read_text()
    assert "&lt;b&gt;&amp;bold" in html
    assert "<b>&" not in html


def test_what_cannot_be_said_follows_from_the_comparison(folder: Path) -> None:
    verdict, held_out = judged(folder, -0.05), load_held_out(folder / HELD_OUT)
    said = list(unsaid(verdict, held_out, LEAST_DOCUMENTS))
    assert SMOKED in said
    assert not any("fewer than" in line for line in said)
    small = list(unsaid(verdict, held_out, 26))
    assert any("domain part 0 (25), domain part 1 (25)" in line for line in small)


# --- Plots --------------------------------------------------------------------------------------------------------


def test_curves_are_means_between_the_lowest_and_the_highest_seed(folder: Path) -> None:
    plan = read_plan(folder)
    planted.put_results(folder, plan, 0.0)
    plot = curves_plot(folder, plan, max(plan.rates))
    rows = plot.spec["data"]["values"]
    assert [row["arm"] for row in rows] == ["a"] * 9 + ["b"] * 9  # the first of ten steps is left out
    for row in rows:
        loss = 12 / row["step"] + (row["arm"] == "b")
        assert np.allclose((row["low"], row["mean"], row["high"]), (loss, loss + 0.1, loss + 0.2))
        assert row["tokens"] == round(plan.tokens * row["step"] / 10)
    assert rows[0]["step"] > LEFT_OUT * 10
    assert_drawn(plot.spec)
    assert set(COLORS.values()) <= set(DRAWABLE)


def test_a_forest_has_all_rates_and_groups_with_their_sides(folder: Path, arms: tuple[str, str]) -> None:
    verdict = judged(folder, 0.05, 0.0)
    plot = forest_plot(verdict.differences, verdict.groups)
    rows = {row["name"]: row for row in plot.spec["data"]["values"]}
    names = [f"all, rate {rate:g}" for rate in sorted(verdict.plan.rates, reverse=True)]
    assert list(rows) == [*names, *verdict.groups]
    assert [rows[name]["says"] for name in names] == ["worse", "no difference seen"]
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows.values())
    assert len(plot.rows) == len(rows)
    assert_drawn(plot.spec)
    assert set(SIDES.values()) <= set(DRAWABLE)


def assert_drawn(spec: object) -> None:
    assert vl_convert.vegalite_to_vega(spec, vl_version="6.1")["marks"]
    assert "<path" in vl_convert.vegalite_to_svg(spec, vl_version="6.1")
