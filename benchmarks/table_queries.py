"""Times a query by language and score over files of Parquet, and over the same files as tables: see `tables.py`."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
from peers import run
from pyiceberg.catalog import load_catalog
from refinery_exports.tables.catalog import Table
from table_catalogs import KINDS, Made, catalog_in, write_file

from tests.table_catalogs import settings_of

pc: Any = pyarrow.compute

LANGUAGES, FILES, ROWS = ("cs", "de", "en", "es", "fr", "it", "nl", "pl"), 25, 5_000
"""Languages of the table, the files of each, and the rows of a file."""

DAYS = 5
"""Commits that the files come by."""

LANGUAGE, LOW, HIGH = "de", 0.5, 0.62
"""What is looked for: scores of four of 25 files of a language."""

NAMESPACE, NAME = "asked", "kept"

WORDS = ["ferry", "harbor", "fog", "winter", "letter", "bridge", "garden", "stone"]


def queries(folder: Path, runs: int, readers: str) -> dict[str, Any]:
    """Return the facts of `queries`."""
    made = write_rows(folder / "root")
    for kind in KINDS:
        _register(kind, made, folder / kind)
    asked = _by_duckdb(folder, made, runs, readers) if readers else _by_pyiceberg(folder, made, runs)
    assert len(set(asked["digests"].values())) == 1, "the same query found other rows"
    seconds = {name: median(each) for name, each in asked["seconds"].items()}
    plain = seconds.pop("plain")
    ratios = {name: round(each / plain, 2) for name, each in seconds.items()}
    shown = {name: round(each, 4) for name, each in {"plain": plain, **seconds}.items()}
    return {"files": len(made.files), "rows": asked["rows"], "seconds": shown, "ratio": ratios}


def write_rows(root: Path) -> Made:
    """Write files parted by language, each with scores of a range of its own."""
    random, files = np.random.default_rng(56), []
    for language in LANGUAGES:
        for number in range(FILES):
            rows = _rows(language, number, random)
            files.append(write_file(root, f"language={language}/part-{number:05}.parquet", rows))
    return Made(root, Table(NAMESPACE, NAME, rows.schema, ("language",), ("id",)), tuple(files))


def _rows(language: str, number: int, random: np.random.Generator) -> pa.Table:
    words = np.array(WORDS)[random.integers(0, len(WORDS), (ROWS, 40))]
    ids = np.sort(random.integers(0, 1 << 62, ROWS))
    return pa.table(
        {
            "id": pa.array([f"{each:032x}" for each in ids]),
            "url": pa.array([f"https://{language}.example/{number}/{row}" for row in range(ROWS)]),
            "language": pa.array([language] * ROWS),
            "score": pa.array((number + random.random(ROWS)) / FILES),
            "chars": pa.array(random.integers(100, 10_000, ROWS), pa.int32()),
            "text": pa.array([" ".join(row) for row in words]),
        }
    )


def _register(kind: str, made: Made, folder: Path) -> None:
    with catalog_in(kind, folder) as catalog:
        for day in range(DAYS):
            catalog.commit(made.table, catalog.state(NAMESPACE, NAME), made.files[day::DAYS], (), {})


def _by_duckdb(folder: Path, made: Made, runs: int, readers: str) -> dict[str, Any]:
    relations = {
        "plain": f"read_parquet('{made.folder}/**/*.parquet')",
        "iceberg": f"iceberg_scan('{_metadata(folder / 'iceberg')}')",
        "ducklake": f"lake.{NAMESPACE}.{NAME}",
    }
    text = (
        f"SELECT id, score, chars, text FROM {{}} WHERE language = '{LANGUAGE}' "  # noqa: S608 -- names are ours
        f"AND score BETWEEN {LOW} AND {HIGH} ORDER BY id"
    )
    lake = str(folder / "ducklake" / "lake.sqlite")
    said = {"times": runs, "relations": relations, "query": text, "lake": lake}
    answered: dict[str, Any] = run("peer_tables.py", "query", json.dumps(said), python=readers)
    return answered


def _table(folder: Path) -> Any:  # noqa: ANN401 -- PyIceberg's table
    _, variables = settings_of("iceberg", folder)
    uri = variables["PYICEBERG_CATALOG__LAKE__URI"]
    return load_catalog("lake", type="sql", uri=uri).load_table((NAMESPACE, NAME))


def _metadata(folder: Path) -> str:
    return str(_table(folder).metadata_location).removeprefix("file://")


def _by_pyiceberg(folder: Path, made: Made, runs: int) -> dict[str, Any]:
    """Return what PyIceberg takes, against a data set of pyarrow whose files are parted as Hive does."""
    wanted = f"language = '{LANGUAGE}' AND score >= {LOW} AND score <= {HIGH}"
    score = pyarrow.dataset.field("score")
    same = (pyarrow.dataset.field("language") == LANGUAGE) & (score >= LOW) & (score <= HIGH)
    columns = ("id", "score", "chars", "text")

    def plain() -> pa.Table:
        return pyarrow.dataset.dataset(made.folder, partitioning="hive").to_table(list(columns), filter=same)

    def registered() -> pa.Table:
        return _table(folder / "iceberg").scan(wanted, selected_fields=columns).to_arrow()

    return _timed({"plain": plain, "iceberg": registered}, runs)


def _timed(asked: Mapping[str, Callable[[], pa.Table]], runs: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    digests: dict[str, str] = {}
    for turn in range(runs + 1):
        for name, ask in asked.items():
            started = time.perf_counter()
            rows = ask()
            if turn:
                seconds[name].append(time.perf_counter() - started)
            digests[name] = _digest(rows)
    return {"seconds": seconds, "digests": digests, "rows": rows.num_rows}


def _digest(rows: pa.Table) -> str:
    return str(hash(repr(rows.sort_by("id").to_pylist())))
