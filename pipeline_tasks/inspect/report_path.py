"""Prints the path of a published snapshot's report."""

import argparse

from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.publish.published import read_published_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot."""
    add_snapshot(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the path; ContractError if the report is gone or was changed."""
    version = version_of(options)
    for file in version.files:
        if file.path == version.report:
            read_published_file(options.root, file)
    path = f"{options.root}/{version.report}"
    facts = {"recipe": version.recipe, "snapshot": version.snapshot, "version": version.number, "report": path}
    print_result(options, facts, [path])
    return 0
