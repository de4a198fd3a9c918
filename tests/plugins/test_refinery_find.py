"""The page Find: bounded by bytes in datasets and in texts, with what was read, and no URL or text without the right."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.search.find import find, reach_of
from pipeline_tasks.inspect.search.phrases import search_phrase
from pipeline_tasks.publish.logs import version_log
from tests.markup import assert_inert, words
from tests.publish.test_building import built, documents, recipe_of, refined_days

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a training dataset of several shards."""
    root = refined_days(tmp_path_factory.mktemp("found"))
    built(root, recipe_of(pack={"length": 64}, shuffle={"buckets": 4}))
    return Path(root)


def some_document(root: Path) -> tuple[str, str]:
    return next((id_, row["url"]) for id_, row in documents(str(root)).items())


def test_all_shards_together_have_what_an_unbounded_search_finds(root: Path) -> None:
    versions = version_log.built_versions(str(root))
    host = some_document(root)[1].split("/")[2]
    entries = [("site", host)]
    whole = list(find(str(root), versions, entries))
    found, start = [], 0
    while True:
        reach = reach_of(str(root), versions, start, 1)
        assert reach.end == start + 1, "one shard at least, however few bytes are allowed"
        found += find(str(root), versions, entries, reach)
        start = reach.end
        if start == reach.total:
            break
    assert found == whole
    assert reach.total > 1
    assert reach_of(str(root), versions, 0, 10**12).is_whole
    beyond = reach_of(str(root), versions, 10**6, 1)
    assert (beyond.start, beyond.end) == (beyond.total, beyond.total)


def test_a_page_reads_so_many_bytes_says_so_and_leads_on(
    visitor: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request read every lineage, 23 GB of a dataset of 100 G tokens."""
    from refinery_airflow.texts import document as refinery_document
    from refinery_airflow.texts import find as refinery_find

    id_, url = some_document(root)
    assert "shards were looked at" not in visitor.get("/find", params={"url": url}).text
    monkeypatch.setattr(refinery_find, "MOST_BYTES", 1)
    monkeypatch.setattr(refinery_document, "MOST_LINEAGE", 1)
    path, pages, uses = f"/find?url={url}", 0, 0
    while path:
        page = visitor.get(path).text
        assert "1 of " in words(page)
        assert f"refinery look find {root} --url {url}" in words(page)
        uses += len(re.findall(r'href="/refinery/trace/', page))
        pages += 1
        following = re.findall(r'<a href="/refinery(/find[^"]+)">Search on</a>', page)
        path = html.unescape(following[0]) if following else ""
    assert pages > 1
    assert uses == len(list(find(str(root), version_log.built_versions(str(root)), [("url", url)])))
    [recipe] = [name for name in version_log.recipes(str(root)) if not version_log.is_build(str(root), name)]
    snapshots = [version.snapshot for version in version_log.latest_by_snapshot(str(root), recipe)]
    shown = [visitor.get(f"/document/{recipe}/{name}", params={"doc": id_}) for name in snapshots]
    assert any("shards were looked at" in page.text for page in shown if page.status_code == 200)


def test_published_texts_are_searched_up_to_so_many_bytes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = search_phrase(str(root), "", "the", most_bytes=0)
    assert whole.is_whole
    assert len(whole.found) > 1
    part = search_phrase(str(root), "", "the", most_bytes=1)
    assert not part.is_whole
    assert part.snapshots[0] == 1 < part.snapshots[1]
    assert main(["look", "find", str(root), "--text", "the", "--most-bytes", "1"]) == 0
    printed = capsys.readouterr().out
    assert f"{part.documents[0]:,} of {part.documents[1]:,} published documents" in printed
    assert "--most-bytes 0 reads all" in printed
    assert main(["look", "find", str(root), "--text", "no text has this phrase at all"]) == 0
    assert "0 documents" in capsys.readouterr().out


def test_a_file_is_a_document_and_beside_it_no_phrase_is_searched(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("a text")
    assert main(["look", "find", str(root), "--text", str(file)]) == 0
    assert main(["look", "find", str(root), "--text", str(file), "--text", "a phrase"]) == 78
    assert main(["look", "find", str(root), "--text", "x" * 5000]) == 0, (
        "a phrase that is too long for the name of a file"
    )


def test_texts_with_a_phrase_are_shown_with_what_was_read(visitor: Any, root: Path) -> None:
    page = visitor.get("/find", params={"text": "the"})
    assert page.status_code == 200
    assert "published documents" in words(page.text)
    assert "<mark>" in page.text
    links = {html.unescape(link) for link in re.findall(r'href="/refinery(/document/[^"]+)"', page.text)}
    assert links
    for link in links:
        assert visitor.get(link).status_code == 200, link
    assert_inert(visitor.get("/find", params={"text": f"{SCRIPT} x"}).text, SCRIPT)
