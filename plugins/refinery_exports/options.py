"""The options that commands share which write an export: where it goes, and by how many processes, on which engine."""

import argparse

from pipeline_tasks.inspect.command import add_engine, number

MOST_WORKERS = 1024


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the place of an export."""
    parser.add_argument(
        "--to", required=True, metavar="PLACE", help="an empty folder, or s3://, gs:// or az://bucket/prefix"
    )


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the processes that write an export here, and the engine that does elsewhere."""
    parser.add_argument(
        "--workers",
        type=number(int, 1, MOST_WORKERS),
        default=0,
        metavar="N",
        help="processes of this machine (default: one per processor)",
    )
    add_engine(parser)
