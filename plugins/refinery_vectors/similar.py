"""Finds the published documents that are most like a document, a URL, a text or a file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Note, Part, Table
from pipeline_tasks.ask.question import Question, Role
from pipeline_tasks.binding import bind_fields
from pipeline_tasks.cards import adds, stage_names
from pipeline_tasks.constraints import Range
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError, StorageBusy
from pipeline_tasks.inspect.command import DEFAULT_RECIPE, recipe_of
from pipeline_tasks.inspect.conditions import split_conditions
from pipeline_tasks.publish.datasets.vectors import Dataset, Made, dataset_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import Recipe, load_recipe, untried
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages import embed
from pipeline_tasks.store.files import digest_of_named, localize
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.text.urls.takedown import DOC, URL
from pipeline_tasks.text.urls.takedown_entries import valid_entries
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
from refinery_vectors.stores import STORE_HELP, VectorTable, default_store, existing_tables, is_installed
from refinery_vectors.syncing import models_of, store_of
from refinery_vectors.table import was_removed
from refinery_vectors.where import Condition, conditions

LIMIT = 10
"""Documents that are shown unless another number is named."""

TITLE = 80
"""Characters of a title that are shown."""

TRIES = 3
"""How often a table is opened whose files a sync removes meanwhile."""

ON_PAGE = 256_000_000
"""Bytes of shards of snapshots without a store that a request reads."""


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


@dataclass(frozen=True, slots=True)
class Params:
    """What documents are to be like, which of them are asked for, and where the store is."""

    root: str
    document: Annotated[str, "a published document: 32 hex digits", "ID"] = ""
    url: Annotated[str, "or a published page, however its URL is written", "URL"] = ""
    text: Annotated[str, "or a text, which the recipe's model embeds", "TEXT"] = ""
    file: Annotated[str, "or a file with a text", "FILE"] = ""
    recipe: Annotated[str, f"recipe, or its file (default: the only one in ROOT, else {DEFAULT_RECIPE})"] = ""
    where: Annotated[
        tuple[str, ...],
        "only such documents: language=de,fr, chars>=500, score=0.2..0.8; may be repeated",
        "COLUMN=VALUE",
    ] = ()
    limit: Annotated[int, Range(1, 10_000), f"documents listed (default: {LIMIT})", "N"] = LIMIT
    exact: Annotated[bool, "compare every vector, also where there is an index"] = False
    store: Annotated[str, STORE_HELP, "URI"] = ""
    most_bytes: Annotated[float, Range(), "bytes of shards that are read at most (default: 0, all)", "N"] = 0


def answer(params: Params) -> Answer:
    """Return the nearest documents, and what was compared."""
    text = _text_of(Path(params.file)) if params.file else params.text
    where = [condition for written in params.where for condition in split_conditions(written)]
    asked = (params.document, params.url, text, where, params.limit)
    query = Query(*asked, exact=params.exact, most_bytes=int(params.most_bytes))
    recipe = recipe_of(params)
    found = similar(params.root, recipe, query, params.store or default_store())
    documents = [each.id for each in filter(None, (found.origin, *found.documents))]
    return Answer("Similar documents", [*_parts(found, recipe)], asdict(found), documents, {"recipe": recipe})


QUESTION = Question(
    Params,
    answer,
    Role.CURATOR,
    {"recipe": "", "text": "", "file": "", "store": "", "exact": False, "limit": 25, "most_bytes": ON_PAGE},
    {"document": ("--id", "--doc")},
    one_of=("document", "url", "text", "file"),
)


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


def _params(recipe: Recipe) -> embed.Params:
    """Return the params of the stage that makes vectors; RecipeError if the recipe has none."""
    stages = (*(step.stage for step in recipe.steps), *stage_names())
    stage = next(name for name in stages if adds(EMBEDDING, name))
    return bind_fields(embed.Params, recipe.step(stage).params, f"recipe {recipe.name}: {stage}")


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


FOUND = (
    Column("id", "document", "id"),
    Column("similarity", kind="figure"),
    Column("snapshot", kind="version"),
    Column("url", "address", "url"),
    Column("title"),
)


def _parts(found: Found, recipe: str) -> Iterator[Part]:
    """Yield the document that was named, those that are most like it, and what was compared and what not."""
    origin, *rows = ({**_facts(each), "recipe": recipe} for each in (found.origin, *found.documents))
    if found.origin:
        yield Table(FOUND[:1] + FOUND[2:], [origin], "What they are like")
    title = f"{counted(len(rows), 'document')} by model {found.model}, the most similar first"
    yield Table(FOUND, rows, title, "No other document that was compared meets the conditions.")
    yield Note(f"{_compared(found)}.")
    yield from (Note(f"{part}.", "warn") for part in _left_out(found))


def _facts(each: Similar | None) -> dict[str, object]:
    return {**asdict(each), "title": " ".join(each.title.split())[:TITLE]} if each else {}


def _compared(found: Found) -> str:
    """Return what was compared, for a person."""
    parts = []
    if found.in_table is not None:
        how = "all compared" if found.recall is None else f"by its index, which finds {found.recall:.0%} of the nearest"
        parts.append(f"{counted(found.in_table, 'document')} of the store, {how}")
    if found.read:
        named = f"{counted(len(found.read), 'snapshot')} without a store"
        parts.append(f"{counted(found.in_shards, 'document')} of {named}, all compared")
    return "; ".join(parts) or "nothing was compared"


def _left_out(found: Found) -> Iterator[str]:
    """Yield what was not compared, for a person."""
    if found.unread:
        missing = counted(len(found.unread), "snapshot")
        yield f"not read: {missing} that the store does not have; `refinery keep index` adds them"
    if found.others:
        yield f"without vectors of model {found.model}: {', '.join(found.others)}"
