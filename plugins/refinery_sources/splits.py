"""Leaves splits other than train out of a folder's or a repository's files, unless a recipe names files itself."""

import logging
from collections.abc import Mapping, Sequence

from pipeline_tasks.landing.listing import left_out_lines
from pipeline_tasks.landing.splits import other_splits

NAME_THEM = "train alone is taken; name others by `include`"

log = logging.getLogger("refinery")


def unasked_splits(tables: Sequence[str], include: Sequence[str]) -> dict[str, str]:
    """Return the tables of splits other than train, by path, with their split; none where `include` names files."""
    return {} if include else other_splits(tables)


def log_unasked(place: str, unasked: Mapping[str, str]) -> None:
    """Say in a line for each split which files a pull leaves out."""
    for line in left_out_lines([(name, f"of the split {split}; {NAME_THEM}") for name, split in unasked.items()]):
        log.warning("%s: %s", place, line)
