"""Memory follows the largest document of a shard, and not the shard."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LARGEST = 24
"""MB of the largest document."""

TIMES = 12
"""Bytes that a stage may hold per byte of the largest document, in addition to `BATCH`."""

BATCH = 600
"""MB that a batch of ordinary documents takes where it takes most: some 32 MB of text in `filter_quality`."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="resident sizes are read from Linux's /proc"),
]


@pytest.mark.parametrize(("said", "used"), [("", "system"), ("mimalloc", "mimalloc")])
def test_arrow_allocates_by_the_systems_allocator_unless_told_otherwise(said: str, used: str) -> None:
    """Its own keeps what was freed: 25 to 60 MB of every worker."""
    variable = "ARROW_DEFAULT_MEMORY_POOL"
    environ = {name: value for name, value in os.environ.items() if name != variable} | (
        {variable: said} if said else {}
    )
    code = "import pipeline_tasks, pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, text=True, env=environ, cwd=ROOT).strip() == used


def peaks(kind: str, size: int) -> dict[str, dict[str, Any]]:
    """Return what each stage kept and rejected, and its memory."""
    options = ["--size", str(size), "--largest", str(LARGEST), "--kind", kind, "--json"]
    command = [sys.executable, str(ROOT / "benchmarks" / "memory.py"), *options]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environ, cwd=ROOT)
    return {row["stage"]: row for row in json.loads(done.stdout.splitlines()[-1])["stages"][kind]}


def test_a_shard_of_any_size_takes_the_memory_of_its_largest_document() -> None:
    stages = peaks("parquet", 72)
    assert stages.keys() >= {"ingest", "extract", "filter_quality"}
    taken = {stage: (peak["peak"] - peak["before"]) / 1e6 for stage, peak in stages.items()}
    assert {stage: megabytes for stage, megabytes in taken.items() if megabytes >= BATCH + TIMES * LARGEST} == {}
    assert {stage for stage, peak in stages.items() if peak["rejected"]} <= {"filter_quality"}
