"""Measures tables of catalogs: what registering copies, takes and reads, and what queries over tables take.

    PYTHONPATH=. python benchmarks/tables.py [--root ROOT] [--readers PYTHON] [--files 1000 4000] [--days 10 100 400]
                                             [--runs 5] [--only copied|registering|days|queries ...] [--json]

Catalogs are an Iceberg catalog and a DuckLake in files of SQLite. PYTHON is one with DuckDB 1.5.5 and its extensions
(`peer_tables.py`); without it, what DuckDB reads or adds is not measured, and PyIceberg is read against pyarrow. A copy
of ROOT is registered; without it the demo's crawl is refined first, by `web`. The last line with --json is one object:

- `copied`: `bytes` that a registration puts below the root once the tables' files are there, or into the catalog as
  Parquet, by catalog; `catalog_kb` of the catalog; `share` of the tables' files, which are written once, in the bytes
  of the root without them; by table the `files`, their `kb`, and of the `shards` that have its rows those that are
  `whole`, which means that they have all columns: no others could be registered without being written.
- `registering`: by number of files of the columns of `kept`, and catalog: the least `seconds` that one commit takes,
  from state to state, and of a processor (`cpu`, which others on the machine change less); those of the peer,
  `add_files` of PyIceberg or `ducklake_add_data_files` of DuckDB.
- `days`: by catalog, what one day more asks for behind so many: see `table_days.py`.
- `queries`: seconds (medians of alternated runs) of a query by language and score over plain Parquet and over the same
  files as a table, `ratio`, and how many `rows` both found; they have to be the same.
"""

import argparse
import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from refinery_exports.exporting import processes
from refinery_exports.tables.layout import layout_of
from refinery_exports.tables.registering import counting_versions, register, registered_recipes
from refinery_exports.tables.table_files import Held, tables_of
from stored import bytes_under, demo_snapshots, refine
from table_catalogs import KINDS, Spent, add_files_spends, catalog_in, commit_spends, duckdb_spends, write_files
from table_days import days_of
from table_queries import queries

from pipeline_tasks.engines.each import On
from pipeline_tasks.store.taken_down import taken_down

PARTS = ("copied", "registering", "days", "queries")

PARQUET = b"PAR1"
"""The first bytes of a file of Parquet."""

Spends = Callable[[Path], Spent]

TURNS = 3
"""Times that each registers the same files; the least counts, as others work on the machine."""


def root_of(options: argparse.Namespace, folder: Path) -> str:
    """Return a root of published snapshots that may be changed."""
    root = folder / "root"
    if options.root:
        shutil.copytree(options.root, root)
        return str(root)
    for snapshot in demo_snapshots(folder / "crawl"):
        refine(snapshot, str(root), "web")
    return str(root)


def write_tables(root: str) -> list[Held]:
    """Write the files of all tables of a root; return them by version."""
    on = On(workers=processes())
    named = [version for recipe in registered_recipes(root) for version in counting_versions(root, recipe)]
    return [tables_of(root, version, on) for version in named]


# --- What is copied ---------------------------------------------------------------------------------------------------


def copied(root: str, folder: Path) -> dict[str, Any]:
    """Return the facts of `copied`, of a root whose tables are not written yet."""
    without = bytes_under(Path(root))
    held = write_tables(root)
    by_table = tables_in(root, held)
    shown = {kind: _registered(kind, root, folder / kind) for kind in KINDS}
    return {
        "bytes": {kind: data for kind, (data, _) in shown.items()},
        "catalog_kb": {kind: round(size / 1000, 1) for kind, (_, size) in shown.items()},
        "share": round(sum(counts["kb"] for counts in by_table.values()) * 1000 / without, 3),
        "root_kb": round(without / 1000, 1),
        "tables": by_table,
    }


def tables_in(root: str, held: Sequence[Held]) -> dict[str, dict[str, float]]:
    """Return by table its files, their KB, and the shards that have its rows, of all versions."""
    counts: dict[str, dict[str, float]] = defaultdict(lambda: {"files": 0, "kb": 0.0, "shards": 0, "whole": 0})
    for each in held:
        for name, (_, files) in each.tables.items():
            counts[name]["files"] += len(files)
            counts[name]["kb"] = round(counts[name]["kb"] + sum(file.bytes for file in files) / 1000, 1)
        for piece in layout_of(root, each.version, taken_down(root)).pieces:
            counts[piece.table]["shards"] += len(piece.shards)
            counts[piece.table]["whole"] += sum(shard.below == 0 for shard in piece.shards)
    return dict(sorted(counts.items()))


def _registered(kind: str, root: str, folder: Path) -> tuple[int, int]:
    """Register a root in a new catalog; return the bytes of data that this wrote, and those of the catalog."""
    before = stamps(Path(root))
    with catalog_in(kind, folder) as catalog:
        for recipe in registered_recipes(root):
            register(root, recipe, catalog, On(workers=processes()))
    changed = [path for path, stamp in stamps(Path(root)).items() if before.get(path) != stamp]
    data = [path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[: len(PARQUET)] == PARQUET]
    return sum(path.stat().st_size for path in (*changed, *data)), bytes_under(folder)


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return bytes and time of each file below a folder."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in found}


# --- Registering many files -------------------------------------------------------------------------------------------


def registering(root: str, folder: Path, counts: Sequence[int], readers: str) -> dict[str, Any]:
    """Return the facts of `registering`, with a row of `kept` in each file."""
    table, files = next(held.tables["kept"] for held in write_tables(root) if "kept" in held.tables)
    rows = pq.read_table(Path(root, files[0].path)).slice(0, 1)
    facts: dict[str, Any] = {"columns": len(table.schema)}
    for count in counts:
        made = write_files(folder / f"{count}-files", table, rows, count)
        facts["leaves"] = pq.read_metadata(made.folder / made.files[0].path).num_columns
        runs: dict[tuple[str, str], Spends] = {(kind, ""): partial(commit_spends, kind, made) for kind in KINDS}
        runs["iceberg", "peer_"] = partial(add_files_spends, made)
        if readers:
            runs["ducklake", "peer_"] = partial(duckdb_spends, readers, made)
        facts[str(count)] = _least(runs, count, folder)
        shutil.rmtree(made.folder)
    return facts


def _least(runs: Mapping[tuple[str, str], "Spends"], count: int, folder: Path) -> dict[str, dict[str, float]]:
    """Return by catalog the least that each of alternated runs spends, and what 1,000 files take of a processor."""
    spent: dict[tuple[str, str], list[Spent]] = defaultdict(list)
    for turn in range(TURNS):
        for (kind, who), run in runs.items():
            place = folder / f"{kind}-{who}{turn}"
            spent[kind, who].append(run(place))
            shutil.rmtree(place)
    facts: dict[str, dict[str, float]] = defaultdict(dict)
    for (kind, who), each in spent.items():
        for name, least in zip(Spent._fields, map(min, zip(*each, strict=True)), strict=True):
            facts[kind][who + name] = round(least, 2)
        facts[kind].setdefault("cpu_per_1000", round(facts[kind]["cpu"] * 1000 / count, 2))
    return dict(facts)


# --- What is printed --------------------------------------------------------------------------------------------------


def lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the facts for a person, one a line."""
    for part, said in facts.items():
        yield part
        for name, value in said.items():
            if isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values()):
                yield from (f"  {name} {inner}: {_shown(each)}" for inner, each in value.items())
            else:
                yield f"  {name}: {_shown(value)}"


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def main() -> None:
    """Measure, print a line a figure, and last one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="", help="a root of published snapshots (default: the demo's, made now)")
    parser.add_argument("--readers", default="", help="a Python with DuckDB and its extensions")
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--days", type=int, nargs="+", default=[10, 100, 400])
    parser.add_argument("--runs", type=int, default=5, help="runs of each query")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="refinery-tables-") as name:
        folder = Path(name)
        if {"copied", "registering"} & set(options.only):
            root = root_of(options, folder)
        if "copied" in options.only:
            facts["copied"] = copied(root, folder / "copied")
        if "registering" in options.only:
            facts["registering"] = registering(root, folder / "many", options.files, options.readers)
        if "days" in options.only:
            facts["days"] = {kind: days_of(kind, folder / "days" / kind, options.days) for kind in KINDS}
        if "queries" in options.only:
            facts["queries"] = queries(folder / "queries", options.runs, options.readers)
    print(*lines(facts), sep="\n")
    if options.json:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
