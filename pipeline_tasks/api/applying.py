"""Applies one stage, or one filter, to rows: in this process, with nothing but a temporary folder."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.api.rows import Needed, Rows, completed, needed_by, parted, pieces
from pipeline_tasks.binding import bind, unknown_key
from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest, identified, manifest_path, schema_pairs
from pipeline_tasks.recipe import LOCAL, ErrorBudget, Step, stage_name, stage_of_key
from pipeline_tasks.schema import VERDICT
from pipeline_tasks.stage import Shard, Stage

GIVEN = "given"
"""The stage of the manifest of rows that were given."""

COUNTED = ("n_tokens", "copies")
"""Columns that stages conserve the sums of."""


class Applied(NamedTuple):
    """The rows that a stage kept, and all others, with `reason` and `evidence`: `error:` means quarantined."""

    kept: pa.Table
    rejected: pa.Table


def apply(stage: str, rows: Rows, /, **params: object) -> Applied:
    """Return what a stage does with rows by its params; every row is in one of the two tables.

    Stages that it follows (`facets.Wiring`) are applied before, and say what they reject. A stage that brings rows
    together gives them in its own order, any other in theirs. RecipeError for an unknown stage, a wrong param, or a
    column that the stage needs and the rows neither have nor imply.
    """
    return applied(stage_card(stage_name(stage)), rows, params)


def filter_rows(profile: str, rows: Rows, /, **params: object) -> Applied:
    """Return which rows a profile of `filters` keeps and rejects, with its signals as columns.

    `params` are limits of the profile (`min_doc_words=30`), and params of the stage that judges by profiles (`words`,
    `packs`, `edit`, `mend`). Rows without `language` get no exceptions of languages.
    """
    from pipeline_tasks.filters import load_filters

    judge = stage_of_key(profile)
    if judge is None:
        raise unknown_key(profile, load_filters(), "filter")
    own = {declared.name for declared in fields(judge.params)}
    limits = {name: value for name, value in params.items() if name not in own}
    of_stage = {name: value for name, value in params.items() if name in own}
    bound = {profile: limits} if limits else {}
    return applied(judge, rows, {"profiles": [profile], **bound, **of_stage}, optional=("language",))


def applied(card: Stage[Any], rows: Rows, written: Mapping[str, object], optional: Sequence[str] = ()) -> Applied:
    """Return what a stage does with rows by params as written; columns that are `optional` are null without."""
    from pipeline_tasks.engines.local import LocalEngine
    from pipeline_tasks.run.recipe_faults import check_files
    from pipeline_tasks.run.request import RefineRequest
    from pipeline_tasks.run.runner import refine
    from pipeline_tasks.store.reading import read_shards

    params = bind(card, written)
    check_files(Step(card.name, written, LOCAL))
    needed, unread = needed_by(card, params, optional), list[pa.RecordBatch]()
    with tempfile.TemporaryDirectory(prefix="refinery-") as root:
        parent, schema = _committed(root, _sound(rows, needed, unread))
        rejected = list[Shard]()
        for stage, its_params in (*((before, {}) for before in card.wiring.follows), (card.name, written)):
            request = RefineRequest(root, stage, its_params, parent, error_budget=ErrorBudget(share=1.0))
            parent, made, _ = refine(request, LocalEngine)
            rejected += (*made.rejects, *made.quarantine)
        kept = _table(read_shards(root, made.shards), _left(card.written(params), card, schema))
        return Applied(kept, _table(chain(read_shards(root, rejected), unread), pa.schema([*schema, *VERDICT])))


def _sound(rows: Rows, needed: Needed, unread: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a stage can read, with all that it needs; add the others to `unread`."""
    for piece in pieces(rows):
        sound, without = parted(completed(piece, needed), needed)
        unread += [without] if without.num_rows else []
        yield sound


def _committed(root: str, batches: Iterator[pa.RecordBatch]) -> tuple[str, pa.Schema]:
    """Commit rows as what a stage left, all in one shard; return the path of its manifest, and their columns."""
    from pipeline_tasks.profiles.columns import profile
    from pipeline_tasks.profiles.merging import merge
    from pipeline_tasks.store import storage
    from pipeline_tasks.store.committing import commit_manifest
    from pipeline_tasks.store.shards.file import ShardWriter

    first = next(batches)
    writer, profiles = ShardWriter(first.schema), list[Mapping[str, Any]]()
    try:
        for batch in chain([first], batches):
            writer.write(_alike(batch, writer.schema))
            profiles.append(profile(batch, COUNTED))
        shard = writer.store(root, f"{GIVEN}/data")
    finally:
        writer.discard()
    manifest = identified(_manifest(shard, writer.schema, merge(profiles)))
    path = manifest_path(GIVEN, manifest.fingerprint)
    commit_manifest(storage.connect(root), path, manifest)
    return path, writer.schema


def _alike(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the columns of the first; RecipeError if they have others."""
    differing = {*schema.names} ^ {*batch.schema.names}
    why: object = ", ".join(sorted(differing))
    if not differing:
        try:
            return batch.select(schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            why = error
    message = f"rows have other columns than those before them ({why}); give rows of the same columns"
    raise RecipeError(message)


def _manifest(shard: Shard, schema: pa.Schema, profiled: Mapping[str, Any]) -> Manifest:
    return Manifest(
        stage=GIVEN,
        version=1,
        fingerprint="",
        params={"shard": shard.digest},
        parents=(),
        covers=(),
        schema=schema_pairs(schema),
        shards=(shard,),
        history={},
        rejects=(),
        quarantine=(),
        rows_in=shard.rows,
        bytes_in=shard.bytes,
        rejected={},
        quarantined={},
        metrics={"kept": profiled, "rejects": {}},
    )


def _left(written: pa.Schema, card: Stage[Any], given: pa.Schema) -> pa.Schema:
    """Return the columns that a stage leaves of given ones: all, unless it makes other rows of those that it reads."""
    passes = {*card.reads.names} <= {*written.names}
    return pa.schema(list({field.name: field for field in (*(given if passes else ()), *written)}.values()))


def _table(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return rows as a table; those of a kernel may have columns that those of another lack."""
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(tables, promote_options="default") if tables else schema.empty_table()
