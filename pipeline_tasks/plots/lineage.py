"""Plots the manifests of a version: its stages from top to bottom, and beside them what they read of other versions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline_tasks.plots.plot import Plot, Row, Spec, base_spec

HERE = "this version"
"""The column of the version's own manifests."""

KINDS = {"made from": "--plot-1", "history": "--plot-3", "composed": "--plot-2"}
"""The color of each kind of parent: what a stage refined, what it read of earlier snapshots, what a build composes."""

MADE_FROM, HISTORY, COMPOSED = KINDS

DRAWN = 3
"""Other snapshots that have a column of their own, the last ones; those before them share one."""

COUNTS = {"kept": "--text", "rejected": "--plot-2", "quarantined": "--bad"}
"""What becomes of the rows of a manifest, with the color of its numbers."""

NONE = "--quiet"
"""The color of a zero."""

ROW = 30
"""Pixels of a stage."""

HEAD = ("stage", "version", *COUNTS, "parents")

_SNAPSHOT, _COUNT = "s:", "n:"
"""What the names of columns begin with, so that no name of a snapshot is that of a count."""


@dataclass(frozen=True, slots=True)
class ManifestNode:
    """A manifest, and what became of the rows that it read.

    `recipe`, `snapshot`, `version` and `state` are those of the newest version that has it; "" and 0 if none has.
    Rows are None where nothing counted them: in landed files, and where no version has the manifest. `is_own` is
    whether it is one of the version whose lineage is shown.
    """

    stage: str
    path: str
    recipe: str = ""
    snapshot: str = ""
    version: int = 0
    state: str = ""
    rows_in: int | None = None
    rows: int | None = None
    rejected: int | None = None
    quarantined: int | None = None
    is_own: bool = False

    @property
    def place(self) -> str:
        """The version that has it, as a person names it."""
        return f"{self.recipe} {self.snapshot}" if self.snapshot else "not published"


@dataclass(frozen=True, slots=True)
class Edge:
    """The manifest at the path `parent` is a parent of that at `child`; `kind` is one of `KINDS`."""

    parent: str
    child: str
    kind: str


_FIELDS = {"kept": "rows", "rejected": "rejected", "quarantined": "quarantined"}
"""The field of a manifest's node that has each count."""


def lineage_plot(nodes: Sequence[ManifestNode], edges: Sequence[Edge]) -> Plot | None:
    """Plot manifests in the order of `nodes`; None without any."""
    own = [node for node in nodes if node.is_own]
    if not own:
        return None
    columns = _columns(nodes)
    stages = list(dict.fromkeys(node.stage for node in nodes))
    points = [*{(point["column"], point["stage"]): point for point in _points(nodes, columns, edges)}.values()]
    lines = [*{tuple(line.values()): line for line in _lines(nodes, edges, columns)}.values()]
    counts = [row for node in own for row in _counts(node)]
    domain = [*dict.fromkeys(columns.values()), _SNAPSHOT + HERE, *(_COUNT + name for name in COUNTS)]
    axes = _x(domain), _y(stages)
    spec = base_spec(points) | {"height": {"step": ROW}, "layer": [*_marks(lines, counts, axes)]}
    by_path = {node.path: node for node in nodes}
    table = [_table_row(node, edges, by_path) for node in own]
    return Plot("Manifests", spec, HEAD, table, _note(columns))


def _columns(nodes: Sequence[ManifestNode]) -> dict[str, str]:
    """Return the column of each other version's place; the places before the last `DRAWN` share one."""
    places = sorted(
        {node.place for node in nodes if not node.is_own}, key=lambda place: (place == "not published", place)
    )
    early = places[:-DRAWN] if len(places) > DRAWN + 1 else []
    names = {node.place: node.snapshot or node.place for node in nodes if not node.is_own}
    if len(set(names.values())) < len(names):  # snapshots of two recipes share a name
        names = {place: place for place in places}
    shared = f"{len(early)} earlier"
    return {place: _SNAPSHOT + (shared if place in early else names[place]) for place in places}


def _column(node: ManifestNode, columns: Mapping[str, str]) -> str:
    return _SNAPSHOT + HERE if node.is_own else columns[node.place]


def _points(nodes: Sequence[ManifestNode], columns: Mapping[str, str], edges: Sequence[Edge]) -> Iterator[Row]:
    """Yield the point of each manifest; those of one stage in the shared column have equal ones."""
    kinds = {edge.parent: edge.kind for edge in edges}
    shared = {column for column, places in Counter(columns.values()).items() if places > 1}
    for node in nodes:
        column = _column(node, columns)
        row = {"stage": node.stage, "column": column, "kind": MADE_FROM if node.is_own else kinds[node.path]}
        if column in shared:
            yield row | {"of": column.removeprefix(_SNAPSHOT)}
            continue
        counts = {name: _number(getattr(node, _FIELDS[name])) for name in COUNTS}
        yield row | {"of": node.place, "path": node.path, **counts}


def _lines(nodes: Sequence[ManifestNode], edges: Sequence[Edge], columns: Mapping[str, str]) -> Iterator[Row]:
    by_path = {node.path: node for node in nodes}
    for edge in edges:
        parent, child = by_path[edge.parent], by_path[edge.child]
        yield {
            "column": _column(parent, columns),
            "stage": parent.stage,
            "to_column": _column(child, columns),
            "to_stage": child.stage,
            "kind": edge.kind,
        }


def _counts(node: ManifestNode) -> Iterator[Row]:
    for name, color in COUNTS.items():
        count = getattr(node, _FIELDS[name])
        if count is not None:
            tone = color if count else NONE
            yield {"stage": node.stage, "column": _COUNT + name, "count": f"{count:,}", "tone": tone}


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _table_row(node: ManifestNode, edges: Sequence[Edge], by_path: Mapping[str, ManifestNode]) -> tuple[str, ...]:
    parents = [(edge.kind, by_path[edge.parent]) for edge in edges if edge.child == node.path]
    shown = [f"{parent.stage} ({parent.place})" if kind != MADE_FROM else parent.stage for kind, parent in parents]
    more = [f"and {len(shown) - DRAWN} more"] if len(shown) > DRAWN + 1 else []
    named = shown[:1] + shown[1 - DRAWN :] if more else shown
    counts = (_number(getattr(node, _FIELDS[name])) for name in COUNTS)
    return node.stage, node.place, *counts, ", ".join([*named, *more]) or "-"


def _note(columns: Mapping[str, str]) -> str:
    shared = len(columns) - len(set(columns.values())) + 1
    sentences = ["Each point is a manifest, made from the one above it."]
    sentences += ["Lines from the left are what it read of other versions."] if columns else []
    sentences += [f"The column on the left stands for {shared} versions; the table below has all."] * (shared > 1)
    return " ".join(sentences)


def _x(domain: Sequence[str]) -> Spec:
    axis = {
        "orient": "top",
        "labelExpr": "split(slice(datum.label, 2), ' ')",  # a line for each word
        "labelAngle": 0,
        "labelLimit": 96,
        "grid": False,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
    }
    scale = {"type": "point", "domain": list(domain), "padding": 0.6}
    return {"field": "column", "type": "ordinal", "title": None, "axis": axis, "scale": scale}


def _y(stages: Sequence[str]) -> Spec:
    axis = {"grid": False, "domain": False, "ticks": False, "labelPadding": 8}
    scale = {"type": "point", "domain": list(stages), "padding": 0.6}
    return {"field": "stage", "type": "ordinal", "title": None, "axis": axis, "scale": scale}


def _marks(lines: Sequence[Row], counts: Sequence[Row], axes: tuple[Spec, Spec]) -> Iterator[Spec]:
    x, y = axes
    kinds = [kind for kind in KINDS if kind == MADE_FROM or any(line["kind"] == kind for line in lines)]
    scale = {"domain": kinds, "range": [KINDS[kind] for kind in kinds]}
    legend = {"title": None, "orient": "top"} if len(kinds) > 1 else None
    color = {"field": "kind", "type": "nominal", "scale": scale, "legend": legend}
    ends = {"x": x, "y": y, "x2": {"field": "to_column"}, "y2": {"field": "to_stage"}, "color": color}
    rule = {"type": "rule", "strokeWidth": 2, "opacity": 0.65, "aria": False}
    yield {"data": {"values": list(lines)}, "mark": rule, "encoding": ends}
    tooltip = [{"field": name, "type": "nominal"} for name in ("stage", "of", *COUNTS, "path")]
    point = {"type": "point", "filled": True, "size": 110, "opacity": 1}
    yield {"mark": point, "encoding": {"x": x, "y": y, "color": color, "tooltip": tooltip}}
    text = {"x": x, "y": y, "text": {"field": "count", "type": "nominal"}}
    for tone in (*COUNTS.values(), NONE):
        rows = [row for row in counts if row["tone"] == tone]
        yield {"data": {"values": rows}, "mark": {"type": "text", "fontSize": 12, "color": tone}, "encoding": text}
