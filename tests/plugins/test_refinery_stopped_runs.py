"""Pages of runs that published nothing: the overview has their rows, and their own page shows the stages so far."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.test_refinery_runs import add_run, session
from tests.stopped_runs import DAY, LATER, RECIPE, Runs

__all__ = ["session"]

REJECTED = "It was rejected: robots only (Ada Lovelace, 2026-11-20 12:00:30 UTC)."
FAILED = "2026-11-21"
CUT_OFF = "2026-11-22"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root into which nothing was ever published: one run was refused and rejected, one failed, one was cut off."""
    runs = Runs(tmp_path_factory.mktemp("stopped"))
    runs.run(day=LATER, refused_by="extract")
    runs.fail("extract.gate", REJECTED, day=LATER, error="GateRefused")
    runs.run(day=FAILED, until="ingest")
    runs.fail("extract.partition", "BudgetExceeded: <b>30</b> of 40 records are quarantined", day=FAILED)
    runs.run(day=CUT_OFF, until="extract")
    return Path(runs.root)


def row_of(page: str, snapshot: str) -> str:
    """Return the row of a snapshot in the table of every snapshot, without markup."""
    rows = re.findall(r"<tr>.*?</tr>", page[page.index("Every snapshot:") :], re.DOTALL)
    [row] = [row for row in rows if f">{snapshot}</a>" in row]
    return " ".join(re.sub(r"<[^>]+>", " ", row).split())


def test_a_recipe_is_listed_from_its_first_run_on(visitor: Any) -> None:
    page = visitor.get("/page").text
    refused, failed, cut_off = (row_of(page, day) for day in (LATER, FAILED, CUT_OFF))
    assert refused.startswith(f"{LATER} refused Stopped at extract (refused 20")
    assert "retention is 0.95, and must be at least 0.25 and at most 0.5. It was rejected: robots only (Ada" in refused
    assert refused.count("Ada Lovelace") == 1
    assert "Next: mend the data and run the snapshot again, or let the gate pass" in refused
    assert failed.startswith(f"{FAILED} failed Stopped at extract (failed 20")
    assert "BudgetExceeded: &lt;b&gt;30&lt;/b&gt; of 40 records" in failed
    assert cut_off.startswith(f"{CUT_OFF} unfinished No stage after extract is committed")


def test_the_page_of_a_refused_run_shows_its_funnel_its_gate_and_who_rejected_it_once(visitor: Any) -> None:
    """It was not found: the snapshot had not been published."""
    page = visitor.get(f"/snapshot/{RECIPE}/{LATER}")
    assert page.status_code == 200
    assert '<span class="state refused">refused</span>' in page.text
    assert page.text.count("critical: retention is 0.95, and must be at least 0.25 and at most 0.5") == 1
    assert page.text.count(REJECTED) == 1
    assert "extract:too_short" in page.text
    assert ">dedup_exact</a>" not in page.text


def test_the_links_of_a_stopped_run_lead_somewhere(visitor: Any) -> None:
    for day in (LATER, FAILED, CUT_OFF):
        links = re.findall(r'href="/refinery(/[^"]+)"', visitor.get(f"/snapshot/{RECIPE}/{day}").text)
        assert len(links) > 3
        for path in links:
            assert visitor.get(path.replace("&amp;", "&")).status_code == 200, path


def test_a_failed_run_shows_its_error_and_the_stages_before(visitor: Any) -> None:
    page = visitor.get(f"/snapshot/{RECIPE}/{FAILED}").text
    assert page.count("BudgetExceeded: &lt;b&gt;30&lt;/b&gt; of 40 records are quarantined") == 1
    assert ">ingest</a>" in page
    assert ">extract</a>" not in page


def test_rows_that_a_stopped_run_rejected_are_shown(visitor: Any) -> None:
    page = visitor.get(f"/rejects/{RECIPE}/{LATER}/extract")
    assert page.status_code == 200
    assert "https://a.org/0" in page.text
    assert "/document/" not in page.text
    assert visitor.get(f"/rejects/{RECIPE}/{LATER}/dedup_exact").status_code == 404


def test_a_version_has_a_line_on_a_newer_run_that_stopped(tmp_path: Path) -> None:
    from refinery_airflow.pages.overview import recipe_pages, state_of

    runs = Runs(tmp_path)
    runs.run()
    runs.run(refused_by="extract")
    state, next_step = state_of(runs.root, RECIPE, DAY, None)
    assert state == "published"
    assert next_step.startswith("a newer run is not published: stopped at extract (refused ")
    [page] = recipe_pages(runs.root)
    [task] = page.to_do
    assert (task.first.state, task.first.next_step, task.first.why) == (state, next_step, "")


def test_what_to_do_about_a_run_of_airflow_is_said_in_the_words_of_airflow(session: Any, tmp_path: Path) -> None:
    from refinery_airflow.pages.overview import recipe_pages

    runs = Runs(tmp_path, recipe="web")
    runs.run(until="ingest")
    runs.fail("extract.partition", "BudgetExceeded: too many")
    at = {"conf": {"snapshot": DAY, "root": runs.root}}
    add_run(session, "failed", {"extract.partition": "failed"}, **at)
    add_run(session, "running", {"sense": "deferred"}, conf={"snapshot": LATER, "root": runs.root})
    [page] = recipe_pages(runs.root)
    failed, waiting = page.lines
    assert (failed.state, waiting.state) == ("failed", "waiting")
    assert "BudgetExceeded: too many" in failed.why
    assert failed.next_step.startswith("mend what it names, then clear extract.partition in its run")


def test_a_recipe_whose_first_run_has_committed_nothing_is_listed(session: Any, tmp_path: Path) -> None:
    from refinery_airflow.pages.overview import recipe_pages

    assert recipe_pages(str(tmp_path)) == []
    named = {"snapshot": DAY, "root": str(tmp_path)}
    add_run(session, "running", {"sense": "success", "land": "running"}, dag_id="refine", conf=named)
    add_run(session, "success", {}, conf={"snapshot": LATER, "root": "/elsewhere"})
    [page] = recipe_pages(str(tmp_path))
    assert [(page.recipe, line.snapshot, line.state) for line in page.lines] == [("web", DAY, "running")]
