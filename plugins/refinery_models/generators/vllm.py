"""Has vLLM write in this process, where it is installed: its kernels give a row the same bits in any batch.

Batch invariance needs a GPU of compute capability 8.0 or higher (vLLM's docs, features/batch_invariance).
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import Model, Request, Sampling, Stop, Written
from pipeline_tasks.generators.kinds import Kind
from refinery_models.generators.folder import check, license_in, name_of
from refinery_models.generators.prompts import Prompts

if TYPE_CHECKING:
    from vllm import LLM

INVARIANT = "VLLM_BATCH_INVARIANT"
"""Has vLLM take kernels whose sums do not depend on the batch; it is read when vLLM is imported."""

CAPABILITY = (8, 0)
"""The lowest compute capability of a GPU for which vLLM has such kernels."""

SEED = 0
"""The seed of the engine; each request has its own besides."""


@dataclass(slots=True, eq=False)
class Engine:
    """An engine of vLLM, which makes its batches itself."""

    hardware: str
    name: str
    license: str
    _engine: "LLM"
    _prompts: Prompts
    _sampling: Sampling
    _reach: int

    def write(self, requests: Sequence[Request]) -> Iterator[tuple[int, Written]]:
        """Yield what is written when all has ended; a request with too many tokens costs itself."""
        from vllm import SamplingParams

        prompts = [self._prompts.ids(request) for request in requests]
        places = [place for place, ids in enumerate(prompts) if len(ids) + self._sampling.max_tokens <= self._reach]
        for place in sorted({*range(len(requests))} - {*places}):
            yield place, Written(None, "too_long", len(prompts[place]), 0, f"reads_{self._reach}_tokens")
        params = [
            SamplingParams(
                temperature=self._sampling.temperature,
                top_p=max(self._sampling.top_p, 1e-9),
                max_tokens=self._sampling.max_tokens,
                seed=requests[place].seed,
            )
            for place in places
        ]
        given: Any = [{"prompt_token_ids": prompts[place]} for place in places]
        for place, output in zip(places, self._engine.generate(given, params, use_tqdm=False), strict=True):
            text = output.outputs[0]
            stop: Stop = "length" if text.finish_reason == "length" else "stop"
            yield place, Written(text.text, stop, len(prompts[place]), len(text.token_ids))


def load(model: Model, sampling: Sampling) -> Engine:
    """Load a model into an engine; RecipeError without vLLM, or without a GPU that it has invariant kernels for."""
    check(model)
    os.environ[INVARIANT] = "1"
    try:
        import torch
        import vllm
    except ImportError as error:
        message = (
            f"vLLM cannot be loaded here ({error.name} is not installed); install `vllm` on the machines with GPUs, "
            "ask a server of it (`kind: endpoint`), or have transformers write (`kind: transformers`)"
        )
        raise RecipeError(message) from error
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < CAPABILITY:
        wanted = ".".join(map(str, CAPABILITY))
        message = (
            f"vLLM gives the same bytes in any batch on GPUs of compute capability {wanted} or higher, and none is "
            "here; give the stage a GPU, or have transformers write (`kind: transformers`)"
        )
        raise RecipeError(message)
    engine = vllm.LLM(model=model.model, seed=SEED, load_format="safetensors", trust_remote_code=False)
    reach = int(engine.llm_engine.model_config.max_model_len)
    hardware = str(torch.cuda.get_device_name())
    prompts = Prompts.of(Path(model.model))
    return Engine(hardware, name_of(model), license_in(model), engine, prompts, sampling, reach)


VLLM = Kind(load, check, is_steady=True)
"""vLLM, in this process."""
