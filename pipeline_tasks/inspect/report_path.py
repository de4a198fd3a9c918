"""Prints the path of a published snapshot's report."""

import argparse

from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot."""
    add_snapshot(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the path."""
    version = version_of(options)
    path = f"{options.root}/{version.report}"
    facts = {"recipe": version.recipe, "snapshot": version.snapshot, "version": version.number, "report": path}
    print_result(options, facts, [path])
    return 0
