"""The lineage of a version has its manifests, what they refined, and what they read of other versions."""

import json
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.versions.lineage import Lineage, fingerprint_in, lineage
from pipeline_tasks.manifest import commit_slots, manifest_path
from pipeline_tasks.plots.lineage import COMPOSED, HISTORY, MADE_FROM, ManifestNode
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest
from tests import small_build
from tests.small_root import DAYS, RECIPE, RETRACTED, STAGES, SmallRoot


@pytest.fixture(scope="module")
def built(small_root: SmallRoot, tmp_path_factory: pytest.TempPathFactory) -> SmallRoot:
    small = small_build.copied(small_root, tmp_path_factory.mktemp("built"))
    small_build.build(small)
    return small


def shown(small: SmallRoot, recipe: str, snapshot: str = "") -> Lineage:
    return lineage(small.root, version_log.current(small.root, recipe, snapshot))


def node_of(lineage: Lineage, stage: str) -> ManifestNode:
    return next(node for node in lineage.own if node.stage == stage)


def test_each_stage_is_made_from_the_one_before_it(small_root: SmallRoot) -> None:
    chain = shown(small_root, RECIPE, DAYS[0])
    assert [node.stage for node in chain.own] == ["land", *STAGES]
    assert [node.stage for node in chain.nodes if not node.is_own] == []
    for before, node in zip(chain.own, chain.own[1:], strict=False):
        assert chain.parents(node) == chain.parents(node, MADE_FROM) == [before]
    for node in chain.own[1:]:
        manifest = read_manifest(small_root.root, node.path)
        counts = manifest.rows_in, manifest.rows, sum(manifest.rejected.values()), sum(manifest.quarantined.values())
        assert (node.rows_in, node.rows, node.rejected, node.quarantined) == counts
    assert chain.own[0].rows is None, "landed files, whose rows nobody has counted"
    assert node_of(chain, "ingest").quarantined == 1


def test_history_is_of_the_version_that_has_it(small_root: SmallRoot) -> None:
    second = shown(small_root, RECIPE, DAYS[1])
    first = version_log.current(small_root.root, RECIPE, DAYS[0])
    with_history = {node.stage: second.parents(node, HISTORY) for node in second.own}
    stages = {stage for stage, parents in with_history.items() if parents}
    assert stages == {"ingest", "dedup_exact", "dedup_minhash"}
    for stage in stages:
        [parent] = with_history[stage]
        assert (parent.snapshot, parent.version, parent.state) == (DAYS[0], first.number, "published")
        saved = read_manifest(small_root.root, first.manifests[stage])
        assert (parent.path, parent.rows) == (path_of(first.manifests[stage]), saved.rows)
        assert saved.fingerprint in read_manifest(small_root.root, second.version.manifests[stage]).parents
        assert not parent.is_own


def test_a_build_is_made_of_the_versions_that_it_composes(built: SmallRoot) -> None:
    chain = shown(built, small_build.DATASET)
    assert [node.stage for node in chain.own] == ["compose", *small_build.STAGES]
    composed = chain.parents(chain.own[0], COMPOSED)
    assert [(node.recipe, node.snapshot, node.stage) for node in composed] == [
        (RECIPE, day, "dedup_minhash") for day in DAYS[:2]
    ]
    assert sum(node.rows or 0 for node in composed) == chain.own[0].rows
    assert chain.parents(node_of(chain, "tokenize")) == [chain.own[0]]


def test_manifests_of_versions_that_are_gone_are_told_apart(small_root: SmallRoot, tmp_path: Path) -> None:
    root = str(shutil.copytree(small_root.root, tmp_path / "root"))
    version_log.retract(root, RECIPE, DAYS[0])
    second = lineage(root, version_log.current(root, RECIPE, DAYS[1]))
    states = {parent.state for node in second.own for parent in second.parents(node, HISTORY)}
    assert states == {"retracted"}
    version = version_log.current(root, RECIPE, DAYS[1])
    alone = lineage(root, replace(version, recipe="other", manifests={"extract": version.manifests["extract"]}))
    [parent] = alone.parents(alone.own[0], MADE_FROM)
    assert (parent.stage, parent.version, parent.place, parent.is_own) == ("ingest", 0, "not published", False)
    history = {"dedup_exact": version.manifests["dedup_exact"]}
    unknown = lineage(root, replace(version, recipe="other", manifests=history))
    [parent] = unknown.parents(unknown.own[0], HISTORY)
    assert (parent.version, parent.place, parent.rows) == (0, "not published", None)
    assert read_manifest(root, parent.path).stage == "dedup_exact"


@pytest.mark.parametrize("fingerprint", ["0123456789abcdef01234567", "0123456789abcdef01234567-ba9876543210"])
def test_the_path_of_a_manifest_has_its_fingerprint_if_it_is_partial_too(fingerprint: str) -> None:
    assert fingerprint_in(manifest_path("extract", fingerprint)) == fingerprint
    whole = fingerprint.partition("-")[0]
    assert {fingerprint_in(path) for path in islice(commit_slots("extract", whole), 3)} == {whole}


def test_the_command_prints_every_manifest(built: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "lineage", built.root, "--recipe", RECIPE, "--snapshot", DAYS[1]]) == 0
    text = capsys.readouterr().out
    for node in shown(built, RECIPE, DAYS[1]).nodes:
        assert node.path in text
    [read] = [line.split() for line in text.splitlines() if "history" in line and "dedup_minhash" in line][:1]
    assert read[1:6] == ["history", RECIPE, DAYS[0], "1", "published"]
    assert main(["look", "lineage", built.root, "--recipe", small_build.DATASET, "--json"]) == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert facts["recipe"] == small_build.DATASET
    paths = {node["path"] for node in facts["manifests"]}
    assert {edge[end] for edge in facts["edges"] for end in ("parent", "child")} <= paths
    assert RETRACTED not in json.dumps(facts)
