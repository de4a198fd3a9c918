"""Documents are compared before and after the stages that judge them, and what nothing measured is idle."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.inspect.report.plotted import PAGE, write_plots
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.signals import with_quantiles
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.report.comparison_plots import comparison_plot, lines_of
from pipeline_tasks.report.comparisons import Comparison, comparisons
from pipeline_tasks.report.left_over import LeftOver
from tests.gate.samples import healthy, numbers
from tests.judged_root import RECIPE, judged_root

TITLES = ["Integrity", "Personal data", "Toxicity", "Perplexity"]


def by_title(*manifests: Manifest) -> dict[str, Comparison]:
    compared = comparisons({manifest.stage: manifest for manifest in manifests})
    assert [comparison.title for comparison in compared] == TITLES
    return {comparison.title: comparison for comparison in compared}


def signals(profile_name: str, **values: Sequence[float]) -> dict[str, Any]:
    column = pa.StructArray.from_arrays([pa.array(of, pa.float64()) for of in values.values()], names=[*values])
    rows = len(column)
    return profile(
        pa.table({"language": ["en"] * rows, f"signals_{profile_name}": column}), [f"signals_{profile_name}"]
    )


def test_shares_of_documents_with_any_are_before_and_after_the_filters() -> None:
    metrics = {
        "kept": signals("c4", curly_brackets=[0, 0, 1, 0]) | signals("c4_badwords", bad_words=[0, 0, 0, 0]),
        "rejects": signals("c4", curly_brackets=[400.0]) | signals("c4_badwords", bad_words=[0.001]),
    }
    found = by_title(replace(healthy("filter_quality"), metrics=with_quantiles(metrics)))
    [braces] = found["Integrity"].measures
    assert (braces.name, braces.before, braces.after) == ("braces", 2 / 5, 1 / 4)
    [words] = found["Toxicity"].measures
    assert (words.before, words.after) == (1 / 5, 0)
    assert found["Toxicity"].idle == ""


def test_what_nothing_measured_is_idle() -> None:
    found = by_title(healthy("extract"))
    assert all(comparison.idle.startswith("idle: ") and not comparison.measures for comparison in found.values())
    assert all(comparison_plot(comparison) is None for comparison in found.values())


@pytest.mark.parametrize(("params", "is_idle"), [({}, True), ({"limits": {"seeds": {"toxic_words": "a"}}}, False)])
def test_the_rule_of_a_list_that_is_not_there_is_idle(params: dict[str, Any], is_idle: bool) -> None:
    metrics = {"kept": signals("seeds", listed_words=[0.0, 0.1], code_keywords=[0, 1]), "rejects": {}}
    found = by_title(replace(healthy("filter_quality"), metrics=with_quantiles(metrics), params=params))
    assert bool(found["Toxicity"].idle) == is_idle
    assert found["Integrity"].idle == ""


def test_personal_data_is_found_and_taken_out_and_perplexity_has_mean_and_quantiles() -> None:
    scored = replace(
        healthy("score_quality"),
        metrics={"kept": numbers(perplexity=[0.5, 0.7]), "rejects": numbers(perplexity=[0.1, 0.1])},
    )
    found = by_title(healthy("scrub_pii"), scored)
    measures = {each.name: (each.before, each.after) for each in found["Personal data"].measures}
    assert measures == {"email": (0.5, None), "phone": (0.5, None), "ip": (0.0, None)}, "nobody looked at texts"
    assert "the report of the snapshot says in which it is left" in found["Personal data"].note
    mean, _, median, _ = found["Perplexity"].measures
    assert (round(mean.before, 3), round(mean.after, 3)) == (0.355, 0.605)
    assert (median.before, median.after) == (0.1, 0.5)


def test_personal_data_after_is_what_a_sample_of_the_texts_has() -> None:
    [found] = [
        each
        for each in comparisons({"scrub_pii": healthy("scrub_pii")}, LeftOver(8, {"email": 1, "phone": 0}))
        if each.title == "Personal data"
    ]
    assert [(each.name, each.after) for each in found.measures] == [("email", 0.125), ("phone", 0.0), ("ip", None)]
    assert "of 8 documents that left, chosen by hash," in found.note
    assert lines_of(found)[1:] == [("phone", "50.00%", "0.00%"), ("ip", "0.00%", "-")]
    plot = comparison_plot(found)
    assert plot
    assert len(plot.spec["data"]["values"]) == 5


def test_the_page_of_a_version_draws_them_or_says_that_they_are_idle(tmp_path: Path) -> None:
    root = judged_root(tmp_path)
    page = write_plots(root, version_log.current(root, RECIPE), tmp_path / "plots").read_text()
    assert (tmp_path / "plots" / "compared_integrity.svg").exists()
    assert re.findall(r"<h2>(\w[\w ]*), before and after</h2>\s*<p[^>]*>idle: ", page) == TITLES[1:]
    assert (tmp_path / "plots" / PAGE).exists()
