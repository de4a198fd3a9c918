"""Documents by type, or any column: kept, rejected for which reason, of which sites."""

import json
from pathlib import Path

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.breakdown import breakdown
from pipeline_tasks.publish import version_log
from tests.documents import documents
from tests.refining import commit_parent, refined
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
    assert main(["breakdown", str(tmp_path), "--sites", "1"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:3] == ["document_type", "documents", "kept"]
    assert ["recipe", "2", "1", "50.0%"] in lines
    assert ["other.example", "1,", "1", "more"] in lines
    assert main(["breakdown", str(tmp_path), "--json", "--sites", "0"]) == 0
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
