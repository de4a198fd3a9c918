"""Finds the published documents that are most like a document, a URL, a text or a file."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.binding import bind_fields
from pipeline_tasks.cards import adds, stage_names
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError, StorageBusy
from pipeline_tasks.inspect.command import add_json, add_recipe, number, print_result, recipe_of
from pipeline_tasks.inspect.looks import looked
from pipeline_tasks.publish.datasets.vectors import Dataset, Made, dataset_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import valid_entries
from pipeline_tasks.recipe import Recipe, load_recipe, untried
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.embed import Params
from pipeline_tasks.store.files import digest_of_named, localize
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.text.urls.takedown import DOC, URL
from refinery_vectors.nearest import (
    Origin,
    Similar,
    merged,
    nearest_in_shards,
    nearest_in_table,
    origin_of,
    synced,
)
from refinery_vectors.postgres import shown
from refinery_vectors.stores import VectorTable, add_store, existing_tables, is_installed
from refinery_vectors.syncing import models_of, store_of
from refinery_vectors.table import was_removed
from refinery_vectors.where import Condition, conditions

LIMIT = 10
"""Documents that are shown unless another number is named."""

TRIES = 3
"""How often a table is opened whose files a sync removes meanwhile."""


@dataclass(frozen=True, slots=True)
class Query:
    """What documents are to be like, one of an id, a URL and a text; conditions on them; how many are asked for.

    With `exact` no index is used. `most_bytes` are those of shards that may be read (0: all).
    """

    id: str = ""
    url: str = ""
    text: str = ""
    where: Sequence[str] = ()
    limit: int = LIMIT
    exact: bool = False
    most_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The documents that are most like what was asked for, by vectors of one model.

    `origin` is the document that was named, None for a text. `in_table` says how many documents the store compared,
    None without one; `recall` is that of its index, None where all were compared. `in_shards` are those that were
    compared in the published shards of `read`. `unread` are snapshots that would have been too many bytes, `others`
    those with vectors of another model, or with none.
    """

    model: str
    documents: tuple[Similar, ...]
    origin: Similar | None = None
    in_table: int | None = None
    recall: float | None = None
    in_shards: int = 0
    read: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is asked for, the root, the recipe, conditions, and where the store is."""
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--document", "--id", dest="id", metavar="ID", help="a published document: 32 hex digits")
    asked.add_argument("--url", metavar="URL", help="a published page, however its URL is written")
    asked.add_argument("--text", metavar="TEXT", help="a text, which the recipe's model embeds")
    asked.add_argument("--file", metavar="FILE", help="a file with a text")
    add_recipe(parser)
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="only such documents: language=de,fr, chars>=500, score=0.2..0.8; may be repeated",
    )
    parser.add_argument(
        "--limit", type=number(int, 1, 10_000), default=LIMIT, metavar="N", help=f"documents listed (default: {LIMIT})"
    )
    parser.add_argument("--exact", action="store_true", help="compare every vector, also where there is an index")
    add_store(parser)
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print the nearest documents, and what was compared."""
    text = _text_of(Path(options.file)) if options.file else options.text or ""
    query = Query(options.id or "", options.url or "", text, options.where, int(options.limit), options.exact)
    found = similar(options.root, options.recipe or recipe_of(options), query, options.store)
    looked(options, len(found.documents), [each.id for each in found.documents])
    print_result(options, asdict(found), found_lines(found))
    return 0


def similar(root: str, recipe: str, query: Query, store: str = "") -> Found:
    """Return the documents of a recipe, named or given as a YAML file, that are most like what a query asks for.

    Of a snapshot that the store has, the store is asked; of any other the published shards are read. RecipeError for a
    document that is not published, one without a vector, and a text that cannot be embedded as the documents were.
    """
    for left in reversed(range(TRIES)):
        try:
            return _similar(root, recipe, query, store)
        except (OSError, pa.ArrowInvalid) as error:
            if isinstance(error, pa.ArrowInvalid) and not was_removed(error):
                raise
            if not left:
                message = f"{shown(store_of(root, recipe, store))} cannot be read ({str(error)[:300]}); ask again"
                raise StorageBusy(message) from error
    raise AssertionError


def _similar(root: str, recipe: str, query: Query, store: str) -> Found:
    """As `similar`; OSError if a sync removes the files of a table that is read."""
    if not (query.id or query.url or query.text.strip()):
        message = "nothing to compare with: --id, --url, --text or --file is empty; name a document or a text"
        raise RecipeError(message)
    where = conditions(query.where)
    name = recipe if recipe in version_log.recipes(root) else load_recipe(recipe).name
    version_log.require_kind(root, name, builds=False)
    dataset = dataset_of(root, name)
    tables = existing_tables(store_of(root, name, store)) if is_installed(store) else []
    models = models_of(dataset, tables)
    if not any(models.values()):
        message = (
            f"{root}: no published version of recipe {name} has vectors; refine by a recipe with the stage `embed`"
        )
        raise RecipeError(message)
    if query.text:
        vector, model = _embedded(recipe, query.text, models)
        return _searched(_Search(dataset, tables, models, where, query), model, vector)
    origin, model = _origin(dataset, tables, models, query)
    found = _searched(
        _Search(dataset, tables, models, where, replace(query, limit=query.limit + 1)), model, origin.vector
    )
    others = tuple(each for each in found.documents if each.id != origin.id)[: query.limit]
    return replace(found, documents=others, origin=Similar(1.0, origin.snapshot, origin.id, origin.url, origin.title))


class _Search(NamedTuple):
    dataset: Dataset
    tables: Sequence[VectorTable]
    models: Mapping[str, Made | None]
    where: Sequence[Condition]
    query: Query


def _searched(search: _Search, model: str, vector: npt.NDArray[np.float64]) -> Found:
    """Return the nearest documents: of the model's table, and of the shards of snapshots that it does not have."""
    dataset, query = search.dataset, search.query
    own = [name for name, made in search.models.items() if made and made.model == model]
    table = next((table for table in search.tables if table.model == model), None)
    stored = set(synced(dataset, table)) if table else set[str]()
    read, unread = _affordable(dataset, [name for name in own if name not in stored], query.most_bytes)
    found, compared = nearest_in_shards(dataset, read, vector, search.where, query.limit)
    in_table, recall = None, None
    if table is not None and stored:
        near = nearest_in_table(dataset, table, vector, search.where, query.limit, exact=query.exact)
        found, in_table = merged(found, near, query.limit), table.rows
        recall = table.state.index.recall if table.state.index and not query.exact else None
    return Found(
        model,
        tuple(found),
        in_table=in_table,
        recall=recall,
        in_shards=compared,
        read=tuple(read),
        unread=tuple(unread),
        others=tuple(sorted(search.models.keys() - set(own))),
    )


def _affordable(dataset: Dataset, snapshots: Sequence[str], most_bytes: int) -> tuple[list[str], list[str]]:
    """Return the snapshots whose shards have so many bytes together (0: all), the newest first, and the others."""
    read: list[str] = []
    left = most_bytes
    for snapshot in sorted(snapshots, reverse=True):
        weight = sum(shard.weight for shard in read_manifest(dataset.root, dataset.versions[snapshot].refined).shards)
        if most_bytes and weight > left:
            break
        left -= weight
        read.append(snapshot)
    return read, [name for name in snapshots if name not in read]


def _origin(
    dataset: Dataset, tables: Sequence[VectorTable], models: Mapping[str, Made | None], query: Query
) -> tuple[Origin, str]:
    [(kind, value)] = valid_entries([(DOC, query.id) if query.id else (URL, query.url)])
    id_, url = (value.lower(), "") if kind == DOC else ("", value)
    known = origin_of(dataset, tables, models, id_=id_, url=url)
    if known is None:
        message = (
            f"{dataset.root}: no published snapshot of recipe {dataset.recipe} has {'document' if id_ else 'the URL'} "
            f"{value[:200]} with a vector: it was rejected, superseded or taken down, or has no token that the model "
            "knows; `refinery document` says what became of one"
        )
        raise RecipeError(message)
    return known


def _embedded(recipe: str, text: str, models: Mapping[str, Made | None]) -> tuple[npt.NDArray[np.float64], str]:
    """Return the vector of a text by the model of a recipe, and the model's name, which published vectors have, too."""
    from pipeline_tasks.scorers.embedder import load_embedder
    from pipeline_tasks.text.near.vectors import packed, unpacked

    params = _params(load_recipe(untried(recipe)))
    embedder = load_embedder(replace(params, model=FilePath(localize(params.model, digest_of_named(params.model)))))
    known = sorted({made.model for made in models.values() if made})
    if embedder.name not in known:
        message = (
            f"the model of recipe {recipe} makes vectors named {embedder.name}, and published ones are named "
            f"{', '.join(known)}: they cannot be compared. Name the recipe that made them by --recipe FILE, or refine "
            "the snapshots again"
        )
        raise RecipeError(message)
    vectors = embedder.embed([text]).vectors
    if not np.isfinite(vectors).all():
        message = "the text has no token that the model knows; ask for another"
        raise RecipeError(message)
    return unpacked(packed(vectors).cast(pa.large_binary()))[0], embedder.name


def _params(recipe: Recipe) -> Params:
    """Return the params of the stage that makes vectors; RecipeError if the recipe has none."""
    stages = (*(step.stage for step in recipe.steps), *stage_names())
    stage = next(name for name in stages if adds(EMBEDDING, name))
    return bind_fields(Params, recipe.step(stage).params, f"recipe {recipe.name}: {stage}")


def _text_of(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"--file {file} cannot be read ({error}); name a file with UTF-8 text"
        raise RecipeError(message) from error
    if not text.strip():
        message = f"--file {file} has no text"
        raise RecipeError(message)
    return text


# --- Output -----------------------------------------------------------------------------------------------------


def compared_text(found: Found) -> str:
    """Return what was compared, for a person."""
    parts = []
    if found.in_table is not None:
        how = "all compared" if found.recall is None else f"by its index, which finds {found.recall:.0%} of the nearest"
        parts.append(f"{counted(found.in_table, 'document')} of the store, {how}")
    if found.read:
        named = f"{counted(len(found.read), 'snapshot')} without a store"
        parts.append(f"{counted(found.in_shards, 'document')} of {named}, all compared")
    return "; ".join(parts) or "nothing was compared"


def left_out(found: Found) -> Iterator[str]:
    """Yield what was not compared, for a person."""
    if found.unread:
        missing = counted(len(found.unread), "snapshot")
        yield f"not read: {missing} that the store does not have; `refinery keep index` adds them"
    if found.others:
        yield f"without vectors of model {found.model}: {', '.join(found.others)}"


def found_lines(found: Found) -> Iterator[str]:
    """Yield a line per document, and what was compared."""
    if found.origin:
        yield f"like      {found.origin.id} of {found.origin.snapshot}  {found.origin.url}".rstrip()
    for each in found.documents:
        title = f"  {' '.join(each.title.split())[:80]}" if each.title else ""
        yield f"{each.similarity:8.4f}  {each.id} of {each.snapshot}  {each.url}{title}".rstrip()
    yield f"{counted(len(found.documents), 'document')} by model {found.model}; {compared_text(found)}"
    yield from left_out(found)
