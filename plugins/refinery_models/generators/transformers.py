"""Has a causal model of transformers write in this process: rows leave a batch when they end, and others enter.

On a CPU one thread computes in fp32, on a GPU what the weights are stored in. A network that `rows` cannot run (experts
that rows share, states that are no keys) writes one text after the other.
"""

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.generators.generator import Model, Request, Sampling, Stop, Written
from pipeline_tasks.generators.kinds import Kind
from pipeline_tasks.libraries import way_to
from refinery_models.generators.folder import check, config_of, license_in, name_of
from refinery_models.generators.prompts import Prompts
from refinery_models.generators.rows import NAME, SLOTS, Keys, Row, Rows, Unfit, attend
from refinery_models.generators.sampling import Draw, Logits

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

log = logging.getLogger("refinery")

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Keys of configs of networks whose experts read several rows at once: in how many, neighbors decide."""


class Decoder(Protocol):
    """What turns prompts into tokens."""

    def texts(self, asked: "Sequence[Asked]") -> "Iterator[Asked]":
        """Yield each of the texts when it has ended."""


@dataclass(slots=True, eq=False)
class Asked:
    """A text: the place of its request, its prompt, what draws its tokens, and those that it has so far.

    It ends by one of `ends`, which is no part of it, or by `most` tokens.
    """

    place: int
    prompt: list[int]
    draw: Draw
    most: int
    ends: frozenset[int]
    tokens: list[int] = field(default_factory=list)
    stop: Stop | None = None

    def take(self, logits: Logits) -> int:
        """Draw the next token and return it; the text may have ended by it."""
        token = self.draw.token(logits)
        if token in self.ends:
            self.stop = "stop"
        else:
            self.tokens.append(token)
            self.stop = "length" if len(self.tokens) >= self.most else None
        return token


def load(model: Model, sampling: Sampling) -> "Writer":
    """Load a generator; RecipeError without torch and transformers, and for a folder that has no causal model."""
    check(model)
    folder = Path(model.model)
    network = _network(folder)
    prompts = Prompts.of(folder)
    return Writer(
        hardware=_hardware(network),
        name=name_of(model),
        license=license_in(model),
        prompts=prompts,
        decoder=_decoder(network, folder),
        sampling=sampling,
        reach=_reach(network),
        ends=_ends(network) | prompts.ends,
    )


TRANSFORMERS = Kind(load, check, is_steady=True)
"""Causal models of the Hugging Face hub, in this process."""


@dataclass(slots=True, eq=False)
class Writer:
    """A network with its tokenizer. It reads and writes at most `reach` tokens of a text (0: any number)."""

    hardware: str
    name: str
    license: str
    prompts: Prompts
    decoder: Decoder
    sampling: Sampling
    reach: int
    ends: frozenset[int]

    def write(self, requests: Sequence[Request]) -> Iterator[tuple[int, Written]]:
        """Yield what is written, as soon as it ends; a request with too many tokens costs itself."""
        asked = []
        for place, request in enumerate(requests):
            ids = self.prompts.ids(request)
            if self.reach and len(ids) + self.sampling.max_tokens > self.reach:
                yield place, Written(None, "too_long", len(ids), 0, f"reads_{self.reach}_tokens")
            else:
                asked.append(Asked(place, ids, Draw(self.sampling, request.seed), self.sampling.max_tokens, self.ends))
        for done in self.decoder.texts(asked):
            text, stop = self.prompts.text(done.tokens), done.stop or "error"
            yield done.place, Written(text, stop, len(done.prompt), len(done.tokens))


class Together:
    """Runs up to `SLOTS` texts at once: one that has ended makes room for the next."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def texts(self, asked: Sequence[Asked]) -> Iterator[Asked]:
        """Yield each of the texts when it has ended."""
        waiting, running = deque(asked), list[tuple[Asked, Row]]()
        while waiting or running:
            while waiting and len(running) < SLOTS:
                text = waiting.popleft()
                logits, keys = self._rows.read(text.prompt, len(text.prompt) + text.most)
                yield from self._ended(text, logits, keys, running)
            going, running = running, []
            outputs = self._rows.step([row for _, row in going]) if going else ()
            for (text, row), logits in zip(going, outputs, strict=True):
                yield from self._ended(text, logits, row.keys, running)

    def _ended(self, text: Asked, logits: Logits, keys: Keys, running: list[tuple[Asked, Row]]) -> Iterator[Asked]:
        """Take the next token of a text; yield the text if it has ended, else it is `running`."""
        token = text.take(logits)
        if text.stop:
            yield text
        else:
            running.append((text, Row(token, keys)))


class OneByOne:
    """Runs one text after the other, as the network's own loop does, whatever it keeps of the tokens before."""

    def __init__(self, network: "PreTrainedModel") -> None:
        self._network = network

    def texts(self, asked: Sequence[Asked]) -> Iterator[Asked]:
        """Yield each of the texts when it has ended."""
        import torch

        for text in asked:
            ids = torch.tensor([text.prompt], device=self._network.device)
            with torch.inference_mode():
                self._network.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=text.most,
                    do_sample=False,
                    num_beams=1,
                    eos_token_id=[*text.ends] or None,
                    pad_token_id=0,
                    logits_processor=[_Drawn(text)],
                )
            yield text


class _Drawn:
    """Leaves of a network's outputs the token that a text draws."""

    def __init__(self, text: Asked) -> None:
        self._text = text

    def __call__(self, _ids: "Tensor", scores: "Tensor") -> "Tensor":
        """Return outputs by which that token is the only one; shape (1, tokens)."""
        token = self._text.take(scores[0].float().cpu().numpy())
        only = scores.new_full(scores.shape, -np.inf)
        only[0, token] = 0
        return only


def _network(folder: Path) -> "PreTrainedModel":
    """Load the weights; RecipeError without what reads them, or if they are no causal model's."""
    try:
        import torch
        import transformers
        from safetensors import SafetensorError
    except ImportError as error:
        message = f"{folder} is a model of transformers, and {way_to(error.name or 'torch')}; or have a server write"
        raise RecipeError(message) from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    transformers.AttentionInterface.register(NAME, attend)
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        torch.set_num_threads(1)  # sums do not depend on how many cores a machine has
    try:
        network: PreTrainedModel = transformers.AutoModelForCausalLM.from_pretrained(
            str(folder),
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype="auto" if on_gpu else torch.float32,
        ).train(mode=False)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        message = f"{folder} cannot be read as a causal model ({str(error)[:300]}); name another folder"
        raise RecipeError(message) from error
    wrong = next((name for name, weight in network.named_parameters() if not torch.isfinite(weight).all()), "")
    if wrong:
        message = f"{folder} is damaged: {wrong} has weights that are no numbers; restore the model's folder"
        raise RecipeError(message)
    return network.to("cuda") if on_gpu else network


def _decoder(network: "PreTrainedModel", folder: Path) -> Decoder:
    """Return what runs a network: all rows together where that changes no bit."""
    try:
        _require_no_experts(config_of(folder))
        network.set_attn_implementation(NAME)
        return Together(Rows.of(network))
    except (Unfit, AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        log.warning("%s writes one text after the other: %s", folder, str(error)[:300])
        network.set_attn_implementation("eager")
        return OneByOne(network)


def _require_no_experts(config: Mapping[str, Any]) -> None:
    """Raise Unfit for a network whose experts share the rows of a batch."""
    if any(config.get(key) for key in EXPERTS):
        message = "its experts read several rows at once"
        raise Unfit(message)


def _hardware(network: "PreTrainedModel") -> str:
    """Return what computes: of a CPU its vector instructions, too, as sums depend on them."""
    import torch

    if network.device.type == "cuda":
        return str(torch.cuda.get_device_name())
    return f"cpu {torch.backends.cpu.get_cpu_capability()}"


def _reach(network: "PreTrainedModel") -> int:
    config = network.config.get_text_config()
    return int(getattr(config, "max_position_embeddings", 0) or 0)


def _ends(network: "PreTrainedModel") -> frozenset[int]:
    """Return the tokens that end a text, as the folder's generation config says."""
    said = getattr(network.generation_config, "eos_token_id", None)
    listed = said if isinstance(said, list) else [said]
    return frozenset(int(each) for each in listed if each is not None)
