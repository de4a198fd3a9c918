"""Draws five documents of one language by a seed: four of one group, and one of another."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.store.reading import read_manifest, read_shards
from refinery_study.intruder.groups import Grouping
from refinery_study.read.sample import Drawn

SHOWN = 5
"""Documents of a draw."""

CHANCE = 1 / SHOWN
"""Share of right answers of who sees nothing in common."""

PLACE = ("id", "file", "offset")
LANGUAGE = "language"


@dataclass(frozen=True, slots=True)
class Draw:
    """Five documents as they are shown: the one at `place`, from 0, is of the group `other`, all others of `group`."""

    seed: int
    group: str
    other: str
    language: str
    documents: tuple[Drawn, ...]
    place: int

    @property
    def ids(self) -> tuple[str, ...]:
        """The documents' ids, in their order."""
        return tuple(document.id for document in self.documents)

    @property
    def foreign(self) -> str:
        """The id of the foreign document."""
        return self.ids[self.place]


@dataclass(frozen=True, slots=True)
class Population:
    """The documents of a version that are drawn from, sorted by place: where each is, its group and its language.

    `cells` has the rows of each group and language from which four can be drawn, as others of the language are foreign.
    """

    by: str
    places: tuple[Drawn, ...]
    groups: npt.NDArray[np.object_]
    languages: npt.NDArray[np.object_]
    cells: dict[tuple[str, str], npt.NDArray[np.intp]]

    @property
    def names(self) -> list[str]:
        """The groups that can be drawn, in their order."""
        return sorted({group for group, _ in self.cells}, key=_by_number)


def _by_number(name: str) -> tuple[int, str]:
    first = name.partition(" ")[0]
    return (int(first), name) if first.isdecimal() else (-1, name)


def schema_of(root: str, version: Version) -> dict[str, str]:
    """Return the columns of a version's documents with their Arrow types; RecipeError for a training dataset."""
    if COMPOSE in version.manifests:
        message = f"{version.recipe} is a training dataset; name the recipe that its documents are from"
        raise RecipeError(message)
    return dict(read_manifest(root, version.refined).schema)


def rows_of(root: str, version: Version) -> int:
    """Return how many documents a version has."""
    return read_manifest(root, version.refined).rows


def population(root: str, version: Version, grouping: Grouping) -> Population:
    """Read places, languages and the grouping's columns of all documents of a version, and no text.

    RecipeError if no group has four documents of a language in which another group has one.
    """
    manifest = read_manifest(root, version.refined)
    schema = schema_of(root, version)
    columns = list(dict.fromkeys((*PLACE, *([LANGUAGE] if LANGUAGE in schema else []), *grouping.columns)))
    tables, shards = [], []
    for shard in manifest.shards:
        for batch in read_shards(root, [shard], columns):
            tables.append(pa.Table.from_batches([batch]).select(columns))
            shards += [shard] * batch.num_rows
    table = pa.concat_tables(tables) if tables else pa.table({name: [] for name in columns})
    places = list(zip(*(table.column(name).to_pylist() for name in PLACE), strict=True))
    by_place = sorted(range(len(places)), key=places.__getitem__)
    order = list({places[at][0]: at for at in reversed(by_place)}.values())[::-1]  # each id once, at its first place
    groups = np.array(grouping.groups_of(table).to_pylist(), object)[order]
    is_by_language = grouping.columns == (LANGUAGE,) or LANGUAGE not in columns
    languages = [None] * len(places) if is_by_language else table.column(LANGUAGE).to_pylist()
    known = np.array([language or "" for language in languages], object)[order]
    drawn = tuple(Drawn("", shards[at], *places[at]) for at in order)
    cells = _cells(groups, known)
    if not cells:
        message = (
            f"--by {grouping.name}: no group has four documents of a language in which another group has one; group by "
            "another column, or by fewer bands"
        )
        raise RecipeError(message)
    return Population(grouping.name, drawn, groups, known, cells)


def _cells(
    groups: npt.NDArray[np.object_], languages: npt.NDArray[np.object_]
) -> dict[tuple[str, str], npt.NDArray[np.intp]]:
    rows: dict[tuple[str, str], list[int]] = {}
    for at, (group, language) in enumerate(zip(groups.tolist(), languages.tolist(), strict=True)):
        if group is not None:
            rows.setdefault((group, language), []).append(at)
    in_language: dict[str, int] = {}
    for (_, language), own in rows.items():
        in_language[language] = in_language.get(language, 0) + len(own)
    drawable = {cell: own for cell, own in rows.items() if SHOWN - 1 <= len(own) < in_language[cell[1]]}
    return {cell: np.array(drawable[cell], np.intp) for cell in sorted(drawable)}


def draw(of: Population, seed: int, group: str = "") -> Draw:
    """Return the draw of a seed, from one group or any of them alike; the same for the same documents and seed.

    The language is that of one of the group's documents. RecipeError for a group from which none can be drawn.
    """
    if group and group not in of.names:
        message = f"--group {group}: {of.by} has no such group with four documents; it has {', '.join(of.names)}"
        raise RecipeError(message)
    numbers = (xxh3_64_intdigest(f"{of.by} {group} {seed} {step}".encode()) for step in count())
    chosen = group or of.names[next(numbers) % len(of.names)]
    rows = np.concatenate([own for cell, own in of.cells.items() if cell[0] == chosen])
    language = str(of.languages[rows[next(numbers) % len(rows)]])
    four: list[int] = []
    rows = of.cells[chosen, language]
    while len(four) < SHOWN - 1:
        row = int(rows[next(numbers) % len(rows)])
        four += [row] if row not in four else []
    others = np.flatnonzero((of.languages == language) & (of.groups != chosen) & (of.groups != None))  # noqa: E711
    foreign = int(others[next(numbers) % len(others)])
    place = next(numbers) % SHOWN
    order = [*four[:place], foreign, *four[place:]]
    return Draw(seed, chosen, str(of.groups[foreign]), language, tuple(of.places[row] for row in order), place)
