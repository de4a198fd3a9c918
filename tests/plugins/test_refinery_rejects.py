"""The page of rejected rows: values beside bounds, page by page, as a file, with links, for those who may read texts."""

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.inspect.rejects.rows import rejected_rows
from pipeline_tasks.inspect.search import Bounds
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest
from tests.documents import documents
from tests.markup import words
from tests.refining import commit_parent, refined

SCRIPT = "<script>alert(1)</script>"
FORMULA = "=HYPERLINK(0)"
ROWS = 50
PAGE = "/rejects/web/2026-11-19/filter_quality"
SHORT = "gopher_quality:short_doc"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root whose `filter_quality` rejected rows in two shards, of which one tries to run a script, one to compute."""
    root = tmp_path_factory.mktemp("root")
    texts = [f"Nobody reads page {row} of this." for row in range(ROWS)]
    texts[3:5] = f"{SCRIPT} is all.", f"{FORMULA} is all."
    half = ROWS // 2
    tables = [documents(part, language=pa.array(["en"] * half)) for part in (texts[:half], texts[half:])]
    parent = commit_parent(root, tables)
    path, _ = refined(root, "filter_quality", parent, {"profiles": ["gopher_quality"]})
    entry = {"recipe": "web", "snapshot": "2026-11-19", "landing": "", "verdicts": {}, "prefix": "", "documents": 0}
    version_log.append(str(root), entry | {"manifests": {"filter_quality": path}, "tokens": 0, "sequences": 0})
    return root


def manifest_of(root: Path) -> Any:
    return read_manifest(str(root), version_log.current(str(root), "web").manifests["filter_quality"])


def shown_ids(page: str) -> list[str]:
    return re.findall(r'/document/web/2026-11-19\?doc=([0-9a-f]{32})[&"]', page)


def test_a_value_stands_beside_its_bound(visitor: Any) -> None:
    page = visitor.get(PAGE)
    assert page.status_code == 200
    assert re.search(rf"{SHORT} 6 is below 50", words(page.text))
    assert "50 rows, 20 of them on this page" in words(page.text)


def test_pages_have_every_row_once_and_lead_to_each_other(visitor: Any, root: Path) -> None:
    found, path = [], PAGE
    while path:
        page = visitor.get(path).text
        found += shown_ids(page)
        following = re.findall(r'<a href="/refinery(/rejects/[^"]+)" rel="next">', page)
        path = html.unescape(following[0]) if following else ""
    everything = rejected_rows(str(root), manifest_of(root), "", Bounds()).rows
    assert found == [row["id"] for row in everything]
    assert len(set(found)) == ROWS
    assert "First rows" in page
    assert "No further rows" in visitor.get(PAGE, params={"start": "999999"}).text


@pytest.mark.parametrize("most_bytes", [1, 10**9])
def test_rows_of_a_reason_are_found_however_little_is_read_at_once(root: Path, most_bytes: int) -> None:
    manifest, found, end = manifest_of(root), [], 0
    while True:
        part = rejected_rows(str(root), manifest, SHORT, Bounds(end, 7, most_bytes))
        assert part.start == end
        assert len(part.rows) <= 7
        found += [row["id"] for row in part.rows]
        end = part.end
        if end == part.total:
            break
    assert len(found) == len(set(found)) == manifest.rejected[SHORT] > 7
    none = rejected_rows(str(root), manifest, "no:reason", Bounds(0, 7, 0))
    assert (none.rows, none.end) == ((), none.total)


def test_a_file_has_the_same_rows_and_computes_nothing(visitor: Any, root: Path) -> None:
    links = re.findall(r'href="/refinery(/rejects/[^"]+)" download>', visitor.get(PAGE, params={"reason": SHORT}).text)
    answers = {link.split("?")[0].rsplit(".")[-1]: visitor.get(html.unescape(link)) for link in links}
    assert sorted(answers) == ["csv", "jsonl"]
    lines = [json.loads(line) for line in answers["jsonl"].text.splitlines()]
    cells = list(csv.DictReader(io.StringIO(answers["csv"].text)))
    expected = rejected_rows(str(root), manifest_of(root), SHORT, Bounds()).rows
    assert [line["id"] for line in lines] == [row["id"] for row in expected] == [cell["id"] for cell in cells]
    assert [line["text"] for line in lines] == [row["text"] for row in expected]
    assert any(cell["text"].startswith(f"'{FORMULA}") for cell in cells)
    assert not any(value.startswith(("=", "+", "@")) for cell in cells for value in cell.values())
    for kind, answer in answers.items():
        assert answer.headers["content-disposition"] == (
            f'attachment; filename="filter_quality-gopher_quality-short_doc.{kind}"'
        )
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_file_of_many_rows_has_the_first_and_says_so(
    visitor: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.texts import rejects as refinery_rejects

    monkeypatch.setattr(refinery_rejects, "MOST_ROWS", 5)
    answer = visitor.get(f"{PAGE}/rows.jsonl")
    assert len(answer.text.splitlines()) == 5
    assert "first-5.jsonl" in answer.headers["content-disposition"]
    assert visitor.get(f"{PAGE}/rows.xml").status_code == 404
    assert visitor.get("/rejects/web/2026-11-19/nothing/rows.csv").status_code == 404


def test_links_lead_to_documents_and_never_to_the_crawled_site(visitor: Any) -> None:
    page = visitor.get(PAGE).text
    links = [html.unescape(link) for link in re.findall(r'<a href="([^"]+)"', page)]
    assert all(link.startswith(("/refinery/", "#")) for link in links)
    assert any("/search/web/2026-11-19?url=" in link for link in links)
    for link in {link.removeprefix("/refinery") for link in links if "/document/" in link or "/search/" in link}:
        assert visitor.get(link).status_code == 200, link


def test_evidence_is_taken_apart() -> None:
    from pipeline_tasks.inspect.evidence import evidence_of

    winner, near = "0" * 32, "a" * 32
    stored = {
        "near": near,
        "winner": {"id": winner, "snapshot": "day", "url": "https://a.org/"},
        "bands": 6,
        "same": False,
    }
    facts = {fact.name: fact for fact in evidence_of(json.dumps(stored)).facts}
    assert (facts["near"].kind, facts["near"].snapshot) == ("id", "")
    assert (facts["winner.id"].kind, facts["winner.id"].snapshot) == ("id", "day")
    assert facts["winner.url"].kind == "url"
    assert (facts["bands"].value, facts["same"].value) == (6, False)
    [above, below, other] = evidence_of(
        '[{"rule":"a","value":2,"bound":1},{"rule":"b","value":0.5,"bound":1},{"rule":"c","value":"ko","bound":"en"}]'
    ).rules
    assert (above.side, below.side, other.side) == ("above", "below", "")
    for odd in (None, "", "no JSON {", "[1, 2]", '"text"', "[]", "3"):
        known = evidence_of(odd)
        assert (known.rules, known.facts) == ((), ())
        assert bool(known.text) == bool(odd)
    assert len(evidence_of("x" * 10_000).text) < 1000
