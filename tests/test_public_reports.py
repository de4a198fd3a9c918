"""Small inputs after public bug reports of crawlers, archives and text tools: each has the outcome that they ask for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import PAGE
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import check_rights, decontaminate, extract, filter_language, filter_url, ingest, scrub_pii
from pipeline_tasks.text.rights.robots import Robots, essential
from pipeline_tasks.text.urls.keys import keys
from pipeline_tasks.text.urls.tracking import TRACKING
from tests.chain import PROJECT
from tests.documents import documents
from tests.refining import commit_parent, refined, rows

REPORTS = PROJECT.parent / "shared/data/public-reports"
CASES = sorted(path.parent.name for path in REPORTS.glob("*/expected.json"))

pytestmark = pytest.mark.skipif(not CASES, reason=f"no public reports in {REPORTS}")


OTHERS = (
    "lid-",
    "listing-",
    "pii-",
    "url-",
    "blocklist-",
    "gz-",
    "robots-",
    "decontaminate-",
    "tokenizer-",
    "tiktoken-",
)
"""How the names of cases begin that are no pages; each has its own test below, and `test_each_kind_has_its_test`."""


TESTED: set[str] = set()
"""The cases that some test below has."""


def cases(*prefixes: str) -> list[str]:
    """Return the cases whose names begin with one of `prefixes`; without any, those of pages."""
    found = [case for case in CASES if case.startswith(prefixes or OTHERS) is bool(prefixes)]
    TESTED.update(found)
    return found


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


@pytest.mark.parametrize("case", cases())
def test_a_page_is_read(case: str) -> None:
    expected, row = expected_of(case), outcome(case)
    assert row["reason"] == expected["reason"], row["evidence"]
    for part in (expected["text_contains"], *expected.get("also", ())):
        assert part in row["text"]
    assert [part for part in expected.get("text_lacks", ()) if part in row["text"]] == []


@pytest.mark.parametrize("unit", ["text", "paragraph"])
@pytest.mark.parametrize("case", cases("lid-"))
def test_a_language_is_identified(case: str, unit: Literal["text", "paragraph"]) -> None:
    expected, params = expected_of(case), filter_language.Params(keep=(), unit=unit)
    [batch] = filter_language.identify(documents([text_of(case)]).to_batches(), params=params)
    [row] = batch.to_pylist()
    if "language_not" in expected:
        assert row["language"] != expected["language_not"]
    elif "or_reason" in expected:
        assert row["language"] == expected["language"] or row["reason"] == expected["or_reason"]
    else:
        assert (row["language"], row["reason"]) == (expected["language"], expected["reason"])


@pytest.mark.parametrize("case", cases("pii-"))
def test_personal_data_is_removed_and_nothing_else(case: str) -> None:
    url = json.loads((REPORTS / case / "expected.json").read_text())["how"].partition(", url ")[2]
    rows = documents([text_of(case)], urls=[url] if url else None).to_batches()
    [batch] = scrub_pii.scrub(rows, params=scrub_pii.Params())
    assert batch["text"].to_pylist() == [expected_of(case)["text"]]


@pytest.mark.parametrize("case", cases("listing-"))
def test_what_is_no_data_is_left_out_with_a_word(case: str) -> None:
    folder = REPORTS / case / "input"
    listing = list_snapshot(str(folder))
    files = [name for name, _, _ in listing.files]
    left_out = {*listing.ignored, *(name for name, _ in listing.skipped)}
    assert files == expected_of(case)["files"]
    assert left_out == {path.name for path in folder.iterdir()} - set(files)


@pytest.mark.parametrize("case", cases("url-"))
def test_two_addresses_of_a_page_have_one_key(case: str) -> None:
    found = keys(pa.array(text_of(case).split()), TRACKING).to_pylist()
    assert (len(found), len({*found})) == (2, 1)


@pytest.mark.parametrize("case", cases("blocklist-"))
def test_a_listed_host_is_found_in_each_of_its_forms(case: str) -> None:
    params = filter_url.Params(domains=FilePath(str(REPORTS / case / "domains.txt")))
    pages = documents(["A text."], text_of(case).split())
    [batch] = filter_url.screen(pages.to_batches(), params=params)
    assert batch["reason"].to_pylist() == [expected_of(case)["reason"]]


@pytest.mark.parametrize("case", cases("gz-"))
def test_all_members_of_an_archive_are_read(case: str) -> None:
    with (REPORTS / case / "input.warc.gz").open("rb") as stream:
        records = list(read_records("input.warc.gz", stream, snapshot="2026-11-20"))
    [pages] = ingest.select_pages(iter(records), params=ingest.Params())
    expected = expected_of(case)
    assert (pages["reason"].null_count, sum(pages["kind"].to_pylist().count(kind) for kind in ["damage"])) == (
        expected["rows_kept"],
        expected["damage"],
    )


@pytest.mark.parametrize("case", cases("decontaminate-"))
def test_what_an_evaluation_set_has_is_found_or_said_to_be_out_of_reach(case: str) -> None:
    folder, expected = REPORTS / case, expected_of(case)
    params = decontaminate.Params({"b": FilePath(str(folder / "benchmark.jsonl"))})
    texts = [json.loads(line)["text"] for line in (folder / "input.jsonl").read_text().splitlines()]
    if "refused_or_counted" in expected:
        with pytest.raises(RecipeError, match=r"benchmark\.jsonl line 2 has no text"):
            decontaminate.check_files(params)
        params = replace(params, questions=("question.stem", "question"))
        expected = {"reason": "decontaminate:contaminated"}
    [batch] = decontaminate.screen(documents(texts).to_batches(), params=params)
    assert batch["reason"].to_pylist() == [expected["reason"]]


@pytest.mark.parametrize("case", cases("tokenizer-"))
def test_what_a_tokenizer_loses_is_counted(case: str, tmp_path: Path) -> None:
    manifest = tokenized(tmp_path, case, [text_of(case)])
    assert rows(tmp_path, manifest)["lost_chars"].to_pylist()[0] > 0


@pytest.mark.parametrize("case", cases("tiktoken-"))
def test_a_text_that_ends_a_tokenizer_costs_itself_alone(case: str, tmp_path: Path) -> None:
    manifest = tokenized(tmp_path, case, ["a", f"left{' ' * 1_000_000}right"], backend="reference")
    assert manifest.rows + sum(manifest.quarantined.values()) == 2
    assert "a" not in {row["text"] for row in rows(tmp_path, manifest, "quarantine").to_pylist()}


@pytest.mark.parametrize("case", cases("robots-"))
def test_what_a_site_says_of_the_use_of_its_pages_is_read(case: str) -> None:
    robots = Robots(essential((REPORTS / case / "input.txt").read_bytes()), check_rights.AGENTS)
    found = [[signal.signal, signal.value] for signal in robots.preferences("https://a.example/page")]
    assert found == expected_of(case)["preferences"]


def test_each_kind_has_its_test() -> None:
    assert {*CASES} == TESTED


def tokenized(root: Path, case: str, texts: list[str], **params: str) -> Manifest:
    given = {"tokenizer": str(REPORTS / case / "tokenizer.json"), "eos": "<|endoftext|>", **params}
    return refined(root, "tokenize", commit_parent(root, [documents(texts)]), given)[1]
