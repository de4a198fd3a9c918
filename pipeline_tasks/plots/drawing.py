"""Draws plots without a browser, as SVG and PNG on a white ground, in the colors of the light theme."""

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from pipeline_tasks.plots.plot import Plot

COLORS: Mapping[str, str] = {
    "--page": "#ffffff",
    "--text": "#141a2b",
    "--quiet": "#4c5a6d",
    "--grid": "#e5e9ef",
    "--good": "#15803d",
    "--warn": "#a14a00",
    "--bad": "#b91c1c",
    "--plot-1": "#2563b8",
    "--plot-2": "#c2571a",
    "--plot-3": "#6b7280",
    "--plot-4": "#15803d",
    "--plot-5": "#7e22ce",
    "--plot-6": "#0e7490",
}
"""Values of the stylesheet's properties in the light theme (`templates/static/refinery.css` of the plugin)."""

COLORED = ("color", "fill", "stroke", "range")
"""The keys of a spec under which a color may stand."""

WIDTH = 560
"""Pixels of what is drawn between the axes."""

WIDE = 1100
"""Pixels of a plot that is a page of its own."""

SCALE = 2.0
"""Pixels of a PNG for each of an SVG."""

FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"

_AXIS = {
    "labelColor": COLORS["--quiet"],
    "titleColor": COLORS["--quiet"],
    "titleFontWeight": 500,
    "gridColor": COLORS["--grid"],
    "domainColor": COLORS["--grid"],
    "tickColor": COLORS["--grid"],
    "labelSeparation": 8,
}
CONFIG: Mapping[str, Any] = {
    "background": COLORS["--page"],
    "font": FONT,
    "padding": 4,
    "view": {"stroke": None},
    "axis": _AXIS,
    "legend": {"labelColor": COLORS["--text"], "titleColor": COLORS["--quiet"], "symbolType": "square"},
    "text": {"color": COLORS["--text"]},
    "line": {"color": COLORS["--plot-1"]},
    "bar": {"color": COLORS["--plot-1"]},
    "point": {"color": COLORS["--plot-1"]},
    "rule": {"color": COLORS["--quiet"]},
}
"""The look of plots, as the pages of the web UI have it."""


def svg(plot: Plot) -> str:
    """Return a plot as an SVG element; texts in it are escaped, and it refers to nothing outside."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(_drawable(plot), allowed_base_urls=[])
    return drawn


def png(plot: Plot) -> bytes:
    """Return a plot as a PNG."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(_drawable(plot), scale=SCALE, allowed_base_urls=[])
    return drawn


POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""What a page may do: run what is in it, and fetch nothing."""


def page(plot: Plot) -> str:
    """Return a plot as a page that reacts to the mouse, with the JavaScript that draws it.

    Texts of a crawl are in it: no sign of them ends the script that they are in.
    """
    import vl_convert

    spec = {**_drawable(plot), "width": WIDE}
    written = json.dumps(spec).replace("<", "\\u003c")
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
    options = json.dumps({"actions": False, "ast": True, "renderer": "canvas"})
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(plot.title)}</title><style>body {{ font: 15px {FONT}; margin: 2rem; }}</style></head>
<body><h1>{escape(plot.title)}</h1><p>{escape(plot.note)}</p><div id="plot"></div>
<script type="module">{bundle}
window.vegaEmbed("#plot", {written}, {options});</script></body></html>
"""


def _drawable(plot: Plot) -> dict[str, Any]:
    spec: dict[str, Any] = _colored(plot.spec)
    return {**spec, "width": WIDTH, "config": CONFIG}


def _colored(value: object, key: str = "") -> Any:  # noqa: ANN401 -- JSON
    """Return a part of a spec with colors in the place of their names; data stays as it is."""
    if isinstance(value, Mapping):
        return {name: item if name == "data" else _colored(item, name) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_colored(item, key) for item in value]
    return COLORS.get(value, value) if key in COLORED and isinstance(value, str) else value
