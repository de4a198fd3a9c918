"""What conditions on columns would keep: the same documents as a build that selects by them, with tokens by group."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif.columns import columns_of, known_columns, whatif_columns
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest
from tests.described_root import PLAIN, RECIPE, SNAPSHOT, published
from tests.refining import refined, rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("described")
    published(root)
    return root


@pytest.fixture(scope="module")
def version(root: Path) -> Version:
    return version_log.current(str(root), RECIPE, SNAPSHOT)


CASES = [
    (["document_type=recipe,forum"], {"document_type": {"any_of": ["recipe", "forum"]}}, 3),
    (["topic!=unknown"], {"topic": {"none_of": ["unknown"]}}, 4),
    (["toxicity_insult<=1"], {"toxicity_insult": {"most": 1}}, 4),
    (["reading_ease>=50"], {"reading_ease": {"least": 50}}, 1),
    (
        ["document_type=recipe", "topic=t0003", "structure_ratio=0.5..1"],
        {
            "document_type": {"any_of": ["recipe"]},
            "topic": {"any_of": ["t0003"]},
            "structure_ratio": {"least": 0.5, "most": 1},
        },
        1,
    ),
]


@pytest.mark.parametrize(("written", "where", "count"), CASES)
def test_a_build_keeps_what_is_predicted_by_the_columns_that_stages_add(
    root: Path, version: Version, written: list[str], where: dict[str, Any], count: int
) -> None:
    forecast = whatif_columns(str(root), version, written, "topic")
    assert forecast.whole.documents == (5, count)
    _, selected = refined(root, "select", version.refined.split("@")[0], {"where": where})
    kept = rows(root, selected).to_pylist()
    assert len(kept) == count
    tokens = sum(row["token_estimate"] for row in kept)
    assert forecast.whole.tokens is not None
    assert forecast.whole.tokens[1] == tokens
    of_topics = {name: group.documents[1] for name, group in forecast.groups.items() if group.documents[1]}
    topics = [row["topic"] for row in kept]
    assert of_topics == {topic: topics.count(topic) for topic in set(topics)}


def test_groups_have_all_documents_and_conditions_are_counted_alone(root: Path, version: Version) -> None:
    written = ["document_type=recipe", "topic=t0001"]
    forecast = whatif_columns(str(root), version, written, "document_type")
    assert {name: kept.documents for name, kept in forecast.groups.items()} == {
        "recipe": (2, 1),
        "article": (1, 0),
        "forum": (1, 0),
        "product": (1, 0),
    }
    assert forecast.alone == {"document_type": 2, "topic": 2}
    sites = whatif_columns(str(root), version, written, "site").groups
    assert {name: kept.documents for name, kept in sites.items()} == {
        "kitchen.example": (2, 1),
        "rude.example": (1, 0),
        "shop.example": (1, 0),
        "talk.example": (1, 0),
    }
    assert (forecast.rows_read, forecast.rows, forecast.tokens_by) == (5, 5, "token_estimate")
    assert sum((kept.tokens or (0, 0))[0] for kept in forecast.groups.values()) == (forecast.whole.tokens or (0, 0))[0]


def test_of_a_large_version_whole_shards_are_read_and_counts_are_estimates(root: Path, version: Version) -> None:
    sampled = whatif_columns(str(root), version, ["language=en"], most=1)
    assert sampled.rows_read < sampled.rows == 5
    assert sampled.whole.documents == (5, 5)


def test_without_an_estimate_tokens_are_unknown_until_something_was_built(root: Path) -> None:
    plain = version_log.current(str(root), RECIPE, PLAIN)
    forecast = whatif_columns(str(root), plain, ["chars>=1"])
    assert forecast.by == "source", "it has no language"
    assert (forecast.whole.documents, forecast.whole.tokens, forecast.tokens_by) == ((1, 1), None, "")


def test_a_column_that_there_is_not_is_refused_with_those_that_there_are(root: Path, version: Version) -> None:
    for written, by in ((["colour=red"], "language"), (["language=en"], "colour")):
        with pytest.raises(RecipeError, match=r"'colour'.*document_type.*topic_similarity"):
            whatif_columns(str(root), version, written, by)
    with pytest.raises(RecipeError, match="--by: embedding"):
        whatif_columns(str(root), version, ["language=en"], "embedding")


def test_known_columns_have_the_values_that_manifests_count(root: Path, version: Version) -> None:
    known = {column.name: column for column in known_columns(str(root), version)}
    assert {*columns_of(str(root), version)} - {*known} == {"embedding", "toxic_spans"}
    assert [*known["document_type"].values] == ["recipe", "article", "forum", "product"]
    assert [*known["topic"].values] == ["t0001", "t0002", "t0003", "unknown"]
    assert known["toxicity_insult"].ends == (0, 90.9)
    assert read_manifest(str(root), version.refined).stage == "topics"


def test_the_command_prints_groups_and_the_lines_of_a_build(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["whatif", str(root), "--where", "document_type=recipe,forum", "--where", "toxic_hits<1", "--by", "topic"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines()]
    assert ["all", "5", "3", "60.0%"] in [line[:4] for line in lines]
    assert ["t0001", "2", "1", "50.0%"] in [line[:4] for line in lines]
    assert "document_type: {any_of: [recipe, forum]}" in printed
    assert main([*asked, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["whole"]["documents"], facts["groups"]["t0003"]["documents"]) == ([5, 3], [1, 1])


@pytest.mark.parametrize("words", [["--where", "topic=t0001", "--set", "extract.min_chars=9"], ["--by", "topic"]])
def test_two_questions_at_once_or_groups_without_a_condition_are_refused(
    words: list[str], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", str(root), *words]) == RecipeError.exit_code
    assert "--where" in capsys.readouterr().err
