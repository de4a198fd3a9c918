"""Sequence classifiers of transformers score as transformers says, window by window and in batches of fixed shapes."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from refinery_models.huggingface import Likelihood, OnGpu

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.encoder import EncoderScorer, Head, Tokens
from pipeline_tasks.scorers.scorer import STEPS, load
from pipeline_tasks.stage import FilePath
from tests.scorers.networks import WORDS, bert_folder, gpt_folder

torch = pytest.importorskip("torch", reason="needs torch: make models-test")
transformers = pytest.importorskip("transformers", reason="needs transformers: make models-test")

TEXTS = [" ".join(WORDS[(row * 7 + at * at) % 10] for at in range(row * 3)) for row in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT of two layers with three labels."""
    return bert_folder(tmp_path_factory.mktemp("bert"), ("poor", "fair", "good"))


def as_transformers_says(folder: str, text: str, label: int) -> float:
    """Return the probability of a label by the library's own tokenizer and model, without padding."""
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json", pad_token="[PAD]")
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits = network(**tokenizer(text, return_tensors="pt")).logits
    return float(logits.softmax(-1)[0, label])


def test_a_score_is_that_of_transformers(folder: str) -> None:
    scorer = load(Classifier(FilePath(folder), label="good", length=256))
    found = scorer.scores(pa.array(TEXTS[1:20])).values
    expected = [as_transformers_says(folder, text, 2) for text in TEXTS[1:20]]
    np.testing.assert_allclose(found, expected, atol=0.5 / STEPS + 1e-6)
    assert len(set(found.tolist())) > 5


def on_gpu(folder: str, tokens: int, network: Any = None) -> EncoderScorer:
    """Return a scorer that batches as on a GPU, on this machine's processor."""
    classifier = Classifier(FilePath(folder), label="good", length=64)
    read = network or transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    model = OnGpu(read, "fp32", tokens, "cpu")
    return EncoderScorer(classifier, Tokens.of(Path(folder) / "tokenizer.json"), model, Head.of(classifier))


@pytest.mark.parametrize("tokens", [64, 192, 256 * 64])
def test_batches_of_a_gpu_score_as_windows_do_alone(folder: str, tokens: int) -> None:
    alone = load(Classifier(FilePath(folder), label="good", length=64)).scores(pa.array(TEXTS))
    together = on_gpu(folder, tokens).scores(pa.array(TEXTS))
    np.testing.assert_array_equal(together.values, alone.values)
    np.testing.assert_array_equal(together.seen, alone.seen)


class Small:
    """A network that has room for so many rows."""

    def __init__(self, network: Any, rows: int) -> None:
        self._network, self._rows, self.config = network, rows, network.config

    def to(self, *_: object) -> "Small":
        return self

    def __call__(self, **given: Any) -> Any:
        if len(given["input_ids"]) > self._rows:
            message = "CUDA out of memory. Tried to allocate 20.00 MiB"
            raise torch.OutOfMemoryError(message)
        return self._network(**given)


def test_a_batch_without_room_is_halved_and_the_log_says_so(folder: str, caplog: pytest.LogCaptureFixture) -> None:
    read = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with caplog.at_level(logging.WARNING, "refinery"):
        found = on_gpu(folder, 64 * 64, Small(read, 10)).scores(pa.array(TEXTS))
    np.testing.assert_array_equal(found.values, on_gpu(folder, 64 * 64).scores(pa.array(TEXTS)).values)
    assert len(caplog.records) == 3  # 64 rows, 32, 16, 8
    with pytest.raises(torch.OutOfMemoryError):
        on_gpu(folder, 64 * 64, Small(read, 0)).scores(pa.array(TEXTS))


def test_a_regression_has_a_range(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "edu", ("LABEL_0",))
    values = [
        load(Classifier(FilePath(folder), lowest=lowest, highest=20, length=256)).scores(pa.array(TEXTS)).values
        for lowest in (-20, -60)
    ]
    inside = (values[0] > 0) & (values[0] < 1)
    np.testing.assert_allclose(values[1][inside], (values[0][inside] + 1) / 2, atol=1 / STEPS)
    assert inside.any()


def test_what_transformers_cannot_read_is_named(folder: str, tmp_path: Path) -> None:
    bare = bert_folder(tmp_path / "bare", ("poor", "good"))
    (Path(bare) / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(RecipeError, match=bare):
        load(Classifier(FilePath(bare), label="good"))
    with pytest.raises(RecipeError, match="300"):
        load(Classifier(FilePath(folder), label="good", length=300))


def test_a_language_model_says_how_likely_a_text_is(tmp_path: Path) -> None:
    folder = gpt_folder(tmp_path / "gpt")
    classifier = Classifier(FilePath(folder), lowest=-12, highest=0, length=64)
    found = load(classifier).scores(pa.array(TEXTS[1:12])).values
    network = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokens = Tokens.of(Path(folder) / "tokenizer.json")
    for text, value in zip(TEXTS[1:12], found.tolist(), strict=True):
        windows, _ = tokens.windows([text], 0, classifier)
        assert len(windows) == 1
        ids = torch.from_numpy(windows[0].ids[None])
        with torch.inference_mode():
            loss = float(network(input_ids=ids, labels=ids).loss)
        assert value == pytest.approx(1 - loss / np.log(2) / 12, abs=0.5 / STEPS + 1e-5)
    batched = OnGpu(Likelihood(network), "fp32", 64 * 8, "cpu")
    together = EncoderScorer(classifier, tokens, batched, Head.of(classifier)).scores(pa.array(TEXTS[1:12]))
    np.testing.assert_array_equal(together.values, found)


@pytest.mark.parametrize("damage", ["short", "no numbers"])
def test_a_network_without_numbers_for_all_of_its_tokens_is_refused(damage: str, tmp_path: Path) -> None:
    model = Path(bert_folder(tmp_path / "bert", ("poor", "good")))
    network = transformers.AutoModelForSequenceClassification.from_pretrained(str(model))
    if damage == "short":
        network.resize_token_embeddings(9)
    else:
        network.get_input_embeddings().weight.data[::3] = float("nan")
    network.save_pretrained(str(model))
    with pytest.raises(RecipeError, match="is damaged"):
        load(Classifier(FilePath(str(model)), label="good", length=32, windows=4))
