"""Lists the files of a snapshot that were cut, for `refinery pull addresses` to fetch them again."""

import argparse
import sys
from collections import Counter

from pipeline_tasks.ask.written import size
from pipeline_tasks.counted import counted
from pipeline_tasks.inspect.command import add_snapshot, print_result, version_of
from pipeline_tasks.inspect.cut_files import CutFile, cut_files
from pipeline_tasks.inspect.looks import looked

COLUMNS = ("url", "bytes", "why", "type", "became")
"""What a line says of a file, with tabs between."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root and the snapshot."""
    add_snapshot(parser)


def answer(options: argparse.Namespace) -> int:
    """Print a line for each file that was cut, with the names of its fields first; on stderr how many these are."""
    version = version_of(options)
    cut = cut_files(options.root, version)
    looked(options, len(cut), [], version)
    sys.stderr.write(f"refinery: {_summary(cut)} in snapshot {version.snapshot}\n")
    print_result(options, [each._asdict() for each in cut], ["\t".join(COLUMNS), *map(_line, cut)])
    return 0


def _summary(cut: list[CutFile]) -> str:
    causes = Counter(each.why for each in cut)
    named = ", ".join(f"{why} {files:,}" for why, files in causes.most_common())
    return f"{counted(len(cut), 'file')} of {size(sum(each.bytes for each in cut))} cut{f' ({named})' if named else ''}"


def _line(cut: CutFile) -> str:
    return "\t".join(str(value) for value in (cut.url, cut.bytes, cut.why, cut.type or "", cut.became))
