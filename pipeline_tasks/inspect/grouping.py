"""Groups documents by the values of a column, or by the site of their URL."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.conditions import as_text
from pipeline_tasks.stage import column_of

pc: Any = pyarrow.compute

SITE = "site"
"""The registered domain of the URL, which is a group where no column has this name."""

UNSAID = "(not said)"
"""The group of documents without a value of the column."""

NO_SITE = "(no site)"


def columns_grouped(by: str) -> list[str]:
    """Return the columns that groups need, under each of their possible names."""
    return [by, by.split(".", maxsplit=1)[0], *(["url"] if by == SITE else [])]


def can_group(columns: Sequence[str], by: str) -> bool:
    """Return whether documents with these columns have such groups."""
    return by in columns or by.split(".", maxsplit=1)[0] in columns or (by == SITE and "url" in columns)


def groups_of(batch: pa.RecordBatch, by: str) -> pa.Array:
    """Return the group of each document; RecipeError for a column that is not there, or is of lists or bytes."""
    if by == SITE and by not in batch.schema.names:
        return sites_of(batch)
    return pc.fill_null(as_text(column_of(batch, by, "--by"), by, "--by"), UNSAID)


def sites_of(batch: pa.RecordBatch) -> pa.Array:
    """Return the registered domain of each document's URL."""
    from pipeline_tasks.text.urls.sites import sites

    if "url" not in batch.schema.names:
        return pa.array([NO_SITE] * batch.num_rows, pa.string())
    return pc.fill_null(sites(batch["url"]), NO_SITE)
