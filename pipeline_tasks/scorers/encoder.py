"""Scores texts by an encoder that reads windows of tokens: tokens are made beside the forward pass."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.answers import FAILURES
from pipeline_tasks.scorers.classifier import Classifier, require_label
from pipeline_tasks.scorers.faults import is_of_machine
from pipeline_tasks.scorers.scorer import Column, Scores, in_steps
from pipeline_tasks.scorers.windows import chosen, pooled, spans

TEXTS = 256
"""Texts that are tokenized together: while a model reads their windows, the next are tokenized."""

CAUSAL = ("ForCausalLM", "LMHeadModel")
"""What the architecture of a causal language model is called: its score is the likelihood of a text."""

Ids = npt.NDArray[np.int64]
Outputs = npt.NDArray[np.float64]


class Model(Protocol):
    """A loaded network."""

    hardware: str

    def outputs(self, chunks: Iterable[Sequence[Ids]]) -> Outputs:
        """Return the outputs for windows of token ids, in order, shape (windows, labels).

        Those of a window must not depend on the windows beside it.
        """


def one_by_one(output: Callable[[Ids], list[float]], chunks: Iterable[Sequence[Ids]]) -> Outputs:
    """Return the outputs of windows that are read alone, several at a time where this process has several cores."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="windows") as pool:
        return np.array([row for windows in chunks for row in pool.map(output, windows)], np.float64)


class Reading(Protocol):
    """How a model reads texts: the tokens of a window, and the most windows of a text (0: all)."""

    @property
    def length(self) -> int | None:
        """Tokens of a window."""

    @property
    def windows(self) -> int | None:
        """Windows of a text at most."""


class Window(NamedTuple):
    """Token ids that a model reads at once, and of which text they are."""

    text: int
    ids: Ids
    tokens: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """A tokenizer, and the ids that stand before and behind the tokens of each window."""

    tokenizer: Any
    before: tuple[int, ...]
    behind: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> "Tokens":
        """Read `tokenizer.json`; RecipeError if it is none."""
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises no other class
            message = f"{path} cannot be read as a tokenizer ({error}); restore the model's folder"
            raise RecipeError(message) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        bare, whole = (tokenizer.encode("a", add_special_tokens=special).ids for special in (False, True))
        at = next((at for at in range(len(whole)) if whole[at : at + len(bare)] == bare), 0)
        return cls(tokenizer, tuple(whole[:at]), tuple(whole[at + len(bare) :]))

    def windows(self, texts: Sequence[str], first: int, reading: "Reading") -> tuple[list[Window], list[float]]:
        """Return the windows of texts, numbered from `first`, and the share of each that they have; NaN for none."""
        length, most = int(reading.length or 0) - len(self.before) - len(self.behind), int(reading.windows or 0)
        parts = [(row, span) for row, text in enumerate(texts) for span in spans(text, length, most)]
        encoded = self.tokenizer.encode_batch_fast(
            [texts[row][span.start : span.stop] for row, span in parts], add_special_tokens=False
        )
        windows: list[Window] = []
        read, alone = np.zeros(len(texts)), np.bincount([row for row, _ in parts], minlength=len(texts)) == 1
        for (row, span), encoding in zip(parts, encoded, strict=True):
            ids = np.array(encoding.ids, np.int64)
            picked = chosen(-(-len(ids) // length), most if alone[row] else 1)
            for rank in picked:
                part = ids[rank * length : (rank + 1) * length]
                windows.append(
                    Window(first + row, np.concatenate([self.before, part, self.behind]).astype(np.int64), len(part))
                )
                read[row] += len(part) / max(len(ids), 1) * (span.stop - span.start) / len(texts[row])
        return windows, [round(min(share, 1.0), 6) if share else float("nan") for share in read.tolist()]


class EncoderScorer:
    """A network with its tokenizer and the output that is the score."""

    def __init__(
        self, classifier: Classifier, tokens: Tokens, model: Model, head: "Head", probed: int | None = None
    ) -> None:
        self._classifier, self._tokens, self._model, self._head = classifier, tokens, model, head
        labels = require_whole(model, tokens, int(classifier.length or 0), Path(classifier.model), probed)
        if labels <= head.at:
            message = f"{classifier.model} gives {labels} numbers, and its config.json names more labels; restore it"
            raise RecipeError(message)
        self.hardware = model.hardware

    def scores(self, texts: pa.Array) -> Scores:
        """Return the pooled score of the windows of each text, and the share of it that they have."""
        written = [text or "" for text in texts.to_pylist()]
        windows, outputs, seen = read_windows(self._tokens, self._model, self._classifier, written)
        values = self._head.values(outputs) if windows else np.empty(0)
        whole = np.array([self._pooled(group) for group in _by_text(windows, values, len(written))], np.float64)
        return Scores(in_steps(whole), np.array(seen, np.float64))

    def _pooled(self, windows: list[tuple[float, int]]) -> float:
        return pooled([value for value, _ in windows], [count for _, count in windows], str(self._classifier.pool))


def require_whole(model: Model, tokens: Tokens, length: int, folder: Path, most: int | None = None) -> int:
    """Return the numbers that a network gives for a window; RecipeError unless they are finite for all of its tokens.

    Windows of all ids that the tokenizer has are read, from the highest down, or the first `most` of these windows. A
    fault that is found here would else be booked to the texts that have such a token.
    """
    ids = np.array(sorted(set(tokens.tokenizer.get_vocab().values()), reverse=True), np.int64)
    step = max(length - len(tokens.before) - len(tokens.behind), 1)
    parts = [ids[start : start + step] for start in range(0, len(ids), step)][:most]
    windows = [np.concatenate([tokens.before, part, tokens.behind]).astype(np.int64) for part in parts]
    why = ""
    try:
        outputs = model.outputs([windows])
    except FAILURES as error:
        if is_of_machine(error):
            raise
        why = f"it fails on a token of its tokenizer: {str(error)[:200]}"
    else:
        if outputs.ndim != 2 or len(outputs) != len(windows) or not outputs.shape[1]:  # noqa: PLR2004 -- windows, numbers
            why = f"it gives {outputs.shape} numbers for {len(windows)} windows"
        elif not np.isfinite(outputs).all():
            why = "what it gives for some tokens is no number"
    if why:
        message = f"{folder} is damaged ({why}); restore the model's folder"
        raise RecipeError(message)
    return int(outputs.shape[1])


def read_windows(
    tokens: Tokens, model: Model, reading: Reading, texts: Sequence[str]
) -> tuple[list[Window], Outputs, list[float]]:
    """Return the windows of texts, the model's outputs for them, and the share of each text that they have.

    ValueError if the outputs for a text are no numbers.
    """
    windows: list[Window] = []
    seen: list[float] = []
    outputs = model.outputs(_chunks(tokens, reading, texts, windows, seen))
    if not np.isfinite(outputs).all():
        message = "what the model gives for the text is no number"
        raise ValueError(message)
    return windows, outputs, seen


def _chunks(
    tokens: Tokens, reading: Reading, texts: Sequence[str], noted: list[Window], seen: list[float]
) -> Iterator[list[Ids]]:
    """Yield the windows of some texts while those of the next are made; note them all."""
    with ThreadPoolExecutor(1, thread_name_prefix="tokens") as tokenizing:
        starts = range(0, len(texts), TEXTS)
        coming = [
            tokenizing.submit(tokens.windows, texts[start : start + TEXTS], start, reading) for start in starts[:1]
        ]
        for start in starts:
            windows, shares = coming.pop().result()
            if start + TEXTS < len(texts):
                following = start + TEXTS
                part = texts[following : following + TEXTS]
                coming.append(tokenizing.submit(tokens.windows, part, following, reading))
            noted += windows
            seen += shares
            yield [window.ids for window in windows]


def _by_text(windows: Sequence[Window], values: Column, texts: int) -> list[list[tuple[float, int]]]:
    """Return the value and the tokens of each window, by text."""
    grouped: list[list[tuple[float, int]]] = [[] for _ in range(texts)]
    for window, value in zip(windows, values.tolist(), strict=True):
        grouped[window.text].append((value, window.tokens))
    return grouped


@dataclass(frozen=True, slots=True)
class Head:
    """How a score follows from a network's outputs: a regression's range, or the probability of a label."""

    at: int
    kind: str
    lowest: float
    highest: float
    is_likelihood: bool = False

    @classmethod
    def of(cls, classifier: Classifier) -> "Head":
        """Read `config.json`; RecipeError if the folder has none, or the model no such label."""
        path = Path(classifier.model) / "config.json"
        try:
            config = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            message = f"{path} cannot be read ({error}); restore the model's folder"
            raise RecipeError(message) from error
        named = config.get("id2label") or {str(at): f"LABEL_{at}" for at in range(config.get("num_labels", 1))}
        labels = tuple(named[at] for at in sorted(named, key=int))
        problem = config.get("problem_type") or ""
        bounds = (float(classifier.lowest or 0.0), float(classifier.highest or 0.0))
        if any(str(name).endswith(CAUSAL) for name in config.get("architectures") or ()):
            return cls(0, "regression", *bounds, is_likelihood=True)
        if not classifier.label and len(labels) == 1 and problem in ("", "regression"):
            return cls(0, "regression", *bounds)
        require_label(str(classifier.label), labels, classifier.model)
        is_single = len(labels) == 1 or problem == "multi_label_classification"
        return cls(labels.index(str(classifier.label)), "sigmoid" if is_single else "softmax", *bounds)

    def values(self, outputs: Outputs) -> Column:
        """Return a score from 0 to 1 for each row of outputs."""
        chosen_output = outputs[:, self.at]
        if self.kind == "regression":
            return (chosen_output - self.lowest) / (self.highest - self.lowest)
        if self.kind == "sigmoid":
            return np.asarray(1.0 / (1.0 + np.exp(-chosen_output)), np.float64)
        powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return np.asarray(powers[:, self.at] / powers.sum(axis=1), np.float64)
