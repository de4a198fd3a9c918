"""Reads classifiers and language models of transformers: on a CPU window by window, on a GPU in few fixed shapes."""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.embedder import EmbeddingModel, WindowEmbedder, pool_of
from pipeline_tasks.scorers.encoder import EncoderScorer, Head, Ids, Outputs, Tokens, one_by_one
from pipeline_tasks.scorers.networks import Network

if TYPE_CHECKING:
    from torch import Tensor, dtype
    from transformers import PreTrainedModel

log = logging.getLogger("refinery")

Reader: TypeAlias = "PreTrainedModel | Pooled | Likelihood"
"""What gives outputs as `logits`, a row for each window."""

TOKENS = 65_536
"""Tokens of a batch on a GPU, whatever the length of its windows."""

PROBED = 1
"""Windows that are read to see that a network is whole: its weights are looked at themselves."""

LENGTHS = 64
"""On a GPU the length of a window is brought to a multiple of this: eight shapes for windows of 512 tokens."""


def huggingface_scorer(classifier: Classifier) -> EncoderScorer:
    """Load a sequence classifier or a causal language model; RecipeError as in `_network`."""
    folder, head = Path(classifier.model), Head.of(classifier)
    kind = "AutoModelForCausalLM" if head.is_likelihood else "AutoModelForSequenceClassification"
    network = _network(folder, kind, "a classifier or language model")
    read = Likelihood(network) if head.is_likelihood else network
    placed = _placed(read, folder, int(classifier.length or 0), str(classifier.numerics))
    return EncoderScorer(classifier, Tokens.of(folder / "tokenizer.json"), placed, head, PROBED)


def huggingface_embedder(model: EmbeddingModel) -> WindowEmbedder:
    """Load an encoder, whose output for a window is one vector; RecipeError as in `_network`."""
    folder, pool = Path(model.model), pool_of(model)
    read = Pooled(_network(folder, "AutoModel", "an encoder"), pool)
    return WindowEmbedder(model, _placed(read, folder, model.length, model.numerics), PROBED)


HUGGING_FACE = Network(
    "Hugging Face", "config.json", huggingface_scorer, huggingface_embedder, is_last=True, is_heavy=True
)
"""Folders of the hub, whose `config.json` exported networks and static embeddings have, too."""


def _network(folder: Path, kind: str, what: str) -> "PreTrainedModel":
    """Load a network; RecipeError without torch and transformers, or if the folder has none of the kind."""
    try:
        import torch
        import transformers
        from safetensors import SafetensorError
    except ImportError as error:
        message = (
            f"{folder} is a Hugging Face model, and {error.name} is not installed; install the extra "
            "`refinery-tokens[models]`, or export the model to ONNX (model.onnx in its folder), which needs neither"
        )
        raise RecipeError(message) from error
    transformers.logging.set_verbosity_error()
    try:
        network = (
            getattr(transformers, kind)
            .from_pretrained(str(folder), local_files_only=True, use_safetensors=True, dtype=torch.float32)
            .train(mode=False)
        )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        message = f"{folder} cannot be read as {what} ({str(error)[:300]}); name another folder"
        raise RecipeError(message) from error
    _require_weights(network, folder)
    return network


def _require_weights(network: "PreTrainedModel", folder: Path) -> None:
    """Raise RecipeError unless all weights are numbers, and each token of the tokenizer has a vector.

    A GPU that is given the number of a token without one cannot be used any more by its process.
    """
    import torch

    wrong = next((name for name, weight in network.named_parameters() if not torch.isfinite(weight).all()), "")
    why = f"{wrong} has weights that are no numbers" if wrong else ""
    rows = int(network.get_input_embeddings().weight.shape[0])
    highest = max(Tokens.of(folder / "tokenizer.json").tokenizer.get_vocab().values(), default=0)
    if highest >= rows:
        why = f"it has vectors of {rows} tokens, and its tokenizer the id {highest}"
    if why:
        message = f"{folder} is damaged ({why}); restore the model's folder"
        raise RecipeError(message)


class Pooled:
    """An encoder whose output for a window is one vector: the mean of its tokens', or that of the first."""

    def __init__(self, network: "PreTrainedModel", pool: str) -> None:
        self._network, self.config, self._pool = network, network.config, pool

    def to(self, device: str, kind: "dtype") -> "Pooled":
        """Move the model to a device."""
        self._network = self._network.to(device, kind)
        return self

    def __call__(self, *, input_ids: "Tensor", attention_mask: "Tensor") -> SimpleNamespace:
        """Return the vector of each row as `logits`, shape (rows, dimensions)."""
        hidden = self._network(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state.float()
        if self._pool == "cls":
            return SimpleNamespace(logits=hidden[:, 0])
        mask = attention_mask[:, :, None].float()
        return SimpleNamespace(logits=(hidden * mask).sum(1) / mask.sum(1).clamp(min=1))


class Likelihood:
    """A causal language model whose one output is the mean log2 of the probability of a window's tokens."""

    def __init__(self, network: "PreTrainedModel") -> None:
        self._network, self.config = network, network.config

    def to(self, device: str, kind: "dtype") -> "Likelihood":
        """Move the model to a device."""
        self._network = self._network.to(device, kind)
        return self

    def __call__(self, *, input_ids: "Tensor", attention_mask: "Tensor") -> SimpleNamespace:
        """Return the output of each row as `logits`, shape (rows, 1); the first token is given and not predicted."""
        outputs = self._network(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1].float()
        following, counted = input_ids[:, 1:, None], attention_mask[:, 1:].float()
        bits = (outputs.gather(2, following)[..., 0] - outputs.logsumexp(2)) / math.log(2)
        mean = (bits * counted).sum(1) / counted.sum(1).clamp(min=1)
        return SimpleNamespace(logits=mean[:, None])


def _placed(network: Reader, folder: Path, length: int, numerics: str) -> "OnCpu | OnGpu":
    """Return the network on the GPU of this process if it has one, else on the CPU."""
    import torch

    reach = int(getattr(network.config, "max_position_embeddings", 0) or 0)
    if reach and length > reach:
        message = f"{folder} reads at most {reach} tokens, and length is {length}; lower it"
        raise RecipeError(message)
    return OnGpu(network, numerics) if torch.cuda.is_available() else OnCpu(network)


class OnCpu:
    """A network on the CPU. Each window is read by itself and by one thread, so nothing is beside it."""

    hardware = "cpu"

    def __init__(self, network: Reader) -> None:
        import torch

        torch.set_num_threads(1)
        self._network = network

    def outputs(self, chunks: Iterable[Sequence[Ids]]) -> Outputs:
        """Return the outputs of windows."""
        return one_by_one(self._output, chunks)

    def _output(self, ids: Ids) -> list[float]:
        import torch

        with torch.inference_mode():
            read = torch.from_numpy(ids[None, :])
            batches: list[float] = (
                self._network(input_ids=read, attention_mask=torch.ones_like(read)).logits[0].tolist()
            )
        return batches


class OnGpu:
    """A network on a GPU. All batches have one of few shapes; what a batch lacks is filled with padding."""

    def __init__(self, network: Reader, numerics: str, tokens: int = TOKENS, device: str = "cuda") -> None:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = numerics == "tf32"
        kind = torch.bfloat16 if numerics == "bf16" else torch.float32
        self._network, self._device, self._tokens = network.to(device, kind), device, tokens
        self._pad = int(network.config.pad_token_id or 0)
        self.hardware = torch.cuda.get_device_name() if device == "cuda" else device

    def outputs(self, chunks: Iterable[Sequence[Ids]]) -> Outputs:
        """Return the outputs of windows; the GPU reads one batch while the next is put together."""
        waiting: dict[int, list[tuple[int, Ids]]] = {}
        batches: list[tuple[list[int], Tensor]] = []
        count = 0
        for windows in chunks:
            for ids in windows:
                length = -(-len(ids) // LENGTHS) * LENGTHS
                batch = waiting.setdefault(length, [])
                batch.append((count, ids))
                count += 1
                if len(batch) == self._rows(length):
                    batches += self._read(waiting.pop(length), length)
        for length, batch in sorted(waiting.items()):
            batches += self._read(batch, length)
        return _in_order(batches, count)

    def _rows(self, length: int) -> int:
        return max(self._tokens // length, 1)

    def _read(self, batch: list[tuple[int, Ids]], length: int) -> Iterator[tuple[list[int], "Tensor"]]:
        """Yield the ranks and outputs of a batch; where it has no room on the GPU, this and later ones are halved."""
        import torch

        while batch:
            part, rows = batch[: self._rows(length)], self._rows(length)
            try:
                outputs = self._outputs(part, length, rows)
            except torch.OutOfMemoryError:
                if self._tokens <= length:
                    raise
                self._tokens //= 2
                log.warning("%s: out of memory; batches have %s tokens from now on", self.hardware, self._tokens)
                torch.cuda.empty_cache()
                continue
            yield [rank for rank, _ in part], outputs[: len(part)]
            batch = batch[len(part) :]

    def _outputs(self, part: list[tuple[int, Ids]], length: int, rows: int) -> "Tensor":
        import torch

        ids, mask = np.full((rows, length), self._pad, np.int64), np.zeros((rows, length), np.int64)
        mask[:, 0] = 1  # a row that is nothing but padding has one token to look at
        for row, (_, window) in enumerate(part):
            ids[row, : len(window)] = window
            mask[row, : len(window)] = 1
        sent = [torch.from_numpy(values).to(self._device, non_blocking=True) for values in (ids, mask)]
        with torch.inference_mode():
            return self._network(input_ids=sent[0], attention_mask=sent[1]).logits.float()


def _in_order(batches: list[tuple[list[int], "Tensor"]], count: int) -> Outputs:
    """Return the outputs of all windows in order; only here the process waits for the GPU."""
    if not batches:
        return np.empty((0, 1))
    outputs = np.empty((count, batches[0][1].shape[1]), np.float64)
    for ranks, values in batches:
        outputs[ranks] = values.cpu().numpy()
    return outputs
