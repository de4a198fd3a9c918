"""Compares the tables of a catalog with what recipes have published: their files, rows, and the heads of their logs."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow.parquet as pq

from pipeline_tasks.counted import counted
from pipeline_tasks.engines.each import On
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.store import storage
from refinery_exports.tables.catalog import RECIPE, ROOT, Catalog, DataFile, State
from refinery_exports.tables.registering import Registration, counting_versions, logs_of, registered_as
from refinery_exports.tables.table_files import written_tables

HEAL = "run `refinery register --repair`: the table becomes what is published"


def findings_of(root: str, recipes: Iterable[str], catalog: Catalog, on: On) -> Findings:
    """Return what the tables of recipes in a catalog have that is not published, and what they lack."""
    findings = Findings()
    for recipe in recipes:
        logs, versions = logs_of(root, recipe), counting_versions(root, recipe)
        held = [each for version in versions if (each := written_tables(root, version, on)) is not None]
        there = {each.version.number for each in held}
        for version in versions:
            if version.number not in there:
                problem = f"version {version.number} is not registered"
                findings.add(Problem(f"tables of {recipe}", problem, heal="run `refinery register`"))
        registration = registered_as(root, recipe, logs, held)
        for name in dict.fromkeys([*registration.names, *catalog.names(recipe)]):
            where = f"table {recipe}.{name}"
            with findings.guarded(where, HEAL):
                findings.count("tables")
                state = catalog.state(recipe, name)
                for problem in _problems(registration, name, state, findings):
                    findings.add(Problem(where, problem, heal=HEAL))
    return findings


def _problems(registration: Registration, name: str, state: State | None, findings: Findings) -> Iterator[str]:
    """Yield what a table is that its root does not say."""
    wanted = registration.wanted(name)
    if state is None:
        if wanted:
            yield "is not in the catalog"
        return
    for key, value in ((ROOT, registration.root), (RECIPE, registration.recipe)):
        if (said := state.properties.get(key, "")) != value:
            yield f"says that its {key} is {said or 'nothing'}, and it is {value}"
    yield from registration.lies(state.last)
    if registration.forgets(state):
        yield "has snapshots of before a takedown, for which readers can ask (a tag or a branch of yours may keep them)"
    yield from (f"lacks {address}" for address in wanted if address not in state.files)
    for address, rows in state.files.items():
        if address not in wanted:
            yield f"has {address}, which no version has that counts"
            continue
        findings.count("files of tables")
        if rows != (stored := rows_of(wanted[address])):
            yield f"has {address} with {counted(rows, 'row')}, and the file has {stored:,}"


def rows_of(file: DataFile) -> int:
    """Return how many rows the footer of a file says that it has."""
    with storage.connect(file.root).open(file.path) as stream:
        rows: int = pq.read_metadata(stream).num_rows
        return rows


def compared_lines(address: str, findings: Findings) -> Sequence[str]:
    """Return what was compared, and the conclusion."""
    checked = ", ".join(f"{count:,} {kind}" for kind, count in sorted(findings.checked.items()))
    problems = len(findings.problems)
    end = counted(problems, "problem") if problems else f"{address} has what is published, and nothing else"
    return [f"checked    {checked or 'nothing'}", end]
