"""The page in Airflow's web UI: closed without a login, read-only, and nothing of a crawl runs in it."""

import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.inspect.search.find import find
from pipeline_tasks.manifest import ABANDONED
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest
from tests.archives import http, response, zipped
from tests.chain import reply
from tests.publish.test_building import built, documents, recipe_of, refined_days
from tests.small_root import SmallRoot
from tests.visitors import be

SCRIPT = "<script>alert(1)</script>"


def request(root: Path, **fields: Any) -> dict[str, Any]:
    return reply(**{"root": str(root), "recipe": "small", "snapshot": "2026-11-19"} | fields)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with one published snapshot of two stages, one page of which tries to run a script."""
    folder = tmp_path_factory.mktemp("crawl") / "2026-11-19"
    folder.mkdir()
    text = "<p>The ferry leaves the harbor every morning before the fog has lifted from the water.</p>" * 4
    pages = [response("https://a.example.org/1", http(f"<html><body>{text}</body></html>".encode()))]
    pages += [response(f"https://a.example.org/?{SCRIPT}", http(b"<html><body></body></html>"))]
    (folder / "a.warc.gz").write_bytes(b"".join(zipped(pages)))
    root = tmp_path_factory.mktemp("root")
    landed = request(root, verb="land", input=str(folder))
    manifests, verdicts, parent = {"land": landed["manifest"]}, {}, landed["manifest"]
    for stage, params in (("ingest", {}), ("extract", {"min_chars": 20})):
        reply = request(root, verb="refine", stage=stage, params=params, parent=parent, landing=landed["landing"])
        judged = request(root, verb="judge", manifest=reply["manifest"], override="a test")
        manifests[stage], verdicts[stage], parent = reply["manifest"], judged["verdict"], reply["manifest"]
    request(root, verb="publish", landing=landed["landing"], manifests=manifests, verdicts=verdicts)
    return root


def paths(app: Any) -> list[str]:
    return [re.sub(r"\{\w+(:path)?\}", "x", route.path) for route in app.routes]


def test_a_snapshot_has_the_state_that_the_overview_shows(visitor: Any, root: Path) -> None:
    """Its page said of every snapshot that it was published."""
    from refinery_airflow.pages.overview import state_of
    from refinery_airflow.runs.newest import SnapshotRun

    of = (str(root), "small", "2026-11-19")
    [state, next_step] = state_of(*of, None)
    page = visitor.get("/snapshot/small/2026-11-19").text
    assert f'<span class="state {state}">{state}</span>' in page
    assert (f"<p>Next: {next_step}</p>" in page) == bool(next_step)
    again = SnapshotRun("2026-11-19", "refine", "again", "running", ("extract",))
    assert state_of(*of, again) == ("running", "its run is in extract")


def test_every_route_refuses_who_is_not_logged_in(app: Any, stranger: Any) -> None:
    assert len(paths(app)) >= 6
    for path in paths(app):
        assert stranger.get(path).status_code == 401, path


def test_routes_only_read_but_for_those_of_answers_and_the_purpose(app: Any, stranger: Any) -> None:
    writing = [route.path for route in app.routes if not route.methods <= {"GET", "HEAD"}]
    assert sorted(writing) == ["/intruder/{recipe}/{snapshot}", "/purpose", "/read/{recipe}/{snapshot}"]
    for path in writing:
        assert stranger.post(path.format(recipe="small", snapshot="2026-11-19")).status_code == 401


def test_snapshots_and_their_funnel_are_shown(visitor: Any) -> None:
    listed = visitor.get("/page")
    assert listed.status_code == 200
    assert "2026-11-19" in listed.text
    funnel = visitor.get("/snapshot/small/2026-11-19")
    assert funnel.status_code == 200
    assert "extract:empty" in funnel.text
    assert "overridden: a test" in funnel.text
    assert funnel.text.count("before and after</h3>") == funnel.text.count('<p class="quiet">idle: ') == 4


def test_who_may_only_look_reads_no_texts_of_the_crawl(
    visitor: Any, app: Any, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rejected texts and traced documents were shown to everyone with a login, and nobody knew who had read them."""
    report = f"/files/{version_log.current(str(root), 'small', '2026-11-19').report}"
    texts = ("/rejects/small/2026-11-19/extract", "/trace/small/2026-11-19", report)
    with caplog.at_level("INFO", logger="refinery"):
        assert visitor.get(texts[0]).status_code == 200
    assert "ada reads texts: /rejects/small/2026-11-19/extract" in caplog.text
    be(app, "eve", "VIEWER")
    for path in texts:
        refused = visitor.get(path)
        assert refused.status_code == 403
        assert "Ask for a role with that right." in refused.text
        assert "example.org" not in refused.text
    assert [visitor.get(path).status_code for path in ("/page", "/snapshot/small/2026-11-19", "/find")] == [200] * 3


def test_who_may_only_look_reads_no_names_of_sites_in_stored_files(
    visitor: Any, app: Any, small_root: SmallRoot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Pages hide them, and every manifest of a deduplication, and the page that finds uses, gave them to everyone."""
    monkeypatch.setenv("REFINERY_ROOT", small_root.root)
    manifests = [path.relative_to(small_root.root) for path in Path(small_root.root).rglob("*.json")]
    served = [f"/files/{path}" for path in manifests if visitor.get(f"/files/{path}").status_code == 200]
    named = [path for path in served if "example.org" in visitor.get(path).text]
    assert any("/dedup_exact/" in path for path in named)
    assert visitor.get("/find?site=example.org").status_code == 200
    be(app, "eve", "VIEWER")
    for path in (*named, "/find?site=example.org", "/find?doc=" + "0" * 32, "/find?url=https://example.org/"):
        refused = visitor.get(path)
        assert (path, refused.status_code) == (path, 403)
        assert "example.org" not in refused.text
    assert [path for path in served if path not in named and visitor.get(path).status_code != 200] == []
    be(app, "bob", "USER")
    with caplog.at_level("INFO", logger="refinery"):
        assert [visitor.get(path).status_code for path in (named[0], "/find?site=example.org")] == [200, 200]
    assert f"bob reads texts: {named[0]}" in caplog.text


def test_rows_of_a_manifest_are_shown_to_stewards_and_to_no_other(visitor: Any, app: Any, root: Path) -> None:
    """Texts that `extract` keeps have personal data: those who may approve its gate read them, too, without the role."""
    path = f"/sample/{next(root.glob('extract/*/manifest.json')).relative_to(root)}"
    be(app, "eve", "VIEWER")
    assert visitor.get(path).status_code == 403
    be(app, "ann", "USER")
    assert visitor.get(path).status_code == 403
    be(app, "bob", "OP")
    page = visitor.get(path)
    assert page.status_code == 200
    kept, rejected = page.text.split("<h2>Rejected", 1)
    assert "The ferry leaves the harbor" in kept
    assert "https://a.example.org/1" in kept
    assert "extract:empty" in rejected
    assert SCRIPT not in page.text
    assert "&lt;script&gt;" in rejected
    assert "No rows with this reason" in visitor.get(path, params={"reason": "extract:timeout"}).text
    shard = next(root.glob("extract/*/data/*"))
    for other in ("../ledger.sqlite", "ledger.sqlite", str(shard.relative_to(root))):
        assert visitor.get(f"/sample/{other}").status_code == 404


def test_rows_are_shown_without_texts_that_stay_where_they_landed(
    visitor: Any, small_root: SmallRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of lines of JSON that `ingest` kept said that they were damaged."""
    monkeypatch.setenv("REFINERY_ROOT", small_root.root)
    for manifest in Path(small_root.root).glob("*/*/manifest.json"):
        path = manifest.relative_to(small_root.root)
        assert visitor.get(f"/sample/{path}").status_code == 200, path
    manifest = next(Path(small_root.root).glob("ingest/*/manifest.json"))
    page = visitor.get(f"/sample/{manifest.relative_to(small_root.root)}").text
    assert "https://example.org/" in page.split("<h2>Rejected", 1)[0]


def test_rows_that_no_stage_has_made_documents_of_are_shown_without_texts(
    visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of lines of JSON behind `check_rights` was an error: they are in the landed files, as behind `ingest`."""
    (folder := tmp_path / "day").mkdir()
    (folder / "a.jsonl").write_text('{"url": "https://a.example.org/1", "text": "The ferry leaves the harbor."}\n')
    root = tmp_path / "root"
    landed = request(root, verb="land", input=str(folder))
    monkeypatch.setenv("REFINERY_ROOT", str(root))
    parent = landed["manifest"]
    for stage, params in (("ingest", {"rights": True}), ("check_rights", {})):
        reply = request(root, verb="refine", stage=stage, params=params, parent=parent, landing=landed["landing"])
        parent = path_of(reply["manifest"])
        page = visitor.get(f"/sample/{parent}")
        assert page.status_code == 200
        assert "https://a.example.org/1" in page.text
        assert "The ferry" not in page.text


@pytest.mark.parametrize(
    "path",
    ["../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "ledger.sqlite", "ingest/../ledger.sqlite"],
)
def test_only_the_account_of_a_snapshot_is_served(visitor: Any, root: Path, path: str) -> None:
    assert (root / "ledger.sqlite").exists()
    assert visitor.get(f"/files/{path}").status_code == 404
    assert visitor.get(f"/manifest/{path}").status_code == 404


def test_rows_are_not_served_as_files(visitor: Any, root: Path) -> None:
    shard = next(root.glob("extract/*/data/*"))
    assert visitor.get(f"/files/{shard.relative_to(root)}").status_code == 404
    manifest = next(root.glob("extract/*/manifest.json"))
    assert visitor.get(f"/files/{manifest.relative_to(root)}").json()["stage"] == "extract"


def test_a_manifest_behind_an_abandoned_attempt_has_its_pages(
    visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot's page linked to them, and they were said to be no manifests."""
    copy = shutil.copytree(root, tmp_path / "root")
    first = next(copy.glob("extract/*/manifest.json"))
    first.rename(first.with_name("manifest.1.json"))
    first.write_bytes(ABANDONED)
    monkeypatch.setenv("REFINERY_ROOT", str(copy))
    path = first.with_name("manifest.1.json").relative_to(copy)
    assert [visitor.get(f"/{page}/{path}").status_code for page in ("manifest", "files", "sample")] == [200] * 3


def test_static_files_are_kept_by_their_content(visitor: Any) -> None:
    page = visitor.get("/page").text
    links = re.findall(r'(?:href|src)="/refinery(/static/[^"]+)"', page)
    assert [link.split("?")[0] for link in links] == ["/static/refinery.css", "/static/refinery.js"]
    for link in links:
        answer = visitor.get(link)
        assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)
    assert "http" not in visitor.get(links[0]).text, "the style fetches nothing"
    assert visitor.get("/static/nothing.css").status_code == 404
    assert visitor.get("/static/..%2Flayout.html").status_code == 404


def test_the_library_of_plots_is_served_by_the_plugin(visitor: Any) -> None:
    [path] = re.findall(r'data-vega="/refinery(/static/vega.js[^"]+)"', visitor.get("/page").text)
    library = visitor.get(path)
    assert (library.status_code, "immutable" in library.headers["cache-control"]) == (200, True)
    assert "window.vegaEmbed=" in library.text


def test_a_plot_is_escaped_json_with_a_table(visitor: Any) -> None:
    page = visitor.get("/page").text
    specs = [json.loads(html.unescape(spec)) for spec in re.findall(r'data-spec="([^"]+)"', page)]
    assert specs[0]["data"]["values"][0]["snapshot"] == "2026-11-19"
    assert len(specs) == page.count('<figure class="plot">') == page.count("<summary>")


def test_stored_pages_run_nothing(visitor: Any, root: Path) -> None:
    docs = next(root.glob("extract/*/gate/*/docs/index.html")).relative_to(root)
    policy = visitor.get(f"/files/{docs}").headers["content-security-policy"]
    assert "script-src" not in policy
    assert policy.startswith("default-src 'none'; ")


def test_an_empty_root_says_how_to_begin(visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path))
    assert "Nothing has been published yet" in visitor.get("/page").text


def test_a_retracted_snapshot_is_said_to_be_so(
    visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(root, tmp_path / "root")
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path / "root"))
    version_log.retract(str(tmp_path / "root"), "small", "2026-11-19", "<b>spam</b>")
    listed = visitor.get("/page").text
    row = (
        r"2026-11-19</a></th>\s*<td><span[^>]*>retracted</span></td>\s*<td[^>]*>was retracted on [\d-]{10} [\d:]{5} UTC"
    )
    assert re.search(f"{row}: &lt;b&gt;spam&lt;/b&gt;", listed)
    gone = visitor.get("/snapshot/small/2026-11-19")
    assert gone.status_code == 200
    assert re.search("was retracted on .* UTC: &lt;b&gt;spam&lt;/b&gt;", gone.text)
    assert "refinery retract --undo 2026-11-19" in gone.text
    (report,) = re.findall(r'href="/refinery(/files/[^"]+)"', gone.text)
    assert visitor.get(report).status_code == 200
    assert visitor.get("/rejects/small/2026-11-19/extract").status_code == 404


def stored_objects(root: Path) -> dict[str, Path]:
    """An object of every kind that the page of a snapshot reads."""
    version = version_log.current(str(root), "small")
    return {
        "entry of the log": root / version_log.version_path("small", version.number),
        "manifest": root / path_of(version.manifests["extract"]),
        "verdict": root / path_of(version.verdicts["extract"]),
        "ledger": root / "ledger.sqlite",
    }


@pytest.mark.parametrize("kind", ["entry of the log", "manifest", "verdict", "ledger"])
def test_a_damaged_object_is_a_page_that_says_so(kind: str, visitor: Any, root: Path) -> None:
    path = stored_objects(root)[kind]
    before = path.read_bytes()
    at = len(before) // 2
    shown = 0
    for damage in (before[:at] + b"\xff" * 200 + before[at + 200 :], b"[]" * 99):
        path.write_bytes(damage)
        try:
            page = visitor.get("/snapshot/small/2026-11-19")
        finally:
            path.write_bytes(before)
        if kind == "ledger" and page.status_code == 200:
            continue  # the damage was in a page of the database that nothing read
        assert page.status_code == 409
        assert "<h1>Damaged</h1>" in page.text
        assert str(path) in page.text
        assert f"refinery verify {root}" in page.text
        shown += 1
    assert shown == 2 or (kind == "ledger" and shown == 1)


def test_a_file_as_root_is_a_page_that_says_so(visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("not a root")
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path / "README.md"))
    page = visitor.get("/page")
    assert page.status_code == 404
    assert "is a file, not a root" in page.text


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A root with two training datasets of the same snapshots."""
    root = refined_days(tmp_path_factory.mktemp("found"))
    built(root, recipe_of())
    built(root, replace(recipe_of(), name="alone"))
    return root


def test_the_address_of_the_pages_leads_to_the_first(visitor: Any) -> None:
    found = visitor.get("/", follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (307, "/refinery/page")


def test_texts_of_a_retracted_snapshot_are_not_linked(
    visitor: Any, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link was of a page that is not there."""
    root = str(shutil.copytree(dataset, tmp_path / "root"))
    monkeypatch.setenv("REFINERY_ROOT", root)
    newest = version_log.latest_by_snapshot(root, "tiny")[-1].snapshot
    assert f"/search/tiny/{newest}" in visitor.get("/snapshot/corpus/build").text
    version_log.retract(root, "tiny", newest, "spam")
    page = visitor.get("/snapshot/corpus/build").text
    assert f"/search/tiny/{newest}" not in page
    links = re.findall(r'href="/refinery(/(?:search|snapshot)/[^"]+)"', page)
    assert [visitor.get(html.unescape(link)).status_code for link in links] == [200] * len(links)
    assert any(link.startswith("/search/") for link in links)


def test_a_training_dataset_has_its_pages(visitor: Any, dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called no recipe, says what it was made of, and has a report, documents, texts and traced tokens."""
    monkeypatch.setenv("REFINERY_ROOT", dataset)
    overview = visitor.get("/page")
    assert (overview.status_code, ">corpus</a>" in overview.text) == (200, True)
    assert overview.text.count("training dataset</span>") == 2
    snapshot = visitor.get("/snapshot/corpus/build")
    assert snapshot.status_code == 200
    assert "recipe corpus" not in snapshot.text
    assert "training dataset, version 1" in snapshot.text
    version = version_log.current(dataset, "corpus")
    assert f"<dt>Tokens</dt><dd>{version.tokens:,}</dd>" in snapshot.text
    links = {html.unescape(link) for link in re.findall(r'href="/refinery(/[^"]+)"', snapshot.text)}
    assert {"/card/corpus/build", "/find?recipe=corpus", "/ask/look-lineage/corpus/build"} <= links
    assert len([link for link in links if link.startswith("/search/")]) == len(
        [link for link in links if link.startswith("/snapshot/")]
    )
    for link in links:
        assert visitor.get(link).status_code == 200, link
    card = visitor.get("/card/corpus/build").text
    assert "## Made from" in card
    assert "pretty_name" not in card
    lineage = visitor.get("/ask/look-lineage/corpus/build").text
    assert "Lineage of corpus version 1" in lineage
    traced = visitor.get("/trace/corpus/build?token=1")
    assert (traced.status_code, "of shard 0" in traced.text) == (200, True)
    sequences = version_log.current(dataset, "corpus").sequences
    assert visitor.get(f"/trace/corpus/build?token={sequences * 64}").status_code == 404


def test_uses_are_found_with_links_that_lead_to_them(
    visitor: Any, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_ROOT", dataset)
    id_, row = next((id_, row) for id_, row in documents(dataset).items() if row["language"] == "de")
    uses = list(find(dataset, [version_log.current(dataset, "corpus")], [("doc", id_)]))
    for query in ({"doc": id_}, {"url": row["url"]}, {"site": row["url"].split("/")[2].upper()}):
        page = visitor.get("/find", params={**query, "recipe": "corpus"})
        assert page.status_code == 200
        assert page.text.count(id_) >= len(uses)
    page = visitor.get("/find", params={"doc": f" {id_} "}).text
    traces = re.findall(r'href="/refinery(/trace/[^"]+)"', page)
    assert {trace.split("/")[2] for trace in traces} == {"corpus", "alone"}
    for trace in traces:
        shown = visitor.get(trace).text
        assert f">{id_}</code>" in shown, trace
    for path in set(re.findall(r'href="/refinery(/snapshot/[^"]+)"', page)):
        assert visitor.get(path).status_code == 200, path


def test_the_form_alone_reads_no_shard_and_nothing_is_a_sentence(
    visitor: Any, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_ROOT", dataset)
    form = visitor.get("/find")
    assert (form.status_code, "<table>" in form.text, "<option>corpus" in form.text) == (200, False, True)
    nothing = visitor.get("/find", params={"site": "nowhere.example"})
    assert (nothing.status_code, "No training dataset has it." in nothing.text) == (200, True)
    for query, message in {
        (("doc", "12"),): "doc &#39;12&#39; has to be the id of a document, 32 hex digits",
        (("site", "com"),): "has to be a host",
        (("url", "a page"),): "has to be an address with its host",
        (("site", "a.org"), ("recipe", "none")): "has no training dataset &#39;none&#39;",
    }.items():
        refused = visitor.get("/find", params=dict(query))
        assert (refused.status_code, message in refused.text) == (404, True)
    assert visitor.get("/find", params={"url": "x" * 5000}).status_code == 422


def test_more_places_than_are_shown_are_said(visitor: Any, dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.texts import find as refinery_find

    monkeypatch.setenv("REFINERY_ROOT", dataset)
    monkeypatch.setattr(refinery_find, "PLACES_SHOWN", 3)
    [host] = {row["url"].split("/")[2] for row in list(documents(dataset).values())[:1]}
    page = visitor.get("/find", params={"site": host.split(".", 1)[1]}).text
    assert "The first 3 places" in page
    assert page.count("/refinery/trace/") == 3


def test_a_dataset_says_which_of_its_snapshots_were_retracted(
    visitor: Any, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page had not a word on a retraction after the build, which leaves the documents in it."""
    copy = str(shutil.copytree(dataset, tmp_path / "root"))
    monkeypatch.setenv("REFINERY_ROOT", copy)
    said = "since; the next build leaves it out"
    assert said not in visitor.get("/snapshot/corpus/build").text
    composed = read_manifest(copy, version_log.current(copy, "corpus").manifests["compose"]).params["versions"]
    version_log.retract(copy, composed[0]["recipe"], composed[0]["snapshot"], "spam wave")
    assert visitor.get("/snapshot/corpus/build").text.count(said) == 1


def test_a_damaged_lineage_is_named(
    visitor: Any, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = str(shutil.copytree(dataset, tmp_path / "root"))
    monkeypatch.setenv("REFINERY_ROOT", copy)
    lineage = next(Path(copy, "publish", "shards").glob("*.lineage.parquet"))
    lineage.write_bytes(lineage.read_bytes()[:-9])
    page = visitor.get("/find", params={"site": "nowhere.example", "recipe": "corpus"})
    assert (page.status_code, lineage.name in page.text, "refinery build --again" in page.text) == (409, True, True)


def test_who_may_not_read_texts_sees_no_card_of_a_dataset(
    visitor: Any, app: Any, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card names groups, which may be sites; so does the mixture on the page."""
    from refinery_airflow.pages import dataset as refinery_dataset

    monkeypatch.setenv("REFINERY_ROOT", dataset)
    be(app, "eve", "VIEWER")
    assert visitor.get("/card/corpus/build").status_code == 403
    assert "epochs" in visitor.get("/snapshot/corpus/build").text
    monkeypatch.setattr(refinery_dataset, "OPEN", frozenset())
    page = visitor.get("/snapshot/corpus/build").text
    assert "epochs" not in page
    assert "Names of groups are shown to those who may approve a refused gate." in page
