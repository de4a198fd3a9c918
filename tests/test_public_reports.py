"""Small inputs after public bug reports of crawlers, archives and text tools: each has the outcome that they ask for."""

import json
from collections.abc import Iterable
from typing import Any, Literal

import pytest

from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.schema import PAGE
from pipeline_tasks.stages import extract, filter_language, ingest, scrub_pii
from tests.chain import PROJECT
from tests.documents import documents

REPORTS = PROJECT.parent / "shared/data/public-reports"
CASES = sorted(path.parent.name for path in REPORTS.glob("*/expected.json"))

pytestmark = pytest.mark.skipif(not CASES, reason=f"no public reports in {REPORTS}")


def cases(prefixes: Iterable[str], *, others: bool = False) -> list[str]:
    """Return the cases whose names begin with one of `prefixes`, or all others."""
    return [case for case in CASES if case.startswith(tuple(prefixes)) is not others]


def expected_of(case: str) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((REPORTS / case / "expected.json").read_text())["expected"]
    return expected


def text_of(case: str) -> str:
    return (REPORTS / case / "input.txt").read_text()


def outcome(case: str) -> dict[str, Any]:
    """Return the row of the first record behind `ingest` and `extract`."""
    [file] = (REPORTS / case).glob("input.*")
    with file.open("rb") as stream:
        records = list(read_records(file.name, stream, snapshot="2026-11-20"))
    [pages] = ingest.select_pages(iter(records), params=ingest.Params())
    row = dict(pages.slice(0, 1).to_pylist()[0])
    if row["reason"]:
        return row
    [extracted] = extract.extract_pages(iter([pages.select(PAGE.names).slice(0, 1)]), params=extract.Params())
    return dict(extracted.to_pylist()[0])


@pytest.mark.parametrize("case", cases(("lid-", "listing-", "pii-"), others=True))
def test_a_page_is_read(case: str) -> None:
    expected, row = expected_of(case), outcome(case)
    assert row["reason"] == expected["reason"], row["evidence"]
    for part in (expected["text_contains"], *expected.get("also", ())):
        assert part in row["text"]
    assert [part for part in expected.get("text_lacks", ()) if part in row["text"]] == []


@pytest.mark.parametrize("unit", ["text", "paragraph"])
@pytest.mark.parametrize("case", cases(("lid-",)))
def test_a_language_is_identified(case: str, unit: Literal["text", "paragraph"]) -> None:
    expected, params = expected_of(case), filter_language.Params(keep=(), unit=unit)
    [batch] = filter_language.identify(documents([text_of(case)]).to_batches(), params=params)
    [row] = batch.to_pylist()
    if "language_not" in expected:
        assert row["language"] != expected["language_not"]
    else:
        assert (row["language"], row["reason"]) == (expected["language"], expected["reason"])


@pytest.mark.parametrize("case", cases(("pii-",)))
def test_personal_data_is_removed_and_nothing_else(case: str) -> None:
    [batch] = scrub_pii.scrub(documents([text_of(case)]).to_batches(), params=scrub_pii.Params())
    assert batch["text"].to_pylist() == [expected_of(case)["text"]]


@pytest.mark.parametrize("case", cases(("listing-",)))
def test_what_is_no_data_is_left_out_with_a_word(case: str) -> None:
    folder = REPORTS / case / "input"
    listing = list_snapshot(str(folder))
    files = [name for name, _, _ in listing.files]
    left_out = {*listing.ignored, *(name for name, _ in listing.skipped)}
    assert files == expected_of(case)["files"]
    assert left_out == {path.name for path in folder.iterdir()} - set(files)
