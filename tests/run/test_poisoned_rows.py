"""A record on which a kernel raises is quarantined with its error, at every stage; it costs no other record anything."""

import functools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import BudgetExceeded, KernelFailed, MachineFailed, NoMemory
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import ErrorBudget
from pipeline_tasks.run.runner import refine
from pipeline_tasks.stage import BY_ROW, Batches, Kernel, Shards
from pipeline_tasks.stages import NAMES
from pipeline_tasks.store.reading import read_shards
from tests.every_stage import WORDS, Step, chain, land, params

pc: Any = pyarrow.compute

POISON = "poisoned"

MESSAGE = "cannot parse `out of memory, said the page`"
"""The text of an error may be that of a record: nothing is read into it, and no evidence has it."""

RAISED = f"LookupError in {__name__}._checked"

SENTENCES = (
    "The {0} beside the {1} was quiet in the morning. Nobody had seen the {1} of page {2} before.\nThen evening came."
)


def texts() -> list[str]:
    pairs = [(word, other) for word in WORDS[:4] for other in WORDS[2:5]]
    return [SENTENCES.format(*pair, at) for at, pair in enumerate(pairs)] + [SENTENCES.format(POISON, "lake", "last")]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    """Every stage, run over sound and unsound pages with kernels that read them all."""
    folder = tmp_path_factory.mktemp("stages")
    landing = folder / "2026-11-20"
    root = folder / "root"
    parent = land(root, landing, texts())
    return {step.stage: step for step in chain(root, parent, str(landing), params(folder))}


@dataclass(frozen=True, slots=True)
class Fault:
    """What a kernel raises for rows with a word in a text, one of some ids, or a vector; for all, if the word is empty."""

    raised: type[BaseException] = LookupError
    ids: frozenset[str] = frozenset()
    vectors: frozenset[bytes] = frozenset()
    word: str = POISON


class PoisonedEngine(LocalEngine):
    """The local engine, whose kernels raise on some rows of their first input."""

    fault = Fault()

    def map(self, kernel: Kernel, *inputs: Shards, **how: Any) -> Shards:
        return super().map(poisoned(kernel, self.fault), *inputs, **how)

    def group(self, kernel: Kernel, rows: Shards, **how: Any) -> Shards:
        return super().group(poisoned(kernel, self.fault), rows, **how)


def poisoned(kernel: Kernel, fault: Fault) -> Kernel:
    """Return a kernel of the same name that raises where it gets a row that is poisoned."""
    if isinstance(kernel, functools.partial):
        return functools.partial(poisoned(kernel.func, fault), *kernel.args, **kernel.keywords)
    if kernel.__name__ == "quarantine_records":
        return kernel

    @functools.wraps(kernel)
    def raising(*streams: Any, **how: Any) -> Batches:
        at = next(at for at, stream in enumerate(streams) if isinstance(stream, Iterator))
        return kernel(*streams[:at], _checked(streams[at], fault), *streams[at + 1 :], **how)

    return raising


def _checked(batches: Batches, fault: Fault) -> Batches:
    for batch in batches:
        if any(_is_poisoned(column, fault) for column in batch.columns if len(column)):
            message = f"{MESSAGE} of {object()!r}"
            raise fault.raised(message)
        yield batch


def _is_poisoned(column: Any, fault: Fault) -> bool:
    if not fault.word:
        return True
    if pa.types.is_string(column.type):
        return _has(column, fault.ids)
    if pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type):
        whole = column.cast(pa.large_binary())
        return bool(pc.any(pc.match_substring(whole, fault.word)).as_py()) or _has(whole, fault.vectors)
    return False


def _has(column: Any, values: frozenset[Any]) -> bool:
    return bool(values) and bool(pc.any(pc.is_in(column, value_set=pa.array(sorted(values), column.type))).as_py())


def rerun(step: Step, folder: Path, fault: Fault, **how: Any) -> Manifest:
    """Run a stage again where it has not run yet, with kernels that raise on poisoned rows."""
    root = Path(step.request.root)
    shutil.copytree(root, folder / "root", ignore=lambda at, names: {step.stage} & {*names} if Path(at) == root else ())
    engine = type("Engine", (PoisonedEngine,), {"fault": fault})
    return refine(replace(step.request, root=str(folder / "root"), **how), engine).manifest


def fault_of(steps: dict[str, Step]) -> Fault:
    """Return what marks the poisoned document for a kernel that gets no text: its ids and addresses, and its vector."""
    rows = [
        row
        for step in (steps["extract"], steps["embed"])
        for batch in read_shards(step.request.root, step.done.manifest.shards)
        for row in batch.to_pylist()
        if POISON in (row["text"] or "")
    ]
    vectors = frozenset(row["embedding"] for row in rows if "embedding" in row)
    return Fault(ids=frozenset(row[name] for row in rows for name in ("id", "url")), vectors=vectors)


@pytest.mark.parametrize("stage", NAMES)
def test_a_record_on_which_a_kernel_raises_is_quarantined(stage: str, steps: dict[str, Step], tmp_path: Path) -> None:
    """Of tokens and copies nothing may be lost: there the record is named, and the run ends."""
    step, fault = steps[stage], fault_of(steps)
    if stage_card(stage).conserves not in BY_ROW:
        with pytest.raises(KernelFailed, match=RAISED):
            rerun(step, tmp_path, fault)
        return
    manifest = rerun(step, tmp_path / "whole", fault)
    poison = manifest.quarantined.pop(f"error:{stage}")
    assert 1 <= poison <= 2
    assert manifest.rows + sum(manifest.rejected.values()) + poison == manifest.rows_due
    for batch in read_shards(str(tmp_path / "whole/root"), manifest.quarantine, ("file", "offset", "evidence")):
        assert set(batch["evidence"].to_pylist()) == {json.dumps({"error": RAISED}, separators=(",", ":"))}
    smaller = rerun(step, tmp_path / "rows", fault, batch_rows=2)
    assert [shard.digest for shard in smaller.shards] == [shard.digest for shard in manifest.shards]
    assert [shard.digest for shard in smaller.quarantine] == [shard.digest for shard in manifest.quarantine]


def test_a_kernel_that_raises_on_every_record_is_at_fault_itself(steps: dict[str, Step], tmp_path: Path) -> None:
    with pytest.raises(KernelFailed, match="raises on each of its 26 records"):
        rerun(steps["filter_url"], tmp_path, Fault(word=""))


@pytest.mark.parametrize("raised", [MemoryError, FileNotFoundError, ImportError])
def test_what_is_no_fault_of_a_row_is_booked_to_none(
    raised: type[Exception], steps: dict[str, Step], tmp_path: Path
) -> None:
    with pytest.raises((NoMemory, MachineFailed, ImportError)):
        rerun(steps["extract"], tmp_path, Fault(raised))


def test_records_above_the_error_budget_fail_the_partition(steps: dict[str, Step], tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded, match="error:filter_url"):
        rerun(steps["filter_url"], tmp_path, fault_of(steps), error_budget=ErrorBudget(rows=0, share=0.001))


def test_a_panic_of_a_library_is_a_rows_fault(steps: dict[str, Step], tmp_path: Path) -> None:
    """It is no `Exception`, and ended the process of the task."""
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    fault = replace(fault_of(steps), raised=panic)
    assert rerun(steps["filter_url"], tmp_path, fault).quarantined.keys() == {"error:filter_url"}
