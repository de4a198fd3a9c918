"""Reads the documents of a training dataset by group, as `mix` sees them, and pools tokens of each group.

They are the selected documents before the mixture of the dataset, so that a group of which it took little has the rest,
too. Documents that were taken down since are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.cards import choosing_stages, plans_mixture
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.stages.mix.groups import groups_of
from pipeline_tasks.stages.mix.params import Params
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.taken_down import taken_down
from pipeline_tasks.text.base.sampling import uniform_draws
from pipeline_tasks.text.urls.takedown import evidence
from refinery_ablate.mixture.pool import Pool
from refinery_ablate.mixture.search_plan import Counts

SMALL_IDS = 1 << 16

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a dataset before its mixture, in the order of their shards.

    `names` are the groups, sorted, and `groups` the number of each document's group. `draws` put the documents of a
    group into the order in which they are pooled, whatever wrote the shards. `is_taken_down` leaves documents out.
    """

    root: str
    manifest: Manifest
    names: tuple[str, ...]
    groups: Counts
    draws: Counts
    sizes: Counts
    is_taken_down: Flags

    def tokens(self) -> dict[str, int]:
        """Return the tokens of each group."""
        sizes = np.where(self.is_taken_down, 0, self.sizes)
        counts = (int(sizes[self.groups == number].sum()) for number in range(len(self.names)))
        return dict(zip(self.names, counts, strict=True))


def documents_of(root: str, version: Version, by: str, bands: Sequence[float] = ()) -> Documents:
    """Read the group and size of each document; RecipeError for a column that is not there or cannot be cut."""
    params = Params(by=by, bands={by: tuple(bands)} if bands else {}, temperature=1.0)
    choosing = choosing_stages(stages_of(root, version))
    *_, selected = takewhile(lambda stage: not plans_mixture(stage), choosing)
    manifest = read_manifest(root, version.manifests[selected])
    taken = taken_down(root)
    known = [name for name, _ in manifest.schema]
    _require_columns(by, known)
    names, draws, sizes, gone = [], [], [], []
    for batch in read_shards(root, manifest.shards, [*dict.fromkeys([*KNOWN_BY, "n_tokens", *by.split("+")])]):
        names.append(groups_of(batch, params))
        draws.append(uniform_draws(batch["id"], 0))
        sizes.append(np.asarray(batch["n_tokens"], np.int64))
        gone.append(np.asarray(pc.is_valid(evidence(taken, batch))))
    if not names:
        message = f"{root}: version {version.number} of {version.recipe} has no documents; name another dataset"
        raise RecipeError(message)
    every = pa.chunked_array(names, pa.string()).combine_chunks()
    distinct = tuple(sorted(every.unique().to_pylist()))
    numbers = np.asarray(pc.index_in(every, pa.array(distinct, pa.string())), np.int64)
    return Documents(root, manifest, distinct, numbers, *map(np.concatenate, (draws, sizes, gone)))


def _require_columns(by: str, known: Sequence[str]) -> None:
    missing = [name for name in by.split("+") if name not in known]
    if missing:
        message = f"--by {by}: documents have no column {missing[0]!r}; they have {', '.join(sorted(known))}"
        raise RecipeError(message)


def pooled(documents: Documents, group_of: Mapping[str, int], wanted: Sequence[int], length: int) -> Pool:
    """Return so many sequences of each group, each group's documents end to end in the order of their draws.

    `group_of` gives the number in `wanted` of each group of documents that is pooled.
    """
    numbers = np.array([group_of.get(name, -1) for name in documents.names])[documents.groups]
    numbers[documents.is_taken_down] = -1
    firsts = np.cumsum([0, *wanted]) * length
    places = np.full(len(numbers), -1, np.int64)
    for group in range(len(wanted)):
        members = np.flatnonzero(numbers == group)
        members = members[np.argsort(documents.draws[members], kind="stable")]
        ends = np.cumsum(documents.sizes[members])
        before = ends - documents.sizes[members]
        kept = before < wanted[group] * length
        places[members[kept]] = firsts[group] + before[kept]
    tokens = np.zeros(firsts[-1], np.int32)
    stops = firsts[1:][numbers]  # of a document that is not pooled it is that of the last group, and is not read
    for place, stop, ids in _tokens_of(documents, places, stops):
        tokens[place : min(place + len(ids), stop)] = ids[: stop - place]
    starts = np.union1d(places[places >= 0], np.arange(0, firsts[-1], length))
    kind = np.uint16 if tokens.max(initial=0) < SMALL_IDS else np.int32
    return Pool(tokens.reshape(-1, length).astype(kind), starts, np.array(wanted, np.int64))


def _tokens_of(
    documents: Documents, places: Counts, stops: Counts
) -> Iterator[tuple[int, int, npt.NDArray[np.integer]]]:
    """Yield the place of each pooled document, where its group ends, and its tokens."""
    first = 0
    for batch in read_shards(documents.root, documents.manifest.shards, ["tokens"]):
        column = batch["tokens"]
        values, offsets = np.asarray(column.values), np.asarray(column.offsets)
        for row in np.flatnonzero(places[first : first + batch.num_rows] >= 0).tolist():
            at = first + row
            yield int(places[at]), int(stops[at]), values[offsets[row] : offsets[row + 1]]
        first += batch.num_rows


def joined_small(tokens: Mapping[str, int], least: float) -> tuple[list[str], list[str]]:
    """Return the groups with at least a share of all tokens, and those below it that have any."""
    every = sum(tokens.values())
    named = [name for name, count in tokens.items() if count]
    return [name for name in named if tokens[name] >= least * every], [
        name for name in named if tokens[name] < least * every
    ]
