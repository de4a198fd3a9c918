"""What a dataset was built from is read as it was written, found in a root by its digest, and refused by other code."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import WRITER, Manifest
from pipeline_tasks.publish.datasets.origin import (
    Origin,
    Source,
    Step,
    origin_bytes,
    origin_of,
    parse_origin,
    read_origin_file,
    require_same_code,
    source_versions,
)
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import SEAL, seal, sha256

DIGESTS = ("1" * 64, "2" * 64)
SOURCES = (
    Source("web", "2026-11-01", "scrub_pii/one/manifest.json", DIGESTS[0]),
    Source("web", "2026-11-02", "scrub_pii/two/manifest.json", DIGESTS[1]),
)
STEPS = (
    Step("compose", 1, {}, {}, "a" * 24),
    Step("pack", stage_card("pack").version, {"length": 8}, {"0": "d" * 64}, "b" * 24),
)
ORIGIN = Origin("corpus", "e" * 64, WRITER, SOURCES, STEPS)


def published(root: Path, snapshot: str, refined: str, recipe: str = "web") -> None:
    """Publish a version whose documents are a manifest of `scrub_pii`, by its reference."""
    facts = {"recipe": recipe, "snapshot": snapshot, "landing": "", "verdicts": {}, "prefix": "p"}
    facts |= {"manifests": {"ingest": "ingest/i/manifest.json", "scrub_pii": refined}}
    version_log.append(str(root), {**facts, "documents": 1, "tokens": 0, "sequences": 0})


def reference(number: int) -> str:
    return f"{SOURCES[number].manifest}@sha256:{DIGESTS[number]}"


def test_the_origin_of_a_dataset_is_in_its_manifests() -> None:
    versions = [{"recipe": each.recipe, "snapshot": each.snapshot, "manifest": each.manifest} for each in SOURCES]
    empty = Manifest("compose", 1, "", {}, (), (), (), (), {}, (), (), 0, 0, {}, {})
    compose = replace(empty, fingerprint="a" * 24, params={"versions": versions}, parent_digests=DIGESTS)
    pack = replace(
        empty, stage="pack", version=STEPS[1].version, fingerprint="b" * 24, params={"length": 8}, parents=("a" * 24,)
    )
    by_stage = {"pack": replace(pack, resources={"0": "d" * 64}, writer="pyarrow-9"), "compose": compose}
    made = origin_of("corpus", by_stage, b"{}")
    assert made == replace(ORIGIN, index=sha256(b"{}"), writer="pyarrow-9")


def test_an_origin_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "build.json"
    path.write_bytes(origin_bytes(ORIGIN))
    assert parse_origin(origin_bytes(ORIGIN), "here") == read_origin_file(str(path)) == ORIGIN


def test_an_origin_in_this_folder_needs_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "build.json").write_bytes(origin_bytes(ORIGIN))
    monkeypatch.chdir(tmp_path)
    assert read_origin_file("build.json") == ORIGIN


def edited(**changes: Any) -> bytes:
    raw = {name: value for name, value in json.loads(origin_bytes(ORIGIN)).items() if name != SEAL}
    return seal({name: value for name, value in (raw | changes).items() if value is not None})


@pytest.mark.parametrize(
    "changes", [{"format": 2}, {"format": None}, {"more": 1}, {"writer": None}, {"steps": [{}]}, {"sources": 3}]
)
def test_what_is_no_origin_is_refused_by_its_place(changes: dict[str, Any]) -> None:
    assert parse_origin(edited(), "here/build.json") == ORIGIN
    with pytest.raises(ContractError, match=r"here/build\.json "):
        parse_origin(edited(**changes), "here/build.json")


def test_code_that_writes_the_same_bytes_is_let_through_and_other_code_is_named() -> None:
    require_same_code(ORIGIN)
    older = replace(STEPS[1], version=STEPS[1].version - 1)
    for other, named in (
        (replace(ORIGIN, writer="pyarrow-9"), "pyarrow-9 (here"),
        (replace(ORIGIN, steps=(replace(STEPS[1], libraries={"ftfy": "0.1"}),)), "ftfy 0.1 → "),
        (replace(ORIGIN, steps=(replace(STEPS[1], libraries={"no-more": "0.1"}),)), "no-more 0.1 → none"),
        (replace(ORIGIN, steps=(STEPS[0], older)), f"pack {older.version} (here {STEPS[1].version})"),
        (replace(ORIGIN, steps=(*STEPS, replace(STEPS[1], stage="distill"))), "distill"),
    ):
        with pytest.raises(ContractError, match=re.escape(named)):
            require_same_code(other)


def test_the_versions_that_a_dataset_was_built_from_are_found_by_snapshot_and_digest(tmp_path: Path) -> None:
    published(tmp_path, "2026-11-01", reference(0))
    published(tmp_path, "2026-11-02", reference(1))
    published(tmp_path, "2026-11-01", f"{SOURCES[0].manifest}@sha256:{'3' * 64}")
    published(tmp_path, "2026-11-03", reference(1))
    published(tmp_path, "2026-11-02", reference(1), recipe="other")
    found = source_versions(str(tmp_path), ORIGIN)
    assert [(version.recipe, version.number) for version in found] == [("web", 1), ("web", 2)]


def test_a_version_that_was_retracted_since_is_what_a_dataset_was_built_from(tmp_path: Path) -> None:
    published(tmp_path, "2026-11-01", reference(0))
    published(tmp_path, "2026-11-02", reference(1))
    version_log.retract(str(tmp_path), "web", "2026-11-01", "spam")
    assert [version.number for version in source_versions(str(tmp_path), ORIGIN)] == [1, 2]
