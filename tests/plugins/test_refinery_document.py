"""The page of a document: every decision on it, for those who may read texts, and nothing of it runs."""

import html
import json
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.document import document
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import small_build
from tests.archives import http, response, zipped
from tests.chain import How, refined
from tests.markup import assert_inert, words
from tests.small_root import DAYS, RECIPE, SmallRoot
from tests.visitors import be

SCRIPT = "<script>alert(1)</script>"
RECIPE_FILE = """
name: tiny
stages:
  ingest: {}
  extract: {min_chars: 20}
  filter_language: {keep: [en]}
  filter_quality:
    edit: true
    profiles: [gopher_quality, c4]
    gopher_quality: {min_doc_words: 20, min_stop_words: 1}
    c4: {min_num_sentences: 1}
  scrub_pii: {action: redact}
"""
LINE = "Ask for the ferry at harbor@ferries.org before the fog has lifted from the water and the day begins."

CUT = f"Turn on javascript here or write to spam@cut.example.org about {html.escape(SCRIPT)} today."


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a document that has personal data, one that tries to run a script, and one that is too short."""
    folder = tmp_path_factory.mktemp("crawl")
    landing = folder / "2026-11-19"
    landing.mkdir()
    bodies = {
        "https://a.example.org/1": f"<p>{LINE}</p>" * 3,
        f"https://a.example.org/?{SCRIPT}": f"<p>{html.escape(SCRIPT)} {LINE.replace('harbor@ferries.org', 'noon')}</p>"
        * 3,
        "https://a.example.org/cut": f"<p>{LINE.replace('dawn', 'dusk')}</p><p>{CUT}</p>" + f"<p>{LINE}</p>" * 9,
        "https://a.example.org/short": "<p>Nobody waits for the last ferry of the day.</p>",
    }
    pages = [response(url, http(f"<html><body>{body}</body></html>".encode())) for url, body in bodies.items()]
    (landing / "a.warc.gz").write_bytes(b"".join(zipped(pages)))
    (folder / "tiny.yaml").write_text(RECIPE_FILE)
    refined(str(folder / "root"), str(landing), How(recipe=str(folder / "tiny.yaml")))
    return folder / "root"


def id_of(root: Path, stage: str, part: str, url: str) -> str:
    version = version_log.current(str(root), "tiny")
    manifest = read_manifest(str(root), version.manifests[stage])
    rows = (
        row for batch in read_shards(str(root), getattr(manifest, part), ["id", "url"]) for row in batch.to_pylist()
    )
    return next(str(row["id"]) for row in rows if url in row["url"])


def shown(visitor: Any, doc: str, path: str = "/document/tiny/2026-11-19") -> Any:
    return visitor.get(path, params={"doc": doc})


def test_every_stage_says_what_it_decided_and_measured(visitor: Any, root: Path) -> None:
    page = shown(visitor, id_of(root, "scrub_pii", "shards", "/1"))
    assert page.status_code == 200
    stages = re.findall(
        r'<th scope="row"><a href="/refinery/manifest/[^"]+">(\w+)</a></th>\s*<td><span class="state (\w+)">', page.text
    )
    names = ["ingest", "extract", "filter_language", "filter_quality", "scrub_pii"]
    assert stages == [(name, "kept") for name in names]
    said = words(page.text)
    assert "language en" in said
    assert "signals_gopher_quality words" in said
    assert "WARC-Target-URI: https://a.example.org/1" in said
    assert f"refinery document {id_of(root, 'scrub_pii', 'shards', '/1')}" in said


def test_redactions_are_places_and_the_text_has_no_personal_data(visitor: Any, root: Path) -> None:
    page = shown(visitor, id_of(root, "scrub_pii", "shards", "/1")).text
    assert "harbor@ferries.org" not in page
    assert "redactions: 3 places" in page
    assert re.search("kind email start \\d+ end \\d+ at \\d+", words(page))
    assert "before the fog has lifted" in page


def test_what_stages_cut_and_replaced_is_marked_without_personal_data(visitor: Any, root: Path) -> None:
    page = shown(visitor, id_of(root, "extract", "shards", "/cut")).text
    sections = dict(re.findall(r"<h3>(\w+)</h3>.*?<pre class=\"tall diff\"[^>]*>(.*?)</pre>", page, re.DOTALL))
    assert list(sections) == ["filter_quality", "scrub_pii"]
    cut = html.unescape("".join(re.findall("<del>(.*?)</del>", sections["filter_quality"], re.DOTALL)))
    assert f"Turn on javascript here or write to <EMAIL> about {SCRIPT} today." in cut
    assert cut.replace("⏎", "").split() == html.unescape(CUT).replace("spam@cut.example.org", "<EMAIL>").split()
    redacted = sections["scrub_pii"]
    assert redacted.count("<del>[email, 18 characters]</del><ins>&lt;EMAIL&gt;</ins>") == 10
    for secret in ("harbor@", "ferries.org", "spam@", "cut.example"):
        assert secret not in page.replace(page[page.index("Where its text landed") : page.index("</table>")], "")
    assert SCRIPT not in page
    assert "redactions: 10 places" in page  # and not that of the line that was cut


def test_the_command_counts_what_stages_cut_and_prints_no_text(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doc = id_of(root, "extract", "shards", "/cut")
    record = document(str(root), version_log.current(str(root), "tiny"), doc).records[0]
    assert main(["document", doc, str(root), "--recipe", "tiny"]) == 0
    printed = capsys.readouterr().out
    for edit in record.edits:
        assert f"text {len(edit.before):,} -> {len(edit.after):,} characters, in " in printed
    assert main(["document", doc, str(root), "--recipe", "tiny", "--json"]) == 0
    [shown_record] = json.loads(capsys.readouterr().out)["records"]
    assert [(edit["stage"], edit["cut"] - edit["added"]) for edit in shown_record["edits"]] == [
        (edit.stage, len(edit.before) - len(edit.after)) for edit in record.edits
    ]
    assert [edit.stage for edit in record.edits] == ["filter_quality", "scrub_pii"]
    for secret in ("ferries.org", "javascript here", "the fog"):
        assert secret not in printed + json.dumps(shown_record)


def test_blocks_of_the_page_are_shown_with_scores_and_without_personal_data_or_scripts(
    visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.texts.document import explored

    landing, recipe = tmp_path / "2026-11-19", tmp_path / "tiny.yaml"
    landing.mkdir()
    menu = f"<ul><li><a href=/>spam@cut.example.org {html.escape(SCRIPT)}</a></li><li><a href=/a>Home</a></li></ul>"
    body = f"<html><body><nav>{menu}</nav><p>{LINE * 3}</p><p>{LINE * 2}</p></body></html>"
    (landing / "a.warc.gz").write_bytes(zipped([response("https://a.example.org/1", http(body.encode()))])[0])
    recipe.write_text(RECIPE_FILE.replace("min_chars: 20", "method: blocks"))
    refined(str(tmp_path / "root"), str(landing), How(recipe=str(recipe)))
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path / "root"))
    doc = id_of(tmp_path / "root", "scrub_pii", "shards", "/1")
    page = shown(visitor, doc).text
    said = words(page[page.index("Blocks of its page") :])
    assert "4 blocks, 2 kept by extract" in said
    assert re.search(rf"-\d\.\d\d left out \d+ - <EMAIL> {re.escape(SCRIPT)} -\d", said)
    assert re.search(r" \d\.\d\d kept \d+ Ask for the ferry at <EMAIL> before", said)
    assert_inert(page, SCRIPT)
    version = version_log.current(str(tmp_path / "root"), "tiny")
    for_curators = explored(str(tmp_path / "root"), version, doc, sees_all=False)
    assert for_curators.document
    assert (for_curators.blocks, [record.extracted for record in for_curators.document.records]) == (None, [""])


def test_a_document_that_no_stage_changed_has_no_marks(visitor: Any, root: Path) -> None:
    page = shown(visitor, id_of(root, "filter_quality", "rejects", "/short")).text
    assert "What stages changed" not in page
    assert "<del>" not in page


def test_a_rejected_document_has_the_rules_that_it_fails(visitor: Any, root: Path) -> None:
    page = shown(visitor, id_of(root, "filter_quality", "rejects", "/short")).text
    assert '<span class="state rejected">rejected</span>' in page
    assert "gopher_quality:short_doc 9 is below 20" in words(page)
    assert "scrub_pii" not in page


def test_who_may_not_read_texts_sees_nothing_and_who_may_is_logged(
    visitor: Any, app: Any, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    doc = id_of(root, "scrub_pii", "shards", "/1")
    with caplog.at_level(logging.INFO, logger="refinery"):
        assert shown(visitor, doc).status_code == 200
    assert "ada reads texts: /document/tiny/2026-11-19" in caplog.text
    be(app, "eve", "VIEWER")
    refused = shown(visitor, doc)
    assert (refused.status_code, "example.org" in refused.text, "ferry" in refused.text) == (403, False, False)


def test_what_is_not_there_is_said(visitor: Any) -> None:
    form = visitor.get("/document/tiny/2026-11-19")
    assert (form.status_code, 'name="doc"' in form.text, "<table" in form.text) == (200, True, False)
    page = shown(visitor, "0" * 32)
    assert (page.status_code, "has no document" in page.text, f'value="{"0" * 32}"' in page.text) == (404, True, True)
    for path in ("/document/tiny/2031-01-01", "/document/nothing/2026-11-19"):
        assert (visitor.get(path).status_code, "<h1>Not found</h1>" in visitor.get(path).text) == (404, True)


def test_the_field_takes_an_address_words_and_the_first_digits_of_an_id(visitor: Any, root: Path) -> None:
    """Who has found a page in a browser has its address, and no id."""
    doc = id_of(root, "filter_quality", "rejects", "/short")
    for what in ("https://a.example.org/short", "a.example.org/short", "the last ferry of the day", doc[:12]):
        led = visitor.get("/document/tiny/2026-11-19", params={"doc": what}, follow_redirects=False)
        address = led.headers["location"].removeprefix("/refinery")
        assert (led.status_code, address.split("?")[0]) == (303, "/ask/why")
        assert doc in visitor.get(address).text, what


def test_a_page_reads_so_many_bytes_and_says_what_it_did_not_read(
    visitor: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.texts import document as refinery_document

    version = version_log.current(str(root), "tiny")
    doc = id_of(root, "scrub_pii", "shards", "/1")
    whole = document(str(root), version, doc)
    page = shown(visitor, doc).text
    assert "A page reads" not in page
    monkeypatch.setattr(refinery_document, "MOST_BYTES", whole.read - 1)
    part = shown(visitor, doc)
    assert part.status_code == 200
    assert "and not 1 shard rejected by" in words(part.text)
    assert f"refinery document {doc} {root} --recipe tiny" in words(part.text)
    monkeypatch.setattr(refinery_document, "MOST_BYTES", 1)
    none = shown(visitor, doc)
    assert none.status_code == 404
    for unread in ("not read: ", "kept by extract", f"refinery document {doc}"):
        assert unread in words(none.text)


def test_pages_lead_to_a_document_and_on(visitor: Any, root: Path) -> None:
    assert 'href="/refinery/document/tiny/2026-11-19"' in visitor.get("/snapshot/tiny/2026-11-19").text
    short = id_of(root, "filter_quality", "rejects", "/short")
    assert f"/document/tiny/2026-11-19?doc={short}" in visitor.get("/rejects/tiny/2026-11-19/filter_quality").text
    for link in re.findall(r'href="/refinery(/[^"]+)"', shown(visitor, short).text):
        assert visitor.get(html.unescape(link)).status_code == 200, link


def test_duplicates_and_tokens_of_a_document_are_linked(
    visitor: Any, small_root: SmallRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = small_build.copied(small_root, tmp_path)
    small_build.build(small, small_build.recipe(select={}))
    monkeypatch.setenv("REFINERY_ROOT", small.root)
    version = version_log.current(small_root.root, RECIPE, DAYS[0])
    manifest = ordered_manifests(small_root.root, version)["dedup_exact"]
    [twin] = [row for batch in read_shards(small_root.root, manifest.rejects) for row in batch.to_pylist()]
    page = shown(visitor, twin["id"], f"/document/small/{DAYS[0]}")
    assert page.status_code == 200
    assert "was not looked for" not in page.text
    monkeypatch.setattr("refinery_airflow.texts.document.MOST_OF_CLUSTERS", 1)
    larger = shown(visitor, twin["id"], f"/document/small/{DAYS[0]}").text
    assert "Its cluster was not looked for" in larger
    assert f"refinery look duplicates {twin['id']} {small.root} --recipe small" in words(larger)
    assert "Record 2" in page.text
    assert "documents with the same winner" in page.text
    links = [html.unescape(link) for link in re.findall(r'href="/refinery(/[^"]+)"', page.text)]
    assert any(link.startswith("/trace/") for link in links)
    for link in links:
        assert visitor.get(link).status_code == 200, link


def test_a_damaged_shard_is_named(visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doc = id_of(root, "scrub_pii", "shards", "/1")
    copy = shutil.copytree(root, tmp_path / "root")
    shard = next((copy / "extract").glob("*/data/*"))
    shard.write_bytes(shard.read_bytes()[:-9])
    monkeypatch.setenv("REFINERY_ROOT", str(copy))
    page = shown(visitor, doc)
    assert (page.status_code, shard.name in page.text) == (409, True)
