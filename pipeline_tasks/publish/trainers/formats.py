"""Lists the formats in which a training dataset is exported for other trainers."""

from collections.abc import Mapping

from pipeline_tasks.publish.trainers import mds, megatron, numpy_arrays, parquet, webdataset
from pipeline_tasks.publish.trainers.format import Format
from pipeline_tasks.publish.trainers.text_files import TEXT_FORMATS, TextFormat
from pipeline_tasks.seams import EXPORTS, part_of

FORMATS: Mapping[str, Format] = {
    "parquet": parquet.FORMAT,
    "mds": mds.FORMAT,
    "webdataset": webdataset.FORMAT,
    "numpy": numpy_arrays.FORMAT,
    "megatron": megatron.FORMAT,
}
"""Formats of tokens by name. A new one is its module, its test and a line here."""


def format_of(name: str) -> Format | TextFormat:
    """Return a format of tokens or of texts by its name: ours, or one that another distribution brings."""
    if own := FORMATS.get(name) or TEXT_FORMATS.get(name):
        return own
    kinds: tuple[type[Format | TextFormat], ...] = (Format, TextFormat)
    return part_of(EXPORTS, name).load(*kinds)
