"""Removes documents that were taken down since the selection of a training dataset, and leaves all others in place."""

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.facets import UnitCost, Wiring
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import KNOWN_BY, LOCATOR
from pipeline_tasks.stage import NO_FILE, Batches, Engine, FilePath, Keyed, Layer, Shards, Stage, reject

TAKEN_DOWN = "takedown:taken_down"


@dataclass(frozen=True, slots=True)
class Params:
    """What was taken down. A build fills in `taken_down`: a list of ids, URLs and sites (`store.taken_down`)."""

    taken_down: FilePath = NO_FILE


def take_down(docs: Batches, *listed: Keyed, params: Params) -> Batches:
    """Yield every document; reject those on the list."""
    from pipeline_tasks.text.urls.takedown import evidence, read_list

    taken = read_list(params.taken_down, *listed)
    for batch in docs:
        proofs = evidence(taken, batch)
        if proofs.null_count == len(proofs):
            yield batch
        else:
            yield reject(batch, pc.if_else(pc.is_valid(proofs), TAKEN_DOWN, None), proofs)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Judge each shard by itself: a shard without such a document has the same layer whatever else is on the list."""
    listed = on.keyed(params.taken_down)
    return on.map(partial(take_down, params=params), shards, broadcast=listed, layer=Layer(reads=KNOWN_BY))


def resources(params: Params) -> tuple[str, ...]:
    """Return the file of what was taken down, if there is one."""
    return (params.taken_down,) if params.taken_down else ()


_COLUMNS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("n_tokens", pa.int64())])

STAGE: Stage[Params] = Stage(
    name="takedown",
    run=run,
    params=Params,
    reads=_COLUMNS,
    writes=_COLUMNS,
    version=1,
    splits=False,
    libraries={UNICODE: lambda params: bool(params.taken_down)},
    resources=resources,
    profiled=("n_tokens",),
    reasons=(TAKEN_DOWN,),
    cost=UnitCost(0.015, 1.00, 0.01, 2, rows=1.0),
    wiring=Wiring(builds=True),
)
