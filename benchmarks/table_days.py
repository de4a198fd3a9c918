"""Counts what a catalog is asked for by registering one day more, behind many: see `tables.py`.

Days are simulated: a version of each has files of a table, and is registered as a task of a run does, by
`register_version` through a connection of its own. What is counted is work and not time: files of metadata that
PyIceberg opens, writes and deletes, and for DuckLake the instructions of SQLite's machine, of which each row that is
looked at takes some. So two machines print the same.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import counted_io
import pyarrow as pa
from pyiceberg.manifest import clear_manifest_cache
from refinery_exports.tables.catalog import DataFile
from refinery_exports.tables.registering import register_version
from refinery_exports.tables.table_files import LISTED, place_of
from table_catalogs import catalog_in, with_values, write_file

from pipeline_tasks.engines.each import HERE
from pipeline_tasks.publish.exported import FILES
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.sealed import seal, sha256

RECIPE, TABLE, LANGUAGES = "days", "kept", ("de", "en", "fr")
"""The recipe that publishes each day, the table of it, and the languages, each of which has a file of a day."""

WINDOW = 9
"""Days behind so many of which the median is taken: a day on which Iceberg merges manifests is shown by itself."""

STEPS = 50
"""Instructions of SQLite's machine between two counts."""

ROWS = pa.table(
    {
        "id": pa.array(["0" * 32]),
        "snapshot": pa.array([""]),
        "language": pa.array([""]),
        "url": pa.array(["https://example.org/"]),
        "score": pa.array([0.5]),
        "text": pa.array(["A ferry leaves the harbor."]),
    }
)


def days_of(kind: str, folder: Path, behind: Sequence[int]) -> dict[str, Any]:
    """Return what one day more asks for behind so many: the median of some days, and of all days the most of each."""
    root = folder / "root"
    each = [_day(kind, root, folder / kind, number) for number in range(max(behind) + WINDOW)]
    names = sorted({name for counts in each for name in counts})
    after = {
        str(days): {name: median(counts[name] for counts in each[days : days + WINDOW]) for name in names}
        for days in behind
    }
    return {**after, "most": {name: max(counts[name] for counts in each[behind[0] :]) for name in names}}


def _day(kind: str, root: Path, folder: Path, number: int) -> Counter[str]:
    version = publish_day(root, number)
    counted_io.COUNTS.clear()
    clear_manifest_cache()  # of a process that a task is, nothing is known
    with counted_steps() as counts, catalog_in(kind, folder, {"PY_IO_IMPL": counted_io.NAME}) as catalog:
        [done] = register_version(str(root), version, catalog, HERE)
    assert (done.commits, done.added, done.files) == (1, len(LANGUAGES), len(LANGUAGES))
    return counts if kind == "ducklake" else Counter(counted_io.COUNTS)


def publish_day(root: Path, number: int) -> Version:
    """Append a version of a day to the log, with the files of its table, as if it had been refined."""
    day, prefix = str(date(2026, 1, 1) + timedelta(number)), f"publish/{sha256(str(number).encode())[:24]}"
    about = {"recipe": RECIPE, "snapshot": day, "landing": f"landing/{number}", "verdicts": {}, "prefix": prefix}
    sizes = {"documents": len(LANGUAGES), "tokens": 0, "sequences": 0}
    manifests = {"extract": f"extract/{number}@sha256:{sha256(day.encode())}"}
    version = version_log.append(str(root), {**about, **sizes, "manifests": manifests, "stages": ("extract",)})
    place = place_of(str(root), version, ()).removeprefix(f"{root}/")
    files = []
    for language in LANGUAGES:
        identifier = sha256(f"{day} {language}".encode())[:32]
        rows = with_values(ROWS, id=pa.array([identifier]), snapshot=pa.array([day]), language=pa.array([language]))
        files.append(write_file(root, f"{place}/{TABLE}/language={language}/part-00000.parquet", rows))
    said = {"schema": ROWS.schema.serialize().to_pybytes().hex(), "parted_by": ["snapshot", "language"]}
    body = json.dumps({TABLE: {**said, "sorted_by": ["id"]}}).encode()
    (root / place / LISTED).write_bytes(body)
    listed = [{"path": LISTED, "bytes": len(body), "sha256": sha256(body)}, *(_listed(file, place) for file in files)]
    (root / place / FILES).write_bytes(seal({"files": listed, "hidden": 0}))
    return version


def _listed(file: DataFile, place: str) -> Mapping[str, Any]:
    return {**asdict(file), "path": file.path.removeprefix(f"{place}/"), "sha256": file.digest}


@contextmanager
def counted_steps() -> Iterator[Counter[str]]:
    """Count statements of SQLite, and the instructions that its machine takes for them, of new connections."""
    counts, connect = Counter(steps=0, statements=0), sqlite3.connect

    def step() -> None:
        counts["steps"] += STEPS

    def statement(_: str) -> None:
        counts["statements"] += 1

    def connected(*given: Any, **named: Any) -> sqlite3.Connection:  # noqa: ANN401 -- as `sqlite3.connect`
        connection: sqlite3.Connection = connect(*given, **named)
        connection.set_progress_handler(step, STEPS)
        connection.set_trace_callback(statement)
        return connection

    with patch.object(sqlite3, "connect", connected):
        yield counts
