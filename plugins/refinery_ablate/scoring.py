"""Scores held-out documents by a model: the bits that each takes."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from refinery_ablate.held_out import HeldOut
from refinery_ablate.network import Decoder

AT_ONCE = 16_384
"""Tokens that are scored at a time."""


def bits_of(
    network: Decoder, held_out: HeldOut, length: int, eos: int, device: torch.device
) -> npt.NDArray[np.float64]:
    """Return the bits of each document: of its scored tokens, in windows of `length`, each behind what it follows."""
    bits = np.zeros(len(held_out), np.float64)
    rows = max(AT_ONCE // length, 1)
    with torch.inference_mode():
        for numbers, inputs, targets in _batches(held_out, length, eos, rows):
            ids, wanted = torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = network(ids)
            losses = functional.cross_entropy(
                logits.float().flatten(0, 1), wanted.flatten(), ignore_index=-100, reduction="none"
            )
            sums = losses.view(wanted.shape).double().sum(1).cpu().numpy() / math.log(2)
            np.add.at(bits, numbers, sums)
    return bits


Window = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _batches(held_out: HeldOut, length: int, eos: int, rows: int) -> Iterator[Window]:
    """Yield document numbers, inputs and targets of windows; -100 is no target."""
    windows = list(_windows(held_out, length, eos))
    windows.sort(key=lambda window: len(window[1]))
    for at in range(0, len(windows), rows):
        part = windows[at : at + rows]
        longest = max(len(inputs) for _, inputs, _ in part)
        inputs, targets = np.full((len(part), longest), eos, np.int64), np.full((len(part), longest), -100, np.int64)
        for row, (_, ids, wanted) in enumerate(part):
            inputs[row, : len(ids)], targets[row, : len(wanted)] = ids, wanted
        yield np.array([number for number, _, _ in part], np.int64), inputs, targets


def _windows(held_out: HeldOut, length: int, eos: int) -> Iterator[tuple[int, list[int], list[int]]]:
    for number in range(len(held_out)):
        tokens = held_out.document(number).tolist()
        before, first = [eos, *tokens[:-1]], int(held_out.scored_from[number])
        wanted = [token if at >= first else -100 for at, token in enumerate(tokens)]
        for start in range(0, len(tokens), length):
            if any(token >= 0 for token in wanted[start : start + length]):
                yield number, before[start : start + length], wanted[start : start + length]
