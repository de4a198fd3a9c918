"""A root with generated documents: every record is accounted for, and what people see tells sources from offspring."""

from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.document import document, document_lines
from pipeline_tasks.inspect.funnel import funnel, funnel_lines
from pipeline_tasks.inspect.report.plotted import Published, plots, summary
from pipeline_tasks.inspect.verify import account_lines
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.inspect.why import Params, answer
from pipeline_tasks.report.summary import read_summary
from tests.chain import Chain
from tests.offspring import UNFOLDER, WRITER, brought
from tests.offspring_root import LANDED, NAME, STAGES, chain_of, land

pytestmark = pytest.mark.usefixtures("offspring")


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return land(tmp_path_factory.mktemp("landing"))


@pytest.fixture(scope="module")
def both(landing: Path, offspring: None, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Sources go on beside their offspring."""
    return chain_of(landing, tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def numbers(both: Chain) -> tuple[int, int]:
    """Texts that the documents bring, and those of them that are rejected."""
    ids = [row["id"] for row in both.rows("extract", columns=["id"])]
    return sum(map(brought, ids)), sum(brought(row) == 3 for row in ids)


def test_every_record_and_offspring_is_accounted_for(both: Chain, numbers: tuple[int, int]) -> None:
    report, (texts, thirds) = verify(both.root, Scope(full=True)), numbers
    assert not report.findings.problems
    [account] = report.accounts
    assert (account.records, account.offspring, account.published) == (LANDED, texts, LANDED + texts - thirds)
    assert (
        f"{LANDED} in and {texts} generated texts = {LANDED + texts - thirds} documents" in [*account_lines(account)][1]
    )


def test_the_funnel_tells_offspring_from_rows_that_came_in(both: Chain, numbers: tuple[int, int]) -> None:
    texts, thirds = numbers
    steps = {step["stage"]: step for step in funnel(both.root, both.version)}
    assert [steps[UNFOLDER][name] for name in ("rows_in", "offspring_in", "generated")] == [
        LANDED,
        texts,
        texts - thirds,
    ]
    assert [steps["scrub_pii"][name] for name in ("offspring_in", "generated")] == [0, texts - thirds]
    assert steps[WRITER]["generated"] == 0
    lines = [line.split() for line in funnel_lines([*steps.values()])]
    assert [f"+{texts}" if f"+{texts}" in line else "" for line in lines].count(f"+{texts}") == 1 or [
        "+",
        str(texts),
    ] in [line[:2] for line in lines]
    assert sum(line[:1] == [str(texts - thirds)] and line[-1] == "generated" for line in lines) == 2


def test_the_report_counts_pages(both: Chain, numbers: tuple[int, int]) -> None:
    texts, thirds = numbers
    published = Published(both.root, both.version)
    lines = [str(line) for line in summary(published)]
    table = dict(plots(published))["funnel"].rows
    assert (UNFOLDER, "kept, generated", f"{texts - thirds}") in [tuple(row[:3]) for row in table]
    assert lines[0] == (
        f"{LANDED} records became {LANDED} documents (100.0 %), of which {texts - thirds} more were generated."
    )
    [page] = Path(both.root, both.version.prefix).glob("report-*.html")
    assert f"<b>{LANDED}</b><span>documents kept</span>" in page.read_text()
    assert f"<b>{texts - thirds}</b><span>generated documents kept</span>" in page.read_text()
    assert f"and {texts} generated texts of these rows" in page.read_text()
    whole = read_summary(both.root, both.version)
    assert whole.generated == texts - thirds
    kept = {stage.stage: stage.kept for stage in whole.stages}
    assert kept[UNFOLDER] == pytest.approx((LANDED + texts - thirds) / (LANDED + texts))


def test_the_gate_of_the_snapshot_counts_pages(landing: Path, both: Chain, tmp_path: Path) -> None:
    from pipeline_tasks.gate.facts.snapshots import compute_snapshot_facts

    replaced = chain_of(landing, tmp_path, keep="generated")
    for chain in (both, replaced):
        facts = compute_snapshot_facts([chain.manifest(stage) for stage in STAGES])
        assert facts["retention"] is not None
        assert facts["retention"].value == pytest.approx(1)
    assert not verify(replaced.root, Scope(full=True)).findings.problems


def asked(chain: Chain, what: str) -> tuple[str, list[dict[str, Any]]]:
    """The sentence, and the records, that answer why a page is in the dataset."""
    facts: Any = (said := answer(Params(chain.root, what))).facts
    first: Any = said.parts[0]
    return first.text, facts["records"]


def test_why_names_the_source_of_each_offspring(both: Chain) -> None:
    row = next(row for row in both.rows(UNFOLDER) if row["parent"])
    sentence, told = asked(both, row["url"])
    source = next(each for each in both.rows("extract") if each["id"] == row["parent"])
    assert [each["parent"] for each in told].count("") == 1
    assert {each["parent"] for each in told if each["parent"]} == {source["id"]}
    assert len(told) == 1 + brought(source["id"])
    kept = min(brought(source["id"]), 2)
    of_it = "1 document generated of it is" if kept == 1 else f"{kept} documents generated of it are"
    assert f"It is in the dataset, and {of_it}" in sentence
    assert {each["id"] for each in asked(both, source["id"])[1]} == {each["id"] for each in told}
    sentence, told = asked(both, row["id"])
    assert [each["id"] for each in told] == [row["id"]]
    assert sentence.startswith("It is in the dataset: ")


def test_the_way_of_an_offspring_begins_where_it_was_made(both: Chain) -> None:
    row = next(row for row in both.rows(UNFOLDER) if row["parent"])
    [record] = document(both.root, both.version, row["id"]).records
    named = [step.stage for step in record.steps]
    assert named[-2:] == [UNFOLDER, "scrub_pii"]
    assert record.facts["parent"] == row["parent"]
    lines = [*document_lines(document(both.root, both.version, row["id"]), [None])]
    assert f"generated of document {row['parent']}, whose record this is, kept by every stage" in lines[1]
    assert record.record_id
    [source] = document(both.root, both.version, row["parent"]).records
    assert [step.stage for step in source.steps][-4:] == ["extract", WRITER, UNFOLDER, "scrub_pii"]


def test_the_status_says_how_many_documents_are_generated(
    both: Chain, numbers: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    texts, thirds = numbers
    assert main(["status", both.root, "--recipe", NAME]) == 0
    assert f"{texts - thirds} of its documents are generated" in capsys.readouterr().out
