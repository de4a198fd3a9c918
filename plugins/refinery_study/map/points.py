"""Gives the points of a map what their documents have: URL, title, and the value of a column that colors them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.grouping import UNSAID, can_group, columns_grouped, groups_of
from pipeline_tasks.publish.datasets.vectors import Left, dataset_of
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.stage import column_of
from pipeline_tasks.stages.topics import TOPIC, TOPIC_NAME
from pipeline_tasks.store.reading import read_manifest, read_shards
from refinery_study.map.plot import GROUPS, OTHERS, MapPoint
from refinery_study.map.projecting import DOCUMENTS, DocumentMap, shards_of

pc: Any = pyarrow.compute

USUAL = ("topic", "document_type", "language", "site", "reading_level", "score", "source")
"""Columns that points are colored by most; the first that a version has is the default."""

TITLE = 80
"""Characters of a title."""

BANDS = 5
"""Bands of equally many documents that a column of numbers has."""


@dataclass(frozen=True, slots=True)
class ColoredMap:
    """The points of a map, colored by a column, and how many of its documents have left the dataset since."""

    by: str
    points: Sequence[MapPoint]
    left: int


def columns_to_color(root: str, version: Version) -> list[str]:
    """Return the usual columns that the documents of a version have."""
    columns = [name for name, _ in read_manifest(root, version.refined).schema]
    return [name for name in USUAL if can_group(columns, name)]


def colored(root: str, version: Version, drawn: DocumentMap, by: str, documents: int = DOCUMENTS) -> ColoredMap:
    """Return the points of a map by a column; RecipeError for one that the documents do not have.

    A column of numbers has bands of equally many documents, and one of many names the most frequent ones and `OTHERS`.
    Documents that were superseded or taken down have no point.
    """
    columns = [name for name, _ in read_manifest(root, version.refined).schema]
    if not can_group(columns, by):
        message = f"--by {by[:100]!r}: the documents have no column of this name; they have {', '.join(columns)}"
        raise RecipeError(message)
    wanted, left = pa.array(drawn.ids, pa.string()), dataset_of(root, version.recipe).left
    rows: dict[str, tuple[str, str, Any]] = {}
    read = [*KNOWN_BY, "title", *columns_grouped(by), *([TOPIC_NAME] if by == TOPIC else [])]
    for batch in read_shards(root, shards_of(root, version, documents), read):
        rows |= _rows(batch.filter(pc.is_in(batch["id"], value_set=wanted)), version.snapshot, by, left)
    names = _named([value for _, _, value in rows.values()])
    points = [
        MapPoint(id_, x, y, names[rows[id_][2]], rows[id_][0], rows[id_][1])
        for id_, x, y in zip(drawn.ids, drawn.x, drawn.y, strict=True)
        if id_ in rows
    ]
    return ColoredMap(by, points, len(drawn.ids) - len(points))


def _rows(batch: pa.RecordBatch, snapshot: str, by: str, left: Left) -> Mapping[str, tuple[str, str, Any]]:
    """Return URL, title and value of the documents of a batch that are still there, by id."""
    stays = batch.filter(pc.invert(left.has(snapshot, batch)))
    titles = stays["title"].to_pylist() if "title" in stays.schema.names else [""] * stays.num_rows
    rows = zip(stays["id"].to_pylist(), stays["url"].to_pylist(), titles, _values(stays, by), strict=True)
    return {id_: (url or "", " ".join((title or "").split())[:TITLE], value) for id_, url, title, value in rows}


def _values(batch: pa.RecordBatch, by: str) -> list[Any]:
    """Return the numbers of a column of numbers, and the names of any other; of topics with the words for them."""
    if by == TOPIC and TOPIC_NAME in batch.schema.names:
        named = zip(groups_of(batch, by).to_pylist(), batch[TOPIC_NAME].to_pylist(), strict=True)
        return [f"{topic} {words}" if words else topic for topic, words in named]
    if by in batch.schema.names or "." in by:
        column = column_of(batch, by, "--by")
        if pa.types.is_floating(column.type) or (pa.types.is_integer(column.type)):
            return [UNSAID if value is None or isnan(value) else value for value in column.to_pylist()]
    values: list[Any] = groups_of(batch, by).to_pylist()
    return values


def _named(values: Sequence[Any]) -> dict[Any, str]:
    """Return the group of each value: its band, or its name if that is frequent."""
    numbers = sorted(value for value in values if not isinstance(value, str))
    if len({*numbers}) > GROUPS:
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, BANDS + 1)))
        return {value: value if isinstance(value, str) else _band(edges, value) for value in values}
    counts = Counter(values)
    frequent = sorted(counts, key=lambda value: (-counts[value], str(value)))
    shown = frequent if len(frequent) <= GROUPS else frequent[: GROUPS - 1]
    return {value: str(value) if value in shown else OTHERS for value in counts}


def _band(edges: npt.NDArray[np.float64], value: float) -> str:
    at = min(int(np.searchsorted(edges, value, side="right")), len(edges) - 1)
    return f"{at}: {edges[at - 1]:.4g} to {edges[at]:.4g}"
