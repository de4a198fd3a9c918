"""A fastText model that we train is one that fastText itself reads, the same for the same texts, and tells them apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.scorer import load
from pipeline_tasks.stage import FilePath
from pipeline_tasks.text.words.fasttext_model import load as load_model
from pipeline_tasks.text.words.fasttext_training import Size, train
from tests.scorer_samples import passages
from tests.text.words.test_language_model import sentences

NAMES = ("__label__low", "__label__high")
SMALL = Size(dimensions=8, buckets=1 << 12, epochs=8)


def column(texts: list[str]) -> Any:
    return pa.array(texts, pa.large_string())


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """As many passages of a manual as sentences of a grammar."""
    return [*passages()[:120], *(" ".join(sentences(8, seed=at)) for at in range(120))]


@pytest.fixture(scope="module")
def model(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> FilePath:
    path = tmp_path_factory.mktemp("model") / "quality.bin"
    path.write_bytes(train(column(texts), labels(), NAMES, SMALL))
    return FilePath(str(path))


def labels() -> Any:
    return np.repeat([0, 1], 120)


def test_the_same_texts_give_the_same_bytes(texts: list[str], model: FilePath) -> None:
    assert train(column(texts), labels(), NAMES, SMALL) == Path(model).read_bytes()
    assert train(column(texts[::-1]), labels(), NAMES, SMALL) != Path(model).read_bytes()


def test_a_model_tells_its_texts_apart(texts: list[str], model: FilePath) -> None:
    values = load(Classifier(model, label=NAMES[1])).scores(column(texts)).values
    assert ((values > 0.5) == labels()).mean() > 0.98


def test_fasttext_itself_predicts_the_same(texts: list[str], model: FilePath) -> None:
    import fasttext

    own = load(Classifier(model, label=NAMES[1])).scores(column(texts)).values
    other = fasttext.load_model(model)
    for text, value in zip(texts, own.tolist(), strict=True):
        found = dict(zip(*other.predict(text, k=2), strict=True))
        assert min(found[NAMES[1]], 1.0) == pytest.approx(value, abs=2e-6)


def test_words_are_counted_as_fasttext_counts_them(model: FilePath) -> None:
    read = load_model(model, "test")
    assert read.letters[: read.ends[1]].tobytes() == b"</s>"
    assert (read.arguments.word_ngrams, read.arguments.buckets, read.arguments.dimensions) == (2, 1 << 12, 8)
    assert set(read.labels) == set(NAMES)
    assert read.counts == (120, 120)


def test_ends_of_lines_and_labels_in_a_text_are_no_words() -> None:
    plain = ["red green blue " * 3, "one two three " * 3]
    marked = ["red green blue __label__high " * 3, "one two three " * 3 + "</s> red"]
    size = Size(dimensions=4, buckets=64, least=1, epochs=2)
    assert train(column(marked), np.array([0, 1]), NAMES, size) == train(column(plain), np.array([0, 1]), NAMES, size)


def test_a_label_without_a_text_and_texts_of_rare_words_are_refused() -> None:
    with pytest.raises(RecipeError, match="__label__high"):
        train(column(["a b c"]), np.array([0]), NAMES, SMALL)
    with pytest.raises(RecipeError, match="3 times"):
        train(column(["a b c", "d e f"]), np.array([0, 1]), NAMES, SMALL)
