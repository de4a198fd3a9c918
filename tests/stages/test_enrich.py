"""Enrichment: columns that say what a document is, by rules, with `unknown` where they do not decide."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stages.enrich import COLUMNS
from tests.refining import commit_parent, refined, rows

RECIPE = """Pancakes

Ingredients

- 2 cups flour
- 1 tablespoon sugar
- 2 eggs

Directions

1. Stir the flour and the sugar in a bowl.
2. Bake each pancake for two minutes on either side.
"""
NOTICE = "Text and pictures: CC BY-SA 4.0, unless something else is said below them."


def documents(*texts: str | None, **columns: list[Any]) -> pa.Table:
    given = {
        "id": [f"{rank:032x}" for rank in range(len(texts))],
        "url": [f"https://site-{rank}.example/page" for rank in range(len(texts))],
        "language": ["en"] * len(texts),
        "chars": [len(text or "") for text in texts],
    } | columns
    return pa.table({"text": pa.array(texts, pa.large_string()), **given})


def enriched(root: Path, table: pa.Table, batch_rows: int = 4096) -> tuple[Manifest, list[dict[str, Any]]]:
    manifest = refined(root, "enrich", commit_parent(root, [table.slice(0, 2), table.slice(2)]), batch_rows=batch_rows)[
        1
    ]
    return manifest, rows(root, manifest).to_pylist()


def test_every_document_goes_on_unchanged_with_all_columns(tmp_path: Path) -> None:
    table = documents(RECIPE, "", None, "\x00\ud7ff `", NOTICE)
    manifest, found = enriched(tmp_path, table)
    assert (manifest.rows, dict(manifest.rejected)) == (5, {})
    assert [row["text"] for row in found] == table["text"].to_pylist()
    assert found[0].keys() >= set(COLUMNS.names)
    for row in found[1:4]:
        assert (row["document_type"], row["reading_level"], row["license_notice"]) == ("unknown",) * 3
        assert (row["reading_ease"], row["license_start"], row["license_end"]) == (None, None, None)
    assert [row["token_estimate"] for row in found[1:3]] == [0, 0]


def test_type_structure_and_notice_of_a_recipe(tmp_path: Path) -> None:
    [row, *_] = enriched(tmp_path, documents(f"{RECIPE}\n{NOTICE}"))[1]
    assert row["document_type"] == "recipe"
    assert (row["headings"], row["list_lines"], row["table_rows"], row["code_lines"]) == (2, 5, 0, 0)
    assert row["license_notice"] == "cc_by_sa"
    assert row["text"][row["license_start"] : row["license_end"]] == "CC BY-SA"
    assert 0.4 < row["structure_ratio"] < 0.8


def test_shares_of_what_is_unknown_are_in_the_profile_and_can_be_bound(tmp_path: Path) -> None:
    from pipeline_tasks.gate.facts import compute_facts

    manifest, _ = enriched(tmp_path, documents(RECIPE, "Some words."))
    facts = {name: estimate and estimate.value for name, estimate in compute_facts(str(tmp_path), manifest).items()}
    assert facts["document_type_share.recipe"] == facts["document_type_share.unknown"] == 0.5
    assert facts["license_notice_share.unknown"] == facts["reading_level_share.unknown"] == 1.0


def test_documents_without_a_language_are_read_without_its_rules(tmp_path: Path) -> None:
    table = documents(RECIPE).drop_columns(["language"])
    [row] = enriched(tmp_path, table)[1]
    assert (row["document_type"], row["reading_level"]) == ("unknown", "unknown")
    assert row["list_lines"] == 5


def test_params_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="enrich: unknown key 'topics'"):
        refined(tmp_path, "enrich", commit_parent(tmp_path, [documents("a")]), {"topics": 3})


def test_builds_select_and_mix_by_what_is_said(tmp_path: Path) -> None:
    """`tokenize` left all columns out that it did not know, so that builds could not name them."""
    texts = [f"{RECIPE}\nServe {number} times." for number in range(40)] + [f"Words {number}." for number in range(9)]
    path = refined(tmp_path, "enrich", commit_parent(tmp_path, [located(documents(*texts))]))[0]
    path = refined(tmp_path, "tokenize", path)[0]
    path = refined(tmp_path, "select", path, {"where": {"document_type": {"none_of": ["unknown"]}}})[0]
    quality = {"column": "list_lines", "bands": 4, "factors": [0, 1, 1, 2]}
    params = {"by": "document_type", "weights": {"recipe": 1}, "quality": quality}
    mixed = refined(tmp_path, "mix", path, params)[1]
    assert (mixed.rows, mixed.uses) == (30, 40)
    assert set(rows(tmp_path, mixed)["document_type"].to_pylist()) == {"recipe"}


def located(table: pa.Table) -> pa.Table:
    for name in LOCATOR.names:
        if name not in table.schema.names:
            kind = LOCATOR.field(name).type
            values = range(table.num_rows) if pa.types.is_integer(kind) else ["x"] * table.num_rows
            table = table.append_column(name, pa.array(values, kind))
    return table
