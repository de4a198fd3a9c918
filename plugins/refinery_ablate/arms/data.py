"""Reads an arm for a run by the loader: shuffled from the first pass on, again from the beginning where it ends."""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline_tasks.errors import ContractError, DigestMismatch
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.share import Passes, Split
from refinery_ablate.job import Arm, Plan


class ArmData:
    """The sequences of an arm in the order of a seed.

    DigestMismatch, or ContractError, if the dataset at the arm's place is not that of the plan.
    """

    def __init__(self, arm: Arm, plan: Plan, seed: int) -> None:
        epochs = -(-plan.steps * plan.batch // max(arm.sequences, 1)) + 1
        passes = Passes(epochs, "always", seed, tail="drop")
        self._dataset = TokenDataset(arm.uri, Split(batch_size=plan.batch), passes)
        if self._dataset.index.digest != arm.digest:
            message = f"{arm.uri} is not the dataset of the plan; begin the comparison anew in another folder"
            raise DigestMismatch(message)
        if self._dataset.index.length != plan.length:
            message = f"{arm.uri} has sequences of {self._dataset.index.length}, and the other arm of {plan.length}"
            raise ContractError(message)

    def batches(self, step: int) -> Iterator[Mapping[str, Any]]:
        """Yield the batch of each step from `step` on."""
        self._dataset.load_state_dict(self._dataset.state_at(step * self._dataset.split.batch_size))
        for batch in self._dataset.batches():
            yield dict(batch)
