"""A folder of the Hub, read back by `datasets` as it is; `make train-test` runs this file."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from refinery_exports.hub.card import Config, head
from refinery_exports.hub.folder import FORMAT, READING

from pipeline_tasks.publish.datasets.card import front_matter
from pipeline_tasks.schema import (
    BLOCK,
    DOCUMENT,
    EDIT_SPAN,
    ENTITY,
    IMAGE_TEXT,
    REDACTION,
    RIGHTS,
    SEAM_COLUMNS,
    TOXIC_SPAN,
    VERDICT,
)
from pipeline_tasks.training.index import StoredFile

datasets = pytest.importorskip("datasets", reason="datasets is not installed here; `make train-test` runs this file")

KEPT = pa.schema(
    [
        *DOCUMENT,
        *RIGHTS,
        *SEAM_COLUMNS,
        ("blocks", pa.list_(BLOCK)),
        ("edit_spans", pa.list_(EDIT_SPAN)),
        ("redactions", pa.list_(REDACTION)),
        ("entities", pa.list_(ENTITY)),
        ("toxic_spans", pa.list_(TOXIC_SPAN)),
        ("image_texts", IMAGE_TEXT),
        ("unread_pages", pa.list_(pa.int32())),
        ("signals", pa.struct([("words", pa.float64()), ("deep", pa.struct([("of", pa.list_(pa.float32()))]))])),
        ("embedding", pa.list_(pa.float16(), 4)),
        ("nested", pa.list_(pa.list_(pa.uint16()))),
        ("large", pa.large_list(pa.large_string())),
        ("mixed", pa.bool_()),
        ("at", pa.timestamp("us")),
        ("day", pa.date32()),
        ("nothing", pa.null()),
        ("bytes", pa.large_binary()),
    ]
)
"""Columns of every type that stages write, and some that a package may bring."""

REJECTS = pa.schema([("stage", pa.string()), *VERDICT, ("outcome", pa.string()), *DOCUMENT])

SCHEMAS = {"kept": KEPT, "rejects": REJECTS}

COUNTS = {"kept": (3, 4), "rejects": (2,)}
"""Rows of the files of each config."""

VALUES: Mapping[str, Any] = {
    "text": "Grüße \u2028 \U0001f600\x00\t",
    "signals": {"words": 1.5, "deep": {"of": [0.25]}},
    "embedding": [1, 2, 0.5, 4],
    "nested": [[1, 2], [], None],
    "large": ["a", None],
    "bytes": b"\x00\xff",
    "blocks": [{"score": 64, "kept": True}, None],
    "unread_pages": [7],
    "redactions": [{"kind": "email", "start": 1, "end": 2, "at": 1, "action": "redact"}],
}


def table(schema: pa.Schema, rows: int) -> pa.Table:
    """Rows with the same values, of which every other has none but its id."""
    own = {name: value for name, value in VALUES.items() if name in schema.names}
    return pa.Table.from_pylist([{"id": f"{row:032x}", **(own if row % 2 else {})} for row in range(rows)], schema)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two configs, as an export writes them."""
    folder = tmp_path_factory.mktemp("hub")
    (folder / "data").mkdir()
    configs = []
    for name, schema in SCHEMAS.items():
        stored, size = [], 0
        for number, count in enumerate(COUNTS[name]):
            path = folder / f"data/{name}-{number:05}-of-{len(COUNTS[name]):05}.parquet"
            rows = table(schema, count)
            FORMAT.write(iter([rows]), schema, path)
            body = path.read_bytes()
            stored.append(StoredFile(f"data/{path.name}", len(body), sha256(body).hexdigest()))
            size += rows.nbytes
        configs.append(Config(name, schema, sum(COUNTS[name]), size, tuple(stored)))
    (folder / "README.md").write_text("\n".join(front_matter("corpus", head(configs, ["en", "no"], []))) + "\n")
    (folder / "croissant.json").write_text("{}")
    (folder / "files.json").write_text("{}")
    return folder


def loaded(place: Path | str, cache: Path, *config: str, **options: Any) -> Any:
    return datasets.load_dataset(str(place), *config, split="train", cache_dir=str(cache), **options)


def plain(rows: Any) -> list[dict[str, Any]]:
    return [{**row, "embedding": None if row.get("embedding") is None else list(row["embedding"])} for row in rows]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["", "kept", "rejects"])
def test_datasets_reads_each_config_with_its_features_and_counts(
    name: str, streamed: bool, hub: Path, tmp_path: Path
) -> None:
    found = loaded(hub, tmp_path, *([name] if name else []), streaming=streamed)
    config = name or "kept"
    assert plain(found) == plain(row for count in COUNTS[config] for row in table(SCHEMAS[config], count).to_pylist())
    assert found.info.splits["train"].num_examples == sum(COUNTS[config])
    assert found.info.config_name == config


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_features_of_the_card_are_those_that_datasets_infers(name: str, hub: Path, tmp_path: Path) -> None:
    declared = datasets.load_dataset_builder(str(hub), name, cache_dir=str(tmp_path)).info
    inferred = loaded("parquet", tmp_path, data_files=str(hub / "data" / f"{name}-*.parquet")).features
    assert declared.features == inferred
    assert declared.features.arrow_schema.remove_metadata().equals(inferred.arrow_schema.remove_metadata())
    assert declared.dataset_size == declared.splits["train"].num_bytes > 0


def test_the_card_says_what_datasets_would_write(hub: Path, tmp_path: Path) -> None:
    from huggingface_hub import DatasetCard

    data = DatasetCard.load(hub / "README.md").data.to_dict()
    assert (data["pretty_name"], data["language"], data["size_categories"]) == ("corpus", ["en", "no"], ["n<1K"])
    for info in data["dataset_info"]:
        inferred = loaded("parquet", tmp_path, data_files=str(hub / "data" / f"{info['config_name']}-*.parquet"))
        assert info["features"] == inferred.features._to_yaml_list()


def test_the_program_of_the_card_reads_the_first_text(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hub)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path))
    names: dict[str, Any] = {}
    exec(compile(READING, "README.md", "exec"), names)
    assert names["kept"][1]["text"] == VALUES["text"]
