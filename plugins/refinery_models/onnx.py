"""Reads sequence classifiers that were exported to ONNX, by ONNX Runtime on the CPU, without torch."""

import mmap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.embedder import EmbeddingModel, WindowEmbedder, pool_of
from pipeline_tasks.scorers.encoder import EncoderScorer, Head, Ids, Outputs, Tokens, one_by_one
from pipeline_tasks.scorers.networks import Network

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

DYNAMIC = (b"DynamicQuantizeLinear", b"DynamicQuantizeMatMul")
"""Operators that take the scale of their input from the batch: a text's score would depend on the texts beside it."""


def onnx_scorer(classifier: Classifier) -> EncoderScorer:
    """Load the `model.onnx` of a sequence classifier; RecipeError as in `_session`."""
    folder = Path(classifier.model)
    model = OnnxModel(_session(folder), first_row)
    return EncoderScorer(classifier, Tokens.of(folder / "tokenizer.json"), model, Head.of(classifier))


def onnx_embedder(model: EmbeddingModel) -> WindowEmbedder:
    """Load the `model.onnx` of an encoder, whose output for a window is one vector; RecipeError as in `_session`."""
    read = {"mean": mean_of_tokens, "cls": first_row}[pool_of(model)]
    return WindowEmbedder(model, OnnxModel(_session(Path(model.model)), read))


ONNX = Network("ONNX", "model.onnx", onnx_scorer, onnx_embedder)
"""Networks that were exported to ONNX."""


def _session(folder: Path) -> "InferenceSession":
    """Load a model; RecipeError without ONNX Runtime, for dynamic quantization, and for what is no model."""
    try:
        import onnxruntime
    except ImportError as error:
        message = f"{folder} is an ONNX model, and onnxruntime is not installed; install `onnxruntime`"
        raise RecipeError(message) from error
    _require_static(folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            str(folder / "model.onnx"), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the library's own classes, of no common base
        message = f"{folder / 'model.onnx'} cannot be read as a model ({str(error)[:300]}); export it again"
        raise RecipeError(message) from error


def first_row(output: npt.NDArray[np.floating]) -> list[float]:
    """Return the numbers of a window's first row: outputs by label, or the vector of its first token."""
    return [float(value) for value in output.reshape(-1, output.shape[-1])[0]]


def mean_of_tokens(output: npt.NDArray[np.floating]) -> list[float]:
    """Return the mean of a window's rows, one per token; a row alone is that of the window."""
    return [float(value) for value in output.reshape(-1, output.shape[-1]).astype(np.float64).mean(axis=0)]


def _require_static(path: Path) -> None:
    """Raise RecipeError for a model whose quantization looks at its input."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as body:
        operator = next((name.decode() for name in DYNAMIC if body.find(name) >= 0), None)
    if operator:
        message = (
            f"{path} is quantized dynamically ({operator}): it takes the scale of numbers from the batch that they "
            "come in, so a score would depend on the batch and on the processor; export it in fp32, or quantize it "
            "statically"
        )
        raise RecipeError(message)


class OnnxModel:
    """A session. Each window is read by itself and by one thread, so nothing is beside it."""

    hardware = "cpu"

    def __init__(self, session: "InferenceSession", read: Callable[[npt.NDArray[np.floating]], list[float]]) -> None:
        self._session, self._read = session, read
        self._inputs = {entry.name for entry in self._session.get_inputs()}

    def outputs(self, chunks: Iterable[Sequence[Ids]]) -> Outputs:
        """Return the first output of the model for windows."""
        return one_by_one(self._output, chunks)

    def _output(self, ids: Ids) -> list[float]:
        read = ids[None, :]
        given = {"input_ids": read, "attention_mask": np.ones_like(read), "token_type_ids": np.zeros_like(read)}
        try:
            results = self._session.run(None, {name: given[name] for name in given if name in self._inputs})
        except Exception as error:  # the library's own classes, of no common base
            raise RuntimeError(str(error)) from error
        return self._read(np.asarray(results[0]))
