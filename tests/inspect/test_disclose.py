"""What is disclosed of a version: figures that follow from its bytes, each with what it was computed from."""

import copy
import csv
import hashlib
import io
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mlcroissant
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from refinery_rights.disclose import disclose
from refinery_rights.disclose.about import About, read_about
from refinery_rights.disclose.counting import top_of
from refinery_rights.disclose.croissant import croissant
from refinery_rights.disclose.datasheet import KEYS
from refinery_rights.disclose.facts import Facts, StageTotal, collected
from refinery_rights.disclose.measures import rights_answers, rights_tables
from refinery_rights.disclose.page import cited, html, markdown
from refinery_rights.disclose.spdx import spdx
from refinery_rights.disclose.summary import summary
from spdx_python_model.bindings import v3_0_1 as spdx_model

from pipeline_tasks.binding import bind_fields
from pipeline_tasks.cli.main import main
from pipeline_tasks.demo import warc
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import small_build
from tests.chain import How, refined
from tests.mixed_root import DAYS as MIXED_DAYS
from tests.mixed_root import HOSTILE
from tests.mixed_root import RECIPE as MIXED
from tests.small_root import DAYS, RECIPE, SmallRoot

ABOUT = {
    "provider": "Example AI | Ltd",
    "contact": "rights@example.com",
    "model": "example-1",
    "model_version": "1.0",
    "licence": "CC-BY-4.0",
    "user_data": "No user data was used.",
    "sources": {"*": {"category": "licensed", "name": "An archive", "licence": "contract 7"}},
    "datasheet": {"funding": "by its owners"},
}


@pytest.fixture(scope="module")
def built(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    """A copy of the small root with a training dataset; tests only read it."""
    small = small_build.copied(small_root, tmp_path_factory.mktemp("built"))
    small_build.build(small, judged=True)
    return small


def told(root: str, version: Version, out: Path, about: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Disclose a version; return the summary as JSON."""
    file = out.with_suffix(".yaml")
    file.write_text(yaml.safe_dump(dict(about or {})))
    disclose(root, version, read_about(str(file), KEYS), out)
    return dict(json.loads((out / "summary.json").read_text()))


@contextmanager
def facts_of(root: str, version: Version, **about: Any) -> Any:
    with collected(root, version, bind_fields(About, about, "about")) as facts:
        yield facts


def answer(page: Mapping[str, Any], section: str, question: str) -> Any:
    answers = page["sections"][section]["answers"]
    [key] = [name for name in answers if question in name]
    return answers[key]


def rows(page: Mapping[str, Any], section: str, table: str) -> list[dict[str, Any]]:
    return list(page["sections"][section]["tables"][table]["rows"])


def domain_of(url: str) -> str:
    """The registered domain of the addresses of these tests, found in another way than the product does."""
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])


# --- Figures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("day", MIXED_DAYS[-2:])
def test_bytes_by_domain_and_language_are_those_of_the_texts(day: str, mixed_root: Path, tmp_path: Path) -> None:
    version = version_log.current(str(mixed_root), MIXED, day)
    page = told(str(mixed_root), version, tmp_path / "out")
    documents, size, languages = Counter[str](), Counter[str](), Counter[str]()
    for batch in read_shards(str(mixed_root), read_manifest(str(mixed_root), version.refined).shards):
        for row in batch.to_pylist():
            documents[domain_of(row["url"])] += 1
            size[domain_of(row["url"])] += len(row["text"].encode())
            languages[row["language"]] += len(row["text"].encode())
    ranked = sorted(size, key=lambda name: (-size[name], name))[: ceil(len(size) / 10)]
    expected = [{"domain": name, "documents": documents[name], "bytes of text": size[name]} for name in ranked]
    assert rows(page, "processing", "stages")
    assert [row for section in page["sections"] for row in _domains(page, section)] == expected
    with (tmp_path / "out" / "domains-other.csv").open() as lines:
        assert [(row["domain"], int(row["bytes"])) for row in csv.DictReader(lines)] == [
            (name, size[name]) for name in ranked
        ]
    assert {row["language"]: row["bytes of text"] for row in rows(page, "general", "languages")} == languages
    assert answer(page, "general", "Text, in UTF-8")["value"] == sum(size.values())
    assert answer(page, "general", "Documents")["value"] == version.documents


def _domains(page: Mapping[str, Any], section: str) -> list[dict[str, Any]]:
    tables = page["sections"][section]["tables"]
    return list(tables["domains"]["rows"]) if "domains" in tables else []


@given(st.integers(0, 10**8), st.booleans())
def test_the_template_asks_for_a_tenth_of_the_domains_and_for_less_of_a_small_enterprise(
    domains: int, small: bool
) -> None:
    listed = top_of(domains, small=small)
    assert listed == (min(-(-domains // 20), 1000) if small else -(-domains // 10))


def test_a_dataset_counts_each_document_once_and_tokens_as_often_as_they_are_used(
    built: SmallRoot, tmp_path: Path
) -> None:
    version = version_log.current(built.root, small_build.DATASET)
    page = told(built.root, version, tmp_path / "out")
    sources = [version_log.current(built.root, RECIPE, day) for day in DAYS[:2]]
    texts = {
        row["id"]: len(row["text"].encode())
        for source in sources
        for batch in read_shards(built.root, read_manifest(built.root, source.refined).shards, ["id", "text"])
        for row in batch.to_pylist()
    }
    shuffled = read_manifest(built.root, version.manifests["shuffle"])
    used = [row["id"] for batch in read_shards(built.root, shuffled.shards, ["id"]) for row in batch.to_pylist()]
    assert len(used) > len(set(used)), "a document is used twice"
    assert answer(page, "general", "Documents")["value"] == len(set(used))
    assert answer(page, "general", "Text, in UTF-8")["value"] == sum(texts[name] for name in set(used))
    assert answer(page, "general", "Tokens in training")["value"] == version.tokens
    assert answer(page, "general", "range")["value"] == "less than 1 billion tokens"
    assert [row["snapshot"] for row in rows(page, "other", "sources")] == list(DAYS[:2])


def test_every_figure_names_objects_by_the_digest_of_their_bytes(built: SmallRoot, tmp_path: Path) -> None:
    for name in (RECIPE, small_build.DATASET):
        page = told(built.root, version_log.current(built.root, name), tmp_path / name)
        known = {each["id"] for each in page["evidence"]}
        for each in page["evidence"]:
            assert hashlib.sha256(Path(built.root, each["path"]).read_bytes()).hexdigest() == each["sha256"]
        answers = [each for section in page["sections"].values() for each in section["answers"].values()]
        numbers = [each for each in answers if isinstance(each["value"], int)]
        assert numbers
        assert all(each["evidence"] for each in numbers)
        tables = [table for section in page["sections"].values() for table in section["tables"].values()]
        assert {name for each in (*answers, *tables) for name in each["evidence"]} <= known


def test_stages_conserve_rows_and_gates_are_told_of(built: SmallRoot, tmp_path: Path) -> None:
    page = told(built.root, version_log.current(built.root, RECIPE, DAYS[0]), tmp_path / "out")
    for row in rows(page, "processing", "stages"):
        assert row["rows in"] == row["rows kept"] + row["rejected"] + row["quarantined"]
    gates = {row["gate"]: row for row in rows(page, "processing", "gates")}
    assert {"ingest", "extract", "dedup_exact", "dedup_minhash", "publish"} == gates.keys()
    assert {row["let pass by a person, because"] for row in gates.values()} == {"-"}, "none of them refused"


def test_the_same_version_gives_the_same_bytes(built: SmallRoot, tmp_path: Path) -> None:
    version = version_log.current(built.root, small_build.DATASET)
    first, second = (disclose(built.root, version, About(), tmp_path / name) for name in ("a", "b"))
    assert first == second
    assert {name: (tmp_path / "a" / name).read_bytes() for name in first["files"]} == {
        name: (tmp_path / "b" / name).read_bytes() for name in second["files"]
    }


def test_a_version_that_does_not_count_any_more_says_so(built: SmallRoot, tmp_path: Path) -> None:
    retracted = next(each for each in version_log.versions(built.root, RECIPE) if each.snapshot == DAYS[2])
    assert any("retracted" in line for line in told(built.root, retracted, tmp_path / "a")["lead"])
    current = version_log.current(built.root, RECIPE)
    assert not any("retracted" in line for line in told(built.root, current, tmp_path / "b")["lead"])


def test_ids_of_evidence_are_short_runs() -> None:
    assert cited(("E3", "E1", "E4", "E5", "E9")) == "[E1, E3-E5, E9]"
    assert cited(()) == ""


# --- What the provider says, and what nobody says -------------------------------------------------------------------


def test_what_a_provider_says_is_marked_and_what_nobody_says_is_not_given(built: SmallRoot, tmp_path: Path) -> None:
    version = version_log.current(built.root, small_build.DATASET)
    silent = told(built.root, version, tmp_path / "silent")
    page = told(built.root, version, tmp_path / "told", ABOUT)
    assert answer(silent, "general", "Provider")["value"] is None
    assert answer(page, "general", "Provider") == {
        "value": "Example AI | Ltd, rights@example.com",
        "by": "provider",
        "evidence": [],
    }
    assert answer(page, "user", "Used")["by"] == "provider"
    assert answer(silent, "user", "Used")["value"] == "no source of this version"
    assert answer(page, "licensed", "Used")["value"] is True
    assert [row["source"] for row in rows(page, "licensed", "sources")] == ["An archive"] * 2
    assert "1.2. Model dependencies**: *not given*" in (tmp_path / "told" / "summary.md").read_text()
    sheet = json.loads((tmp_path / "told" / "datasheet.json").read_text())
    assert answer(sheet, "motivation", "funded")["by"] == "provider"
    assert answer(sheet, "motivation", "purpose")["by"] == "not given"


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ({"provder": "x"}, "provder"),
        ({"sources": {"*": {"category": "stolen"}}}, "category"),
        ({"sources": {"*": {"nam": "x"}}}, "nam"),
        ({"datasheet": {"colour": "x"}}, "colour"),
        ({"provider": ["x"]}, "provider"),
        (["provider"], "about.yaml"),
    ],
)
def test_a_file_that_says_something_else_is_refused(written: Any, named: str, tmp_path: Path) -> None:
    file = tmp_path / "about.yaml"
    file.write_text(yaml.safe_dump(written))
    with pytest.raises(RecipeError, match=named):
        read_about(str(file), KEYS)


def test_names_from_the_crawl_are_shown_and_not_obeyed(mixed_root: Path) -> None:
    version = version_log.current(str(mixed_root), MIXED, MIXED_DAYS[-1])
    with facts_of(str(mixed_root), version, provider="<script>alert(1)</script> | *x* [y](z) &lt;b&gt; &#60;") as facts:
        page = summary(facts)
        assert any(HOSTILE in str(row) for part in page.parts for table in part.tables for row in table.rows)
        text, web = markdown(page).decode(), html(page).decode()
    assert "<img" not in text.replace("\\<img", "")
    assert "<script" not in text.replace("\\<script", "")
    assert "<img" not in web
    assert "<script" not in web
    assert "\\| \\*x\\* \\[y\\]" in text
    assert "\\&lt;b\\&gt; \\&\\#60;" in text, "an entity would read as what it stands for"


# --- Where it came from ---------------------------------------------------------------------------------------------

TEXT = "A page of a site with enough words to be a document of the crawl and not to be thrown away as too short. "
RECIPE_FILE = "name: crawled\nstages:\n  ingest: {}\n  extract: {min_chars: 20}\n  dedup_exact: {buckets: 1}\n"


def crawled(folder: Path, source: Mapping[str, Any] | None = None, *, archive: bool = True) -> tuple[str, Version]:
    """Refine a small crawl; return the root and its version. `source` is what a pull has noted."""
    landing = folder / "landing" / "2026-11-20"
    landing.mkdir(parents=True)
    pages = {f"https://site{at}.example/": f"{TEXT * 3} {at}" for at in range(4)}
    if archive:
        name, body = "a.warc.gz", warc.member(warc.warcinfo("a.warc.gz", "2026-11-19T00:00:00Z"))
        for at, (url, text) in enumerate(pages.items()):
            html_page = f"<html><body><p>{text}</p></body></html>".encode()
            headers = (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(html_page))))
            exchange = warc.Exchange(url, f"2026-1{at % 2}-20T00:00:00Z", "200 OK", headers, html_page)
            body += warc.member(warc.response(exchange, warc.record_id(url)))
    else:
        name, lines = "a.jsonl", [json.dumps({"url": url, "text": text}) for url, text in pages.items()]
        body = "\n".join(lines).encode()
    (landing / name).write_bytes(body)
    if source:
        listed = [{"path": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}]
        promise = {"snapshot": "2026-11-20", "source": dict(source), "files": listed}
        (landing / "snapshot.json").write_text(json.dumps(promise))
    recipe = folder / "crawled.yaml"
    recipe.write_text(RECIPE_FILE)
    root = str(folder / "root")
    refined(root, str(landing), How(recipe=str(recipe)))
    return root, version_log.current(root, "crawled")


def test_an_own_crawl_is_listed_with_the_crawler_that_its_archives_name(tmp_path: Path) -> None:
    page = told(*crawled(tmp_path), tmp_path / "out")
    assert answer(page, "crawled", "Used")["value"] is True
    assert answer(page, "crawled", "Crawler names")["value"].startswith(
        "refinery-demo (read now from 1 of 1 landed archive"
    )
    assert "obey" in answer(page, "crawled", "Behavior")["value"]
    assert answer(page, "crawled", "Period")["value"].startswith("10/2026 to 11/2026")
    assert answer(page, "general", "Latest date")["value"] == "11/2026"
    assert answer(page, "crawled", "Purposes")["value"] is None
    assert len(_domains(page, "crawled")) == 1


PULLED = {
    "recipe": "cc",
    "query": {"source": "common_crawl", "crawl": "CC-MAIN-2026-45", "address": "https://data.commoncrawl.org"},
    "terms": {"address": "https://commoncrawl.org/terms-of-use"},
    "pulled": "2026-11-21T00:00:00Z",
}


def test_a_pulled_crawl_is_a_public_dataset_with_its_terms_unless_the_provider_says_otherwise(tmp_path: Path) -> None:
    root, version = crawled(tmp_path, PULLED)
    page = told(root, version, tmp_path / "out")
    [row] = rows(page, "public", "sources")
    assert (row["source"], row["kind"], row["terms"]) == (
        "CC-MAIN-2026-45",
        "common_crawl",
        "https://commoncrawl.org/terms-of-use",
    )
    assert row["pulled"] == "2026-11-21 (its files are those that were refined)"
    assert answer(page, "crawled", "Used")["value"] == "no source of this version"
    moved = told(root, version, tmp_path / "moved", {"sources": {"cc": {"category": "crawled", "crawler": "MyBot"}}})
    assert answer(moved, "crawled", "Crawler names") == {"value": "MyBot", "by": "provider", "evidence": []}
    assert answer(moved, "public", "Used")["value"] == "no source of this version"


def test_a_note_that_lists_other_files_is_not_vouched_for(tmp_path: Path) -> None:
    root, version = crawled(tmp_path, PULLED)
    note = Path(version.landing, "snapshot.json")
    promise = json.loads(note.read_text())
    promise["files"][0]["sha256"] = "ab" * 32
    note.write_text(json.dumps(promise))
    [row] = rows(told(root, version, tmp_path / "out"), "public", "sources")
    assert "other files" in row["pulled"]


@pytest.mark.parametrize("damage", ["gone", "note", "archive"])
def test_a_landing_that_is_gone_or_damaged_is_said_to_be(damage: str, tmp_path: Path) -> None:
    root, version = crawled(tmp_path, PULLED if damage == "note" else None)
    if damage == "gone":
        shutil.rmtree(version.landing)
    elif damage == "note":
        Path(version.landing, "snapshot.json").write_text("{")
    else:
        Path(version.landing, "a.warc.gz").write_bytes(b"\x1f\x8bbroken")
    page = told(root, version, tmp_path / "out")
    assert answer(page, "crawled", "Crawler names")["value"] is None
    gone = [name for name in page["sections"]["crawled"]["answers"] if "landing" in name]
    assert bool(gone) == (damage != "archive")


def test_files_of_unknown_origin_are_no_crawl(tmp_path: Path) -> None:
    page = told(*crawled(tmp_path, archive=False), tmp_path / "out")
    assert answer(page, "other", "Used")["value"] is True
    assert answer(page, "crawled", "Used")["value"] == "no source of this version"


# --- Measures -------------------------------------------------------------------------------------------------------


def test_a_recipe_that_reads_no_signal_says_so(built: SmallRoot, tmp_path: Path) -> None:
    page = told(built.root, version_log.current(built.root, RECIPE), tmp_path / "out")
    signals = answer(page, "rights", "Signals")
    assert "no stage of the recipe reads robots.txt" in signals["value"]
    assert signals["evidence"]
    assert answer(page, "rights", "Takedowns")["value"] == "nothing was taken down: the log of takedowns is empty"
    assert "no stage looks for personal data" in answer(page, "processing", "Personal data")["value"]


def test_a_stage_of_rights_is_told_of_by_what_its_manifest_says(built: SmallRoot) -> None:
    version = version_log.current(built.root, RECIPE, DAYS[0])
    with facts_of(built.root, version) as facts:
        manifest = replace(
            facts.stages[0].manifests[0],
            params={"robots_txt": "reject", "noai": "tag", "agents": ["CCBot", "GPTBot"]},
            metrics={"kept": {"opt_out": {"kind": "name", "count": 3, "bins": {"noai": 3}}}},
        )
        stage = StageTotal(
            "check_rights",
            "",
            23,
            15,
            {"check_rights:robots_record": 3, "check_rights:robots_txt": 5},
            0,
            ("idle: no robots.txt",),
            (manifest,),
            ("E9",),
        )
        with_rights = replace(facts, stages=(stage, *facts.stages))
        said = rights_answers(with_rights)["Signals of opt-out that were read"]
        tables = {table.name: table for table in rights_tables(with_rights)}
    assert "read 20 pages and 3 robots.txt files, and rejected 5 pages" in said.text
    assert "no robots.txt" in said.text
    assert said.evidence == ("E9",)
    assert tables["policy"].rows == (("agents", "CCBot, GPTBot"), ("noai", "tag"), ("robots_txt", "reject"))
    assert tables["opt_outs"].rows == (("check_rights:robots_txt", 5),)
    assert tables["kept_opt_out"].rows == (("noai", 3),)


def test_takedowns_are_counted_with_the_head_of_their_log(small_root: SmallRoot, tmp_path: Path) -> None:
    small = small_build.copied(small_root, tmp_path)
    assert main(["takedown", small.root, "--site", "gone.example", "--reason", "a letter"]) == 0
    page = told(small.root, version_log.current(small.root, RECIPE), tmp_path / "out")
    said = answer(page, "rights", "Takedowns on request")
    assert said["value"] == "1 entry of the log of takedowns; taken down now: 1 site"
    [evidence] = [each for each in page["evidence"] if each["id"] in said["evidence"]]
    assert evidence["path"].startswith("takedowns/")


# --- Croissant and SPDX ---------------------------------------------------------------------------------------------


def read_croissant(described: Mapping[str, Any]) -> mlcroissant.Dataset:
    """Validate a description with the validator of MLCommons; mlcroissant.ValidationError if it is none."""
    return mlcroissant.Dataset(jsonld=copy.deepcopy(dict(described)))


@pytest.mark.parametrize("name", [RECIPE, small_build.DATASET])
def test_croissant_is_valid_and_has_every_file(name: str, built: SmallRoot) -> None:
    version = version_log.current(built.root, name)
    with facts_of(built.root, version, **ABOUT) as facts:
        described = croissant(facts)
    dataset = read_croissant(described)
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.issues.warnings == set()
    assert dataset.metadata.ctx.is_v1_1()
    files = {each["@id"]: each for each in described["distribution"] if each["@type"] == "cr:FileObject"}
    assert files
    for path, each in files.items():
        body = Path(built.root, path).read_bytes()
        assert (each["sha256"], each["contentSize"]) == (hashlib.sha256(body).hexdigest(), f"{len(body)} B")
    derived = [each["@id"] for each in described["prov:wasDerivedFrom"]]
    assert len(derived) == (2 if name == small_build.DATASET else 1)
    assert described["prov:wasGeneratedBy"]["prov:endedAtTime"] == version.at


def test_the_validator_of_croissant_is_one(built: SmallRoot) -> None:
    with facts_of(built.root, version_log.current(built.root, RECIPE)) as facts:
        described = croissant(facts)
    nowhere = copy.deepcopy(described)
    nowhere["recordSet"][0]["field"][0]["source"]["fileSet"] = {"@id": "nowhere"}
    undigested = copy.deepcopy(described)
    del undigested["distribution"][0]["sha256"]
    for broken in (nowhere, undigested):
        with pytest.raises(mlcroissant.ValidationError):
            read_croissant(broken)


def test_the_pieces_of_a_dataset_are_read_by_its_croissant_alone(built: SmallRoot, tmp_path: Path) -> None:
    root = Path(shutil.copytree(built.root, tmp_path / "root"))
    with facts_of(built.root, version_log.current(built.root, small_build.DATASET)) as facts:
        (root / "croissant.json").write_text(json.dumps(croissant(facts)))
        documents = facts.total.documents
    records = list(mlcroissant.Dataset(jsonld=root / "croissant.json").records(record_set="pieces-records"))
    assert len({record["pieces-records/id"] for record in records}) == documents
    assert {record["pieces-records/snapshot"].decode() for record in records} == set(DAYS[:2])


def test_the_crawls_own_croissant_is_pointed_at(tmp_path: Path) -> None:
    root, version = crawled(tmp_path, PULLED)
    own = "https://data.commoncrawl.org/crawl-data/CC-MAIN-2026-45/croissant.json"
    for about, expected in (
        ({}, "https://data.commoncrawl.org/crawl-data/CC-MAIN-2026-45/index.html"),
        ({"sources": {"cc": {"croissant": own}}}, own),
    ):
        with facts_of(root, version, **about) as facts:
            [source] = croissant(facts)["prov:wasDerivedFrom"]
        assert source["@id"] == expected
        assert source["prov:wasGeneratedBy"]["prov:startedAtTime"] == "2026-10-20"


def read_spdx(described: Mapping[str, Any]) -> "spdx_model.SHACLObjectSet":
    """Validate a description with the classes of the SPDX project; they raise for what the model does not have."""
    objects = spdx_model.SHACLObjectSet()
    spdx_model.JSONLDDeserializer().read(io.BytesIO(json.dumps(described).encode()), objects)
    spdx_model.JSONLDSerializer().write(objects, io.BytesIO())  # cardinalities are checked when it is written
    return objects


@pytest.mark.parametrize("name", [RECIPE, small_build.DATASET])
@pytest.mark.parametrize("about", [{}, ABOUT])
def test_spdx_is_valid_and_has_every_file(name: str, about: dict[str, Any], built: SmallRoot) -> None:
    with facts_of(built.root, version_log.current(built.root, name), **about) as facts:
        described = spdx(facts)
        files = {each["name"]: each["sha256"] for each in croissant_files(facts)}
    objects = read_spdx(described)
    found = {file.name: file.verifiedUsing[0].hashValue for file in objects.foreach_type("software_File")}
    assert {name.rpartition("/")[2]: digest for name, digest in found.items()} == files
    assert len(list(objects.foreach_type("ai_AIPackage"))) == bool(about)
    kinds = {each["relationshipType"] for each in described["@graph"] if each["type"] == "Relationship"}
    assert kinds == {"contains", "descendantOf", "hasDeclaredLicense", *({"trainedOn"} if about else ())}
    unresolved = {each for each in objects.missing_ids if not each.startswith("https://spdx.org/rdf/3.0.1/terms/")}
    assert unresolved == set()


def croissant_files(facts: Facts) -> list[dict[str, Any]]:
    return [each for each in croissant(facts)["distribution"] if each["@type"] == "cr:FileObject"]


def test_the_validator_of_spdx_is_one(built: SmallRoot) -> None:
    with facts_of(built.root, version_log.current(built.root, RECIPE)) as facts:
        described = spdx(facts)
    for field in ("creationInfo", "software_primaryPurpose", "dataset_datasetType"):
        broken = copy.deepcopy(described)
        [package] = [
            each for each in broken["@graph"] if each["spdxId" if "spdxId" in each else "@id"].endswith("#dataset")
        ]
        if field == "software_primaryPurpose":
            package[field] = "another"
        else:
            del package[field]
        with pytest.raises(ValueError, match=r"is not a valid value|is required"):
            read_spdx(broken)


# --- The command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_all_files_and_says_what_is_open(
    built: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["disclose", built.root, "--dataset", small_build.DATASET, "--out", str(tmp_path / "out"), "--json"]
    assert main(arguments) == 0
    written = json.loads(capsys.readouterr().out)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == set(written["files"])
    assert {"summary.md", "summary.html", "summary.json", "datasheet.md", "croissant.json", "spdx.json"} <= names
    for name, digest in written["files"].items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == digest
    assert written["not_given"]["summary"] > 0
    assert main(arguments) == RecipeError.exit_code, "the folder is not empty any more"


def test_a_source_that_is_none_of_the_version_is_told_of(
    built: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "about.yaml"
    sources = {"20-26": {"licence": "x"}, DAYS[0]: {"licence": "y"}, "*": {"category": "public"}}
    file.write_text(yaml.safe_dump({"sources": sources}))
    arguments = ["disclose", built.root, "--dataset", small_build.DATASET, "--about", str(file)]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--json"]) == 0
    unused = json.loads(capsys.readouterr().out)["unused_sources"]
    assert unused.keys() == {"20-26"}
    assert DAYS[0] in unused["20-26"]
    assert main([*arguments, "--out", str(tmp_path / "again")]) == 0
    assert "'20-26'" in capsys.readouterr().out


def test_stages_whose_rows_do_not_add_up_say_why(built: SmallRoot, tmp_path: Path) -> None:
    page = told(built.root, version_log.current(built.root, small_build.DATASET), tmp_path / "out")
    table = page["sections"]["processing"]["tables"]["stages"]
    uneven = [
        row["stage"]
        for row in table["rows"]
        if row["rows in"] != row["rows kept"] + row["rejected"] + row["quarantined"]
    ]
    assert set(uneven) == {"shuffle", "pack"}
    assert all(stage in table["note"] for stage in uneven)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--out", "{root}/disclosed"],
        ["--dataset", "corpus", "--version", "1", "--out", "{tmp}/a"],
        ["--dataset", "nothing", "--out", "{tmp}/a"],
        ["--version", "99", "--out", "{tmp}/a"],
        ["--about", "{tmp}/nowhere.yaml", "--out", "{tmp}/a"],
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    arguments: list[str], built: SmallRoot, tmp_path: Path
) -> None:
    filled = [each.format(root=built.root, tmp=tmp_path) for each in arguments]
    assert main(["disclose", built.root, *filled]) == RecipeError.exit_code
    assert not (tmp_path / "a").exists()


def test_damaged_documents_are_not_disclosed(small_root: SmallRoot, tmp_path: Path) -> None:
    small = small_build.copied(small_root, tmp_path)
    version = version_log.current(small.root, RECIPE)
    path = Path(small.root, read_manifest(small.root, version.refined).shards[0].path)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ContractError):
        disclose(small.root, version, About(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
