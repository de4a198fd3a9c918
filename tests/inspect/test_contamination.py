"""Hits of evaluation sets: listed with their places, and searched for a later benchmark by sketches alone."""

import dataclasses
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refinery_study import contamination

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.recipe import parse_recipe
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store import storage
from tests.documents import documents
from tests.publish.test_building import built
from tests.refining import commit_parent, refined, resealed, rows
from tests.stages.test_decontaminate import PROSE, QUESTION, edited, read

RIVER = "Which river flows through the old town of Ljubljana today?"
TEXTS = [PROSE, f"{PROSE}{QUESTION} {PROSE}", f"{PROSE}{edited(QUESTION, 9)}. {PROSE}", f"So: {RIVER}", "short", ""]


@pytest.fixture
def quiz(tmp_path: Path) -> str:
    path = tmp_path / "quiz.jsonl.gz"
    lines = [{"question": QUESTION, "answer": "1440"}, {"stem": RIVER, "answer": "the Ljubljanica"}]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return str(path)


def publish(
    root: Path | str, tables: Sequence[pa.Table], params: dict[str, Any], snapshot: str = "2026-11-20"
) -> tuple[version_log.Version, Manifest]:
    """Publish a snapshot that only `decontaminate` has refined; all but the first document are in its tokens."""
    parent = commit_parent(root, tables, "scrub_pii")  # type: ignore[arg-type]
    path, manifest = refined(root, "decontaminate", parent, params)  # type: ignore[arg-type]
    prefix = f"export/{snapshot}"
    kept = rows(root, manifest).column("id").to_pylist() if manifest.rows else []  # type: ignore[arg-type]
    lineage = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": kept[1:]}), lineage)
    body = lineage.getvalue().to_pybytes()
    storage.connect(str(root)).create(f"{prefix}/lineage.parquet", body)
    entry = {"recipe": "demo", "snapshot": snapshot, "landing": "", "manifests": {"decontaminate": path}}
    entry |= {"verdicts": {}, "prefix": prefix, "documents": manifest.rows, "tokens": 0, "sequences": 0}
    entry["files"] = (PublishedFile(f"{prefix}/lineage.parquet", len(body), sha256(body)),)
    return version_log.append(str(root), entry), manifest


def places(hits: Sequence[contamination.Hit]) -> list[tuple[Any, ...]]:
    return sorted((hit.offset, hit.benchmark, hit.item, hit.part, hit.method, hit.score, hit.spans) for hit in hits)


def by_the_stage(root: Path, tables: Sequence[pa.Table], params: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the places of the hits that a run of the stage rejects, in the form of `places`."""
    names = ("benchmark", "item", "part", "method", "score", "spans")
    _, manifest = refined(root, "decontaminate", commit_parent(root, tables), params)
    rejects = rows(root, manifest, "rejects").to_pylist()
    hits = [(row, hit) for row in rejects for hit in json.loads(row["evidence"])["hits"]]
    return sorted((row["offset"], *(hit[name] for name in names)) for row, hit in hits)


@pytest.mark.parametrize("action", ["drop", "cut"])
def test_hits_are_listed_with_the_text_around_them(action: str, tmp_path: Path, quiz: str) -> None:
    params = {"benchmarks": {"quiz": quiz}, "action": action}
    version, _ = publish(tmp_path, [documents(TEXTS[:2]), documents(TEXTS[2:])], params)
    listed = contamination.listed_hits(str(tmp_path), version, files={"quiz": quiz})
    hits = sorted(listed, key=lambda hit: (hit.method, hit.url != "https://example.org/1"))
    assert [(hit.url, hit.method) for hit in hits] == [
        ("https://example.org/1", "ngram"),
        ("https://example.org/1", "sampled"),
        ("https://example.org/0", "sampled"),
    ]
    for hit in hits:
        assert hit.outcome == {"drop": "rejected", "cut": "cut"}[action]
        assert hit.published == (action == "cut")
        assert hit.reference == QUESTION
        assert hit.found[0][-30:] in PROSE + edited(QUESTION, 9)
    assert hits[0].found == (PROSE[-60:], QUESTION.removesuffix("?"), f"? {PROSE[:58]}")
    assert list(contamination.listed_hits(str(tmp_path), version, "other")) == []


def test_a_file_that_is_not_the_one_used_is_not_shown(tmp_path: Path, quiz: str) -> None:
    version, _ = publish(tmp_path, [documents(TEXTS)], {"benchmarks": {"quiz": quiz}})
    Path(quiz).write_text(json.dumps({"question": "Something else altogether, is it not?"}))
    assert {hit.reference for hit in contamination.listed_hits(str(tmp_path), version, files={"quiz": quiz})} == {""}
    Path(quiz).unlink()
    with pytest.raises(RecipeError, match=re.escape(f"benchmark quiz: {quiz} ")):
        list(contamination.listed_hits(str(tmp_path), version, files={"quiz": quiz}))


def test_texts_before_a_cut_may_be_removed(tmp_path: Path, quiz: str, capsys: pytest.CaptureFixture[str]) -> None:
    version, manifest = publish(tmp_path, [documents(TEXTS)], {"benchmarks": {"quiz": quiz}, "action": "cut"})
    (tmp_path / f"scrub_pii/{manifest.parents[0]}/manifest.json").unlink()
    hits = list(contamination.listed_hits(str(tmp_path), version))
    assert [hit.found for hit in hits] == [("", "", "")] * 3
    assert main(["look", "contamination", str(tmp_path)]) == 0
    assert "before the cut is gone" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["ngram", "sampled", "both"])
def test_a_later_benchmark_finds_what_the_stage_would_have(method: str, tmp_path: Path, quiz: str) -> None:
    tables = [documents(TEXTS[:3]), documents([PROSE]), documents(TEXTS[3:])]
    version, _ = publish(tmp_path, tables, {"method": method})
    scan, hits = contamination.search(str(tmp_path), version, {"quiz": quiz}, {"stem": "question"})
    stage = {"method": method, "benchmarks": {"quiz": quiz}, "questions": ["question", "stem"]}
    assert places(hits) == by_the_stage(tmp_path, tables, stage)
    assert {hit.item for hit in hits} == {0, 1}
    assert {hit.outcome for hit in hits} == {"kept"}
    assert all(hit.published for hit in hits)
    assert (scan.documents, scan.hits) == (7, len(hits))
    assert 2 <= scan.candidates <= 3


def test_a_later_benchmark_finds_every_planted_item(tmp_path: Path, shared_data: Path) -> None:
    planted = read(shared_data / "truth/contamination-planted.jsonl.gz")
    pages = [page["text"] for page in read(shared_data / "text/peps.jsonl.gz")]
    tables = [documents([plant["text"] for plant in planted]), documents(pages)]
    sets = {name: str(shared_data / f"benchmarks/{name}.jsonl.gz") for name in ("gsm8k-test", "humaneval")}
    version, manifest = publish(tmp_path, tables, {})
    scan, hits = contamination.search(str(tmp_path), version, sets, {})
    urls = {hit.url for hit in hits}
    kinds = {f"https://example.org/{at}": plant["kind"] for at, plant in enumerate(planted)}
    assert {url for url, kind in kinds.items() if kind not in {"clean", "short-fragment"}} == urls
    assert places(hits) == by_the_stage(tmp_path, tables, {"benchmarks": sets})
    words = sum(len(text.split()) for text in pages) + sum(len(plant["text"].split()) for plant in planted)
    assert scan.candidates < 0.45 * len(planted) + 0.1 * len(pages) + 60
    assert scan.sketch_bytes == sum(shard.bytes for shard in manifest.history_shards) < 1.3 * words


def test_only_candidates_are_read(tmp_path: Path, quiz: str) -> None:
    version, manifest = publish(tmp_path, [documents(TEXTS), documents([PROSE, "nothing"])], {})
    (tmp_path / manifest.shards[1].path).unlink()
    assert contamination.search(str(tmp_path), version, {"quiz": quiz}, {})[1]
    (tmp_path / manifest.shards[0].path).unlink()
    with pytest.raises(ContractError, match=re.escape(str(tmp_path / manifest.shards[0].path))):
        contamination.search(str(tmp_path), version, {"quiz": quiz}, {})


def test_later_benchmarks_reach_any_store(any_root: str, quiz: str) -> None:
    version, _ = publish(any_root, [documents(TEXTS)], {})
    _, hits = contamination.search(any_root, version, {"quiz": quiz}, {})
    assert [(hit.offset, hit.method) for hit in hits] == [(1, "ngram"), (1, "sampled"), (2, "sampled")]


def test_a_search_without_sketches_is_refused(tmp_path: Path, quiz: str) -> None:
    version, _ = publish(tmp_path, [documents(TEXTS)], {"sketch": False})
    with pytest.raises(RecipeError, match=f"{version.snapshot} .*demo .*`sketch: false`"):
        contamination.search(str(tmp_path), version, {"quiz": quiz}, {})
    bare = version_log.append(str(tmp_path), {**dataset_entry(version), "manifests": {}})
    with pytest.raises(RecipeError, match=f"version {bare.number} of recipe demo .*decontaminate"):
        list(contamination.listed_hits(str(tmp_path), bare))


def dataset_entry(version: version_log.Version) -> dict[str, Any]:
    names = ("recipe", "snapshot", "landing", "verdicts", "prefix", "documents", "tokens", "sequences")
    return {name: getattr(version, name) for name in names}


def test_sketches_that_do_not_fit_are_refused(tmp_path: Path, quiz: str) -> None:
    version, manifest = publish(tmp_path, [documents(TEXTS), documents([PROSE])], {})
    saved = [dataclasses.asdict(shard) for shard in manifest.history["sketches"]]
    resealed(tmp_path / version.manifests["decontaminate"], history={"sketches": saved[:1]})
    with pytest.raises(ContractError, match=re.escape(str(Path(version.manifests["decontaminate"]).parent))):
        contamination.search(str(tmp_path), version, {"quiz": quiz}, {})


def test_the_command_shows_both_sides(tmp_path: Path, quiz: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    publish(root, [documents([*TEXTS, f"\x1b[2J{QUESTION}"])], {"benchmarks": {"quiz": quiz}}, "2026-11-19")
    publish(root, [documents([PROSE])], {"benchmarks": {"quiz": quiz}})
    assert (
        main(["look", "contamination", str(root), "--benchmark", "quiz", "--file", f"quiz={quiz}", "--limit", "2"]) == 0
    )
    output = capsys.readouterr().out
    assert "demo 2026-11-19: 3 documents with quiz rejected" in output
    assert "quiz item 0, question (question): ngram, score 1.000; sampled, score 1.000" in output
    assert "| A farmer has thirty brown hens" in output
    assert "1 more; see them with --limit 3" in output
    assert "\x1b" not in output
    assert main(["look", "contamination", str(root), "--snapshot", "2026-11-20"]) == 0
    assert capsys.readouterr().out == "looked for quiz in 2026-11-20\nno hits\n"
    assert main(["look", "contamination", str(root), "--benchmark", "quizz"]) == RecipeError.exit_code
    assert "screened for quiz, not for 'quizz'" in capsys.readouterr().err


def test_no_hits_are_reported_with_the_screened_benchmarks(
    tmp_path: Path, quiz: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    for snapshot in ("2026-11-18", "2026-11-19"):
        publish(root, [documents([PROSE, snapshot])], {}, snapshot)
    publish(root, [documents([PROSE])], {"benchmarks": {"quiz": quiz}})
    assert main(["look", "contamination", str(root)]) == 0
    assert capsys.readouterr().out == (
        "looked for no evaluation set in 2 snapshots, 2026-11-18 to 2026-11-19\n"
        "looked for quiz in 2026-11-20\nno hits\n"
    )
    assert main(["look", "contamination", str(root), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["looked_for"] == {"2026-11-18": [], "2026-11-19": [], "2026-11-20": ["quiz"]}
    assert main(["look", "contamination", str(root), "--snapshot", "2026-11-18", "--benchmark", "quiz"]) == 78
    assert "screened for no evaluation set, not for 'quiz'" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--add", "--file"])
def test_a_benchmark_that_is_no_file_is_named(
    option: str, tmp_path: Path, quiz: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    publish(root, [documents([PROSE])], {"benchmarks": {"quiz": quiz}})
    for path in (str(tmp_path / "none.jsonl"), str(tmp_path)):
        assert main(["look", "contamination", str(root), option, f"quiz={path}"]) == RecipeError.exit_code
        assert f"benchmark quiz: {path} is no file" in capsys.readouterr().err


def test_without_packed_tokens_nothing_is_in_them(tmp_path: Path, quiz: str) -> None:
    version, _ = publish(tmp_path, [documents(TEXTS)], {})
    version = dataclasses.replace(version, files=())
    _, hits = contamination.search(str(tmp_path), version, {"quiz": quiz}, {})
    assert [hit.published for hit in hits] == [False] * 3


def built_of_two_days(root: Path, quiz: str) -> list[version_log.Version]:
    """Publish two snapshots without tokens of their own, and build a dataset of them; return their versions."""
    params = {"benchmarks": {"quiz": quiz}, "action": "cut"}
    for number, snapshot in enumerate(("2026-11-19", "2026-11-20")):
        text = f"{PROSE} On day {number}. {QUESTION} {PROSE}"
        table = documents([text, f"{PROSE} {snapshot}"])
        at = table.schema.get_field_index("snapshot")
        table = table.set_column(at, "snapshot", pa.array([snapshot] * 2))
        version, _ = publish(root, [table], params, snapshot)
        version_log.append(str(root), {**dataset_entry(version), "manifests": version.manifests, "documents": 9})
    stages = {"tokenize": {}, "select": {}, "shuffle": {"buckets": 2}, "pack": {"length": 64}}
    built(str(root), parse_recipe({"name": "corpus", "versions": {"recipe": "demo"}, "stages": stages}, "corpus.yaml"))
    return version_log.latest_by_snapshot(str(root), "demo")


def test_a_hit_in_a_build_is_in_its_tokens(tmp_path: Path, quiz: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a snapshot's own version, which has no tokens, and of the dataset, which names its snapshots."""
    root = tmp_path / "root"
    versions = built_of_two_days(root, quiz)
    assert [version.files for version in versions] == [(), ()]
    listed = {}
    for recipe in ("demo", "corpus"):
        assert main(["look", "contamination", str(root), "--recipe", recipe, "--json"]) == 0
        hits = json.loads(capsys.readouterr().out)["hits"]
        listed[recipe] = [(hit["snapshot"], hit["outcome"], hit["published"]) for hit in hits]
        assert main(["look", "contamination", str(root), "--recipe", recipe, "--add", f"later={quiz}", "--json"]) == 0
        capsys.readouterr()
    assert set(listed["demo"]) == {("2026-11-19", "cut", True), ("2026-11-20", "cut", True)}
    assert listed["corpus"] == listed["demo"]


def test_a_damaged_lineage_is_not_read(tmp_path: Path, quiz: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    built_of_two_days(root, quiz)
    for file in (root / "publish/shards").glob("*.lineage.parquet"):
        body = file.read_bytes()
        file.write_bytes(body[:-9] + bytes([body[-9] ^ 1]) + body[-8:])
    assert main(["look", "contamination", str(root), "--recipe", "demo"]) == ContractError.exit_code
    assert "lineage.parquet" in capsys.readouterr().err


def test_a_damaged_lineage_of_an_earlier_release_is_not_read(tmp_path: Path, quiz: str) -> None:
    version, _ = publish(tmp_path, [documents(TEXTS)], {"benchmarks": {"quiz": quiz}, "action": "cut"})
    path = tmp_path / version.prefix / "lineage.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"2")
    with pytest.raises(ContractError, match=re.escape(str(path))):
        list(contamination.listed_hits(str(tmp_path), version))


@pytest.mark.parametrize("body", [b"\x1f\x8bno deflate", gzip.compress(b'{"question": "Where?"}' * 99)[:-20]])
def test_a_damaged_benchmark_is_named(body: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, path = tmp_path / "root", tmp_path / "late.jsonl.gz"
    publish(root, [documents([PROSE])], {})
    path.write_bytes(body)
    assert main(["look", "contamination", str(root), "--add", str(path)]) == RecipeError.exit_code
    assert f"benchmark {path} cannot be read" in capsys.readouterr().err


def test_a_benchmark_may_be_in_the_working_directory(
    tmp_path: Path, quiz: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    publish(root, [documents(TEXTS)], {"benchmarks": {"quiz": quiz}})
    monkeypatch.chdir(tmp_path)
    assert main(["look", "contamination", "root", "--add", f"later={Path(quiz).name}"]) == 0
    assert main(["look", "contamination", "root", "--file", f"quiz={Path(quiz).name}"]) == 0
    assert "| A farmer has thirty brown hens" in capsys.readouterr().out


def test_a_later_benchmark_may_be_on_s3(any_root: str, quiz: str) -> None:
    version, _ = publish(f"{any_root}/root", [documents(TEXTS)], {})
    storage.connect(any_root).create("sets/quiz.jsonl.gz", Path(quiz).read_bytes())
    scan, _ = contamination.search(f"{any_root}/root", version, {"quiz": f"{any_root}/sets/quiz.jsonl.gz"}, {})
    assert scan.hits == 3


def test_the_command_adds_a_benchmark_to_every_snapshot(
    tmp_path: Path, quiz: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    publish(root, [documents(TEXTS)], {}, "2026-11-19")
    publish(root, [documents([PROSE, QUESTION])], {})
    assert main(["look", "contamination", str(root), "--add", quiz, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(scan["snapshot"], scan["documents"], scan["hits"]) for scan in report["scans"]] == [
        ("2026-11-19", 6, 3),
        ("2026-11-20", 2, 2),
    ]
    assert {(hit["snapshot"], hit["benchmark"], hit["published"]) for hit in report["hits"]} == {
        ("2026-11-19", "quiz", True),
        ("2026-11-20", "quiz", True),
    }
    assert main(["look", "contamination", str(root), "--add", f"mine={quiz}"]) == 0
    assert "2026-11-20: 1 document with mine kept" in capsys.readouterr().out
    for wrong in (["--add", quiz, "--add", quiz], ["--add", quiz, "--part", "stem=riddle"], ["--add", __file__]):
        assert main(["look", "contamination", str(root), *wrong]) == RecipeError.exit_code
