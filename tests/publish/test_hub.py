"""What the Hub reads of a folder: features of columns, the head of the card, row groups that its viewer can scan."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from refinery_exports.hub import folder
from refinery_exports.hub.card import Config, head, languages_of, license_of, size_category
from refinery_exports.hub.features import features

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.training.index import StoredFile

TYPES: dict[pa.DataType, object] = {
    pa.string(): {"dtype": "string"},
    pa.large_string(): {"dtype": "large_string"},
    pa.bool_(): {"dtype": "bool"},
    pa.int8(): {"dtype": "int8"},
    pa.uint16(): {"dtype": "uint16"},
    pa.int64(): {"dtype": "int64"},
    pa.float16(): {"dtype": "float16"},
    pa.float32(): {"dtype": "float32"},
    pa.float64(): {"dtype": "float64"},
    pa.large_binary(): {"dtype": "large_binary"},
    pa.date32(): {"dtype": "date32"},
    pa.timestamp("us"): {"dtype": "timestamp[us]"},
    pa.timestamp("us", "UTC"): {"dtype": "timestamp[us, tz=UTC]"},
    pa.null(): {"dtype": "null"},
    pa.list_(pa.int32()): {"list": "int32"},
    pa.large_list(pa.string()): {"large_list": "string"},
    pa.list_(pa.float16(), 3): {"list": "float16", "length": 3},
    pa.list_(pa.list_(pa.bool_())): {"list": {"list": "bool"}},
    pa.struct([("a", pa.float64())]): {"struct": [{"name": "a", "dtype": "float64"}]},
    pa.list_(pa.struct([("a", pa.int16()), ("b", pa.list_(pa.string()))])): {
        "list": [{"name": "a", "dtype": "int16"}, {"name": "b", "list": "string"}]
    },
}


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_column_has_its_feature(kind: pa.DataType) -> None:
    assert features(pa.schema([("column", kind)])) == [{"name": "column", **TYPES[kind]}]  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "kind", [pa.map_(pa.string(), pa.float64()), pa.decimal128(9, 2), pa.struct([("odd", pa.duration("s"))])], ids=str
)
def test_a_column_without_a_feature_is_named(kind: pa.DataType) -> None:
    with pytest.raises(RecipeError, match=r"column '(column|odd)' .*leave it out"):
        features(pa.schema([("column", kind)]))


def config(name: str, rows: int = 5, schema: pa.Schema | None = None) -> Config:
    stored = tuple(StoredFile(f"data/{name}-{part:05}-of-00002.parquet", 100 + part, "0" * 64) for part in range(2))
    return Config(name, schema or pa.schema([("id", pa.string()), ("no", pa.int64())]), rows, 1234, stored)


def test_the_head_is_yaml_with_configs_features_and_sizes() -> None:
    lines = head([config("kept", 12_345), config("rejects", 7)], ["no", "en", "und", ""], ["", "MIT"])
    read = yaml.safe_load("\n".join(lines))
    assert read["language"] == ["en", "no"], "a code is no word for false"
    assert read["license"] == "other"
    assert read["size_categories"] == ["10K<n<100K"]
    assert read["configs"] == [
        {"config_name": "kept", "default": True, "data_files": [{"split": "train", "path": "data/kept-*"}]},
        {"config_name": "rejects", "data_files": [{"split": "train", "path": "data/rejects-*"}]},
    ]
    kept, rejects = read["dataset_info"]
    assert kept["features"] == [{"name": "id", "dtype": "string"}, {"name": "no", "dtype": "int64"}]
    assert kept["splits"] == [{"name": "train", "num_bytes": 1234, "num_examples": 12_345}]
    assert (kept["download_size"], kept["dataset_size"]) == (201, 1234)
    assert rejects["splits"][0]["num_examples"] == 7


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1000, "1K<n<10K"),
        (9999, "1K<n<10K"),
        (10**6, "1M<n<10M"),
        (10**12 - 1, "100B<n<1T"),
        (10**12, "n>1T"),
        (10**15, "n>1T"),
    ],
)
def test_rows_have_the_category_of_the_hub(rows: int, name: str) -> None:
    assert size_category(rows) == name


def test_languages_are_codes_that_the_hub_lists() -> None:
    assert list(languages_of(["zh-hant", "en", "und", "", "fra", "unknown", "EN"])) == ["en", "fra", "zh"]


@pytest.mark.parametrize(
    ("names", "license_"),
    [
        ([], "unknown"),
        ([""], "unknown"),
        (["CC-BY-4.0"], "cc-by-4.0"),
        (["CC-BY-4.0", ""], "other"),
        (["CC-BY-4.0", "MIT"], "other"),
        (["CC-BY-9.9"], "other"),
    ],
)
def test_a_license_is_that_of_all_documents(names: list[str], license_: str) -> None:
    assert license_of(names) == license_


# --- Files ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 300), max_size=9), max_size=6))
def test_row_groups_are_no_larger_than_the_bound_but_for_single_rows(lengths: list[list[int]]) -> None:
    tables = [pa.table({"text": pa.array(["x" * length for length in own], pa.large_string())}) for own in lengths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "GROUP_BYTES", 400)
        groups = list(folder.groups(iter(tables)))
    assert [text for group in groups for text in group["text"].to_pylist()] == [
        text for table in tables for text in table["text"].to_pylist()
    ]
    assert all(group.num_rows for group in groups)
    assert all(group.num_rows == 1 or sum(batch.nbytes for batch in group.to_batches()) <= 400 for group in groups)


def test_a_file_has_page_indexes_checksums_and_its_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "GROUP_BYTES", 4000)
    schema = pa.schema([("id", pa.string()), ("spans", pa.list_(pa.struct([("start", pa.int64())])))])
    rows = [{"id": f"{number:032}", "spans": [{"start": number}] * (number % 3)} for number in range(300)]
    folder.write(iter([pa.Table.from_pylist(rows, schema)]), schema, tmp_path / "a.parquet")
    file = pq.ParquetFile(tmp_path / "a.parquet", page_checksum_verification=True)
    groups = [file.metadata.row_group(rank) for rank in range(file.metadata.num_row_groups)]
    assert len(groups) > 3
    for group in groups:
        columns = [group.column(at) for at in range(group.num_columns)]
        assert all(column.has_offset_index and column.has_column_index for column in columns)
        assert {column.compression for column in columns} == {"ZSTD"}
    assert file.read().to_pylist() == rows
    assert file.schema_arrow.equals(schema)
