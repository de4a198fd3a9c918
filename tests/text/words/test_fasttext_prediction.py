"""Predictions equal fastText's own and those of a plain reading, for models of every form and any bytes."""

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stages.filter_language import packaged_model
from pipeline_tasks.text.words import fasttext_prediction, fasttext_words
from pipeline_tasks.text.words.fasttext_model import (
    HIERARCHICAL,
    LOSSES,
    NEGATIVE_SAMPLING,
    ONE_VS_ALL,
    SOFTMAX,
    load,
)
from pipeline_tasks.text.words.fasttext_prediction import Predictor
from tests.fasttext_file import Form, write_dense, write_model, write_random_model
from tests.text import plain_fasttext

STEP = 1 / 4 / 32
"""The largest step of fastText's table of the logistic function: a sum near its edge may be rounded across."""

FORMS = [
    *[Form(loss) for loss in LOSSES],
    *[Form(loss, width=2, kept=20, quantized_output=True) for loss in LOSSES],
    Form(width=3, normed=True),
    Form(width=4, normed=True, kept=0, quantized_output=True),
    Form(word_ngrams=3, dimensions=16, buckets=1000),
    Form(HIERARCHICAL, word_ngrams=2, width=2, kept=300, buckets=1000, dimensions=8, shortest=2),
    Form(longest=0, shortest=0, buckets=0),
    Form(longest=0, shortest=0, word_ngrams=2),
    Form(words=("the", "a"), longest=0, shortest=0, buckets=0),
    Form(words=(), shortest=0, longest=5),
    Form(HIERARCHICAL, labels=1),
    Form(labels=1),
]

PIECES = (
    "the", "a", "Größe", "水獺", "a" * 40, "x" * 31, "x" * 33, "é" * 16, "word", "</s>", "<", "</s", "__label__1",
    "__label__", "__label__none", "\U0001f600", "e\u0301", "\x1c", "\x85", "\xa0", "\u3000", "\u2028", "\x7f", "\x01",
    " ", " ", "  ", "\t", "\n", "\r", "\v", "\f", "\0",
)  # fmt: skip

LINES = st.lists(st.sampled_from(PIECES), max_size=40).map(lambda pieces: "".join(pieces).encode())
TEXTS = LINES | st.text(max_size=60).map(str.encode) | st.binary(max_size=40)


@pytest.fixture(scope="module", params=FORMS, ids=str)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_random_model(tmp_path_factory.mktemp("model") / "random.bin", request.param)


def column(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    ends = np.cumsum([0, *map(len, texts)])
    return np.frombuffer(b"".join(texts), np.uint8), np.stack([ends[:-1], ends[1:]], axis=1)


def best(predictor: Predictor, texts: Sequence[bytes]) -> list[tuple[str | None, float]]:
    numbers, probabilities = predictor.best(*column(texts))
    labels = [*predictor.labels, None]
    return [(labels[number], score) for number, score in zip(numbers.tolist(), probabilities.tolist(), strict=True)]


def library(model: Any, line: bytes) -> dict[str, float]:
    pairs = model.f.predict(line.replace(b"\n", b" ") + b"\n", -1, 0.0, "strict")
    return {label: probability for probability, label in pairs}


def require_best(answer: tuple[str | None, float], expected: Mapping[str, float], tolerance: float) -> None:
    """Fail unless the answer is the label that `expected` has the most of; what differs by less is equal."""
    label, probability = answer
    if label is None:
        assert (expected, probability) == ({}, 0.0)
        return
    assert expected[label] >= max(expected.values()) - tolerance
    assert probability == pytest.approx(min(expected[label], 1.0), abs=tolerance)


@given(texts=st.lists(TEXTS, max_size=4))
def test_predictions_are_those_of_fasttext_and_of_a_plain_reading(path: str, texts: list[bytes]) -> None:
    model = load(path, "key")
    tolerance = STEP if model.arguments.loss in (NEGATIVE_SAMPLING, ONE_VS_ALL) else 1e-5
    predictor, own = Predictor(path, "key"), fasttext.load_model(path)
    for text, answer in zip(texts, best(predictor, texts), strict=True):
        plain = plain_fasttext.predict(model, text)
        require_best(answer, plain, tolerance)
        require_best(answer, library(own, text), tolerance)
    for label in predictor.labels:
        odds = predictor.probability(*column(texts), label).tolist()
        for text, probability in zip(texts, odds, strict=True):
            line = " ".join(text.decode("utf-8", "replace").split()).encode()
            if text.decode("utf-8", "replace").encode() != text:
                continue  # white space is that of text
            if not line:
                assert np.isnan(probability)
                continue
            expected = library(own, line).get(label, 0.0)
            assert probability == pytest.approx(min(expected, 1.0), abs=tolerance)


@given(texts=st.lists(TEXTS, min_size=1, max_size=6), rows=st.sampled_from([1, 2, 64]))
def test_nothing_depends_on_what_is_remembered(path: str, texts: list[bytes], rows: int) -> None:
    alone = [best(Predictor(path, "key"), [text])[0] for text in texts]
    predictor = Predictor(path, "key")
    assert [best(predictor, texts), best(predictor, texts[::-1])[::-1]] == [alone, alone]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasttext_words, "MEMORY_BYTES", 128 * rows)
        assert best(Predictor(path, "key"), texts) == alone


def test_threads_share_a_model(tmp_path: Path) -> None:
    path = write_random_model(tmp_path / "model.bin", Form(buckets=5000, dimensions=64))
    texts = [f"word{number % 977} the {number}".encode() for number in range(20_000)]
    expected = best(Predictor(path, "key"), texts)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: best(Predictor(path, "key"), texts), range(8))) == [expected] * 8


def test_long_words_and_no_words(tmp_path: Path) -> None:
    path = write_random_model(tmp_path / "model.bin", Form(width=2, kept=30))
    own = fasttext.load_model(path)
    texts = [b"x" * 100_000, "水".encode() * 50_000, b" " * 1000, b"", b"a " * 50_000]
    answers = best(Predictor(path, "key"), texts)
    assert len(answers) == len(texts)
    for text, answer in zip(texts, answers, strict=True):
        require_best(answer, library(own, text), 1e-4)


def test_windows_that_are_not_read_have_no_label(tmp_path: Path) -> None:
    predictor = Predictor(write_random_model(tmp_path / "model.bin", Form()), "key")
    numbers, probabilities = predictor.best(np.frombuffer(b"the", np.uint8), np.array([[-1, -1], [0, 3]]))
    assert (numbers[0], probabilities[0]) == (-1, 0.0)
    assert probabilities[1] > 0
    assert len(predictor.best(np.frombuffer(b"", np.uint8), np.empty((0, 2), np.int64))[0]) == 0


def test_the_loop_is_compiled_once_for_all_models_and_buffers(path: str) -> None:
    data, bounds = column([b"the", b""])
    for buffer in (data, data.copy()):
        predictor = Predictor(path, "key")
        predictor.best(buffer, bounds)
        predictor.probability(buffer, bounds, predictor.labels[0])
    assert len(fasttext_prediction._predict.signatures) == 1


# --- The model and the texts that there are ---------------------------------------------------------------------------


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def real_texts(shared: Path) -> list[bytes]:
    """Labeled sentences of 79 languages, and web texts of as many as a crawl has, the windows of `filter_language`."""
    texts = [case["text"] for case in json_lines(shared / "lid" / "lid-sentences.jsonl.gz")]
    for file in sorted((shared / "wet").glob("*.wet.gz")):
        with file.open("rb") as stream:
            texts += [record.reader.read().decode() for record in ArchiveIterator(stream)]
    return [text[:10_000].encode() for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ftz", pytest.param("bin", marks=pytest.mark.nightly)])
def test_labels_and_decisions_are_those_of_fasttext_on_all_texts(kind: str, shared_data: Path, tmp_path: Path) -> None:
    path: str = packaged_model()
    if kind == "bin":
        path = write_dense(tmp_path / "lid.bin", load(path, "key"), buckets=100_000)
    texts = real_texts(shared_data)
    assert len(texts) > 6000
    own = fasttext.load_model(path)
    answers = best(Predictor(path, "key"), texts)
    for text, (label, probability) in zip(texts, answers, strict=True):
        ((expected, same),) = own.f.predict(text.replace(b"\n", b" ") + b"\n", 1, 0.0, "strict")
        assert label == same
        assert probability == pytest.approx(min(expected, 1.0), abs=1e-4)
        assert (probability < 0.65) == (expected < 0.65)


# --- Files that are no models ----------------------------------------------------------------------------------------


@pytest.fixture(
    scope="module", params=[Form(), Form(HIERARCHICAL, width=2, kept=9, normed=True, quantized_output=True)]
)
def body(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return Path(write_random_model(tmp_path_factory.mktemp("model") / "random.bin", request.param)).read_bytes()


@given(data=st.data())
def test_a_model_with_any_other_byte_is_refused_or_answers(
    body: bytes, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = data.draw(st.integers(0, min(len(body), 600) - 1) | st.integers(0, len(body) - 1))
    changed = body[:place] + bytes([data.draw(st.integers(0, 255))]) + body[place + 1 :]
    path = tmp_path_factory.mktemp("damaged") / "model.bin"
    path.write_bytes(changed)
    try:
        predictor = Predictor(str(path), "key")
        ((label, probability),) = best(predictor, [b"the word"])
    except RecipeError as error:
        assert str(path) in str(error)  # noqa: PT017 -- it may also answer
        return
    assert label is None or label in predictor.labels
    assert 0 <= probability <= 1


def test_a_model_that_is_cut_anywhere_is_refused(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(body)
    assert load(str(path), "key").labels
    for wrong in [*(body[:size] for size in range(0, len(body), 97)), body[:-1], body + b"\0"]:
        path.write_bytes(wrong)
        with pytest.raises(RecipeError, match=re.escape(f"key: {path} ")):
            load(str(path), "key")


def test_weights_that_overflow_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    body = (
        Path(write_model(path, {"a": "x", "b": "y"}))
        .read_bytes()
        .replace(np.float32(20).tobytes(), np.float32(3e38).tobytes())
    )
    large = np.float32([3e38, 0, 3e38, 0]).tobytes()
    path.write_bytes(body.replace(np.eye(2, dtype="<f4").tobytes(), large))
    predictor = Predictor(str(path), "key")
    with pytest.raises(RecipeError, match=re.escape(str(path))):
        best(predictor, [b"a"])


def test_losses_have_the_numbers_of_the_format() -> None:
    assert (HIERARCHICAL, NEGATIVE_SAMPLING, SOFTMAX, ONE_VS_ALL) == (1, 2, 3, 4)
