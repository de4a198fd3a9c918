"""Prints the path of a published snapshot's report, or of a training dataset's card, and draws plots on request."""

import argparse
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.inspect.plotted_report import write_plots
from pipeline_tasks.publish.building import CARD
from pipeline_tasks.publish.published import read_published_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, and where plots are written."""
    add_snapshot(parser)
    parser.add_argument(
        "--plots",
        default="",
        metavar="FOLDER",
        help="write a page of a minute's reading there, report.html, and its plots as SVG and PNG",
    )


def answer(options: argparse.Namespace) -> int:
    """Print the path, of a training dataset that of its card; ContractError if the file is gone or was changed.

    With `--plots` the plots are written, and the path of their page is printed.
    """
    version = version_of(options)
    file = version.file((version.report or CARD).rpartition("/")[2])
    read_published_file(options.root, file, version.way_out)
    path = f"{options.root}/{file.path}"
    facts = {"recipe": version.recipe, "snapshot": version.snapshot, "version": version.number, "report": path}
    if options.plots:
        if not version.report:
            message = f"version {version.number} of {version.recipe} is a training dataset; plots are of snapshots"
            raise RecipeError(message)
        facts["plots"] = path = str(write_plots(options.root, version, Path(options.plots)))
    print_result(options, facts, [path])
    return 0
