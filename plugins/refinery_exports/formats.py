"""Finds the formats in which a training dataset is exported for other trainers: by the entry points of packages."""

from pipeline_tasks.seams import EXPORTS, part_of
from refinery_exports.format import Format
from refinery_exports.text.text_files import TableFormat, TextFormat


def format_of(name: str) -> Format | TextFormat | TableFormat:
    """Return a format of tokens, texts or all rows by its name: ours, or one that another distribution brings."""
    kinds: tuple[type[Format | TextFormat | TableFormat], ...] = (Format, TextFormat, TableFormat)
    return part_of(EXPORTS, name).load(*kinds)
