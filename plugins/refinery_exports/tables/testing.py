"""The suite of catalogs: what was committed is read by others, whole or not at all, and no file of a root changes."""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import RecipeError
from refinery_exports.tables.catalog import MANIFEST, RECIPE, ROOT, SNAPSHOT, Catalog, Changed, DataFile, State, Table

NAMESPACE, NAME = "conformance", "kept"

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("snapshot", pa.string()),
        ("language", pa.string()),
        ("text", pa.string()),
        ("chars", pa.int32()),
        ("score", pa.float32()),
        ("adult", pa.bool_()),
        ("hash", pa.decimal128(20, 0)),
        ("signals", pa.map_(pa.string(), pa.float64())),
        ("page", pa.struct([("number", pa.int32()), ("words", pa.list_(pa.field("element", pa.string())))])),
        ("blocks", pa.list_(pa.field("element", pa.struct([("start", pa.int64()), ("kept", pa.bool_())])))),
    ]
)
"""Columns as tables of Refinery have them: texts, numbers, and values that are nested two deep."""

Read = Callable[[str, str], pa.Table]
"""Reads the table of a namespace and name, without Refinery: all rows, in any order."""

Rows = list[dict[str, Any]]

ODD = " é %20+~"
"""Letters of the folder of a root that an address has as they are."""


def check_catalog(opens: Callable[[], Catalog], read: Read) -> None:
    """Raise AssertionError unless catalogs that `opens` opens keep a table as their protocol says.

    All that it opens are one place, in which there is no namespace `conformance` yet; in the end it has no table.
    """
    for check in (_check_commits, _check_columns, _check_writers, _check_expiry):
        with tempfile.TemporaryDirectory(suffix=ODD) as folder, closing(opens()) as catalog:
            case = Case(Path(folder), catalog, opens, read)
            check(case)
            before = case.bytes()
            catalog.drop(NAMESPACE, NAME)
            catalog.drop(NAMESPACE, NAME)
            assert catalog.state(NAMESPACE, NAME) is None, "a table that was dropped has a state"
            assert catalog.names(NAMESPACE) == [], "a table that was dropped has a name"
            assert case.bytes() == before, "a table was dropped, and with it a file of the root"


@dataclass(frozen=True, slots=True)
class Case:
    """A root in a folder, and the catalog that its files are registered in."""

    root: Path
    catalog: Catalog
    opens: Callable[[], Catalog]
    read: Read

    def file(self, name: str, rows: Rows, schema: pa.Schema = SCHEMA) -> DataFile:
        """Write a file of rows into the root."""
        path = self.root / name
        pq.write_table(pa.Table.from_pylist(rows, schema), path, compression="zstd")
        body = path.read_bytes()
        return DataFile(str(self.root), name, f"file://{path}", len(body), sha256(body).hexdigest())

    def commit(
        self, add: Sequence[DataFile], remove: Sequence[DataFile] = (), schema: pa.Schema = SCHEMA, number: int = 1
    ) -> State:
        """Commit to the table as it is now; return what it is then."""
        before = self.state()
        removed = tuple(file.address for file in remove)
        self.catalog.commit(table(schema), before, tuple(add), removed, facts(self.root, number))
        after = self.state()
        assert after is not None, "a table that was committed has no state"
        left = set(before.files if before else ()).difference(removed).union(file.address for file in add)
        assert set(after.files) == left, f"the state has the files {set(after.files)}, not {left}"
        assert facts(self.root, number).items() <= after.last.items(), f"the last commit has {after.last}"
        assert after.snapshots == (before.snapshots if before else 0) + 1, (
            f"one commit made {after.snapshots} snapshots"
        )
        past = Counter(each[SNAPSHOT] for each in (*before.past, before.last)) if before else Counter()
        assert not past - Counter(each[SNAPSHOT] for each in after.past), f"the commits before are {after.past}"
        assert before is None or after.token != before.token, "a commit left the token as it was"
        return after

    def state(self) -> State | None:
        """Return the state as another connection has it."""
        with closing(self.opens()) as another:
            state = another.state(NAMESPACE, NAME)
        assert self.catalog.state(NAMESPACE, NAME) == state, "two connections have other states of a table"
        return state

    def require(self, expected: Rows) -> None:
        """Raise AssertionError unless readers find these rows, by id; a column that a row lacks is null."""
        found = sorted(self.read(NAMESPACE, NAME).to_pylist(), key=lambda row: str(row["id"]))
        names = dict.fromkeys(name for row in (*expected, *found) for name in row)
        rows = [{name: row.get(name) for name in names} for row in sorted(expected, key=lambda row: str(row["id"]))]
        assert len(found) == len(rows), f"readers find {len(found)} rows, not {len(rows)}"
        for one, other in zip(found, rows, strict=True):
            differ = {name: (one[name], other[name]) for name in names if one[name] != other[name]}
            assert not differ, f"readers find other values in the row {other['id']} (found, expected): {differ}"

    def bytes(self) -> Mapping[str, bytes]:
        """Return what the files of the root are."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


def table(schema: pa.Schema = SCHEMA) -> Table:
    """Return the table of the suite, with these columns."""
    return Table(NAMESPACE, NAME, schema, parted_by=("snapshot", "language"), sorted_by=("id",))


def facts(root: Path, number: int) -> Mapping[str, str]:
    """Return the properties of a commit."""
    return {ROOT: str(root), RECIPE: "web", SNAPSHOT: f"2026-11-{number:02d}", MANIFEST: f"publish/{number}"}


def rows(snapshot: str, language: str | None, start: int, count: int = 3) -> Rows:
    """Return rows of one partition: values, nulls and empty lists of each kind.

    No list of structs is null: PyIceberg 0.12 reads one as empty (apache/iceberg-python#3833).
    """
    return [_row(snapshot, language, number) for number in range(start, start + count)]


def _row(snapshot: str, language: str | None, number: int) -> dict[str, Any]:
    full = number % 3
    return {
        "id": f"{number:032x}",
        "snapshot": snapshot,
        "language": language,
        "text": f"Ferry {number} leaves the harbor. " * (1 + 300 * full),
        "chars": number,
        "score": number / 4 if full else None,
        "adult": None if full == 1 else bool(full),
        "hash": Decimal(2**64 - 1 - number),
        "signals": [("words", number / 8), ("lines", None)] if full else [],
        "page": {"number": number, "words": ["fog", None]} if full else None,
        "blocks": [{"start": number << 40, "kept": True}, {"start": None, "kept": None}][:full],
    }


def _check_commits(case: Case) -> None:
    """A table is made, gets files, and gets and loses some in one snapshot."""
    assert case.catalog.state(NAMESPACE, NAME) is None, "a table that nobody made has a state"
    assert case.catalog.names(NAMESPACE) == [], "a namespace that nobody made has tables"
    first, second = rows("2026-11-01", "de", 0), rows("2026-11-01", None, 3, 4)
    files = [case.file("first.parquet", first), case.file("second.parquet", second)]
    state = case.commit(files)
    assert state.files == {files[0].address: 3, files[1].address: 4}, f"the state has other rows: {state.files}"
    assert {ROOT: str(case.root), RECIPE: "web"}.items() <= state.properties.items(), "the table lacks its properties"
    assert case.catalog.names(NAMESPACE) == [NAME], f"the names are {case.catalog.names(NAMESPACE)}"
    case.require(first + second)
    third = rows("2026-11-02", "en", 10)
    case.commit([case.file("third.parquet", third)], number=2)
    case.require(first + second + third)
    fourth = rows("2026-11-01", "de", 20, 1)
    _check_part(case, [files[0].address, files[1].address])
    case.commit([case.file("fourth.parquet", fourth)], [files[0]], number=1)
    case.require(second + third + fourth)
    case.commit([], [files[1]], number=4)
    case.require(third + fourth)
    case.commit([], number=5)
    case.require(third + fourth)
    _check_refused(case, [case.file("third.parquet", third)], ())
    _check_refused(case, [], (files[0].address,))


def _check_part(case: Case, addresses: Sequence[str]) -> None:
    """The state of the first snapshot has its files, and is that of the table in all else but the states before."""
    state = case.state()
    assert state is not None
    for snapshot, files in (("2026-11-01", addresses), ("2026-12-24", ())):
        part = case.catalog.state(NAMESPACE, NAME, snapshot)
        assert part is not None, f"the state of snapshot {snapshot} is that of no table"
        expected = replace(state, files={address: state.files[address] for address in files})
        same = replace(part, snapshots=state.snapshots, past=state.past)
        assert same == expected, f"the state of snapshot {snapshot} is {part}"


def _check_refused(case: Case, add: Sequence[DataFile], remove: tuple[str, ...], schema: pa.Schema = SCHEMA) -> None:
    before = case.state()
    try:
        case.catalog.commit(table(schema), before, tuple(add), remove, facts(case.root, 9))
    except RecipeError:
        assert case.state() == before, "a commit was refused and changed the table"
    else:
        what = [file.path for file in add] or remove
        message = f"a commit of {what} was made, and should have been refused"
        raise AssertionError(message)


def _check_columns(case: Case) -> None:
    """Columns come to a table, also nested ones, integers widen; one of another type is refused."""
    old = rows("2026-11-01", "de", 0)
    case.commit([case.file("old.parquet", old)])
    page = pa.struct([*SCHEMA.field("page").type, ("title", pa.string())])
    fields = {field.name: field.type for field in SCHEMA} | {"page": page, "chars": pa.int64(), "score": pa.float64()}
    schema = pa.schema(
        [*fields.items(), ("license", pa.string()), ("spans", pa.list_(pa.field("element", pa.int64())))]
    )
    new = [
        row | {"chars": 1 << 40, "license": "CC-BY-4.0", "spans": [1, 2], "page": {"number": 1, "title": "Fog"}}
        for row in rows("2026-11-02", "de", 10)
    ]
    shown = [row | {"page": {"number": 1, "words": None, "title": "Fog"}} for row in new]
    case.commit([case.file("new.parquet", new, schema)], schema=schema, number=2)
    old = [row | {"page": row["page"] and row["page"] | {"title": None}} for row in old]
    case.require(old + shown)
    narrow = rows("2026-11-03", "de", 20)
    case.commit([case.file("narrow.parquet", narrow)], number=3)
    narrow = [row | {"page": row["page"] and row["page"] | {"title": None}} for row in narrow]
    case.require(old + shown + narrow)
    texts = pa.schema([(field.name, pa.string() if field.name == "chars" else field.type) for field in SCHEMA])
    file = case.file("texts.parquet", [row | {"chars": "many"} for row in rows("2026-11-04", "de", 30)], texts)
    _check_refused(case, [file], (), texts)
    case.require(old + shown + narrow)


def _check_writers(case: Case) -> None:
    """Of two writers who have seen the same state, one wins, and the other is told."""
    mine, theirs = case.file("mine.parquet", rows("2026-11-01", "de", 0)), rows("2026-11-01", "en", 10)
    with closing(case.opens()) as other:
        other.commit(table(), None, (case.file("theirs.parquet", theirs),), (), facts(case.root, 1))
        _check_changed(case, None, (mine,), ())
        seen = case.state()
        assert seen is not None
        other.commit(table(), seen, (case.file("more.parquet", rows("2026-11-02", "en", 20)),), (), facts(case.root, 2))
        _check_changed(case, seen, (mine,), ())
        _check_changed(case, seen, (), tuple(seen.files))
        case.require(theirs + rows("2026-11-02", "en", 20))
        case.commit([mine], number=3)
        seen = case.state()
        other.drop(NAMESPACE, NAME)
        _check_changed(case, seen, (), ())
        other.commit(table(), None, (case.file("again.parquet", theirs),), (), facts(case.root, 4))
        _check_changed(case, seen, (), ())
        case.require(theirs)


def _check_changed(case: Case, seen: State | None, add: tuple[DataFile, ...], remove: tuple[str, ...]) -> None:
    before = case.state()
    try:
        case.catalog.commit(table(), seen, add, remove, facts(case.root, 9))
    except Changed:
        assert case.state() == before, "a writer who was told that the table has changed changed it"
    else:
        message = "a writer who has not seen the last commit was not told, and committed"
        raise AssertionError(message)


def _check_expiry(case: Case) -> None:
    """Old snapshots are forgotten; rows and files are as they were."""
    first = case.file("first.parquet", rows("2026-11-01", "de", 0))
    case.commit([first])
    case.commit([case.file("second.parquet", rows("2026-11-02", "de", 10))], number=2)
    state = case.commit([], [first], number=3)
    before = case.bytes()
    gone = case.catalog.expire(NAMESPACE, NAME)
    assert gone == state.snapshots - 1, f"{gone} of {state.snapshots} snapshots were forgotten"
    after = case.state()
    assert after is not None
    assert (after.snapshots, after.past) == (1, ()), f"{after.snapshots} snapshots are left, {after.past} before"
    assert (after.files, after.last) == (state.files, state.last), "forgetting snapshots changed the current one"
    assert case.bytes() == before, "forgetting snapshots removed or changed a file of the root"
    assert case.catalog.expire(NAMESPACE, NAME) == 0, "snapshots were forgotten twice"
    case.require(rows("2026-11-02", "de", 10))
    case.commit([case.file("third.parquet", rows("2026-11-03", "de", 20))], number=4)
    case.require(rows("2026-11-02", "de", 10) + rows("2026-11-03", "de", 20))
