"""The supported Python API, for notebooks and scripts: what is published, its rows, the ledger, and training data.

Names that are not here may change with any release. `docs/reference/python.md` has an example of each.
"""

import argparse

import pyarrow as pa

from pipeline_tasks.errors import ContractError, GateRefused, LookRefused, RecipeError, RefineryError, Transient
from pipeline_tasks.inspect.command import chosen_of
from pipeline_tasks.inspect.sql import table
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.ledger import Ledger, ledger_of
from pipeline_tasks.publish.logs.version_log import Version, recipes, versions
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.share import Passes, Split

__all__ = [
    "ContractError",
    "GateRefused",
    "Ledger",
    "LookRefused",
    "Manifest",
    "Passes",
    "RecipeError",
    "RefineryError",
    "Shard",
    "Split",
    "TokenDataset",
    "Transient",
    "Version",
    "ledger_of",
    "read_manifest",
    "read_shards",
    "recipes",
    "sql",
    "versions",
]


def sql(
    root: str, query: str, *, recipe: str = "", version: int | str = "", dataset: str = "", purpose: str = ""
) -> pa.Table:
    """Return the rows of a query over the views of a version, as `refinery sql` does: checked, and logged as a look.

    `version` is a number or a snapshot (default: the one published last), or `dataset` is `NAME` or `NAME@NUMBER`.
    RecipeError for a query that is none, ContractError for a shard that is damaged, LookRefused without a purpose where
    one is needed.
    """
    options = argparse.Namespace(root=root, recipe=recipe, chosen=str(version), dataset=dataset)
    return table(root, chosen_of(options), query, purpose)
