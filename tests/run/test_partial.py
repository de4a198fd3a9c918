"""A partition that failed every try is quarantined whole: the stage is partial, and every row is accounted for."""

import json
import random
import re
import shutil
from pathlib import Path

import pytest
import yaml

from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.gate.verdicts import judge
from pipeline_tasks.inspect import rejects
from pipeline_tasks.inspect.document import document
from pipeline_tasks.inspect.search import search_texts
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.inspect.versions import list_versions
from pipeline_tasks.inspect.versions.overview import overview_of
from pipeline_tasks.manifest import PARTITION
from pipeline_tasks.sealed import path_of
from pipeline_tasks.upkeep.vacuum import find_orphans, remove
from tests.chain import Chain, How, refined, reply

DAY, FILES, ROWS = "2026-11-20", 3, 12
RECIPE = """
stages:
  ingest: {}
  extract: {min_chars: 20}
  filter_url: {}
  filter_language: {keep: [en], threshold: 0.0}
  filter_quality: {profiles: [c4]}
  dedup_exact: {buckets: 2}
  dedup_minhash: {buckets: 2}
  score_quality: {}
  scrub_pii: {}
  decontaminate: {}
"""
STAGES = tuple(yaml.safe_load(RECIPE)["stages"])
SPLIT = [stage for stage in STAGES if stage_card(stage).splits]


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of three files of twelve English documents each, and a recipe that keeps most."""
    folder = tmp_path_factory.mktemp("partial")
    words = [
        "river",
        "stone",
        "winter",
        "letter",
        "garden",
        "window",
        "engine",
        "market",
        "village",
        "doctor",
        "music",
        "history",
    ]
    rng = random.Random(7)
    (folder / DAY).mkdir()
    for file in range(FILES):
        lines = []
        for row in range(ROWS):
            text = " ".join(
                f"The {rng.choice(words)} of the {rng.choice(words)} was near the old {rng.choice(words)} number "
                f"{rng.randrange(10**6)}."
                for _ in range(12)
            )
            lines.append(json.dumps({"url": f"https://example.org/{file}/{row}", "text": text}))
        (folder / DAY / f"part-{file}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "partial.yaml").write_text(RECIPE)
    return folder


def chain(landed: Path, root: Path, poison: dict[str, int] | None = None) -> Chain:
    how = How(recipe=str(landed / "partial.yaml"), partitions=FILES, poison=poison)
    return refined(str(root), str(landed / DAY), how)


@pytest.fixture(scope="module")
def whole(landed: Path, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """The same snapshot without a failed partition."""
    return chain(landed, tmp_path_factory.mktemp("whole"))


SHORT = ("ingest", "extract", "filter_quality")
"""Other stages go the way of `filter_quality`: nightly."""


@pytest.mark.parametrize(
    "stage", [pytest.param(stage, marks=() if stage in SHORT else pytest.mark.nightly) for stage in SPLIT]
)
def test_a_snapshot_goes_on_without_a_partition_and_is_whole_once_that_is_refined(
    landed: Path, tmp_path: Path, whole: Chain, stage: str
) -> None:
    partial = chain(landed, tmp_path, {stage: 1})
    manifest = partial.manifest(stage)
    assert manifest.rows_in == manifest.rows + sum(manifest.rejected.values()) + sum(manifest.quarantined.values())
    assert 0 < manifest.rows < whole.manifest(stage).rows
    rows = partial.rows(stage, "quarantine", ["url", "reason"])
    assert len(rows) == manifest.quarantined[PARTITION]
    assert {row["reason"] for row in rows} == {PARTITION}
    if stage == "ingest":
        assert [row["file"] for row in partial.rows(stage, "quarantine", ["file"])] == ["part-1.jsonl"]
    else:
        assert {row["url"] for row in rows} <= {row["url"] for row in partial.rows("ingest", columns=["url"])}
    assert not verify(str(tmp_path), Scope(full=True)).findings.problems
    assert overview_of(str(tmp_path), "partial").snapshots[0].state == "partial"
    assert rejects.counts(manifest)["reasons"][PARTITION] == len(rows)
    listed = sum(
        batch.num_rows for batch in rejects.read_rejects(str(tmp_path), manifest, rejects.Choice((PARTITION,)))
    )
    assert listed == len(rows)
    assert sum(rejects.export(str(tmp_path), manifest, rejects.Choice(), tmp_path / "export").values()) >= len(rows)
    search = search_texts(str(tmp_path), partial.version, "the river")
    assert search.is_whole, "pages that were quarantined have no text, and harm no search"
    assert search.hits
    assert document(str(tmp_path), partial.version, search.hits[0].id).records
    assert "partial: " in next(line.note for line in list_versions(str(tmp_path), "partial"))
    before = {"land", *STAGES[: STAGES.index(stage)]}
    same = {name for name, path in partial.version.manifests.items() if path == whole.version.manifests[name]}
    assert same == before, "a partial manifest is another one, and so are those that were made from it"

    healed = chain(landed, tmp_path)
    assert healed.version.manifests == whole.version.manifests
    assert healed.version.number == partial.version.number + 1
    assert overview_of(str(tmp_path), "partial").snapshots[0].state == "published"
    assert not verify(str(tmp_path), Scope(full=True)).findings.problems


def test_rows_of_two_stages_are_accounted_for(landed: Path, tmp_path: Path) -> None:
    partial = chain(landed, tmp_path, {"extract": 0, "filter_quality": 1})
    account = [(row["file"], row["offset"]) for row in partial.rows("decontaminate", columns=["file", "offset"])]
    for stage in STAGES:
        if stage_card(stage).conserves == "rows":
            account += [(row["file"], row["offset"]) for row in partial.rejected_rows(stage, ["file", "offset"])]
    assert len(account) == len(set(account)) == FILES * ROWS
    assert overview_of(str(tmp_path), "partial").snapshots[0].summary.partial.keys() == {"extract", "filter_quality"}  # type: ignore[union-attr]


def test_a_partial_manifest_is_the_same_however_often_it_is_made(landed: Path, tmp_path: Path) -> None:
    first, again = (chain(landed, tmp_path / name, {"extract": 1}) for name in ("first", "again"))
    assert first.version.manifests == again.version.manifests
    repeated = chain(landed, tmp_path / "first", {"extract": 1})
    assert repeated.version == first.version
    other = chain(landed, tmp_path / "other", {"extract": 2})
    assert path_of(other.version.manifests["extract"]) != path_of(first.version.manifests["extract"])


def test_a_vacuum_keeps_what_a_partial_version_names(landed: Path, tmp_path: Path) -> None:
    partial = chain(landed, tmp_path, {"extract": 1, "scrub_pii": 0})
    before = partial.rows("decontaminate")
    remove(str(tmp_path), find_orphans(str(tmp_path), grace=0, expire=1e-9), limit=1)
    assert not verify(str(tmp_path), Scope(full=True)).findings.problems
    assert partial.rows("decontaminate") == before
    assert chain(landed, tmp_path).version.number == partial.version.number + 1


def test_the_gate_warns_of_a_partial_stage_and_refuses_one_that_lacks_much(landed: Path, tmp_path: Path) -> None:
    partial = chain(landed, tmp_path, {"extract": 1})
    verdict = judge(str(tmp_path), partial.version.manifests["extract"])
    assert verdict.outcome == "refuse"
    named = {failure.column for failure in verdict.failures}
    assert "partial_share" in named
    assert "quarantined_share" not in named, "no file is damaged"
    assert verdict.facts["partial_share"] == pytest.approx(1 / FILES)
    whole = judge(str(tmp_path), chain(landed, tmp_path).version.manifests["extract"])
    assert (whole.facts["partial_share"], whole.path != verdict.path) == (0, True), "each has a verdict of its own"


def test_gates_do_not_learn_from_a_partial_snapshot(landed: Path, tmp_path: Path) -> None:
    later = {"root": str(tmp_path), "recipe": "partial", "snapshot": "2026-11-21"}
    partial = chain(landed, tmp_path, {"extract": 1})
    earlier = reply("history", **later)
    assert (earlier["previous"], earlier["trailing"], earlier["snapshots"]) == ({}, {}, [])
    assert earlier["history"]["dedup_exact"] == [partial.version.manifests["dedup_exact"]], "what it kept is known"
    whole = chain(landed, tmp_path)
    assert reply("history", **later)["previous"] == whole.version.manifests


def test_a_stage_without_a_whole_partition_is_refused(landed: Path, tmp_path: Path) -> None:
    root, named = str(tmp_path), {"recipe": "partial", "snapshot": DAY}
    land = reply("land", root=root, input=str(landed / DAY))
    stage = {"root": root, "stage": "ingest", "params": {}, "parent": land["manifest"], "landing": land["landing"]}
    spans = [[0, 2], [2, 3]]
    for span in spans:
        reply("quarantine", stage={**stage, **named, "span": span})
    with pytest.raises(ContractError, match=f"^ingest: .* {len(spans)} "):
        reply("seal", stage={**stage, **named}, spans=spans, poison=spans)
    with pytest.raises(RecipeError, match=r"^ingest"):
        reply("quarantine", stage={**stage, **named})


def test_a_manifest_is_not_taken_for_a_partial_one(landed: Path, tmp_path: Path, whole: Chain) -> None:
    partial = chain(landed, tmp_path, {"extract": 1})
    path = path_of(partial.version.manifests["extract"])
    shutil.copy(Path(whole.root, path_of(whole.version.manifests["extract"])), tmp_path / path)
    with pytest.raises(ContractError, match=re.escape(path)):
        partial.manifest("extract")


def test_measures_of_a_run_that_was_never_published_may_go(landed: Path, tmp_path: Path) -> None:
    """A gate refused its run, and another bound, which lets the same documents pass, was published."""
    root, recipe = str(tmp_path), landed / "other.yaml"
    recipe.write_text(RECIPE.replace("threshold: 0.0", "threshold: 0.0001"))
    refused = chain(landed, tmp_path / "refused")
    shutil.copytree(
        refused.root, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("datasets", "publish", "ledger.sqlite")
    )
    published = refined(root, str(landed / DAY), How(recipe=str(recipe), partitions=FILES))
    remove(root, find_orphans(root, grace=0, expire=1e-9), limit=1)
    assert not verify(root, Scope(full=True)).findings.problems
    assert published.rows("decontaminate") == refused.rows("decontaminate")
