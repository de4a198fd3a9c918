"""Lists the formats in which a training dataset is exported for other trainers."""

from collections.abc import Mapping

from pipeline_tasks.publish.trainers import mds, megatron, numpy_arrays, parquet, webdataset
from pipeline_tasks.publish.trainers.format import Format

FORMATS: Mapping[str, Format] = {
    "parquet": parquet.FORMAT,
    "mds": mds.FORMAT,
    "webdataset": webdataset.FORMAT,
    "numpy": numpy_arrays.FORMAT,
    "megatron": megatron.FORMAT,
}
"""Formats of tokens by name. A new one is its module, its test and a line here."""
