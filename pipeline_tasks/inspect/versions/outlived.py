"""Finds training datasets whose newest version still has documents of snapshots that were retracted since."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.publish.datasets.origin import Source, read_origin
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.publish.takedowns import documents_of
from pipeline_tasks.recipe import BUILDS, DEFAULT_BUILD, default_build, load_build, recipe_names
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest, read_shards


@dataclass(frozen=True, slots=True)
class Outlived:
    """A dataset's newest version and a retracted snapshot that it was composed of.

    `documents` are those of the snapshot that it has, None where they cannot be read.
    """

    version: Version
    source: Source
    documents: int | None


def outlived(root: str) -> Iterator[Outlived]:
    """Yield what newest versions of training datasets have of retracted snapshots; of no other a document is read."""
    retracted: dict[str, set[str]] = {}
    for version in version_log.built_versions(root):
        sources = _sources(root, version)
        for recipe in {source.recipe for source in sources} - retracted.keys():
            retracted[recipe] = retracted_manifests(root, recipe)
        for source in sources:
            if source.manifest in retracted[source.recipe]:
                documents = _documents(root, version, source.snapshot)
                if documents != 0:
                    yield Outlived(version, source, documents)


def _sources(root: str, version: Version) -> Sequence[Source]:
    try:
        return read_origin(root, version).sources
    except (ContractError, RecipeError):  # `verify` names what is damaged
        return ()


def retracted_manifests(root: str, recipe: str) -> set[str]:
    """Return the manifests of documents that were retracted and not restored since, also where others replaced them."""
    paths: dict[int, str] = {}
    retracted: set[str] = set()
    for entry in version_log.log(root, recipe):
        if isinstance(entry, Retraction):
            retracted.update(paths[number] for number in entry.retracts)
        else:
            paths[entry.number] = path_of(entry.refined)
            retracted.discard(paths[entry.number])
    return retracted


def _documents(root: str, version: Version, snapshot: str) -> int | None:
    """Return how many documents of a snapshot a dataset has, each once; None where its shards cannot be read."""
    try:
        documents = documents_of({stage: read_manifest(root, path) for stage, path in version.manifests.items()})
        columns = ["snapshot", *(["copy"] if "copy" in dict(documents.schema) else [])]
        return sum(_rows(batch, snapshot) for batch in read_shards(root, documents.shards, columns))
    except (ContractError, RecipeError):
        return None


def _rows(batch: pa.RecordBatch, snapshot: str) -> int:
    """Return the rows of a snapshot without those that are further copies of a document."""
    rows = pc.equal(batch["snapshot"], snapshot)
    if "copy" in batch.schema.names:
        rows = pc.and_(rows, pc.equal(batch["copy"], 0))
    return int(pc.sum(rows).as_py() or 0)


def outlived_lines(root: str, found: Iterable[Outlived]) -> Iterator[str]:
    """Yield what each dataset still has of a retracted snapshot, with the command that builds it without."""
    for each in found:
        version, source = each.version, each.source
        has = "documents" if each.documents is None else counted(each.documents, "document")
        yield (
            f"{version.recipe}@{version.number} still has {has} of the retracted snapshot {source.snapshot} of recipe "
            f"{source.recipe}; without {'it' if each.documents == 1 else 'them'}: {_build(root, version, source)}"
        )


def _build(root: str, version: Version, source: Source) -> str:
    """Return the command that builds a dataset anew; a root keeps no path of the recipe of a user."""
    shipped = version.recipe in recipe_names(BUILDS) and load_build(version.recipe).versions
    if not (shipped and shipped.recipe == source.recipe):
        if version.recipe == default_build(source.recipe).name:
            return f"the next `refinery run` of recipe {source.recipe} builds it"
        file = shlex.join(["refinery", "build", root, "--recipe", f"{version.recipe}.yaml"])
        return f"`{file}` (give the path of the recipe's file)"
    named = [] if version.recipe == DEFAULT_BUILD else ["--recipe", version.recipe]
    return f"`{shlex.join(['refinery', 'build', root, *named])}`"
