"""What a catalog does: it says which files a table has, and changes them at once, or not at all.

A catalog keeps no rows: a table's files are Parquet in a root, and a catalog gets their addresses. All files of a table
are Refinery's. A catalog of another format is a part of the seam `refinery.catalogs`: a function that opens one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

SNAPSHOT, VERSION, MANIFEST, HEAD = "refinery.snapshot", "refinery.version", "refinery.manifest", "refinery.head"
"""Properties of a commit: snapshot and number of a version, its last manifest, the digest of its entry in the log."""

TAKEDOWNS = "refinery.takedowns"
"""Property of a commit: the digest of the last takedown that no row of the table is of then; a first has none."""

PARTED = "snapshot"
"""The column of the snapshot that rows are of."""

ROOT, RECIPE = "refinery.root", "refinery.recipe"
"""Properties of a table: the root that it is of, and the recipe; they are in each commit, too."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, those by whose values files are parted, and those by which the rows of a file are sorted.

    Columns have types that Iceberg and DuckLake know; all may be null.
    Each file of a table has one value (or null) of each column of `parted_by`.
    """

    namespace: str
    name: str
    schema: pa.Schema
    parted_by: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table: its address as others open it (`s3://...`, `file:///...`), its bytes, and its SHA-256.

    No letter of an address is escaped: readers of Iceberg and DuckDB take the path as it is.
    What else a catalog keeps of it (rows, ranges of columns, values of a partition) is in the footer of the file, which
    `path` of `root` reads.
    """

    root: str
    path: str
    address: str
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class State:
    """What a catalog has of a table now: addresses of files with their rows, properties, and those of its last commit.

    `snapshots` are how many states readers can still ask for, this one included; `past` are the properties of the
    commits that made the others, in any order, also of a table of that name that was dropped. Whoever asked for the
    files of one snapshot may be told of neither. `token` is what `commit` compares.
    """

    files: Mapping[str, int]
    properties: Mapping[str, str] = field(default_factory=dict)
    last: Mapping[str, str] = field(default_factory=dict)
    snapshots: int = 0
    past: tuple[Mapping[str, str], ...] = ()
    token: str = ""


class Changed(Exception):
    """Another writer has changed a table since its state was read; nothing was changed now."""


class Catalog(Protocol):
    """An open catalog. What cannot be reached raises Transient, and what may not be done RecipeError with a way out."""

    def state(self, namespace: str, name: str, snapshot: str = "") -> State | None:
        """Return the state of a table, None if there is none; ContractError if what the catalog has cannot be read.

        Of a table that is parted by `PARTED`, a `snapshot` asks for its own files alone: what others have is not read.
        """

    def names(self, namespace: str) -> list[str]:
        """Return the names of the tables of a namespace, in order."""

    def commit(
        self,
        table: Table,
        before: State | None,
        add: tuple[DataFile, ...],
        remove: tuple[str, ...],
        facts: Mapping[str, str],
    ) -> None:
        """Make one new snapshot of a table: with these files, and without those at these addresses.

        Before None the table is made, with `ROOT` and `RECIPE` of the facts as its properties. Columns that the table
        lacks come to it; RecipeError for one that has got another type, which values do not fit. `Changed` if the
        table is not as `before` says any more. `facts` are the properties of the snapshot. A kill leaves the table as
        it was, or changed.
        """

    def expire(self, namespace: str, name: str) -> int:
        """Forget every snapshot of a table but the current one; return how many. No file of a root is removed."""

    def drop(self, namespace: str, name: str) -> None:
        """Remove a table from the catalog, and no file of a root; one that is not there is none."""

    def close(self) -> None:
        """End connections."""


Opens = Callable[[str], Catalog]
"""Opens the catalog of an address, without its scheme and colon; RecipeError for one that cannot be."""
