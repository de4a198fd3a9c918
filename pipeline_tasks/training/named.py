"""Finds the folder of a training dataset by its name and version: `/data/refined/corpus@2`, `s3://bucket/corpus@latest`.

A root is all that a person has to know; the folder of a version is named by digests.
"""

import re
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.log_chain import ChainEntry, dataset_log, read_chain

LATEST = "latest"
"""The newest version that is not retracted."""

COMPOSE = "compose"
"""The stage that every training dataset begins with. `recipe` has it, too, and needs more than a training machine."""

_NAMED = re.compile(r"(.+)/([^/@]+)@([^/@]+)")


def folder_of(uri: str) -> str:
    """Return the folder of the version that `ROOT/NAME@NUMBER` or `ROOT/NAME@latest` names; of other URIs the URI.

    RecipeError if the root has no such version, ContractError if the log of its versions was changed.
    """
    match = _NAMED.fullmatch(uri.rstrip("/"))
    if not match or ("://" not in uri and Path(uri).exists()):
        return uri
    root, name, version = match.groups()
    chain = read_chain(root, dataset_log(name))
    folders = {entry.number: str(entry.fields["prefix"]) for entry in chain if "prefix" in entry.fields}
    if folders and not any(COMPOSE in entry.fields.get("manifests", ()) for entry in chain):
        message = f"{uri}: {name} has documents of snapshots; name the training dataset that was built from them"
        raise RecipeError(message)
    number = _newest(chain, folders) if version == LATEST else _number(version)
    if number not in folders:
        known = ", ".join(map(str, folders)) or "none"
        message = (
            f"{uri}: {root} has no version {version} of {name} (it has {known}); name one as ROOT/NAME@NUMBER or "
            f"ROOT/NAME@{LATEST}, or the folder of a version"
        )
        raise RecipeError(message)
    return f"{root}/{folders[number]}"


def _newest(chain: list[ChainEntry], folders: dict[int, str]) -> int:
    retracted = {number for entry in chain for number in entry.fields.get("retracts", ())}
    return max(folders.keys() - retracted, default=0)


def _number(version: str) -> int:
    return int(version) if re.fullmatch(r"\d{1,12}", version, re.ASCII) else 0
