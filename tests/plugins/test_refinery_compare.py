"""The page that compares two versions: what `refinery diff` says, for any two, and nothing of a crawl runs in it."""

import html
import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.diff import compare
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest
from tests.documents import documents
from tests.markup import assert_inert, words
from tests.refining import commit_parent, refined
from tests.small_root import SmallRoot
from tests.stages.test_filter_quality import PROSE

SCRIPT = "<script>alert(1)<script>"
LINES = PROSE.split("\n")
TEXTS = ["\n".join(LINES[:count]) for count in range(len(LINES) + 1)] * 2
LANGUAGES = (["en", "de", SCRIPT] * len(TEXTS))[: len(TEXTS)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with two versions of one snapshot, under other bounds, and one of a snapshot whose name is a script."""
    root = tmp_path_factory.mktemp("root")
    texts = [f"{text} {at}" for at, text in enumerate(TEXTS)]
    parent = commit_parent(root, [documents(texts, language=pa.array(LANGUAGES, pa.string()))])
    for snapshot, least in (("2026-11-19", 50), ("2026-11-19", 80), (SCRIPT, 50)):
        path, manifest = refined(root, "filter_quality", parent, {"gopher_quality": {"min_doc_words": least}})
        entry = {"recipe": "web", "snapshot": snapshot, "landing": "", "manifests": {"filter_quality": path}}
        sizes = {"documents": manifest.rows, "tokens": 10 * manifest.rows, "sequences": 1}
        version_log.append(str(root), entry | sizes | {"verdicts": {}, "prefix": ""})
    return root


def shown(visitor: Any, recipe: str = "web", **fields: str) -> Any:
    return visitor.get(f"/compare/{recipe}", params=fields)


def chosen(page: str) -> list[str]:
    return re.findall(r'<option value="(\d+)" selected>', page)


def test_versions_are_compared_as_the_command_does(visitor: Any, root: Path) -> None:
    a, b, _ = version_log.versions(str(root), "web")
    diff = compare(str(root), a, b)
    page = shown(visitor, a="1", b="2")
    assert page.status_code == 200
    [(now, then)] = [stage.rows for stage in diff.stages]
    assert now is not None
    assert then is not None
    assert 0 < then < now
    said = words(page.text)
    assert f"Documents {now} → to {then} {then - now} (" in said
    assert "params.limits.gopher_quality.min_doc_words 50.0 → to 80.0" in said
    assert f"de {diff.groups['language']['de'][0].documents} {diff.groups['language']['de'][1].documents}" in said
    assert "refinery diff 1 2" in said
    specs = [json.loads(html.unescape(spec)) for spec in re.findall(r'data-spec="([^"]+)"', page.text)]
    kept = {row["series"]: row["rows"] for row in specs[0]["data"]["values"]}
    assert kept == {"1: 2026-11-19": now, "2: 2026-11-19": then}
    assert len(specs) > 1, "distributions of both are plotted"
    assert {row["series"] for row in specs[1]["data"]["values"]} == set(kept)


def test_documents_are_compared_by_id_on_request(visitor: Any, root: Path) -> None:
    a, b, _ = version_log.versions(str(root), "web")
    [link] = re.findall(r'href="/refinery(/compare/[^"]+documents=on)"', shown(visitor, a="1", b="2").text)
    page = visitor.get(html.unescape(link)).text
    documents = compare(str(root), a, b, documents=True).documents
    assert documents is not None
    assert (
        f"Documents in both {documents.common} Only in 2 {documents.added} added Only in 1 {documents.removed}"
        in words(page)
    )
    assert documents.removed > 0
    assert "refinery diff 1 2" in page
    assert "--documents" in page


def test_ids_of_too_many_documents_are_not_read(
    visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = str(shutil.copytree(root, tmp_path / "root"))
    large = asdict(version_log.versions(copy, "web")[0]) | {"snapshot": "2026-11-20", "documents": 1_000_000}
    version_log.append(copy, {name: value for name, value in large.items() if name != "number"} | {"files": ()})
    monkeypatch.setenv("REFINERY_ROOT", copy)
    page = shown(visitor, a="1", b="4")
    assert (page.status_code, "documents=on" in page.text) == (200, False)
    refused = shown(visitor, a="1", b="4", documents="on")
    assert (refused.status_code, "a page compares the ids of 1,000,000" in refused.text) == (422, True)


@pytest.mark.parametrize(
    ("fields", "sides"),
    [
        ({}, ["2", "3"]),
        ({"b": "2"}, ["1", "2"]),
        ({"b": "1"}, ["3", "1"]),
        ({"a": "3", "b": "2026-11-19"}, ["3", "2"]),
        ({"a": " 1 ", "b": SCRIPT}, ["1", "3"]),
    ],
)
def test_a_side_that_is_not_named_is_the_version_before(visitor: Any, fields: dict[str, str], sides: list[str]) -> None:
    page = shown(visitor, **fields)
    assert page.status_code == 200
    assert chosen(page.text) == sides
    assert f"a={sides[1]}&b={sides[0]}" in html.unescape(page.text), "sides can be swapped"


def test_what_is_typed_or_stored_is_escaped(visitor: Any) -> None:
    for fields in ({"a": "1", "b": "3"}, {"a": f'"{SCRIPT}'}, {"b": "1", "a": f"'{SCRIPT}"}):
        page = shown(visitor, **fields)
        assert page.status_code == (200 if fields.get("b") == "3" else 422)
        assert_inert(page.text, SCRIPT)
        assert not re.findall(r"<(?:input|select)(?![^>]*name=)", page.text)


def test_what_is_not_there_is_said(visitor: Any) -> None:
    missing = shown(visitor, recipe="nothing")
    assert (missing.status_code, "<h1>Not found</h1>" in missing.text) == (404, True)
    wrong = shown(visitor, a="1", b="77")
    assert (wrong.status_code, "has no version or snapshot &#39;77&#39;" in wrong.text) == (422, True)
    assert visitor.get("/compare/web", params={"a": "x" * 300}).status_code == 422
    same = shown(visitor, a="2", b="2026-11-19")
    assert (same.status_code, "version 2 of web is on both sides" in same.text) == (422, True)


def test_pages_lead_to_the_comparison_and_back(visitor: Any) -> None:
    assert 'href="/refinery/compare/web"' in visitor.get("/page").text
    assert 'href="/refinery/compare/web?b=2"' in visitor.get("/snapshot/web/2026-11-19").text
    links = re.findall(r'href="/refinery(/[^"]+)"', shown(visitor, a="1", b="3").text)
    assert any(link.startswith("/manifest/filter_quality/") for link in links)
    for link in links:
        assert visitor.get(html.unescape(link)).status_code == 200, link


def test_whole_recipes_and_retracted_versions_are_compared(
    visitor: Any, small_root: SmallRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_ROOT", small_root.root)
    page = shown(visitor, recipe="small", a="1", b="3", documents="on")
    assert page.status_code == 200
    assert "(retracted)" in page.text
    stages = re.findall(r'<th scope="row">(\w+) <a class="small"', page.text)
    assert stages[0] == "land"
    assert stages[-1] == "dedup_minhash"
    for link in re.findall(r'href="/refinery(/[^"]+)"', page.text):
        assert visitor.get(html.unescape(link)).status_code == 200, link
    by_name = shown(visitor, recipe="small", a="1", b="2026-11-21")
    assert (by_name.status_code, "was retracted on" in by_name.text) == (422, True)


def test_a_stage_that_one_version_lacks_is_named_and_has_no_zeros(
    visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "root"
    shutil.copytree(root, copy)
    version = version_log.versions(str(copy), "web")[0]
    fields = {name: value for name, value in asdict(version).items() if name != "number"}
    parent = version.manifests["filter_quality"]
    texts = [f"{text} {at}" for at, text in enumerate(TEXTS)]
    twice = commit_parent(copy, [documents([*texts, *texts])])
    path, manifest = refined(copy, "dedup_exact", twice)
    stages = {"filter_quality": parent, "dedup_exact": path}
    version_log.append(str(copy), fields | {"manifests": stages, "files": (), "snapshot": "2026-11-22"})
    monkeypatch.setenv("REFINERY_ROOT", str(copy))
    said = words(shown(visitor, a="1", b="4").text)
    rejected = sum(manifest.rejected.values())
    assert f"- → to {manifest.rows_in} - → to {manifest.rows}" in said
    assert "the stage is only in 4" in said
    [reason] = manifest.rejected
    assert f"{reason} dedup_exact - {rejected} -" in said
    assert "the stage is only in 4" in words(shown(visitor, a="4", b="1").text)


@pytest.fixture
def two_recipes(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the root with a second recipe, which keeps fewer documents of the same snapshot, and its costs."""
    copy = tmp_path / "root"
    shutil.copytree(root, copy)
    texts = [f"{text} {at}" for at, text in enumerate(TEXTS)]
    parent = commit_parent(copy, [documents(texts, language=pa.array(LANGUAGES, pa.string()))], "other")
    limits = {"profiles": ["c4", "gopher_quality"], "gopher_quality": {"min_doc_words": 80}}
    path, manifest = refined(copy, "filter_quality", parent, limits)
    entry = {"recipe": "strict", "snapshot": "2026-11-19", "landing": "", "manifests": {"filter_quality": path}}
    sizes = {"documents": manifest.rows, "tokens": 10 * manifest.rows, "sequences": 1}
    version_log.append(str(copy), entry | sizes | {"verdicts": {}, "prefix": ""})
    monkeypatch.setenv("REFINERY_ROOT", str(copy))
    return str(copy)


def test_versions_of_two_recipes_are_compared(visitor: Any, two_recipes: str) -> None:
    web, strict = version_log.versions(two_recipes, "web")[0], version_log.versions(two_recipes, "strict")[0]
    diff = compare(two_recipes, web, strict)
    page = shown(visitor, a="1", b="strict:1")
    assert page.status_code == 200
    said = words(page.text)
    assert "Compare versions of web and strict" in said
    assert f"Tokens {web.tokens} → to {strict.tokens}" in said
    assert "params.profiles" in said
    [stage] = diff.stages
    assert any(reason.startswith("c4:") for reason in stage.reasons)
    for reason, (a, b) in stage.reasons.items():
        assert f"{reason} filter_quality {a} {b} {f'{b - a:+}' if a != b else 0}" in said
    [english] = [language for language in diff.retention if language.language == "en"]
    before, after = (f"{share * 100:.1f} %" for share in english.shares if share is not None)
    assert before != after
    assert f"en {english.rows_in[0]} {english.rows[0]} → to {english.rows[1]} {before} → to {after}" in said
    assert 'value="strict:1" selected' in page.text
    assert "refinery diff 1 strict:1" in said
    spec = json.loads(html.unescape(re.findall(r'data-spec="([^"]+)"', page.text)[0]))
    assert {row["series"] for row in spec["data"]["values"]} == {"web 1: 2026-11-19", "strict 1: 2026-11-19"}
    for link in re.findall(r'href="/refinery(/[^"]+)"', page.text):
        assert visitor.get(html.unescape(link)).status_code == 200, link


def test_the_ledger_has_the_costs_of_both_recipes(visitor: Any, two_recipes: str) -> None:
    assert "The ledger has no record of these snapshots" in shown(visitor, a="1", b="strict:1").text
    assert "Both versions are of one snapshot" in shown(visitor, a="1", b="2").text
    with Ledger.open(ledger_of(two_recipes)) as ledger:
        for recipe, seconds in (("web", 30.0), ("strict", 45.0)):
            version = version_log.current(two_recipes, recipe, "2026-11-19")
            ledger.record_version(version)
            path = path_of(version.manifests["filter_quality"])
            manifest = read_manifest(two_recipes, path)
            ledger.record_stage(path, manifest, wall=seconds, snapshot=version.snapshot, recipe=recipe, engine="local")
    page = words(shown(visitor, a="1", b="strict:1").text)
    assert "filter_quality 30 s → to 45 s" in page


def test_a_version_is_found_by_the_recipe_before_its_name(visitor: Any, two_recipes: str) -> None:
    for fields, sides in (
        ({"b": "strict:2026-11-19"}, ["3", "strict:1"]),
        ({"a": "strict:1"}, ["strict:1", "3"]),
        ({"a": "strict:1", "b": "2"}, ["strict:1", "2"]),
    ):
        page = shown(visitor, **fields)
        assert page.status_code == 200
        assert re.findall(r'<option value="([^"]+)" selected>', page.text) == sides
    alone = shown(visitor, recipe="strict")
    assert (alone.status_code, "web 3: " in alone.text) == (200, True)
    assert 'href="/refinery/compare/strict?b=1"' in visitor.get("/snapshot/strict/2026-11-19").text
    wrong = shown(visitor, a="strict:7", b="1")
    assert (wrong.status_code, "recipe strict has no version or snapshot &#39;7&#39;" in wrong.text) == (422, True)
    same = shown(visitor, recipe="strict", a="strict:1", b="1")
    assert (same.status_code, "version 1 of strict is on both sides" in same.text) == (422, True)


def test_the_command_compares_two_recipes(two_recipes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "web:1", "strict:1", two_recipes]) == 0
    printed = capsys.readouterr().out
    assert "A: web version 1" in printed
    assert "B: strict version 1" in printed
    assert re.search(r"^    c4:\w+: 0 -> \d+ rows$", printed, re.MULTILINE)
    assert re.search(r"^en +\d+ +\d+ -> \d+ +[\d.]+% -> [\d.]+%$", printed, re.MULTILINE)
    assert main(["diff", "1", "strict:1", two_recipes, "--recipe", "web", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["a"]["recipe"], facts["b"]["recipe"]) == ("web", "strict")
    assert facts["retention"][0]["shares"][0] > facts["retention"][0]["shares"][1]


def test_a_single_version_is_said_to_have_no_other(
    visitor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {}, "verdicts": {}, "prefix": ""}
    version_log.append(str(tmp_path), entry | {"documents": 0, "tokens": 0, "sequences": 0})
    monkeypatch.setenv("REFINERY_ROOT", str(tmp_path))
    page = shown(visitor)
    assert (page.status_code, "there is none to compare it with" in page.text) == (200, True)
    assert "/compare/" not in visitor.get("/snapshot/web/s").text
