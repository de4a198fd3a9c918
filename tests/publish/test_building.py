"""Training datasets: what a plan says is what is packed, on any engine; versions, superseded documents, damage, refusals."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.cli.commands.build import plan, plan_lines
from pipeline_tasks.cli.main import main
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.estimates import exact
from pipeline_tasks.gate.facts import compute_facts
from pipeline_tasks.inspect.document.trace import trace_spot
from pipeline_tasks.inspect.search.find import find
from pipeline_tasks.inspect.verify import account_lines
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets import building, leaving
from pipeline_tasks.publish.datasets.leaving import superseded_within
from pipeline_tasks.publish.datasets.published_shards import Spot, open_build
from pipeline_tasks.publish.exports.shards import reached
from pipeline_tasks.publish.exports.tokenizer import tokenizer_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.published import PublishedFile
from pipeline_tasks.recipe import Recipe, Versions, load_build, load_recipe, parse_recipe
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.log_chain import entry_path, head_path
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.share import Passes
from tests.chain import How, refined, reply

REFINES = """
name: tiny
stages:
  ingest: {}
  extract: {min_chars: 100}
  filter_language: {keep: [en, de, fr, es, it], threshold: 0.5}
  dedup_url: {}
  dedup_exact: {}
"""

BUILDS: dict[str, Any] = {
    "name": "corpus",
    "versions": {"recipe": "tiny"},
    "stages": {
        "tokenize": {"train": {"vocab_size": 1024, "min_bytes": 1000}},
        "select": {"where": {"n_tokens": {"least": 5}}},
        "mix": {"weights": {"en": 1}, "epochs": {"de": 2.75, "fr": 0.5}, "tokens": {"es": 500}, "max_epochs": 1},
        "shuffle": {"seed": 3, "buckets": 4},
        "pack": {"method": "best_fit", "length": 64},
    },
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A root with two refined snapshots."""
    return refined_days(tmp_path_factory.mktemp("building"))


def refined_days(folder: Path) -> str:
    """Refine two snapshots of the demo's crawl; return the root."""
    recipe = folder / "tiny.yaml"
    recipe.write_text(REFINES)
    write_crawl(folder / "crawl", scale=0.1)
    for snapshot in ("2026-11-19", "2026-11-20"):
        refined(str(folder / "root"), str(folder / "crawl" / snapshot), How(recipe=str(recipe)))
    return str(folder / "root")


def recipe_of(**changes: Mapping[str, Any]) -> Recipe:
    return parse_recipe(BUILDS | {"stages": BUILDS["stages"] | changes}, "corpus.yaml")


def built(root: str, recipe: Recipe, on: str = "local") -> dict[str, Any]:
    """Build by the requests that the DAG's tasks make; return the reply of `publish`."""
    assert recipe.versions is not None
    named = {"recipe": recipe.name, "snapshot": "build"}
    composed = reply("compose", root=root, **named, versions=asdict(recipe.versions))
    manifests = {"compose": composed["manifest"]}
    parent = composed["manifest"]
    for step in recipe.steps:
        fields = {"root": root, "stage": step.stage, "params": dict(step.params), "parent": parent, "engine": on}
        parent = manifests[step.stage] = reply("refine", **named, **fields)["manifest"]
    return reply("publish", root=root, recipe=recipe.name, snapshot="build", manifests=manifests)


def index(root: str, published: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(Path(root, published["index"]).read_bytes())
    return facts


def documents(root: str) -> dict[str, dict[str, Any]]:
    """The documents of all snapshots, by id, without those that are superseded; with tokens once they were built."""
    tokenized = [version.manifests["tokenize"] for version in version_log.versions(root, "corpus")[-1:]]
    return _documents(root, tokenized) if tokenized else refined_documents(root)


def refined_documents(root: str) -> dict[str, dict[str, Any]]:
    """The documents of all snapshots, by id, without those that are superseded."""
    return _documents(root, [version.refined for version in version_log.latest_by_snapshot(root, "tiny")])


def _documents(root: str, manifests_of: Sequence[str]) -> dict[str, dict[str, Any]]:
    manifests = [read_manifest(root, referred) for referred in manifests_of]
    rows = [row for manifest in manifests for batch in read_shards(root, manifest.shards) for row in batch.to_pylist()]
    leaving = {(row["id"], row["snapshot"]) for row in superseded(root)}
    return {row["id"]: row for row in rows if (row["id"], row["snapshot"]) not in leaving}


def superseded(root: str) -> list[dict[str, Any]]:
    snapshots = [version.snapshot for version in version_log.latest_by_snapshot(root, "tiny")]
    return [row for batch in superseded_within(root, "tiny", snapshots) for row in batch.to_pylist()]


def manifest_of(root: str, published: Mapping[str, Any], stage: str) -> Manifest:
    version = version_log.current(root, "corpus")
    assert version.number == published["version"]
    return read_manifest(root, version.manifests[stage])


PACKINGS = [{"method": "best_fit"}, {"method": "concat"}, {"tail": "pad"}]


@pytest.mark.slow
@pytest.mark.parametrize("packing", PACKINGS, ids=lambda packing: "-".join(packing.values()))
def test_each_documents_tokens_are_there_as_often_as_the_plan_says(root: str, packing: dict[str, str]) -> None:
    recipe = recipe_of(pack={**packing, "length": 64})
    published = built(root, recipe)
    facts, known = index(root, published), documents(root)
    folder = Path(root, published["index"]).parent
    tokens: dict[tuple[str, int], dict[int, list[int]]] = {}
    for entry in facts["shards"]:
        ids = np.frombuffer(Path(folder, entry["bin"]["path"]).read_bytes(), facts["dtype"])
        ends = np.frombuffer(Path(folder, entry["ends"]["path"]).read_bytes(), "<i8")
        lineage = pq.read_table(Path(folder, entry["lineage"]["path"]))
        assert len(ids) == entry["sequences"] * 64
        assert entry["tokens"] == sum(lineage["length"].to_pylist())
        for row in lineage.to_pylist():
            at = row["sequence"] * 64 + row["start"]
            piece = ids[at : at + row["length"]].tolist()
            tokens.setdefault((row["id"], row["copy"]), {})[row["doc_start"]] = piece
            assert at + row["length"] in ends
            origin = ("snapshot", "file", "offset", "record_id", "url")
            assert [row[name] for name in origin] == [known[row["id"]][name] for name in origin]
    for (id_, _), pieces in tokens.items():
        assert [token for start in sorted(pieces) for token in pieces[start]] == known[id_]["tokens"]
    uses = Counter(id_ for id_, _ in tokens)
    planned = {row["group"]: row for row in plan(root, recipe, "local")["groups"]}
    for language, row in planned.items():
        own = [document for document in known.values() if document["language"] == language]
        taken = sum(uses[document["id"]] * document["n_tokens"] for document in own)
        assert taken == row["taken"], language
        assert {uses[document["id"]] for document in own} <= {row["uses"], row["uses"] + 1}
    assert {uses[id_] for id_, document in known.items() if document["language"] == "de"} == {2, 3}
    assert planned["es"]["taken"] <= 500
    assert planned["it"]["taken"] == 0
    assert facts["tokens"] == sum(row["taken"] for row in planned.values())
    assert facts["pads"] == facts["sequences"] * 64 - facts["tokens"]


@pytest.mark.parametrize("packing", [*PACKINGS, {"tail": "drop"}], ids=lambda packing: "-".join(packing.values()))
def test_the_loader_reads_what_was_built(root: str, packing: dict[str, str]) -> None:
    published = built(root, recipe_of(pack={**packing, "length": 64}))
    dataset = TokenDataset(str(Path(root, published["index"])), passes=Passes(shuffle="always"))
    tables = [
        pq.read_table(Path(root, published["index"]).parent / shard.lineage.path) for shard in dataset.index.shards
    ]
    pieces: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for number, table in enumerate(tables):
        for row in table.to_pylist():
            pieces.setdefault((number, row["sequence"]), []).append(row)
    known, tokens = documents(root), 0
    for item in dataset:
        rows = pieces.pop((item["shard"], item["sequence"]))
        stops = [row["start"] + row["length"] for row in rows]
        assert item["n_tokens"] == stops[-1]
        assert item["cu_seqlens"].tolist() == [0, *stops, *([64] if stops[-1] < 64 else [])]
        for row in rows:
            whole = known[row["id"]]["tokens"][row["doc_start"] :][: row["length"]]
            assert item["input_ids"][row["start"] :][: row["length"]].tolist() == whole
        tokens += item["n_tokens"]
    assert pieces == {}
    assert tokens == published["tokens"]
    dataset.verify()


def test_every_token_is_traced_to_its_document(root: str) -> None:
    published, known = built(root, recipe_of()), documents(root)
    dataset = open_build(root, version_log.current(root, "corpus"))
    rng = Random(5)
    places = [rng.randrange(published["sequences"] * 64) for _ in range(1000)]
    pads = 0
    for spot in map(dataset.spot, places):
        try:
            piece = dataset.piece(spot)
        except RecipeError:
            pads += 1
            assert dataset.sequence(spot)[spot.token] == 0
            continue
        at = piece["doc_start"] + spot.token - piece["start"]
        assert known[piece["id"]]["tokens"][at] == dataset.sequence(spot)[spot.token]
    assert pads < 0.2 * len(places)
    traced = trace_spot(root, dataset, Spot(1, 0, 0))
    origin = known[traced.document]
    assert (traced.shard, traced.sequence, traced.record) == (1, 0, origin["record_id"])
    assert any(origin["record_id"] in line for line in traced.header)


def test_every_use_of_a_document_url_or_site_is_found(root: str, tmp_path: Path) -> None:
    built(root, recipe_of())
    version, known = version_log.current(root, "corpus"), documents(root)
    german = {id_: row for id_, row in known.items() if row["language"] == "de"}
    uses = list(find(root, [version], [("doc", id_) for id_ in german]))
    for id_, row in german.items():
        own = [use for use in uses if use.id == id_]
        copies = {use.copy for use in own}
        assert copies in ({0, 1}, {0, 1, 2})
        assert sum(use.length for use in own) == len(copies) * row["n_tokens"]
    [id_, row] = next(iter(german.items()))
    assert {use.id for use in find(root, [version], [("url", row["url"])])} >= {id_}
    host = row["url"].split("/")[2]
    assert set(find(root, [version], [("url", row["url"])])) <= set(find(root, [version], [("site", host)]))
    above = host.partition(".")[2]
    assert set(find(root, [version], [("site", host)])) <= set(find(root, [version], [("site", above)]))
    others = [("site", name) for name in (above[1:], f"x{above}", above.partition(".")[0])]
    assert list(find(root, [version], others)) == []


def test_a_stage_is_the_same_whole_and_in_partitions(root: str, tmp_path: Path) -> None:
    """`seal` did not know the file of superseded documents, and looked for other partitions than those refined."""
    import shutil

    whole = manifest_of(root, built(root, recipe_of()), "select")
    assert whole.params["superseded"]
    copy = str(shutil.copytree(root, tmp_path / "root"))
    shutil.rmtree(Path(copy, "select"))
    tokenized = version_log.current(copy, "corpus").manifests["tokenize"]
    about = {"root": copy, "stage": "select", "params": recipe_of().step("select").params, "parent": tokenized}
    spans = reply("spans", root=copy, parent=tokenized, stage="select", partitions=2)["spans"]
    assert len(spans) == 2
    for span in spans:
        reply("refine", **about, span=span)
    sealed = reply("seal", stage=about, spans=spans)["manifest"]
    assert read_manifest(copy, sealed) == whole


def test_the_report_of_a_build_is_its_card(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    published = built(root, recipe_of())
    assert main(["look", "report", root, "--recipe", "corpus"]) == 0
    assert capsys.readouterr().out == f"{root}/{published['prefix']}/README.md\n"


def test_find_as_a_command(root: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built(root, recipe_of())
    id_ = next(id_ for id_, row in documents(root).items() if row["language"] == "de")
    assert main(["look", "find", root, "--doc", id_, "--json"]) == 0
    assert {use["id"] for use in json.loads(capsys.readouterr().out)} == {id_}
    (tmp_path / "no.txt").write_text("a text that nobody wrote")
    assert main(["look", "find", root, "--text", str(tmp_path / "no.txt")]) == 0
    none, way_out = capsys.readouterr().out.splitlines()
    assert none == "0 places of 0 documents, 0 tokens"
    assert way_out.startswith("no training dataset has it: `refinery why ")
    assert main(["look", "find", root]) == RecipeError.exit_code


def test_the_rejects_of_a_build_need_no_name_of_a_stage(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`filter_language` was the default, which no build has: now the stage that rejected most."""
    published = built(root, recipe_of(mix={"epochs": {"de": 1}, "tokens": {"en": 100}}))
    mix = manifest_of(root, published, "mix")
    assert main(["rejects", root, "--recipe", "corpus", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reasons"] == dict(mix.rejected)


@pytest.mark.parametrize(
    ("spot", "named"),
    [
        (Spot(9, 0, 0), "^shard 9: "),
        (Spot(0, 10**6, 0), "^sequence 1000000: shard 0 "),
        (Spot(0, 0, 64), "^token 64: "),
        (Spot(0, 0, -1), "^token -1: "),
    ],
)
def test_tokens_that_are_not_there_are_refused(root: str, spot: Spot, named: str) -> None:
    built(root, recipe_of())
    with pytest.raises(RecipeError, match=named):
        open_build(root, version_log.current(root, "corpus")).piece(spot)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["spark", pytest.param("ray", marks=pytest.mark.nightly)])
def test_every_engine_builds_the_same_bytes(root: str, on: str, tmp_path: Path) -> None:
    import shutil

    other = str(shutil.copytree(root, tmp_path / "root"))
    shutil.rmtree(Path(other, "datasets", "corpus"), ignore_errors=True)
    Path(other, "ledger.sqlite").unlink()  # it knows the log that is gone
    shutil.rmtree(Path(other, "tokenizers"), ignore_errors=True)
    for stage in ("compose", "tokenize", "select", "mix", "shuffle", "takedown", "pack"):
        shutil.rmtree(Path(other, stage), ignore_errors=True)
    published = built(other, recipe_of(), on=on)
    assert index(other, published) == index(root, built(root, recipe_of()))


def test_a_dataset_without_pads_says_what_it_dropped(root: str) -> None:
    whole = index(root, built(root, recipe_of(pack={"tail": "pad", "length": 64})))
    published = built(root, recipe_of(pack={"tail": "drop", "length": 64}))
    facts = index(root, published)
    assert facts["pads"] == 0 < whole["pads"]
    assert facts["dropped"] == whole["tokens"] - facts["tokens"] > 0
    pack = manifest_of(root, published, "pack")
    assert pack.rejected == {"pack:tail": whole["sequences"] - facts["sequences"]}
    seen = compute_facts(root, pack)
    assert (seen["tokens_lost"], seen["fill"]) == (exact(0), exact(1))
    card = (Path(root, published["index"]).parent / "README.md").read_text()
    assert f"{facts['dropped']} tokens at the ends of shards filled no sequence" in card
    assert verify(root, Scope()).findings.problems == []


def test_other_pads_are_other_shards(root: str) -> None:
    """Packed shards without tokens are equal for any `pad_id`: those of an earlier version were published again."""
    build = {"method": "best_fit", "length": 64}
    before, after = (index(root, built(root, recipe_of(pack={**build, "pad_id": pad}))) for pad in (0, 3))
    assert (before["pads"], after["pad_id"]) == (after["pads"], 3)
    assert before["pads"] > 0
    for entries in zip(before["shards"], after["shards"], strict=True):
        ids = [
            np.fromfile(Path(root, "publish/shards", entry["bin"]["path"].rpartition("/")[2]), "u2")
            for entry in entries
        ]
        changed = ids[0] != ids[1]
        assert changed.sum() == entries[0]["sequences"] * 64 - entries[0]["tokens"]
        assert set(ids[1][changed].tolist()) <= {3}


def test_the_same_build_is_the_same_version_and_shards_are_shared(root: str) -> None:
    first = built(root, recipe_of())
    assert built(root, recipe_of()) == first
    other = built(root, recipe_of(pack={"method": "best_fit", "length": 64, "pad_id": 0}))
    assert other["version"] == first["version"]
    changed = built(
        root, recipe_of(select={"where": {"n_tokens": {"least": 5}, "snapshot": {"any_of": ["2026-11-19"]}}})
    )
    assert changed["version"] == first["version"] + 1
    assert changed["tokens"] < first["tokens"]


def test_files_of_shards_are_looked_for_once_behind_any_number_of_versions(root: str) -> None:
    """Each version's were, three requests for each shard: 30,000 behind ten versions of a thousand."""
    selections = [{"n_tokens": {"least": least}} for least in (5, 6, 7, 8)]
    builds = [recipe_of(select={"where": where}) for where in (*selections, *selections[:1])]
    published = [built(root, build) for build in builds]
    entries = index(root, published[-1])["shards"]
    manifests = version_log.current(root, "corpus").manifests
    by_stage = {stage: read_manifest(root, referred) for stage, referred in manifests.items()}
    asked = list[str]()

    def look(_: str, files: Sequence[PublishedFile]) -> Iterator[bool]:
        asked.extend(file.path for file in files)
        return iter([True] * len(files))

    tokenizer = tokenizer_of(root, by_stage["tokenize"])
    again = building.exported_shards(root, "corpus", by_stage, tokenizer, lambda shards: [{}] * len(shards), look)
    assert again == entries
    assert len(asked) == 3 * len(entries)


@given(rows=st.lists(st.integers(0, 9), min_size=1, max_size=30), length=st.integers(1, 40), carried=st.booleans())
def test_a_packed_shard_reaches_as_far_as_its_last_sequence_may_go_on(
    rows: list[int], length: int, *, carried: bool
) -> None:
    shards = tuple(Shard(f"shuffle/data/{at}", count, 1, str(at)) for at, count in enumerate(rows))
    for at in range(len(rows)):
        found = reached(shards, at, length, carried=carried)
        assert found == shards[at : at + len(found)]
        behind = rows[at + 1 : at + len(found)]
        assert sum(behind[:-1]) < length
        assert len(found) == 1 or carried
        assert not carried or sum(behind) >= length or at + len(found) == len(rows)


def test_a_retracted_build_is_not_published_again(root: str, tmp_path: Path) -> None:
    """It was, silently. Another mixture of the same versions may be, and an undo brings the retracted one back."""
    import shutil

    copy = str(shutil.copytree(root, tmp_path / "root"))
    first = built(copy, recipe_of())
    assert main(["retract", "build", copy, "--recipe", "corpus", "--reason", "a leak"]) == 0
    with pytest.raises(RecipeError, match=rf"{copy}: .*corpus .* a leak; `refinery retract --undo build "):
        built(copy, recipe_of())
    with pytest.raises(RecipeError, match="a leak"):
        version_log.current(copy, "corpus")
    other = built(copy, recipe_of(pack={"method": "concat", "length": 48}))
    assert other["version"] > first["version"]
    assert main(["retract", "build", copy, "--recipe", "corpus"]) == 0
    assert main(["retract", "build", copy, "--recipe", "corpus", "--undo"]) == 0
    assert built(copy, recipe_of(pack={"method": "concat", "length": 48}))["index"] == other["index"]


@pytest.mark.parametrize("recipe", ["corpus", "tiny"])
def test_a_log_that_was_cut_is_no_smaller_selection(root: str, recipe: str, tmp_path: Path) -> None:
    """A build of one day fewer was published, without a word."""
    import shutil

    copy = str(shutil.copytree(root, tmp_path / "root"))
    built(copy, recipe_of())
    last = version_log.versions(copy, recipe)[-1].number
    Path(copy, entry_path(recipe, last)).unlink()
    Path(copy, head_path(recipe, last)).unlink()
    with pytest.raises(ContractError, match=re.escape(f"{copy}/datasets/{recipe} ")):
        built(copy, recipe_of())


def test_a_build_of_an_earlier_release_keeps_its_card(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = built(root, recipe_of())
    monkeypatch.setattr("pipeline_tasks.publish.datasets.building.card_text", lambda *_: "words of a later release")
    assert built(root, recipe_of()) == first


def test_a_plan_is_a_table_and_moves_nothing(root: str) -> None:
    before = set(Path(root).rglob("*.parquet"))
    lines = list(
        plan_lines(plan(root, recipe_of(mix={"by": "language", "max_epochs": 3, "tokens": {"en": 10**9}}), "local"))
    )
    assert lines[0].startswith("2 snapshots, 2026-11-19 to 2026-11-20")
    assert next(line for line in lines if line.startswith("en")).split()[-3:] == ["3.000", "max_epochs", "3"]
    assert next(line for line in lines if line.startswith("de")).split()[-1] == "-", "nothing limits this group"
    assert lines[-1].startswith("all")
    written = {str(path.relative_to(root)).split("/")[0] for path in set(Path(root).rglob("*.parquet")) - before}
    assert written <= {"compose", "tokenize", "select", "mix"}  # layers: the documents are read where they were refined


def test_a_plan_by_quality_is_a_table_by_group_and_band_and_the_build_takes_it(root: str) -> None:
    quality = {"column": "n_tokens", "bands": 4, "upsample": {"drop": 0.25, "most": 3, "mean": 1}}
    recipe = recipe_of(mix={"quality": quality})
    facts = plan(root, recipe, "local")
    lines = list(plan_lines(facts))
    head = next(at for at, line in enumerate(lines) if line.startswith("group  band"))
    planned = [line.split() for line in lines[head + 1 :]]
    assert {row[0] for row in planned} == {group["group"] for group in facts["groups"]}
    assert [row[1] for row in planned if row[0] == "en"] == ["1", "2", "3", "4"]
    of_english = [row for row in facts["bands"] if row["group"] == "en"]
    assert of_english[0]["taken"] == 0 < of_english[1]["taken"] < of_english[3]["taken"]
    published = built(root, recipe)
    assert sum(row["taken"] for row in facts["bands"]) == manifest_of(root, published, "shuffle").tokens


def test_a_plan_warns_of_groups_that_no_document_has(root: str) -> None:
    """A typing error in `weights` was ignored without a word."""
    facts = plan(root, recipe_of(mix={"weights": {"en": 1, "eng": 2}, "epochs": {"de": 1, "xx": 2}}), "local")
    assert facts["absent"] == ["eng", "xx"]
    assert "warning: no document is of group 'eng', which mix names" in "\n".join(plan_lines(facts))
    assert plan(root, recipe_of(mix={"weights": {"en": 1}}), "local")["absent"] == []


def test_a_plan_warns_of_snapshots_that_are_stale(root: str, tmp_path: Path) -> None:
    """A build took them without a word, with documents that other snapshots have now, too."""
    fresh = plan(root, recipe_of(), "local")
    assert (fresh["stale"], "stale" in "\n".join(plan_lines(fresh))) == ([], False)
    other = str(shutil.copytree(root, tmp_path / "root"))
    version_log.retract(other, "tiny", "2026-11-19")
    facts = plan(other, recipe_of(), "local")
    assert facts["stale"] == ["2026-11-20"]
    assert "warning: 1 snapshot is stale" in "\n".join(plan_lines(facts))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"mix": {"weights": {"eng": 1}}}, "mix"),
        ({"mix": {"tokens": {"en": 1}}}, "mix"),
        ({"select": {"where": {"language": {"any_of": ["eng"]}}}}, "select"),
    ],
)
def test_an_empty_result_is_refused_by_its_gate(root: str, changes: Mapping[str, Any], stage: str) -> None:
    before = set(Path(root, stage).glob("*/manifest.json"))
    with pytest.raises(RecipeError):  # nothing is left to publish
        built(root, recipe_of(**changes))
    [manifest] = set(Path(root, stage).glob("*/manifest.json")) - before
    verdict = reply("judge", root=root, manifest=str(manifest.relative_to(root)))
    assert (verdict["outcome"], verdict["failures"][0]["column"]) == ("refuse", "rows")


def test_verify_passes_a_build_and_finds_its_damage(root: str, tmp_path: Path) -> None:
    import shutil

    copy = str(shutil.copytree(root, tmp_path / "root"))
    published = built(copy, recipe_of())
    report = verify(copy, Scope())
    assert report.findings.problems == []
    assert verify(copy, Scope(recipe="corpus")).findings.problems == []  # the manifests of its days were unknown
    [account] = [each for each in report.accounts if (each.recipe, each.version) == ("corpus", published["version"])]
    uses = published["documents"]  # it was said to have as many as it has different ones
    assert 0 < account.copies < account.published == uses
    assert f"and {account.copies} copies = {uses:,} documents published" in "\n".join(account_lines(account))
    entry = index(copy, published)["shards"][0]
    binary = Path(copy, "publish/shards", entry["bin"]["path"].rpartition("/")[2])
    body = bytearray(binary.read_bytes())
    body[0] ^= 1
    binary.write_bytes(bytes(body))
    found = {problem.object for problem in verify(copy, Scope()).findings.problems}
    assert found == {f"{copy}/publish/shards/{binary.name}"}
    assert built(copy, recipe_of())["version"] == published["version"]


def test_older_pages_of_a_url_are_superseded(root: str) -> None:
    """The recipe has `dedup_url`, and the crawl has pages that changed from one day to the next."""
    select = manifest_of(root, built(root, recipe_of()), "select")
    rows = [row for batch in read_shards(root, select.rejects) for row in batch.to_pylist()]
    leaving = {row["id"]: row["winner"] for row in superseded(root)}
    found = {row["id"]: json.loads(row["evidence"])["winner"] for row in rows if row["reason"] == "select:superseded"}
    assert found
    assert found.items() <= leaving.items()


def test_a_selection_leaves_superseded_documents_out(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    copy = str(shutil.copytree(root, tmp_path / "root"))
    loser, winner = sorted(row["id"] for row in documents(copy).values() if row["language"] == "en")[:2]
    where = {id_: row["snapshot"] for id_, row in documents(copy).items()}
    wins = pa.RecordBatch.from_pylist(
        [{"id": loser, "snapshot": where[loser], "winner": winner, "winner_snapshot": where[winner]}], leaving.LEAVING
    )
    monkeypatch.setattr(leaving, "named_winners", lambda *_: iter([leaving.ranked(wins, 0)]))
    published = built(copy, recipe_of())
    select = manifest_of(copy, published, "select")
    assert select.rejected["select:superseded"] == 1
    [row] = [row for batch in read_shards(copy, select.rejects) for row in batch.to_pylist() if row["id"] == loser]
    assert json.loads(row["evidence"]) == {"winner": winner}


def test_documents_carry_the_size_of_their_cluster_over_the_selection(root: str) -> None:
    """The recipe has `dedup_exact` only: a document stands for the records with its text, of the selected snapshots."""
    versions = version_log.latest_by_snapshot(root, "tiny")
    for chosen in (versions, versions[1:]):
        names = tuple(version.snapshot for version in chosen)
        selection = asdict(Versions("tiny", snapshots=names, cluster_sizes=True))
        composed = reply("compose", root=root, recipe="sized", versions=selection)
        where = {"where": {"cluster_size": {"least": 2}}}
        fields = {"root": root, "recipe": "sized", "snapshot": "build"}
        tokens = {"stage": "tokenize", "params": BUILDS["stages"]["tokenize"], "parent": composed["manifest"]}
        tokenized = reply("refine", **fields, **tokens)["manifest"]
        rows_of = {"stage": "select", "params": where, "parent": tokenized}
        select = read_manifest(root, reply("refine", **fields, **rows_of)["manifest"])
        exact = [read_manifest(root, version.manifests["dedup_exact"]) for version in chosen]
        records = [shard for manifest in exact for shard in (*manifest.shards, *manifest.rejects)]
        ids = [id_ for batch in read_shards(root, records, ["id"]) for id_ in batch["id"].to_pylist()]
        rows = [row for batch in read_shards(root, select.shards) for row in batch.to_pylist()]
        assert rows
        assert {row["id"]: row["cluster_size"] for row in rows} == {row["id"]: ids.count(row["id"]) for row in rows}
        small = [row for batch in read_shards(root, select.rejects) for row in batch.to_pylist()]
        assert {ids.count(row["id"]) for row in small if row["reason"] == "select:where"} == {1}


def test_documents_are_packed_as_often_as_the_size_of_their_cluster_says(root: str) -> None:
    mix = {"factors": {"cluster_size": {"2": 2, "3": 3}}}
    versions = Versions("tiny", cluster_sizes=True)
    recipe = replace(recipe_of(mix=mix), name="rehydrated", versions=versions)
    published = built(root, recipe)
    version = version_log.current(root, "rehydrated")
    select = read_manifest(root, version.manifests["select"])
    rows = [row for batch in read_shards(root, select.shards) for row in batch.to_pylist()]
    copies: Counter[str] = Counter()
    folder = Path(root, published["index"]).parent
    for entry in index(root, published)["shards"]:
        lineage = pq.read_table(Path(folder, entry["lineage"]["path"]))
        copies.update(
            id_
            for id_, start in zip(*(lineage[name].to_pylist() for name in ("id", "doc_start")), strict=True)
            if not start
        )
    assert {row["id"]: copies[row["id"]] for row in rows} == {row["id"]: min(row["cluster_size"], 3) for row in rows}
    assert max(copies.values()) > 1
    planned = plan(root, recipe, "local")["groups"]
    assert sum(row["taken"] for row in planned) == index(root, published)["tokens"]


def test_cluster_sizes_need_a_deduplication(root: str, tmp_path: Path) -> None:
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(REFINES.replace("  dedup_exact: {}\n", ""))
    write_crawl(tmp_path / "crawl", scale=0.02)
    refined(str(tmp_path / "root"), str(tmp_path / "crawl" / "2026-11-19"), How(recipe=str(recipe)))
    with pytest.raises(RecipeError, match=r"tiny.* dedup_exact, .*dedup_minhash"):
        reply("compose", root=str(tmp_path / "root"), recipe="c", versions=asdict(Versions("tiny", cluster_sizes=True)))


def test_selections(root: str) -> None:
    def snapshots(**fields: Any) -> list[str]:
        composed = reply("compose", root=root, recipe="c", versions=asdict(Versions("tiny", **fields)))
        names: list[str] = composed["snapshots"]
        return names

    assert snapshots() == ["2026-11-19", "2026-11-20"]
    assert snapshots(snapshots=("2026-11-2*",)) == ["2026-11-20"]
    assert snapshots(until="2026-11-19") == ["2026-11-19"]
    with pytest.raises(RecipeError, match=r"recipe tiny .*since: 2027; .*: 2026-11-19, 2026-11-20"):
        snapshots(since="2027")
    with pytest.raises(RecipeError, match=r"recipe other .*: tiny\)"):
        reply("compose", root=root, recipe="c", versions={"recipe": "other"})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"select": {"where": {"nothing": {"least": 1}}}}, r"select\.where: .*'nothing'"),
        ({"select": {"where": {"language": {"least": 1}}}}, r"select\.where: language .*string"),
        ({"mix": {"by": "site", "weights": {"x": 1}}}, r"mix\.by: .*'site'"),
    ],
)
def test_columns_that_are_not_there_are_refused(root: str, changes: Mapping[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        built(root, recipe_of(**changes))


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (BUILDS | {"stages": {"mix": {}}}, "`versions`.* tokenize and select, .* mix$"),
        (BUILDS | {"stages": {"select": {}, "tokenize": {}}}, "`versions`.* tokenize and select, .* select, tokenize$"),
        ({"name": "x", "stages": {"ingest": {}, "select": {}}}, "select make .*`versions: {recipe: x}`"),
        ({"name": "x", "stages": {"ingest": {}, "tokenize": {}, "pack": {}}}, "tokenize, pack make .*`versions: "),
        (BUILDS | {"versions": {}}, "versions: recipe "),
        (BUILDS | {"versions": {"recipe": "a", "snapshot": "b"}}, "versions: .*'snapshot'.*'snapshots'"),
        (
            BUILDS | {"stages": {"tokenize": {}, "select": {"where": {"x": {}}}}},
            "select: where: x: .*any_of, none_of, least .*most",
        ),
        (
            BUILDS | {"stages": {"tokenize": {}, "select": {}, "mix": {"weights": {"a": 1}, "epochs": {"a": 2}}}},
            "mix: .*'a'.*weights",
        ),
        (
            BUILDS | {"stages": {"tokenize": {}, "select": {}, "mix": {"temperature": 2, "weights": {"a": 1}}}},
            "mix: temperature .*weights",
        ),
        (
            BUILDS | {"stages": {"tokenize": {}, "select": {}, "mix": {"bands": {"score": [0.5]}}}},
            "mix: bands: score .*`by`",
        ),
        (BUILDS | {"stages": {"tokenize": {}, "select": {}}}, "shuffle .*pack, .* select$"),
        (BUILDS | {"stages": {"tokenize": {}, "select": {}, "mix": {}, "pack": {}}}, "shuffle .*pack, .* mix, pack$"),
        (
            BUILDS | {"stages": {"tokenize": {}, "select": {}, "pack": {}, "shuffle": {}}},
            "shuffle .*pack, .* pack, shuffle$",
        ),
        (BUILDS | {"gates": {"publish": {}}}, "gates: .*'publish'.*tokenize, select, mix, shuffle, takedown, pack"),
        (BUILDS | {"name": "tiny"}, "recipe tiny "),
    ],
)
def test_recipes_that_make_no_sense_are_refused(raw: Mapping[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=f"^x.yaml.* {named}"):
        parse_recipe(raw, "x.yaml")


def test_a_name_has_snapshots_or_training_datasets(root: str, tmp_path: Path) -> None:
    before = set(Path(root).rglob("*"))
    with pytest.raises(RecipeError, match=re.escape(f"{root}: recipe tiny ")):
        reply("compose", root=root, recipe="tiny", versions={"recipe": "tiny"})
    assert set(Path(root).rglob("*")) == before
    built(root, recipe_of())
    with pytest.raises(RecipeError, match=re.escape(f"{root}: recipe corpus ")):
        reply("land", root=root, recipe="corpus", input=str(tmp_path), snapshot="2026-11-21")


def test_an_override_of_a_gate_that_builds_do_not_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "--output", str(tmp_path), "--override", "publish=why"]) == RecipeError.exit_code
    assert "the gates are tokenize, select, mix, shuffle, takedown, pack" in capsys.readouterr().err


def test_a_recipe_is_for_a_snapshot_or_for_a_build() -> None:
    assert load_build("corpus").versions == Versions("web")
    with pytest.raises(RecipeError, match="'web'"):
        load_build("web")
    with pytest.raises(RecipeError, match="'corpus'"):
        load_recipe("corpus")


def test_versions_with_other_columns_are_not_composed(root: str, tmp_path: Path) -> None:
    copy, recipe = str(shutil.copytree(root, tmp_path / "root")), tmp_path / "tiny.yaml"
    recipe.write_text(f"{REFINES}  scrub_pii: {{}}\n")
    refined(copy, str(Path(root).parent / "crawl" / "2026-11-20"), How(recipe=str(recipe)))
    with pytest.raises(ContractError, match=r"2026-11-20 of recipe tiny .*2026-11-19"):
        reply("compose", root=copy, recipe="c", versions={"recipe": "tiny"})


def test_a_later_build_encodes_new_documents_alone(root: str) -> None:
    """Tokens are kept by the shard and the tokenizer: a dataset that grows by a day encodes that day."""
    tokenizer = Path(root, "tokenizers", "corpus", f"{index(root, built(root, recipe_of()))['tokenizer']}.json")
    about = {"root": root, "recipe": "grows", "snapshot": "build", "stage": "tokenize"}
    about["params"] = {"tokenizer": str(shutil.copy(tokenizer, Path(root).parent / "named.json"))}
    ran = {}
    for day in ("2026-11-20", "2026-11-19", ""):
        selection = asdict(Versions("tiny", snapshots=(day,) if day else ()))
        composed = reply("compose", root=root, recipe="grows", versions=selection)
        tokenized = reply("refine", **about, parent=composed["manifest"])
        assert tokenized["rows"] > 0
        ran[day] = tokenized["ran"] - len(read_manifest(root, tokenized["manifest"]).shards)  # a task decides each
    assert ran == dict.fromkeys(ran, 2), "two tasks load the tokenizer: another dataset has encoded all shards"


def test_the_plan_is_kept_in_the_manifest(root: str) -> None:
    published = built(root, recipe_of())
    mix = manifest_of(root, published, "mix")
    rows = pa.Table.from_batches(list(read_shards(root, mix.history["plan"]))).to_pylist()
    assert rows == plan(root, recipe_of(), "local")["groups"]


def test_snapshots_without_a_document_are_composed_to_nothing(tmp_path: Path) -> None:
    """All stages would run on no row before anybody heard of it."""
    facts = {"recipe": "tiny", "snapshot": "2026-11-19", "landing": "", "manifests": {"ingest": "i"}, "verdicts": {}}
    version_log.append(str(tmp_path), {**facts, "prefix": "p", "documents": 0, "tokens": 0, "sequences": 0})
    with pytest.raises(RecipeError, match=r"corpus would be empty: .*2026-11-19"):
        reply("compose", root=str(tmp_path), recipe="corpus", versions=asdict(Versions("tiny")))
    assert not (tmp_path / "compose").exists()
