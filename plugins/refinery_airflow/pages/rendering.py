"""Renders Refinery's pages: templates in which every value is escaped, their number formats, and the static files."""

import json
from functools import lru_cache
from importlib.metadata import version
from math import isinf, isnan
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from refinery_study.read.shares import in_short

from pipeline_tasks.ask.written import figure, number, percent, seconds, size, usd
from pipeline_tasks.counted import counted
from pipeline_tasks.inspect.diff import setting_text
from pipeline_tasks.sealed import path_of, sha256
from refinery_airflow.access.looks import Shown
from refinery_airflow.runs.run import base, root, site

SAMPLE = 400
"""Characters of a row's text that are shown."""

FOLDER = Path(__file__).parents[1] / "templates"

VEGA = "vega.js"
"""Vega, Vega-Lite and vega-embed in one file, which the package vl-convert carries."""

MEDIA_TYPES = {"refinery.css": "text/css", "refinery.js": "text/javascript", VEGA: "text/javascript"}
"""The static files of the pages, and what they are."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
"""A page runs and is styled by the files of this plugin alone: nothing in its markup runs, and it fetches nothing."""

STORED_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'self'"
)
"""A stored page (a report, Data Docs) is text and style: it runs no script and fetches nothing."""


@lru_cache(maxsize=8)
def static_file(name: str) -> bytes:
    """Return the bytes of a static file; KeyError if the pages have none of that name."""
    if name not in MEDIA_TYPES:
        raise KeyError(name)
    if name == VEGA:
        import vl_convert

        bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default
        return bundle.encode()
    return (FOLDER / "static" / name).read_bytes()


def static(name: str) -> str:
    """Return the URL of a static file, which changes with its content so that browsers may keep it."""
    content = version("vl-convert-python") if name == VEGA else sha256(static_file(name))[:12]
    return f"{site()}/static/{name}?v={content}"


def signed(value: float) -> str:
    """Return a whole number with its sign, zero without."""
    return f"{value:+,.0f}" if value else "0"


def change(share: float) -> str:
    """Return a relative change in percent, with its sign."""
    return f"{share * 100:+.1f} %" if share else "0 %"


def points(difference: float) -> str:
    """Return a difference of two shares in percentage points, with its sign."""
    rounded = round(difference * 100, 1)
    return f"{rounded:+.1f} points" if rounded else "0.0 points"


def bound(value: float) -> str:
    """Return a bound of a rule; "skipped" for a rule that is not applied, "no bound" for an infinite one."""
    return "skipped" if isnan(value) else "no bound" if isinf(value) else f"{value:.12g}"


def prose(text: str) -> Markup:
    """Return text as escaped HTML in which what is between backticks is code."""
    parts = text.split("`")
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def as_json(value: object) -> str:
    """Return a value as JSON, for an attribute."""
    return json.dumps(value, separators=(",", ":"))


class _Base:
    """The path of the pages of the root that is shown, also in macros."""

    def __str__(self) -> str:
        return base()


PAGES = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
PAGES.globals |= {
    "base": _Base(),
    "static": static,
    "counted": counted,
    "in_short": in_short,
    "number": number,
    "percent": percent,
    "usd": usd,
    "seconds": seconds,
    "figure": figure,
}
PAGES.filters |= {
    "number": number,
    "signed": signed,
    "bound": bound,
    "change": change,
    "points": points,
    "setting": setting_text,
    "path_of": path_of,
    "percent": percent,
    "figure": figure,
    "size": size,
    "seconds": seconds,
    "usd": usd,
    "json": as_json,
    "prose": prose,
}


def render(page: str, **values: object) -> str:
    """Render a page; every value is escaped."""
    return PAGES.get_template(page).render(**values)


def show(page: str, **values: object) -> Shown:
    """Return the response of a page of the root that is shown."""
    return Shown(render(page, root=root(), **values))
