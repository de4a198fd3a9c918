"""Plots are valid Vega-Lite, which its own compiler reads, and their tables have the same numbers."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
import vl_convert
from refinery_study.map.plot import GROUPS, OTHERS, MapPoint, map_plot

from pipeline_tasks.plots.calendar import COLORS, LOOKS, WEEKS, calendar
from pipeline_tasks.plots.change import NAMES, change_plot
from pipeline_tasks.plots.distributions import distribution
from pipeline_tasks.plots.drawing import COLORS as DRAWABLE
from pipeline_tasks.plots.drawing import svg
from pipeline_tasks.plots.funnel import funnel_plot
from pipeline_tasks.plots.languages import LanguageShare, languages_plot
from pipeline_tasks.plots.lineage import DRAWN, HISTORY, MADE_FROM, Edge, ManifestNode, lineage_plot
from pipeline_tasks.plots.plot import Plot, is_date, tick_decimals
from pipeline_tasks.plots.room import BoundedFact, room_plot
from pipeline_tasks.plots.shares import COLORS as SHARE_COLORS
from pipeline_tasks.plots.shares import shares_plot
from pipeline_tasks.plots.times import Partition, partition_times, slow_partitions, stage_times
from pipeline_tasks.plots.trends import Measure, Measured, trend
from pipeline_tasks.report.comparison_plots import comparison_plot
from pipeline_tasks.report.comparisons import Comparison, Unit
from pipeline_tasks.report.comparisons import Measure as Compared
from tests.offspring import UNFOLDER

MEASURE = Measure("Retention", "share", "{:.1%}")


def days(count: int) -> list[str]:
    return [(date(2026, 1, 1) + timedelta(days=day)).isoformat() for day in range(count)]


def values(plot: Plot) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plot.spec["data"]["values"]
    return found


def colors(spec: Any) -> Iterator[str]:
    """Every name of a color in a spec."""
    if isinstance(spec, dict):
        for part in spec.values():
            yield from colors(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from colors(part)
    elif isinstance(spec, str) and spec.startswith("--"):
        yield spec


def assert_drawn(plot: Plot) -> None:
    """Vega-Lite compiles the spec without a warning, and Vega draws something."""
    vega = vl_convert.vegalite_to_vega(plot.spec, vl_version="6.1")
    assert vega["marks"]
    assert "<path" in vl_convert.vegalite_to_svg(plot.spec, vl_version="6.1")
    assert all(len(row) == len(plot.head) for row in plot.rows)


@pytest.mark.parametrize("count", [1, 2, 20, 400])
def test_a_calendar_has_a_cell_a_day_and_a_row_in_its_table(count: int) -> None:
    states = [(name, list(COLORS)[at % len(COLORS)], f"/refinery/{name}") for at, name in enumerate(days(count))]
    plot = calendar(states)
    assert_drawn(plot)
    assert len(plot.rows) == count
    assert len(values(plot)) == min(count, len(values(plot)))
    assert len({cell["week"] for cell in values(plot)}) <= WEEKS
    assert values(plot)[-1]["snapshot"] == days(count)[-1]
    assert all(cell["day"] == date.fromisoformat(cell["snapshot"]).strftime("%a") for cell in values(plot))


def test_a_week_without_a_snapshot_is_a_gap_in_the_calendar() -> None:
    plot = calendar([("2026-01-01", "published", ""), ("2026-02-01", "stale", "")])
    weeks = plot.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert len(weeks) == 5
    assert len(values(plot)) == 2


def test_snapshots_that_are_no_dates_are_in_their_order() -> None:
    plot = calendar([("CC-MAIN-2026-45", "published", ""), ("CC-MAIN-2026-50", "refused", "")])
    assert_drawn(plot)
    assert [cell["at"] for cell in values(plot)] == [0, 1]
    assert [is_date(name) for name in ("2026-01-01", "20260101", "CC-MAIN-2026-45", "2026-02-30")] == [
        True,
        *[False] * 3,
    ]


@pytest.mark.parametrize("names", [days(2), days(300), ["CC-MAIN-2026-45", "CC-MAIN-2026-50"]])
def test_a_trend_has_a_point_a_snapshot(names: list[str]) -> None:
    outcomes = ("pass", "warn", "")
    plot = trend(MEASURE, [Measured(name, at / 1000, outcomes[at % 3]) for at, name in enumerate(names)])
    assert_drawn(plot)
    assert [row["snapshot"] for row in values(plot)] == names
    assert plot.rows[0] == (names[-1], f"{(len(names) - 1) / 1000:.1%}", outcomes[(len(names) - 1) % 3] or "-")


def test_text_of_a_name_stays_data() -> None:
    """A name is data of the spec: no part of it is read as an expression."""
    plot = calendar([("<b>'); alert(1)//", "published", "/refinery/snapshot/x")])
    assert_drawn(plot)
    assert values(plot)[0]["snapshot"] == "<b>'); alert(1)//"


def test_every_color_of_a_plot_is_one_of_the_stylesheet() -> None:
    from pathlib import Path

    style = Path(__file__).parents[2].joinpath("plugins/refinery_airflow/templates/static/refinery.css").read_text()
    states = [(name, state, "") for name, state in zip(days(len(COLORS)), COLORS, strict=True)]
    plots = [calendar(states), trend(MEASURE, [Measured(name, 1.0) for name in days(3)])]
    plots += [plot for plot in (funnel_plot([step("ingest", 9, 3, why=6)]), room_plot([fact(0.3, 0.2, None)])) if plot]
    plots += [partition_times([Partition("extract", 0, 1.0)])]
    named = {color for plot in plots for color in colors(plot.spec)}
    assert len(named) > 5
    assert {color for color in named if f"{color}: light-dark(" not in style} == set()


def step(stage: str, rows_in: int, rows: int, **reasons: int) -> dict[str, Any]:
    counts = {"rows_in": rows_in, "rows": rows, "offspring_in": 0, "generated": 0}
    return {"stage": stage, **counts, "rejected": reasons, "quarantined": {}}


def test_a_funnel_shows_generated_documents_apart() -> None:
    """A stage that unfolds has more rows than landed; what came in is as wide as before."""
    unfolded = {**step(UNFOLDER, 60, 150, figures=10), "offspring_in": 100, "generated": 90}
    plot = funnel_plot([step("ingest", 100, 60, status=40), unfolded])
    assert plot is not None
    assert_drawn(plot)
    shown = [(row["what"], row["kind"], row["rows"]) for row in values(plot) if row["stage"] == UNFOLDER]
    assert shown == [("kept", "kept", 60), ("kept, generated", "generated", 90), ("figures", "rejected", 10)]
    assert plot.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 160]


def test_a_funnel_has_every_row_on_the_scale_of_what_landed() -> None:
    steps = [step("ingest", 100, 60, image=8, empty=8, status=24), step("extract", 60, 60), step("pack", 60, 7)]
    plot = funnel_plot(steps)
    assert plot is not None
    assert_drawn(plot)
    rows = values(plot)
    assert [(row["stage"], row["what"], row["rows"]) for row in rows] == [
        ("ingest", "kept", 60),
        ("ingest", "status", 24),
        ("ingest", "empty", 8),
        ("ingest", "image", 8),
        ("extract", "kept", 60),
    ]
    assert rows[-1]["share"] == 0.6
    assert plot.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 100]
    assert funnel_plot([]) is None
    assert funnel_plot([step("ingest", 0, 0)]) is None


def fact(value: float, least: float | None, most: float | None, finding: str = "met") -> BoundedFact:
    return BoundedFact("extract", "retention", value, least, most, "critical", finding, "why")


@pytest.mark.parametrize(
    ("value", "least", "most", "room"),
    [
        (0.5, 0.25, None, 1.0),
        (0.3, 0.25, None, 0.2),
        (0.2, 0.25, None, -0.2),
        (0.9, None, 1.0, 0.1),
        (0.5, 0.4, 0.6, 1 / 6),
        (9.0, None, 0.25, -1.0),
        (3.0, None, 0.0, -1.0),
        (0.0, 0.0, 0.5, 1.0),
        (-0.1, -0.2, 0.2, 0.5),
    ],
)
def test_room_is_the_distance_to_the_nearer_bound(
    value: float, least: float | None, most: float | None, room: float
) -> None:
    assert fact(value, least, most).room == pytest.approx(room)


def test_broken_bounds_are_plotted_first_and_bounds_of_one_value_only_listed() -> None:
    facts = [fact(0.5, 0.25, None), fact(0.26, 0.25, None), fact(0, 0, 0), fact(0.2, 0.25, None, "violated")]
    plot = room_plot(facts)
    assert plot is not None
    assert_drawn(plot)
    assert [row["finding"] for row in values(plot)] == ["violated", "met", "met"]
    assert len(plot.rows) == 4
    assert room_plot([]) is None


def test_two_bounds_of_a_fact_have_a_bar_each() -> None:
    """They had one name, so that their bars were one on the other."""
    plot = room_plot([fact(0.3, 0.25, None), fact(0.3, 0.2, None), replace(fact(0.3, 0.1, None), fact="chars")])
    assert plot is not None
    names = [row["name"] for row in values(plot)]
    assert names == [
        "extract: retention (critical, at least 0.25)",
        "extract: retention (critical, at least 0.2)",
        "extract: chars (critical)",
    ]


@pytest.mark.parametrize(
    ("shown", "ticks", "decimals"),
    [
        ([0.0, 100.0], 4, 0),
        ([53.1, 53.4], 4, 1),
        ([0.0, 1.5], 4, 1),
        ([0.0, 3.2], 4, 0),
        ([0.00008, 0.00009], 4, 6),
        ([7.0], 4, 0),
        ([0.02], 4, 3),
        ([0.0], 4, 0),
        ([], 4, 0),
    ],
)
def test_labels_of_ticks_have_as_many_decimals_as_tell_them_apart(
    shown: list[float], ticks: int, decimals: int
) -> None:
    assert tick_decimals(shown, ticks) == decimals


def labels(plot: Plot) -> list[list[str]]:
    """The labels of each axis of numbers, as they are drawn."""
    drawn = vl_convert.vegalite_to_svg({**plot.spec, "width": 400}, vl_version="6.1")
    parts = re.split(r'aria-label="[XY]-axis', drawn)[1:]
    found = [re.findall(r"<text[^>]*>([^<]+)</text>", part.split("role-axis-domain")[0]) for part in parts]
    return [[label for label in part if re.match(r"\W?\$?\d", label)] for part in found]


def test_no_axis_has_two_ticks_that_read_the_same() -> None:
    """Retention from 53.1 to 53.4 % had the tick 53 % five times, and 0 to 2 rows had a tick of half a row."""
    near = [Measured(name, 0.531 + at / 1000) for at, name in enumerate(days(4))]
    rare = {"kind": "name", "count": 1000, "bins": {"en": 8, "de": 6}}
    close = {"kind": "ratio", "count": 4, "bins": {"98": 1, "99": 3}}
    few = {"kind": "whole", "count": 3, "sum": 4, "bins": {"0": 1, "1": 1, "2": 1}}
    plots = [trend(Measure("x", unit, "{}"), near) for unit in ("share", "dollars", "number")]
    plots += [distribution("a", "b", {"this snapshot": profile, "previous": profile}) for profile in (rare, close, few)]
    plots += [funnel_plot([step("ingest", 2, 1, why=1)]), change_plot("Rejected", "reason", {"c4:rule": (1, 2)})]
    plots += [room_plot([fact(0.3, 0.299, None)])]
    for plot in plots:
        assert plot is not None
        shown = labels(plot)
        assert any(len(axis) > 1 for axis in shown), plot.title
        assert all(len(axis) == len(set(axis)) for axis in shown), (plot.title, shown)
        assert not any("m" in label for axis in shown for label in axis), "half a row is no tick"


def test_states_differ_in_shape_and_not_in_color_alone() -> None:
    states = [(name, state, "") for name, state in zip(days(len(LOOKS)), LOOKS, strict=True)]
    plot = calendar(states)
    assert_drawn(plot)
    marks = plot.spec["layer"][0]["encoding"]
    assert len(set(marks["shape"]["scale"]["range"])) == len(LOOKS)
    assert marks["shape"]["scale"]["domain"] == marks["color"]["scale"]["domain"] == list(LOOKS)
    [points] = [layer for layer in trend(MEASURE, [Measured("a", 1.0)]).spec["layer"] if "encoding" in layer]
    assert len(set(points["encoding"]["shape"]["scale"]["range"])) == len(
        points["encoding"]["shape"]["scale"]["domain"]
    )
    profile = {"kind": "ratio", "count": 4, "bins": {"7": 1, "9": 3}}
    lines = distribution("a", "b", dict.fromkeys(("this snapshot", "previous", "trailing"), profile)).spec["encoding"]
    assert len({str(dash) for dash in lines["strokeDash"]["scale"]["range"]}) == 3


def test_a_mark_of_a_calendar_is_filled_with_the_color_of_its_state() -> None:
    drawn = svg(calendar([("2026-01-01", "published", ""), ("2026-01-02", "refused", "")]))
    points = re.findall(r'state: (\w+); snapshot: (\S+); [^>]* fill="([^"]+)"', drawn)
    assert points == [
        ("published", "2026-01-01", DRAWABLE["--good"]),
        ("refused", "2026-01-02", DRAWABLE["--bad"]),
    ]


def test_languages_have_their_known_shares_as_bars_and_all_in_the_table() -> None:
    languages = [
        LanguageShare("en", 1_200, 900, 0.9, 0.8, None),
        LanguageShare("de", 0, 100, 0.1, None, 0.2),
        LanguageShare("fr", 7, 0, 0.0, 0.0, 0.0),
    ]
    plot = languages_plot(languages, "a note")
    assert plot is not None
    assert_drawn(plot)
    assert [(row["value"], row["series"], row["share"]) for row in values(plot)] == [
        ("en", "this snapshot", 0.9),
        ("en", "previous", 0.8),
        ("de", "this snapshot", 0.1),
        ("de", "trailing median", 0.2),
    ]
    assert plot.rows == [
        ("en", "1,200", "900", "75.00%", "90.00%", "80.00%", "-"),
        ("de", "0", "100", "-", "10.00%", "-", "20.00%"),
        ("fr", "7", "0", "0.00%", "0.00%", "0.00%", "0.00%"),
    ]
    assert languages_plot([]) is None


@pytest.mark.parametrize("unit", ["share", "value"])
def test_what_stages_changed_has_two_bars_per_measure(unit: Unit) -> None:
    measures = (Compared("short", 0.5, 0.25), Compared("long", 1.0, 2.0))
    comparison = Comparison("Lengths", "a note", unit, measures, "")
    plot = comparison_plot(comparison)
    assert plot is not None
    assert_drawn(plot)
    assert [(row["value"], row["series"], row["share"]) for row in values(plot)] == [
        ("short", "before", 0.5),
        ("short", "after", 0.25),
        ("long", "before", 1.0),
        ("long", "after", 2.0),
    ]
    assert plot.rows[0] == (("short", "50.00%", "25.00%") if unit == "share" else ("short", "0.50", "0.25"))
    assert comparison_plot(replace(comparison, measures=())) is None


def test_a_calendar_has_dates_at_its_top_and_beside_its_marks() -> None:
    short, long = (calendar([(name, "published", "") for name in days(count)]) for count in (20, 400))
    drawn = vl_convert.vegalite_to_svg(short.spec, vl_version="6.1")
    assert re.findall(r">((?:Dec|Jan) ?\d+)<", drawn.replace("  ", " "))
    assert ">20<" in drawn
    assert len(long.spec["layer"]) == 1, "there is no room for the day of the month"
    named = calendar([("CC-MAIN-2026-45", "published", "")])
    assert "CC-MAIN-2026-45</text>" in vl_convert.vegalite_to_svg(named.spec, vl_version="6.1")


def test_no_label_of_a_week_is_drawn_over_the_next() -> None:
    drawn = vl_convert.vegalite_to_svg(
        calendar([(name, "published", "") for name in ("2026-11-19", "2026-11-27", "2026-12-01")]).spec,
        vl_version="6.1",
    )
    assert re.findall(r">((?:Nov|Dec) *\d+)<", drawn) == ["Nov 16", "Nov 30"]


def test_distributions_are_shares_of_each_snapshot() -> None:
    whole = {"kind": "whole", "count": 4, "sum": 10, "bins": {"16": 1, "2": 3}}
    name = {"kind": "name", "count": 3, "bins": {"en": 2, "de": 1}}
    for profile in (whole, name):
        plot = distribution("tokenize", "n_tokens", {"this snapshot": profile, "previous": profile})
        assert_drawn(plot)
        for series in ("this snapshot", "previous"):
            assert sum(row["share"] for row in values(plot) if row["series"] == series) == pytest.approx(1)
    lines = values(distribution("tokenize", "n_tokens", {"this snapshot": whole}))
    assert [(row["value"], row["share"]) for row in lines] == [(2, 0.75), (16, 0.25)]
    scores = {"kind": "ratio", "count": 2, "bins": {"75": 2}}
    score = distribution("score_quality", "score", {"this snapshot": scores})
    assert values(score)[0]["value"] == 0.75
    assert score.spec["encoding"]["x"]["axis"]["format"] == ".2~f", "0.84 and not 840m"


def test_shares_over_snapshots_have_lines_of_what_moved_most_and_all_in_the_table() -> None:
    steady = {f"t{at:04d}": 0.05 + at / 1000 for at in range(9)}
    course = [(day, {**steady, "t0100": at / 10, "t0101": 0.3 - at / 10}) for at, day in enumerate(days(4))]
    course[-1][1].pop("t0008")
    plot = shares_plot("topic", course)
    assert plot is not None
    assert_drawn(plot)
    lines = dict.fromkeys(row["name"] for row in values(plot))
    assert [*lines][:3] == ["t0100", "t0101", "t0008"]
    assert len(lines) == len(SHARE_COLORS)
    assert [row["share"] for row in values(plot) if row["name"] == "t0008"] == [0.058, 0.058, 0.058, 0.0]
    assert plot.rows[0] == ("t0100", "30.00%", "20.00%", "10.00%", "0.00%", "20.00%")
    assert {row[0] for row in plot.rows} == {*steady, "t0100", "t0101"}
    assert shares_plot("topic", course[:1]) is None


def test_a_map_tells_its_groups_by_color_and_shape_and_counts_them_in_its_table() -> None:
    names = [f"topic {at:02d}" for at in range(GROUPS - 1)]
    groups = [name for at, name in enumerate(names) for _ in range(at + 2)] + [OTHERS] * 99
    points = [
        MapPoint(f"{at:032x}", at, -at, name, f"https://a.org/{'x' * at}", f"t{at}") for at, name in enumerate(groups)
    ]
    plot = map_plot("a map", "topic", points, "/refinery/document/web/s'?doc=")
    assert_drawn(plot)
    looks = [plot.spec["encoding"][name]["scale"] for name in ("color", "shape")]
    assert looks[0]["domain"] == looks[1]["domain"] == [*names[::-1], OTHERS]
    assert len({*zip(*(look["range"] for look in looks), strict=True)}) == GROUPS
    assert [row[1] for row in plot.rows] == [*(str(count) for count in range(GROUPS, 1, -1)), "99"]
    drawn = vl_convert.vegalite_to_svg(plot.spec, vl_version="6.1")
    assert f"/refinery/document/web/s%27?doc={0:032x}" in drawn
    assert "href" not in map_plot("a map", "topic", points).spec["encoding"]
    bands = [MapPoint("a", 0, 0, f"{at}: {at} to {at + 1}", "", "") for at in (3, 1, 2, 2)]
    assert [row[0][0] for row in map_plot("a map", "score", bands).rows] == ["1", "2", "3"]


def test_slow_partitions_are_those_far_from_the_median_of_their_stage() -> None:
    usual = [Partition("extract", at, 10.0) for at in range(7)]
    slow = Partition("extract", 7, 21.0)
    short = [Partition("filter_url", at, 0.1 * (1 + at)) for at in range(8)]
    assert slow_partitions([*usual, slow, *short]) == [slow]
    plot = partition_times([*usual, slow, *short])
    assert_drawn(plot)
    assert [row["partition"] for row in values(plot) if row["speed"] == "slow"] == [7]
    costs = [{"stage": "extract", "engine": "spark", "wall_seconds": 3.5, "cost_usd": 0.001}]
    assert_drawn(stage_times(costs))


def test_a_change_has_two_bars_per_name_and_all_names_in_its_table() -> None:
    counts = {f"c4:rule_{at}": (at, 2 * at) for at in range(NAMES + 5)}
    plot = change_plot("Rejected", "reason", counts)
    assert plot is not None
    assert_drawn(plot)
    assert len(values(plot)) == 2 * NAMES
    assert len(plot.rows) == NAMES + 4, "a name without rows is left out"
    assert plot.rows[0] == ("c4:rule_16", "16", "32", "+16")
    assert set(colors(plot.spec)) == {"--plot-1", "--plot-3"}
    assert change_plot("Rejected", "reason", {"c4:rule": (0, 0)}) is None


def test_a_side_that_lacks_a_name_has_no_bar_and_no_zero() -> None:
    plot = change_plot("Kept", "stage", {"extract": (7, 5), "select": (None, 3), "land": (None, None)})
    assert plot is not None
    assert_drawn(plot)
    assert [(row["name"], row["rows"]) for row in values(plot)] == [("extract", 7), ("extract", 5), ("select", 3)]
    assert plot.rows == [("extract", "7", "5", "-2"), ("select", "-", "3", "-")]


def test_sides_have_their_own_names_and_colors_and_stages_keep_their_order() -> None:
    stages = {f"stage {at}": (at, at + 1) for at in range(NAMES + 3)}
    plot = change_plot("Kept", "stage", stages, colors={"1: a": "--plot-2", "2: b": "--plot-1"}, ranked=False)
    assert plot is not None
    assert_drawn(plot)
    assert [row["name"] for row in values(plot)[::2]] == list(stages)
    assert plot.head == ("stage", "1: a", "2: b", "change")
    profile = {"kind": "name", "count": 3, "bins": {"en": 2, "de": 1}}
    pair = distribution("mix", "language", {"2: b": profile, "1: a": profile}, {"2: b": "--plot-1", "1: a": "--plot-2"})
    assert_drawn(pair)
    assert set(colors(pair.spec)) == {"--plot-1", "--plot-2"}


def manifest_node(stage: str, snapshot: str, *, is_own: bool) -> ManifestNode:
    counts = {"rows_in": 10, "rows": 7, "rejected": 3, "quarantined": 0}
    named = {"recipe": "web", "snapshot": snapshot, "version": 1, "state": "published"}
    return ManifestNode(stage, f"{stage}/{snapshot}", **named, **counts, is_own=is_own)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, 1, DRAWN + 1, DRAWN + 2, 300])
def test_a_lineage_has_a_point_per_manifest_and_few_columns(count: int) -> None:
    own = [manifest_node(stage, "2027-01-01", is_own=True) for stage in ("extract", "dedup_exact")]
    before = [manifest_node("dedup_exact", name, is_own=False) for name in days(count)]
    edges = [Edge(own[0].path, own[1].path, MADE_FROM), *(Edge(node.path, own[1].path, HISTORY) for node in before)]
    plot = lineage_plot([*own, *before], edges)
    assert plot is not None
    assert_drawn(plot)
    columns = list(dict.fromkeys(point["column"] for point in values(plot)[2:]))
    assert len(values(plot)) == 2 + len(columns)
    assert len(plot.spec["layer"][0]["data"]["values"]) == 1 + len(columns)
    assert len(columns) == min(count, DRAWN + 1)
    single = [point for point in values(plot)[2:] if "path" in point]
    assert len(single) == (count if count <= DRAWN + 1 else DRAWN), "a point that stands for many has no path"
    assert ("stands for" in plot.note) == (count > DRAWN + 1)
    lines, _, *texts = plot.spec["layer"]
    assert lines["encoding"]["color"]["scale"]["domain"] == [MADE_FROM, *([HISTORY] if count else [])]
    toned = [(row["tone"], text["mark"]["color"]) for text in texts for row in text["data"]["values"]]
    assert len(toned) == 3 * len(own)
    assert all(tone == color for tone, color in toned)
    assert set(colors(plot.spec)) <= set(DRAWABLE)


def test_two_recipes_with_a_snapshot_of_one_name_have_two_columns() -> None:
    own = manifest_node("compose", "build", is_own=True)
    parts = [replace(manifest_node("tokenize", "day", is_own=False), recipe=name, path=name) for name in ("a", "b")]
    plot = lineage_plot([*parts, own], [Edge(part.path, own.path, "composed") for part in parts])
    assert plot is not None
    assert [point["column"] for point in values(plot)] == ["s:a day", "s:b day", "s:this version"]
    assert lineage_plot([], []) is None
