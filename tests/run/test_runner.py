"""The runner's promises: identity, conservation, commits that are whole or not at all, and tasks that run once."""

import dataclasses
import functools
import hashlib
import json
import logging
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks import stages
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import (
    BudgetExceeded,
    ContractError,
    DeterminismViolation,
    DigestMismatch,
    RecipeError,
    RowsVanished,
    SchemaBroken,
)
from pipeline_tasks.manifest import Manifest, dump, reference_of
from pipeline_tasks.recipe import ErrorBudget
from pipeline_tasks.run.plan import plan
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import Cost, partition_path, refine, seal
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage
from pipeline_tasks.store import storage
from tests.faulty_s3 import FaultyS3
from tests.refining import commit_parent, refined, resealed, rows
from tests.toys import CARDS, ROWS, MapParams, NoParams, learn, table

pytestmark = pytest.mark.usefixtures("toys")


@pytest.fixture
def parent(tmp_path: Path) -> str:
    """Three shards of toy rows: 40, none, 25."""
    return commit_parent(tmp_path, [table(0, 40), table(40, 0), table(40, 25)])


def run(
    root: Path, stage: str, parent: str, *, span: tuple[int, int] | None = None, **how: Any
) -> tuple[str, Manifest, Cost]:
    params = how.pop("params", {})
    return refine(RefineRequest(str(root), stage, params, parent, span=span, **how), LocalEngine)


def committed(root: Path, stage: str) -> list[str]:
    """Return the manifests of a stage, whole or partitions, that a reader could see."""
    paths = [entry.path for entry in storage.connect(str(root)).list(stage)]
    return [path for path in paths if path.endswith("manifest.json") or "/partitions/" in path]


# --- Every row is kept, rejected or quarantined ---------------------------------------------------------------


def test_every_row_is_kept_rejected_or_quarantined(tmp_path: Path, parent: str) -> None:
    _, manifest, _ = run(tmp_path, "toy_map", parent)
    assert manifest.rows_in == 65
    assert manifest.rejected == {"toy_map:third": 21}
    assert manifest.quarantined == {"error:damaged": 2}
    assert manifest.rows == 65 - 21 - 2
    kept, rejects, quarantine = (rows(tmp_path, manifest, part) for part in ("shards", "rejects", "quarantine"))
    ids = [row_id for part in (kept, rejects, quarantine) for row_id in part.column("id").to_pylist()]
    assert sorted(ids) == list(range(65))
    assert kept.schema.names == [*ROWS.names, "size"]
    assert rejects.schema.names == [*ROWS.names, "size", "reason", "evidence"]
    assert set(rejects.column("evidence").to_pylist()) == {
        f'{{"id":{number}}}' for number in range(65) if number % 3 == 0 and number % 50
    }
    assert [shard.rows for shard in manifest.shards] == [26, 0, 16]


@pytest.mark.parametrize("how", ["lose", "repeat"])
def test_a_kernel_that_loses_or_repeats_rows_commits_nothing(tmp_path: Path, parent: str, how: str) -> None:
    with pytest.raises(RowsVanished, match=r"^toy_bad/[0-9a-f]+: 65 rows"):
        run(tmp_path, "toy_bad", parent, params={"how": how})
    assert committed(tmp_path, "toy_bad") == []


def test_a_kernel_that_changes_a_promised_column_commits_nothing(tmp_path: Path, parent: str) -> None:
    with pytest.raises(SchemaBroken, match=r"^toy_bad .*\['n'\]"):
        run(tmp_path, "toy_bad", parent, params={"how": "lie"})
    assert committed(tmp_path, "toy_bad") == []


def test_a_kernel_that_yields_nothing_is_refused(tmp_path: Path, parent: str) -> None:
    with pytest.raises(ContractError, match=r"^toy_bad/") as refusal:
        run(tmp_path, "toy_bad", parent, params={"how": "nothing"})
    assert refusal.type is ContractError
    assert committed(tmp_path, "toy_bad") == []


def test_a_parent_without_a_column_is_refused_before_anything_runs(tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table(0, 3).drop_columns(["key"])])
    with pytest.raises(SchemaBroken, match=rf"^toy_map .*\['key'\].* {re.escape(str(Path(parent).parent))} "):
        run(tmp_path, "toy_map", parent)
    assert list(storage.connect(str(tmp_path)).list("toy_map")) == []


@pytest.mark.parametrize(
    ("budget", "passes"),
    [
        (ErrorBudget(share=0.0, rows=1), False),
        (ErrorBudget(share=0.0, rows=2), True),
        (ErrorBudget(share=0.04, rows=0), True),
        (ErrorBudget(share=0.03, rows=0), False),
        (ErrorBudget(share=2 / 65, rows=0), True),  # exactly at the share
        (ErrorBudget(share=2 / 65, rows=1), True),
    ],
)
def test_a_partition_fails_above_both_bounds_of_its_budget(
    tmp_path: Path, parent: str, budget: ErrorBudget, passes: bool
) -> None:
    if passes:
        assert run(tmp_path, "toy_map", parent, error_budget=budget)[1].quarantined == {"error:damaged": 2}
        return
    with pytest.raises(BudgetExceeded, match=r"^toy_map: 2 of 65 .*\{'error:damaged': 2\}.*error_budget"):
        run(tmp_path, "toy_map", parent, error_budget=budget)
    assert committed(tmp_path, "toy_map") == []


# --- Bytes that are not what they were -----------------------------------------------------------------------------


def test_a_committed_stage_whose_shard_is_gone_says_so(tmp_path: Path, parent: str) -> None:
    path, manifest, _ = run(tmp_path, "toy_map", parent)
    (tmp_path / manifest.shards[0].path).unlink()
    named = f"{re.escape(str(tmp_path / manifest.shards[0].path))}, .* remove {re.escape(path)}"
    with pytest.raises(ContractError, match=named):
        run(tmp_path, "toy_map", parent)


def changed_digest(receipt: Path, _: Path) -> None:
    shard = json.loads(receipt.read_bytes())["shard"]
    receipt.write_bytes(receipt.read_bytes().replace(shard["digest"][-8:].encode(), b"00000000"))


def digest_of_another(receipt: Path, _: Path) -> None:
    resealed(receipt, shard=json.loads(receipt.read_bytes())["shard"] | {"digest": "0" * 64})


def missing_shard(receipt: Path, _: Path) -> None:
    shard, digest = json.loads(receipt.read_bytes())["shard"], "0" * 64
    resealed(receipt, shard=shard | {"digest": digest, "path": f"{Path(shard['path']).parent}/{digest[:32]}.parquet"})


def shard_of_the_parent(receipt: Path, root: Path) -> None:
    (given,) = root.glob("given/*/manifest.json")
    resealed(receipt, shard=json.loads(given.read_bytes())["shards"][0])


RECEIPT_DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "cut": lambda receipt, _: receipt.write_bytes(receipt.read_bytes()[:-20]),
    "a row more": lambda receipt, _: receipt.write_bytes(receipt.read_bytes().replace(b'"rows":', b'"rows":1')),
    "another digest": changed_digest,
    "another digest, sealed again": digest_of_another,
    "a missing shard, sealed again": missing_shard,
    "a shard of its parent, sealed again": shard_of_the_parent,
    "another key, sealed again": lambda receipt, _: resealed(receipt, key="0" * 32),
}


@pytest.mark.parametrize("damage", sorted(RECEIPT_DAMAGES))
def test_a_receipt_that_cannot_be_believed_is_made_again(tmp_path: Path, parent: str, damage: str) -> None:
    path, manifest, _ = run(tmp_path, "toy_map", parent)
    body = (tmp_path / path).read_bytes()
    (tmp_path / path).unlink()
    receipts = {receipt: receipt.read_bytes() for receipt in sorted(tmp_path.glob("toy_map/*/receipts/*.json"))}
    receipt = next(iter(receipts))
    RECEIPT_DAMAGES[damage](receipt, tmp_path)
    assert receipt.read_bytes() != receipts[receipt]
    _, again, cost = run(tmp_path, "toy_map", parent)
    assert (again, cost.ran) == (manifest, 1)
    assert (tmp_path / path).read_bytes() == body
    assert {file: file.read_bytes() for file in receipts} == receipts


@pytest.mark.parametrize("damage", ["cut", "edited", "edited and sealed again", "of another partition"])
def test_a_partition_that_cannot_be_believed_is_made_again(tmp_path: Path, parent: str, damage: str) -> None:
    spans = [(0, 1), (1, 3)]
    files = [tmp_path / run(tmp_path, "toy_map", parent, span=span)[0] for span in spans]
    body = files[1].read_bytes()
    if damage == "cut":
        files[1].write_bytes(body[:-20])
    elif damage == "edited":
        files[1].write_bytes(body.replace(b'"rows_in":25', b'"rows_in":26'))
    elif damage == "edited and sealed again":
        resealed(files[1], covers=[])
    else:
        shutil.copy(files[0], files[1])
    with pytest.raises(ContractError, match=re.escape(files[1].name)):
        seal(RefineRequest(str(tmp_path), "toy_map", {}, parent), spans)
    run(tmp_path, "toy_map", parent, span=(1, 3))
    assert files[1].read_bytes() == body
    assert seal(RefineRequest(str(tmp_path), "toy_map", {}, parent), spans).manifest.rows_in == 65


# --- Work that is done once ------------------------------------------------------------------------------------------


def test_committed_work_is_reused(tmp_path: Path, parent: str) -> None:
    first = run(tmp_path, "toy_map", parent)
    second = run(tmp_path, "toy_map", parent)
    assert (first[0], first[1]) == (second[0], second[1])
    assert (first[2].ran, second[2].ran) == (3, 0)


def test_empty_objects_of_killed_writers_are_not_taken_for_work(tmp_path: Path, parent: str) -> None:
    path, manifest = refined(tmp_path, "toy_map", parent)
    before = (tmp_path / path).read_bytes()
    for stored in (tmp_path / path, *(tmp_path / path).parent.glob("receipts/*.json")):
        stored.write_bytes(b"")
    assert refined(tmp_path, "toy_map", parent) == (path, manifest)
    assert (tmp_path / path).read_bytes() == before


def test_the_tasks_that_are_to_run_are_logged_for_who_shows_progress(
    tmp_path: Path, parent: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="refinery"):
        first = run(tmp_path, "toy_map", parent)[1]
        run(tmp_path, "toy_map", parent)
    [record] = [record for record in caplog.records if "refinery" in vars(record)]
    step = vars(record)["refinery"]["step"]
    assert (step.stage, step.root, len(step.weights)) == ("toy_map", str(tmp_path), 3)
    assert sum(step.weights.values()) == first.bytes_in


@pytest.mark.parametrize("stage", ["toy_map", "toy_group", "toy_broadcast", "toy_history"])
def test_only_what_is_missing_runs_again(tmp_path: Path, parent: str, stage: str) -> None:
    path, manifest, whole = run(tmp_path, stage, parent)
    body = (tmp_path / path).read_bytes()
    left = len(list((tmp_path / path).parent.glob("receipts/*")))  # those of intermediate shards went at the commit
    (tmp_path / path).unlink()
    (tmp_path / manifest.shards[0].path).unlink()
    _, again, cost = run(tmp_path, stage, parent)
    assert again == manifest
    assert (tmp_path / path).read_bytes() == body
    assert (cost.ran, cost.reused) == (1 + whole.ran - left, left - 1)


@pytest.mark.parametrize("stage", ["toy_map", "toy_group", "toy_broadcast", "toy_lookup"])
def test_a_commit_leaves_the_shards_that_it_names_and_no_others(tmp_path: Path, parent: str, stage: str) -> None:
    path, manifest, cost = run(tmp_path, stage, parent)
    names = [entry.path for entry in storage.connect(str(tmp_path)).list(path.rpartition("/")[0])]
    assert {name for name in names if name.endswith((".parquet", ".segment"))} == {
        shard.path for shard in manifest.stored
    }
    intermediate = cost.ran - len([name for name in names if "/receipts/" in name])
    assert intermediate == {"toy_broadcast": 3, "toy_lookup": 3}.get(stage, 0)


def test_no_shard_goes_before_its_receipt(s3_root: str, faults: FaultyS3) -> None:
    """A receipt without its shard makes the next attempt run; a shard without its receipt a vacuum finds."""
    parent = commit_parent(s3_root, [table(0, 40)])  # type: ignore[arg-type] -- any root will do
    faults.coming.append(("POST", (403, "AccessDenied")))  # the first request to delete many
    with pytest.raises(RecipeError):
        refine(RefineRequest(s3_root, "toy_broadcast", {}, parent), LocalEngine)
    assert faults.happened
    store = storage.connect(s3_root)
    manifest = refine(RefineRequest(s3_root, "toy_broadcast", {}, parent), LocalEngine).manifest
    assert len([entry for entry in store.list("toy_broadcast") if "/data/" in entry.path]) > len(manifest.stored)


def numbered(batches: Batches, *, name: str) -> Batches:
    for batch in batches:
        yield batch.append_column(name, batch.column("id"))


def run_stack(shards: Shards, params: NoParams, on: Engine) -> Shards:
    """Put three layers over the parent's shards."""
    for name in ("a", "b", "c"):
        shards = on.map(functools.partial(numbered, name=name), shards, layer=Layer(reads=("id",)))
    return shards


def test_a_manifest_has_every_layer_that_its_own_rest_on(
    tmp_path: Path, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does not have goes at the commit, or with a vacuum."""
    schema = functools.reduce(pa.Schema.append, [pa.field(name, pa.int64()) for name in ("a", "b", "c")], ROWS)
    card = Stage("toy_stack", run_stack, NoParams, ROWS, schema, 1, splits=True, engine="local")
    monkeypatch.setattr(stages, "NAMES", (*stages.NAMES, card.name))
    monkeypatch.setitem(sys.modules, "pipeline_tasks.stages.toy_stack", SimpleNamespace(STAGE=card))
    _, manifest, _ = run(tmp_path, "toy_stack", parent)
    assert len(manifest.below) == 2 * len(manifest.shards) == 6
    table_ = rows(tmp_path, manifest)
    assert table_["a"].to_pylist() == table_["c"].to_pylist() == table_["id"].to_pylist() == list(range(65))


def test_a_group_leaves_no_scratch(tmp_path: Path, parent: str) -> None:
    run(tmp_path, "toy_group", parent)
    with pytest.raises(LookupError):
        run(tmp_path, "toy_bad_group", parent, params={"how": "defect"})
    assert [entry.path for entry in storage.connect(str(tmp_path)).list("") if "/scratch/" in entry.path] == []


def test_a_racing_group_does_not_take_the_others_scratch(tmp_path: Path, parent: str) -> None:
    inside = False

    class Raced(LocalEngine):
        """Between scatter and gather, a second attempt does the whole work."""

        def _each(self, *arguments: Any, **how: Any) -> list[Any]:
            nonlocal inside
            done = list(super()._each(*arguments, **how))
            if not inside:
                inside = True
                run(tmp_path, "toy_group", parent)
            return done

    path, manifest, _ = refine(RefineRequest(str(tmp_path), "toy_group", {}, parent), Raced)
    assert inside
    assert (tmp_path / path).read_bytes() == dump(manifest)


def test_a_second_attempt_with_other_bytes_is_refused(tmp_path: Path, parent: str) -> None:
    path = plan(RefineRequest(str(tmp_path), "toy_map", {}, parent)).path

    class Late(LocalEngine):
        """Another attempt commits something else just before this one."""

        def map(self, *arguments: Any, **how: Any) -> Shards:
            kept = super().map(*arguments, **how)
            storage.connect(str(tmp_path)).create(path, b"{}")
            return kept

    with pytest.raises(DeterminismViolation, match=re.escape(f"{tmp_path}/{path} ")):
        refine(RefineRequest(str(tmp_path), "toy_map", {}, parent), Late)
    assert (tmp_path / path).read_bytes() == b"{}"


# --- Partitions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spans", [[(0, 3)], [(0, 1), (1, 2), (2, 3)], [(2, 3), (0, 2)], [(0, 0), (0, 3), (3, 3)]])
def test_sealed_partitions_are_the_whole_run(tmp_path: Path, spans: list[tuple[int, int]]) -> None:
    tables = [table(0, 40), table(40, 0), table(40, 25)]
    whole_root, split_root = tmp_path / "whole", tmp_path / "split"
    path, _, _ = run(whole_root, "toy_map", commit_parent(whole_root, tables))
    parent = commit_parent(split_root, tables)
    for span in spans:
        run(split_root, "toy_map", parent, span=span)
    sealed, _, _ = seal(RefineRequest(str(split_root), "toy_map", {}, parent), spans)
    assert sealed == path
    assert (split_root / sealed).read_bytes() == (whole_root / path).read_bytes()


def test_a_partition_is_named_by_what_it_covers(tmp_path: Path, parent: str) -> None:
    path, manifest, _ = run(tmp_path, "toy_map", parent, span=(1, 3))
    assert path == partition_path(plan(RefineRequest(str(tmp_path), "toy_map", {}, parent)), (1, 3))
    assert manifest.rows_in == 25
    assert run(tmp_path, "toy_map", parent, span=(1, 3))[2].ran == 0


@pytest.mark.parametrize("spans", [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (0, 3)], []])
def test_partitions_that_do_not_cover_the_input_once_are_not_sealed(
    tmp_path: Path, parent: str, spans: list[tuple[int, int]]
) -> None:
    for span in spans:
        run(tmp_path, "toy_map", parent, span=span)
    with pytest.raises(RowsVanished, match=rf"^toy_map/[0-9a-f]+: .* {len(spans)} .* 3 "):
        seal(RefineRequest(str(tmp_path), "toy_map", {}, parent), spans)
    assert not [path for path in committed(tmp_path, "toy_map") if path.endswith("manifest.json")]


def test_sealing_waits_for_every_partition(tmp_path: Path, parent: str) -> None:
    run(tmp_path, "toy_map", parent, span=(0, 1))
    with pytest.raises(RecipeError, match=r"toy_map/\S+/partitions/\S+: "):
        seal(RefineRequest(str(tmp_path), "toy_map", {}, parent), [(0, 1), (1, 3)])


def test_a_stage_that_groups_is_not_split(tmp_path: Path, parent: str) -> None:
    with pytest.raises(RecipeError, match=r"^toy_group "):
        run(tmp_path, "toy_group", parent, span=(0, 1))


# --- Identity --------------------------------------------------------------------------------------------------------


def fingerprint(root: Path, parent: str, **how: Any) -> str:
    params = how.pop("params", {})
    return plan(RefineRequest(str(root), "toy_map", params, parent, **how)).fingerprint


def test_where_when_and_how_are_no_part_of_identity(tmp_path: Path, parent: str) -> None:
    before = fingerprint(tmp_path, parent)
    shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-moved")
    moved = tmp_path.parent / f"{tmp_path.name}-moved"
    assert fingerprint(moved, parent) == before
    assert fingerprint(tmp_path, parent, batch_rows=7, error_budget=ErrorBudget(1.0, 9), landing="/elsewhere") == before
    assert fingerprint(tmp_path, parent, params={"every": 3}) == before  # the default, said aloud


def test_what_and_from_what_are_identity(tmp_path: Path, parent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(tmp_path, parent)
    others = [
        fingerprint(tmp_path, parent, params={"every": 4}),
        fingerprint(tmp_path, commit_parent(tmp_path, [table(0, 41)])),
        fingerprint(tmp_path, parent, history=(run(tmp_path, "toy_map", parent)[0],)),
    ]
    card = dataclasses.replace(CARDS[0], version=2)
    monkeypatch.setattr(sys.modules["pipeline_tasks.stages.toy_map"], "STAGE", card)
    others.append(fingerprint(tmp_path, parent))
    assert len({before, *others}) == 5


@pytest.fixture
def filed(toys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `toy_map` a stage that uses a file: its param `model` is a path, as a tokenizer's is."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Params(MapParams):
        model: str = ""
        models: tuple[str, ...] = ()

    module = sys.modules["pipeline_tasks.stages.toy_map"]
    card = dataclasses.replace(
        CARDS[0], params=Params, resources=lambda params: (*filter(None, (params.model, *params.models)),)
    )
    monkeypatch.setattr(module, "STAGE", card)


@pytest.mark.usefixtures("filed")
def test_a_file_is_identity_by_its_content_and_not_its_place(tmp_path: Path, parent: str) -> None:
    for name, body in (("a.bin", b"weights"), ("b.bin", b"weights"), ("c.bin", b"other")):
        (tmp_path / name).write_bytes(body)
    prints = [
        fingerprint(tmp_path, parent, params={"model": str(tmp_path / name)}) for name in ("a.bin", "b.bin", "c.bin")
    ]
    assert prints[0] == prints[1] != prints[2]
    manifest = run(tmp_path, "toy_map", parent, params={"model": str(tmp_path / "a.bin")})[1]
    assert manifest.params["model"].startswith("sha256:")
    assert str(tmp_path) not in json.dumps(json.loads(dump(manifest))["params"])


@pytest.mark.usefixtures("filed")
def test_files_in_a_list_are_identity_by_their_content(tmp_path: Path, parent: str) -> None:
    for name, body in (("a.bin", b"weights"), ("b.bin", b"weights"), ("c.bin", b"other")):
        (tmp_path / name).write_bytes(body)
    lists = [[str(tmp_path / f"{name}.bin") for name in names] for names in ("ac", "bc", "ca", "a")]
    prints = [fingerprint(tmp_path, parent, params={"models": paths}) for paths in lists]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    manifest = run(tmp_path, "toy_map", parent, params={"models": lists[0]})[1]
    wanted = [f"sha256:{hashlib.sha256(body).hexdigest()}" for body in (b"weights", b"other")]
    assert manifest.params["models"] == wanted


@pytest.mark.usefixtures("filed")
def test_a_file_that_is_not_there_is_named(tmp_path: Path, parent: str) -> None:
    with pytest.raises(RecipeError, match=f"^toy_map: .*{re.escape(str(tmp_path / 'none.bin'))}"):
        fingerprint(tmp_path, parent, params={"model": str(tmp_path / "none.bin")})


@pytest.mark.parametrize("batch_rows", [1, 7, 10_000])
@pytest.mark.parametrize("stage", ["toy_map", "toy_group", "toy_broadcast", "toy_history"])
def test_batches_of_any_size_give_the_same_bytes(tmp_path: Path, stage: str, batch_rows: int) -> None:
    tables = [table(0, 40), table(40, 0), table(40, 25)]
    first, second = tmp_path / "one", tmp_path / "other"
    path, _ = refined(first, stage, commit_parent(first, tables))
    again, _ = refined(second, stage, commit_parent(second, tables), batch_rows=batch_rows)
    assert path == again
    assert (first / path).read_bytes() == (second / path).read_bytes()


def test_nothing_of_the_place_or_the_clock_is_in_a_manifest(tmp_path: Path, parent: str) -> None:
    path, _, _ = run(tmp_path, "toy_map", parent)
    body = (tmp_path / path).read_text()
    assert str(tmp_path) not in body
    assert not {"time", "host", "attempt", "worker"} & set(json.loads(body))


# --- History ---------------------------------------------------------------------------------------------------------


def test_a_history_section_that_the_stage_does_not_declare_is_refused(tmp_path: Path) -> None:
    monday, _, _ = run(tmp_path, "toy_history", commit_parent(tmp_path, [table(0, 30)], "monday"))
    (saved,) = json.loads((tmp_path / monday).read_text())["history"].values()
    tuesday = commit_parent(tmp_path, [table(20, 30)], "tuesday")
    for history, named in (({"renamed": saved}, "renamed,"), ({}, "none,")):
        resealed(tmp_path / monday, history=history)
        with pytest.raises(ContractError, match=f"^{re.escape(str(Path(monday).parent))} .*{named}"):
            run(tmp_path, "toy_history", tuesday, history=(monday,))


@pytest.mark.parametrize("saved", ["emptied", "cut to one shard"])
def test_history_that_is_not_what_was_published_is_refused(tmp_path: Path, saved: str) -> None:
    path, manifest, _ = run(tmp_path, "toy_history", commit_parent(tmp_path, [table(0, 30), table(30, 30)], "monday"))
    monday = reference_of(path, manifest)
    assert monday.startswith(f"{path}@sha256:")
    tuesday = commit_parent(tmp_path, [table(20, 30)], "tuesday")
    (section,) = manifest.history
    shards = [] if saved == "emptied" else [dataclasses.asdict(manifest.history[section][0])]
    resealed(tmp_path / path, history={section: shards})
    with pytest.raises(DigestMismatch, match=re.escape(f"{path}: ")):
        run(tmp_path, "toy_history", tuesday, history=(monday,))
    with pytest.raises(DigestMismatch, match=re.escape(f"{path}: ")):
        run(tmp_path, "toy_map", reference_of(path, manifest))


def test_a_snapshot_without_history_names_its_sections_and_no_shards(tmp_path: Path) -> None:
    path, manifest, _ = run(tmp_path, "toy_history", commit_parent(tmp_path, [table(0, 0)], "monday"))
    assert list(manifest.history) == ["ids"]
    _, after, _ = run(tmp_path, "toy_history", commit_parent(tmp_path, [table(0, 9)], "tuesday"), history=(path,))
    assert after.rejected == {}


def test_a_manifest_chains_the_bytes_of_what_it_was_made_from(tmp_path: Path, parent: str) -> None:
    first, _, _ = run(tmp_path, "toy_history", parent)
    _, manifest, _ = run(tmp_path, "toy_history", commit_parent(tmp_path, [table(0, 9)], "tuesday"), history=(first,))
    (tuesday,) = tmp_path.glob("tuesday/*/manifest.json")
    bodies = [tuesday.read_bytes(), (tmp_path / first).read_bytes()]
    assert manifest.parent_digests == tuple(hashlib.sha256(body).hexdigest() for body in bodies)


def test_a_manifest_in_the_place_of_another_is_refused(tmp_path: Path, parent: str) -> None:
    path, _, _ = run(tmp_path, "toy_map", parent)
    other, _, _ = run(tmp_path, "toy_map", parent, params={"every": 4})
    shutil.copy(tmp_path / other, tmp_path / path)
    with pytest.raises(ContractError, match=re.escape(f"{path} ")):
        run(tmp_path, "toy_map", parent)
    with pytest.raises(ContractError, match=re.escape(f"{path} ") + ".* toy_map/"):
        run(tmp_path, "toy_group", path)


def test_committed_work_is_not_reused_when_its_parent_was_changed(tmp_path: Path, parent: str) -> None:
    first, manifest, _ = run(tmp_path, "toy_map", parent)
    path, _, _ = run(tmp_path, "toy_group", first)
    resealed(tmp_path / first, rejected={"toy_map:other": sum(manifest.rejected.values())})
    with pytest.raises(ContractError, match=re.escape(f"{path} ")):
        run(tmp_path, "toy_group", first)


def test_history_is_what_earlier_snapshots_saved(tmp_path: Path) -> None:
    monday, manifest, _ = run(tmp_path, "toy_history", commit_parent(tmp_path, [table(0, 30)], "monday"))
    assert manifest.rejected == {}
    tuesday, manifest, _ = run(
        tmp_path, "toy_history", commit_parent(tmp_path, [table(20, 30)], "tuesday"), history=(monday,)
    )
    assert manifest.rejected == {"toy_history:seen": 10}
    _, manifest, _ = run(
        tmp_path, "toy_history", commit_parent(tmp_path, [table(0, 60)], "wednesday"), history=(monday, tuesday)
    )
    assert manifest.rejected == {"toy_history:seen": 50}
    assert rows(tmp_path, manifest).column("id").to_pylist() == list(range(50, 60))


@pytest.mark.parametrize("stage", ["toy_map", "toy_group", "toy_broadcast", "toy_history"])
def test_a_stage_over_no_shards_is_whole(tmp_path: Path, stage: str) -> None:
    _, manifest, _ = run(tmp_path, stage, commit_parent(tmp_path, [table(0, 0)]))
    assert (manifest.rows_in, manifest.rows, manifest.rejected) == (0, 0, {})
    assert manifest.schema


def test_map_refuses_inputs_of_different_lengths(tmp_path: Path, parent: str) -> None:
    planned = plan(RefineRequest(str(tmp_path), "toy_map", {}, parent))
    with pytest.raises(ContractError, match=r"\[1, 3\]"):
        LocalEngine(Tracker(planned.io)).map(learn, planned.parent.shards, planned.parent.shards[:1])
