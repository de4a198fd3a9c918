"""Trains one model, from its first step or from the last state that was kept, and scores it at the end.

The same plan, data, rate and seed give the same weights, byte for byte, on the same kind of machine, with or without
kills between: the order of the data follows from the seed, and nothing else is drawn after the first weights.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from refinery_ablate.held_out import HeldOut
from refinery_ablate.job import RESULT, Model, TrainingPlan
from refinery_ablate.network import Decoder
from refinery_ablate.scoring import bits_of
from refinery_ablate.sizes import Size, size_of

WARM_UP = 0.05
"""Share of the steps in which the rate rises to its peak."""

LEAST_RATE = 0.1
"""Share of the peak to which the rate falls, by a cosine."""

ENDING = 0.1
"""Share of the steps, the last ones, over which the scored checkpoints are spread."""

BETAS, DECAY, CLIP = (0.9, 0.95), 0.1, 1.0
"""AdamW as in GPT-3 and its successors."""

KEPT_AFTER = 60.0
"""Seconds after which the state is kept: a kill costs as many."""

STATE, MODEL = "state.safetensors", "model.safetensors"


@dataclass(slots=True)
class _Run:
    """A run under way: the model, its optimizer, the steps that are done, and what was measured so far."""

    network: Decoder
    optimizer: torch.optim.AdamW
    step: int
    losses: list[float]
    bits: list[list[float]]


class Data(Protocol):
    """What a run is trained on."""

    def batches(self, step: int) -> Iterator[Mapping[str, Any]]:
        """Yield the batch of each step from `step` on, with `input_ids`, `labels` and `cu_seqlens` as a loader's."""


def train(plan: TrainingPlan, job: Model, data: Data, held_out: HeldOut, folder: Path, device: torch.device) -> None:
    """Train and score one run; its folder has `result.json` at the end, and a state from which it goes on before."""
    size, steps, begun = size_of(plan.size), plan.steps, time.monotonic()
    _set_determinism(plan.threads)
    place = folder / job.name
    place.mkdir(parents=True, exist_ok=True)
    run = _resumed(place, plan, size, job, device)
    scored, kept_at = scored_steps(steps, plan.scored), begun
    for _, batch in zip(range(steps - run.step), data.batches(run.step), strict=False):
        run.losses.append(_advance(run, batch, _rate(run.step, steps, job.rate), device))
        run.step += 1
        if run.step in scored:
            run.bits.append(bits_of(run.network, held_out, plan.length, plan.eos, device).tolist())
        if time.monotonic() - kept_at > KEPT_AFTER or run.step in scored:
            _keep(place / STATE, run)
            kept_at = time.monotonic()
    _finish(place, plan, run, time.monotonic() - begun)


def scored_steps(steps: int, count: int) -> list[int]:
    """Return the steps after which a run is scored: the last one, and some before it."""
    spread = max(int(steps * ENDING), count - 1)
    return sorted({max(steps - round(spread * at / max(count - 1, 1)), 1) for at in range(count)})


def _set_determinism(threads: int) -> None:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS sums in one order only with a workspace
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(threads)


def _rate(step: int, steps: int, peak: float) -> float:
    """Return the learning rate of a step: a linear rise, and a cosine down to `LEAST_RATE`."""
    rising = max(int(steps * WARM_UP), 1)
    if step < rising:
        return peak * (step + 1) / rising
    done = (step - rising) / max(steps - rising, 1)
    return peak * (LEAST_RATE + (1 - LEAST_RATE) * (1 + math.cos(math.pi * done)) / 2)


def _advance(run: _Run, batch: Mapping[str, Any], rate: float, device: torch.device) -> float:
    """Take one step; return the mean loss of the batch, in bits per token."""
    labels = np.array(batch["labels"])
    labels.reshape(-1)[batch["cu_seqlens"][:-1]] = -100  # no document is predicted from the one before it
    ids = torch.from_numpy(np.ascontiguousarray(batch["input_ids"])).to(device)
    wanted = torch.from_numpy(labels).to(device)[:, 1:]
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        logits = run.network(ids[:, :-1])
    loss = functional.cross_entropy(logits.float().flatten(0, 1), wanted.flatten(), ignore_index=-100)
    run.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(run.network.parameters(), CLIP)
    run.optimizer.step()
    return float(loss.detach()) / math.log(2)


# --- State --------------------------------------------------------------------------------------------------------


def kept_step(place: Path) -> int:
    """Return the step behind which a run goes on, 0 for one that has no state yet."""
    if not (place / STATE).exists():
        return 0
    with safe_open(place / STATE, "pt") as state:
        return int(state.get_tensor("step"))


def _resumed(place: Path, plan: TrainingPlan, size: Size, job: Model, device: torch.device) -> _Run:
    """Return a run at its first step, or where its state was kept."""
    network = Decoder(size, plan.vocabulary, plan.length, job.seed).to(device)
    matrices = [weights for weights in network.parameters() if weights.ndim > 1]
    norms = [weights for weights in network.parameters() if weights.ndim == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": norms, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=job.rate, betas=BETAS, fused=device.type == "cuda")
    run = _Run(network, optimizer, 0, [], [])
    if (place / STATE).exists():
        _load(place / STATE, run, device)
    return run


def _keep(path: Path, run: _Run) -> None:
    """Write the state under another name, and rename it: there is a whole one at any moment."""
    tensors: dict[str, Tensor] = {f"model.{name}": weights for name, weights in run.network.state_dict().items()}
    for name, weights in run.network.named_parameters():
        for moment, value in run.optimizer.state[weights].items():
            tensors[f"optimizer.{name}.{moment}"] = value
    tensors["losses"] = torch.tensor(run.losses, dtype=torch.float64)
    tensors["bits"] = torch.tensor(run.bits, dtype=torch.float64)
    tensors["step"] = torch.tensor(run.step)
    temporary = path.with_name(f"{path.name}.tmp")
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, temporary)
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())
    temporary.replace(path)


def _load(path: Path, run: _Run, device: torch.device) -> None:
    tensors = load_file(path)
    model = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    run.network.load_state_dict(model)
    for name, weights in run.network.named_parameters():
        prefix = f"optimizer.{name}."
        moments = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        run.optimizer.state[weights] = {
            key: value if key == "step" and device.type == "cpu" else value.to(device) for key, value in moments.items()
        }
    run.step = int(tensors["step"])
    run.losses, run.bits = tensors["losses"].tolist(), tensors["bits"].tolist()


def _finish(place: Path, plan: TrainingPlan, run: _Run, seconds: float) -> None:
    """Write the weights and the result, the result last, and remove the state."""
    weights = {name: value.detach().cpu().contiguous() for name, value in run.network.state_dict().items()}
    save_file(weights, place / MODEL)
    result = {
        "steps": run.step,
        "bits": np.mean(np.array(run.bits), axis=0).tolist(),
        "losses": _thinned(run.losses),
        "model": hashlib.sha256((place / MODEL).read_bytes()).hexdigest(),
        "seconds": round(seconds, 1),
        "held_out": plan.held_out,
    }
    temporary = place / f"{RESULT}.tmp"
    temporary.write_text(json.dumps(result) + "\n")
    temporary.replace(place / RESULT)
    (place / STATE).unlink(missing_ok=True)


POINTS = 200


def _thinned(losses: list[float]) -> list[list[float]]:
    """Return (step, mean loss of the steps up to it) for at most `POINTS` steps."""
    every = -(-len(losses) // POINTS)
    return [
        [at + len(losses[at : at + every]), float(np.mean(losses[at : at + every]))]
        for at in range(0, len(losses), every)
    ]
