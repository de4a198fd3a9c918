"""Documents by type, or any column: kept, rejected for which reason, of which sites."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from refinery_study.breakdown import breakdown

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_shards
from tests import small_build
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.small_root import SmallRoot
from tests.text.kinds.texts import SAMPLES

RECIPE, SHOP = (next(sample.text for sample in SAMPLES if sample.kind == kind) for kind in ("recipe", "product"))
URLS = [
    "https://www.kitchen.example/1",
    "https://kitchen.example/2",
    "https://shop.example/1",
    "https://other.example/1",
    "https://other.example/2",
]


def published(root: Path, *, enriched: bool) -> version_log.Version:
    """Publish a snapshot of two types, of which one text is there twice, and one is of no type."""
    table = documents([RECIPE, RECIPE, SHOP, SHOP + "!", "Hello."], URLS)
    table = table.append_column("language", [["en"] * 5])
    path, _ = refined(root, "dedup_exact", commit_parent(root, [table]))
    manifests = {"dedup_exact": path}
    if enriched:
        manifests["enrich"] = refined(root, "enrich", path)[0]
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": manifests, "verdicts": {}}
    return version_log.append(str(root), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})


@pytest.mark.parametrize("enriched", [True, False])
def test_types_are_counted_with_reasons_and_sites_whether_the_recipe_stores_them_or_not(
    enriched: bool, tmp_path: Path
) -> None:
    version = published(tmp_path, enriched=enriched)
    groups = {group.name: group for group in breakdown(str(tmp_path), version, "document_type").groups}
    assert {name: (group.documents, group.kept) for name, group in groups.items()} == {
        "recipe": (2, 1),
        "product": (2, 2),
        "unknown": (1, 1),
    }
    assert groups["recipe"].rejected == {"dedup_exact:duplicate": 1}
    assert groups["recipe"].sites == {"kitchen.example": 2}
    assert groups["product"].sites == {"other.example": 1, "shop.example": 1}


def test_any_column_is_a_group_and_what_is_not_said_is_one_too(tmp_path: Path) -> None:
    version = published(tmp_path, enriched=True)
    [english] = breakdown(str(tmp_path), version, "language").groups
    assert (english.name, english.documents, english.kept) == ("en", 5, 4)
    levels = {group.name: group.documents for group in breakdown(str(tmp_path), version, "reading_level").groups}
    assert levels == {"unknown": 4, "(not said)": 1}  # the copy was rejected before it could be said


def test_the_command_prints_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path, enriched=True)
    assert main(["look", "breakdown", str(tmp_path), "--sites", "1"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:3] == ["document_type", "documents", "kept"]
    assert ["recipe", "2", "1", "50.0", "%", "86"] in lines
    assert ["other.example", "1,", "(others)", "1"] in lines
    assert main(["look", "breakdown", str(tmp_path), "--json", "--sites", "0"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["by"] == "document_type"
    assert [(group["name"], group["sites"], group["other_sites"]) for group in facts["groups"]] == [
        ("product", {}, 2),
        ("recipe", {}, 1),
        ("unknown", {}, 1),
    ]


def test_a_column_that_no_document_has_is_refused(tmp_path: Path) -> None:
    version = published(tmp_path, enriched=True)
    with pytest.raises(RecipeError, match="'topics'"):
        breakdown(str(tmp_path), version, "topics")


def test_a_bound_on_bytes_reads_whole_shards_and_says_how_many_rows(tmp_path: Path) -> None:
    version = published(tmp_path, enriched=True)
    whole, bounded = (breakdown(str(tmp_path), version, "document_type", most) for most in (0, 1))
    assert (whole.rows, whole.total) == (5, 5)
    assert 0 < bounded.rows < bounded.total == 5
    assert sum(group.documents for group in bounded.groups) == bounded.rows


def test_two_columns_make_a_table_of_all_documents_with_those_that_were_kept(tmp_path: Path) -> None:
    version = published(tmp_path, enriched=True)
    for across in ("site", "reason", "language"):
        table = breakdown(str(tmp_path), version, "document_type", across=across)
        for group in table.groups:
            cells = group.cells.values()
            assert sum(cell.documents for cell in cells) == group.documents, across
            assert sum(cell.kept for cell in cells) == group.kept
            assert sum(cell.tokens for cell in cells) == group.tokens > 0
        assert {value for group in table.groups for value in group.cells} == {*table.values}
    sites = breakdown(str(tmp_path), version, "document_type", across="site")
    assert sites.values == ["kitchen.example", "other.example", "shop.example"]
    [recipe] = [group for group in sites.groups if group.name == "recipe"]
    assert {site: (cell.documents, cell.kept) for site, cell in recipe.cells.items()} == {"kitchen.example": (2, 1)}
    by_reason = breakdown(str(tmp_path), version, "reason", across="document_type").groups
    assert [(group.name, group.documents) for group in by_reason] == [("kept", 4), ("dedup_exact:duplicate", 1)]


def test_tokens_are_estimated_of_every_text_whether_the_recipe_has_enrich_or_not(tmp_path: Path) -> None:
    tokens = [
        {group.name: group.tokens for group in breakdown(str(root), version, "document_type").groups}
        for root, version in (
            (root, published(root, enriched=enriched))
            for root, enriched in ((tmp_path / "a", True), (tmp_path / "b", False))
        )
    ]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize(("enriched", "texts"), [(True, 1), (False, 2)])
def test_texts_are_read_where_nothing_else_says_type_and_tokens(
    enriched: bool, texts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a recipe with `enrich` those of what was rejected before it alone."""
    version, read = published(tmp_path, enriched=enriched), list[Sequence[str]]()

    def recorded(root: str, shards: Iterable[Shard], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        read.append(columns)
        return read_shards(root, shards, columns)

    monkeypatch.setattr("refinery_study.breakdown.read_shards", recorded)
    assert sum(group.documents for group in breakdown(str(tmp_path), version, "language").groups) == 5
    assert sum("text" in columns for columns in read) == texts
    assert not any("crawled_at" in columns for columns in read)


def test_the_command_prints_the_table_of_two_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published(tmp_path, enriched=True)
    assert main(["look", "breakdown", str(tmp_path), "--across", "site", "--values", "2"]) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert printed[0] == ["document_type", "documents", "kept", "tokens", "kitchen.example", "other.example"]
    assert ["recipe", "2", "1", "86", "1/2", "-"] in printed
    assert printed[-1][-4:] == ["1", "more", "by", "--values"]
    assert main(["look", "breakdown", str(tmp_path), "--across", "reason", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["values"] == ["kept", "dedup_exact:duplicate"]
    cells = {group["name"]: group["cells"] for group in facts["groups"]}
    assert cells["recipe"]["dedup_exact:duplicate"]["documents"] == 1
    assert main(["look", "breakdown", str(tmp_path), "--across", "topics"]) == RecipeError.exit_code
    assert "'topics'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["look breakdown"], ["whatif", "--where", "language=en"], ["look find", "--where", "language=en"], ["look map"]],
)
def test_a_training_dataset_is_refused_by_what_reads_documents_of_snapshots(
    words: list[str], small_root: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended in an IndexError."""
    small = small_build.copied(small_root, tmp_path)
    small_build.build(small)
    command, *more = words
    assert main([*command.split(), small.root, "--recipe", small_build.DATASET, *more]) == RecipeError.exit_code
    assert f"{small_build.DATASET} is a training dataset" in capsys.readouterr().err
