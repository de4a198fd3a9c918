"""Reads objects that no manifest and no entry names: their seal, or their name, says whether they are as written."""

from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.objects import Expected
from pipeline_tasks.manifest import shard_of
from pipeline_tasks.sealed import sha256, unseal
from pipeline_tasks.store import storage

_WAY_OUT = "nothing that is committed rests on it"


def sealed(root: str, path: str) -> Expected | None:
    """Raise ContractError unless an object is as it was sealed."""
    unseal(storage.connect(root).read(path), f"{root}/{path}", _WAY_OUT)
    return None


def of_its_name(root: str, path: str) -> Expected | None:
    """Raise ContractError unless an object has the digest that its name ends with, or begins of it."""
    name = path.removesuffix(".json").rpartition("/")[2].rpartition(".")[2]
    if not sha256(storage.connect(root).read(path)).startswith(name):
        message = f"{root}/{path} is not what its name says: it was changed; {_WAY_OUT}"
        raise ContractError(message)
    return None


def sealed_cache(root: str, path: str) -> Expected | None:
    """Return the segment that an object of a cache names; ContractError unless that is as it was sealed."""
    shard = shard_of(unseal(storage.connect(root).read(path), f"{root}/{path}", _WAY_OUT))
    heal = f"remove it and {root}/{path}: its rows are computed again"
    uri = f"{root}/{shard.path}"
    return Expected(uri, "cache segments", (shard.bytes,), (shard.digest,), heal, optional=True, root=root)
