"""Items and batches that a dataset yields, as NumPy arrays; `as_tensors` turns what a model takes into torch's."""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError

IGNORED = -100
"""The label of a pad: `ignore_index` of torch's cross entropy unless it is told otherwise."""

TENSORS: tuple[Literal["input_ids", "labels", "cu_seqlens"], ...] = ("input_ids", "labels", "cu_seqlens")
"""What goes to the model."""

NOWHERE = -1
"""Shard, sequence and index of an item that fills the last batch with pads."""


class Item(TypedDict):
    """One sequence: ids, borders of its documents (pads are the last range), ids without pads, and its origin.

    `shard` and `sequence` are its numbers in `dataset.json` and in the shard, `index` is its number in the dataset,
    `epoch` and `place` say when the run takes it, and `resume_at` is where the run goes on after its global batch.
    `erased` are stretches of ids, first and one behind the last, whose documents were erased: they are ids of pads.
    """

    input_ids: npt.NDArray[np.integer]
    cu_seqlens: npt.NDArray[np.int32]
    n_tokens: int
    shard: int
    sequence: int
    index: int
    epoch: int
    place: int
    resume_at: int
    erased: NotRequired[tuple[tuple[int, int], ...]]


class Batch(TypedDict):
    """Sequences of one rank in one step: `input_ids` and `labels` are (batch, length), `cu_seqlens` runs over all.

    `labels` are the ids, and `IGNORED` where there are pads, or where a document was erased. All else has one value per
    sequence, as in `Item`.
    """

    input_ids: npt.NDArray[np.integer]
    labels: npt.NDArray[np.int64]
    cu_seqlens: npt.NDArray[np.int32]
    max_seqlen: int
    n_tokens: npt.NDArray[np.int64]
    shard: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]
    epoch: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    resume_at: int


def collated(items: Sequence[Item]) -> Batch:
    """Return items of one global batch as one batch; RecipeError if they are of several."""
    if len({item["resume_at"] for item in items}) != 1:
        message = (
            f"{len(items)} sequences of several global batches came together; "
            "give the data loader the batch_size of the dataset's split"
        )
        raise RecipeError(message)
    ids = np.stack([item["input_ids"] for item in items])
    n_tokens = _numbers(items, "n_tokens")
    labels = ids.astype(np.int64)
    for row in np.flatnonzero(n_tokens < ids.shape[1]).tolist():
        labels[row, n_tokens[row] :] = IGNORED
    for row, item in enumerate(items):
        for start, stop in item.get("erased", ()):
            labels[row, start:stop] = IGNORED
    borders = [item["cu_seqlens"][1:] + number * ids.shape[1] for number, item in enumerate(items)]
    cu_seqlens = np.concatenate([np.zeros(1, np.int32), *borders], dtype=np.int32)
    return Batch(
        input_ids=ids,
        labels=labels,
        cu_seqlens=cu_seqlens,
        max_seqlen=int(np.diff(cu_seqlens).max()),
        n_tokens=n_tokens,
        resume_at=items[0]["resume_at"],
        shard=_numbers(items, "shard"),
        sequence=_numbers(items, "sequence"),
        index=_numbers(items, "index"),
        epoch=_numbers(items, "epoch"),
        place=_numbers(items, "place"),
    )


_Number = Literal["n_tokens", "shard", "sequence", "index", "epoch", "place"]


def _numbers(items: Sequence[Item], name: _Number) -> npt.NDArray[np.int64]:
    return np.array([item[name] for item in items], np.int64)


def as_tensors(batch: Batch) -> dict[str, Any]:
    """Return a batch in which what goes to the model is a torch tensor over the same memory.

    The rest stays NumPy: a worker of torch's data loader sends each tensor through a shared file of its own, which
    costs more than a small array itself.
    """
    import torch

    return {**batch, **{name: torch.from_numpy(batch[name]) for name in TENSORS}}
