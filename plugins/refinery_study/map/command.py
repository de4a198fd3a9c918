"""Makes a map of a version's documents, and writes it as a page or as JSON."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline_tasks.cli.whole_file import replace_whole
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_snapshot, number, print_result, version_of
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.publish.logs.version_log import Version
from refinery_study.map.points import ColoredMap, colored, columns_to_color
from refinery_study.map.projecting import DOCUMENTS, FEWEST, SEED, DocumentMap, make_map, path_of

MOST = 50_000
"""Documents that a map has at most: a browser draws each as a mark of its own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, the column of colors, the sample, and the file to write."""
    add_snapshot(parser)
    parser.add_argument(
        "--by", default="", metavar="COLUMN", help="column that colors the points (default: topic, else document_type)"
    )
    parser.add_argument("--to", default="", metavar="FILE", help="write FILE.html, or FILE.json with every point")
    parser.add_argument(
        "--pages",
        default="",
        metavar="ADDRESS",
        help="address of the web UI, such as http://localhost:8080: points of FILE.html open their documents there",
    )
    parser.add_argument(
        "--documents",
        type=number(int, FEWEST, MOST),
        default=DOCUMENTS,
        metavar="N",
        help=f"documents of the map, of which the page in the web UI has {DOCUMENTS:,} ({DOCUMENTS})",
    )
    parser.add_argument("--seed", type=number(int, 0, 2**32 - 1), default=SEED, metavar="N", help=f"the draw ({SEED})")


def answer(options: argparse.Namespace) -> int:
    """Make the map if there is none, write it, and print what it has."""
    version, target = version_of(options), Path(options.to)
    if options.to and target.suffix not in (".html", ".json"):
        message = f"--to {options.to}: name a file that ends in .html or .json"
        raise RecipeError(message)
    documents, seed = int(options.documents), int(options.seed)
    by = options.by or next(iter(columns_to_color(options.root, version)))
    drawn = make_map(options.root, version, documents, seed)
    if drawn is None:
        message = (
            f"{options.root}: fewer than {FEWEST} documents of snapshot {version.snapshot} have vectors, so there is "
            "no map; refine by a recipe with the stage `embed`"
        )
        raise RecipeError(message)
    shown = colored(options.root, version, drawn, by, documents)
    if options.to:
        looked(options, len(shown.points), version=version)
        replace_whole(target, _written(target.suffix, version, drawn, shown, options.pages))
    facts = {"map": path_of(version, documents, seed), "by": by, "documents": len(shown.points), "left": shown.left}
    counted_ = f"{counted(len(shown.points), 'document')} of {drawn.looked_at:,} that were looked at, by {by}"
    where = [f"written to {target}"] if options.to else ["--to FILE.html writes it; the web UI shows it"]
    print_result(options, facts, [f"{options.root}/{facts['map']}: {counted_}", *where])
    return 0


def _written(suffix: str, version: Version, drawn: DocumentMap, shown: ColoredMap, pages: str) -> bytes:
    if suffix == ".json":
        facts: dict[str, Any] = {name: getattr(drawn, name) for name in ("recipe", "snapshot", "source", "seed")}
        facts |= {"by": shown.by, "points": [asdict(point) for point in shown.points]}
        return json.dumps(facts).encode() + b"\n"
    from urllib.parse import quote

    from pipeline_tasks.plots.drawing import page
    from refinery_study.map.plot import map_plot

    place = f"{quote(version.recipe, safe='')}/{quote(version.snapshot, safe='')}"
    address = f"{pages.rstrip('/')}/refinery/document/{place}?doc=" if pages else ""
    title = f"Map of {version.recipe} {version.snapshot}"
    return page(map_plot(title, shown.by, shown.points, address)).encode()
