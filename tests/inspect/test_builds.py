"""Real builds are compared and planned from as versions of a snapshot are: their stages, copies and costs."""

from dataclasses import replace

import pytest
from refinery_study.plan.bases import TOKENS_PER_SHUFFLED_BYTE
from refinery_study.plan.version_costs import version_basis, version_cost

from pipeline_tasks.cli.commands.build import plan
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.diff import compare
from pipeline_tasks.inspect.unpublished import unpublished_runs
from pipeline_tasks.inspect.versions.overview import overview_of, overviews
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import BUILD
from pipeline_tasks.run.unit_costs import cost_of
from pipeline_tasks.store.reading import read_shards
from tests.publish.test_building import (
    built,
    recipe_of,
    root,  # noqa: F401 -- a fixture: a root with two versions to build of
)


def test_real_builds_are_compared_with_copies_whether_documents_are_read_or_not(
    root: str,  # noqa: F811 -- a fixture
) -> None:
    named = built(root, recipe_of()), built(root, recipe_of(mix={"weights": {"en": 1}, "max_epochs": 1}))
    versions = version_log.versions(root, "corpus")
    a, b = (next(version for version in versions if version.number == reply["version"]) for reply in named)
    diff = compare(root, a, b, documents=True)
    assert diff.documents is not None
    shuffled = [ordered_manifests(root, version)["shuffle"] for version in (a, b)]
    assert diff.documents.common + diff.documents.added == len(
        {id_ for batch in read_shards(root, shuffled[1].shards, ["id"]) for id_ in batch.column("id").to_pylist()}
    )
    amounts = [sum(pair[side].documents for pair in diff.groups["language"].values()) for side in (0, 1)]
    assert amounts == [manifest.rows for manifest in shuffled]
    cheap = compare(root, a, b)
    counted, read = (
        {name: [side.documents for side in pair] for name, pair in each.groups["language"].items()}
        for each in (cheap, diff)
    )
    assert counted == read, "what is shuffled is profiled, with each document as often as it is used"
    assert compare(root, b, b).groups["language"]


def test_a_build_takes_what_its_versions_took_up_to_what_it_reads(root: str) -> None:  # noqa: F811 -- a fixture
    built(root, recipe_of())
    version = version_log.current(root, "corpus")
    cost = version_cost(root, version)
    refined = version_log.latest_by_snapshot(root, "tiny")
    alone = [version_cost(root, part) for part in refined]
    assert cost.landed == sum(part.landed for part in alone)
    tokenized = ordered_manifests(root, version)["tokenize"]
    assert sum(part.tokens for part in alone) == pytest.approx(tokenized.tokens, abs=len(refined))
    stages = {stage.stage: stage for stage in cost.stages}
    tiny = ("ingest", "extract", "filter_language", "dedup_url", "dedup_exact")
    corpus = [f"corpus/{step.stage}" for step in recipe_of().steps]
    assert list(stages) == [*(f"tiny/{stage}" for stage in tiny), *corpus]
    reads = [next(stage.reads for stage in part.stages if stage.stage == "extract") for part in alone]
    assert stages["tiny/extract"].reads == sum(reads)
    composed = ordered_manifests(root, version)["compose"]
    assert (
        stages["corpus/tokenize"].foretold_reads
        == stages["corpus/tokenize"].reads
        == sum(shard.weight for shard in composed.shards)
    )
    assert {rate.source for rate in version_basis(cost).stages} == {"ledger"}


def test_a_plan_is_no_run_that_has_published_nothing(root: str) -> None:  # noqa: F811 -- a fixture
    """The pages asked to wait for it, or to build again."""
    built(root, recipe_of())
    plan(root, recipe_of(mix={"weights": {"en": 1, "de": 2}, "max_epochs": 2}), "local")
    plan(root, replace(recipe_of(), name="planned"), "local")
    assert unpublished_runs(root, "corpus") == {}
    [state] = overview_of(root, "corpus").snapshots
    assert (state.state, state.next_step, state.run) == ("published", "", None)
    assert "planned" not in [overview.recipe for overview in overviews(root)]
    with Ledger.open(ledger_of(root)) as ledger:
        assert [row["snapshot"] for row in ledger.query("status", recipe="corpus")] == [BUILD]


def test_stages_that_a_plan_of_a_build_ran_are_among_what_the_build_took(root: str) -> None:  # noqa: F811 -- a fixture
    """They were recorded without the name of a build, so the ledger had no cost of its versions."""
    recipe = recipe_of(select={}, shuffle={"seed": 9, "buckets": 2})
    plan(root, recipe, "local")
    built(root, recipe)
    cost = version_cost(root, version_log.current(root, "corpus"))
    assert cost.stages
    assert [stage.stage for stage in cost.stages if not stage.seconds] == []


def test_a_version_of_documents_that_nobody_has_packed_foretells_as_many_tokens(root: str) -> None:  # noqa: F811 -- a fixture
    cost = version_cost(root, version_log.latest_by_snapshot(root, "tiny")[0])
    left = cost.stages[-1].foretold_reads * cost_of(cost.stages[-1].stage).kept
    packed = left * cost_of("tokenize").kept * cost_of("shuffle").kept * TOKENS_PER_SHUFFLED_BYTE
    assert cost.foretold_tokens == pytest.approx(packed)
    assert cost.version.tokens == 0 < cost.tokens
