"""Prints the path of a published snapshot's report, or of a training dataset's card."""

import argparse

from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.publish.building import CARD
from pipeline_tasks.publish.published import read_published_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot."""
    add_snapshot(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the path, of a training dataset that of its card; ContractError if the file is gone or was changed."""
    version = version_of(options)
    file = version.file((version.report or CARD).rpartition("/")[2])
    read_published_file(options.root, file, version.way_out)
    path = f"{options.root}/{file.path}"
    facts = {"recipe": version.recipe, "snapshot": version.snapshot, "version": version.number, "report": path}
    print_result(options, facts, [path])
    return 0
