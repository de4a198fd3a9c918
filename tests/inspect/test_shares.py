"""The shares of languages and sites are those that manifests have, beside the previous and the usual ones."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.inspect.report.shares import SiteShare, language_shares, name_courses, site_shares
from pipeline_tasks.plots.languages import HEAD, LanguageShare, languages_plot
from pipeline_tasks.publish.logs import version_log
from tests import described_root
from tests import small_root as small
from tests.mixed_root import DAYS, HOSTILE, RECIPE


@pytest.fixture
def root(mixed_root: Path) -> str:
    return str(mixed_root)


def versions(root: str, day: str = DAYS[-1]) -> tuple[Any, Any]:
    return version_log.current(root, RECIPE, day), version_log.earlier(root, RECIPE, day)


def test_languages_come_in_before_they_are_judged_and_are_kept_after_deduplication(root: str) -> None:
    languages = language_shares(root, *versions(root))
    assert languages is not None
    assert (languages.first, languages.last) == ("filter_language", "scrub_pii")
    assert languages.shares == (
        LanguageShare("en", 8, 5, 1.0, 20 / 26, 20 / 26),
        LanguageShare("de", 0, 0, 0.0, 6 / 26, 6 / 26),
        LanguageShare("fr", 2, 0, 0.0, 0.0, 0.0),
    )
    assert [language.retention for language in languages.shares] == [5 / 8, None, 0.0]


def test_the_median_needs_three_snapshots(root: str) -> None:
    first, third, fourth = (language_shares(root, *versions(root, DAYS[at])) for at in (0, 2, 3))
    assert first
    assert third
    assert fourth
    shares = [(languages.shares[0].previous, languages.shares[0].usual) for languages in (first, third, fourth)]
    assert shares == [(None, None), (20 / 26, None), (20 / 26, 20 / 26)]
    assert [site.change for site in site_shares(root, *versions(root, DAYS[2]))] == [None] * 16
    assert {site.change for site in site_shares(root, *versions(root, DAYS[3]))} == {0.0}


def test_sites_have_their_rise_and_what_deduplication_removed(root: str) -> None:
    """The manifests of usual days do not name the new site: it had a document at most of the 26."""
    assert site_shares(root, *versions(root)) == [
        SiteShare(HOSTILE, 6, 6 / 8, 6 / 8 - 1 / 26, at_least=True, loss=3 / 6, stage="dedup_exact"),
        SiteShare("a.org", 2, 2 / 8, 2 / 8 - 6 / 26, at_least=False, loss=0.0, stage=""),
    ]


def test_a_recipe_without_languages_has_sites_alone(small_root: small.SmallRoot) -> None:
    first, second = version_log.latest_by_snapshot(small_root.root, small.RECIPE)
    assert language_shares(small_root.root, second, [first]) is None
    [site] = site_shares(small_root.root, second, [first])
    assert (site.name, site.share, site.change) == ("example.org", 1.0, None)


def test_the_plot_has_known_shares_and_its_table_the_documents(root: str) -> None:
    languages = language_shares(root, *versions(root))
    assert languages is not None
    plot = languages_plot(languages.shares)
    assert plot is not None
    drawn = [(row["value"], row["series"], round(row["share"], 3)) for row in plot.spec["data"]["values"]]
    assert drawn == [
        (code, series, share)
        for code, shares in (("en", (1.0, 0.769, 0.769)), ("de", (0.0, 0.231, 0.231)))
        for series, share in zip(HEAD[4:], shares, strict=True)
    ]
    assert plot.rows == [
        ("en", "8", "5", "62.50%", "100.00%", "76.92%", "76.92%"),
        ("de", "0", "0", "-", "0.00%", "23.08%", "23.08%"),
        ("fr", "2", "0", "0.00%", "0.00%", "0.00%", "0.00%"),
    ]
    assert languages_plot([]) is None


def test_types_and_topics_are_followed_over_the_snapshots_that_count_them(tmp_path: Path) -> None:
    described_root.published(tmp_path)  # the first snapshot counts neither
    version = described_root.publish(tmp_path, "2026-11-21", described_root.described(tmp_path), 5)
    earlier = version_log.earlier(str(tmp_path), described_root.RECIPE, version.snapshot)
    courses = dict(name_courses(str(tmp_path), version, earlier))
    assert [*courses] == ["topic", "document_type"]
    for course in courses.values():
        assert [snapshot for snapshot, _ in course] == [described_root.SNAPSHOT, "2026-11-21"]
        assert [sum(shares.values()) for _, shares in course] == pytest.approx([1, 1])
    assert courses["topic"][0][1] == {"t0001": 0.4, "t0002": 0.2, "t0003": 0.2, "unknown": 0.2}
