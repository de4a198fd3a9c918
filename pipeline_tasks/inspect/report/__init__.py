"""Prints the path of a published snapshot's report, or of a training dataset's card, and draws plots on request."""

import argparse
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_snapshot, committed_of, print_result
from pipeline_tasks.inspect.report.plotted import write_plots
from pipeline_tasks.inspect.unpublished import Committed, title_of
from pipeline_tasks.publish.datasets.building import CARD
from pipeline_tasks.publish.published import read_published_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the snapshot, and where plots are written."""
    add_snapshot(parser)
    parser.add_argument(
        "--to",
        "--plots",
        dest="plots",
        default="",
        metavar="FOLDER",
        help="write a page of a minute's reading there, report.html, and its plots as SVG and PNG",
    )


def answer(options: argparse.Namespace) -> int:
    """Print the path, of a training dataset that of its card; ContractError if the file is gone or was changed.

    With `--to` the plots are written, and the path of their page is printed. RecipeError for a run that has
    published nothing: a report is of a version, and the error says where the run stopped and what shows its stages.
    """
    known = committed_of(options)
    version = known.version
    if version is None:
        raise RecipeError(_without_report(options.root, known))
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


def _without_report(root: str, known: Committed) -> str:
    """Return why a run that published nothing has no report, and what shows its stages."""
    run = known.shown
    shows = f"`refinery look funnel {root} --recipe {run.recipe} --snapshot {run.snapshot}` shows the stages so far"
    account = known.run.account if known.run else ""
    return f"{root}: {title_of(run)}, has no report, which is written with a version; {account}; {shows}"
