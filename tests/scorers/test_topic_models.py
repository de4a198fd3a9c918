"""Topics keep their numbers when they are trained again, and documents get the nearest one, exactly."""

from pathlib import Path

import numpy as np
import pytest
from refinery_models.topics import facts_of, train_topics

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.scorers.topics import TopicModel, dump_topics, read_topics
from pipeline_tasks.text.near.vectors import packed, unpacked

WORDS = ("garden tomato soil", "engine piston fuel", "court judge ruling", "violin concert score", "river flood dam")
SHARED = "yesterday people"


def sample(seed: int, counts: list[int], moved: float = 0.0) -> tuple[np.ndarray, list[str]]:
    """Vectors around as many directions as there are counts, each with its words; directions move a little."""
    middle = np.random.default_rng(1).normal(size=(len(WORDS), 32))
    middle += moved * np.random.default_rng(2).normal(size=middle.shape)
    of = np.repeat(np.arange(len(counts)), counts)
    vectors = middle[of] + 0.5 * np.random.default_rng(seed).normal(size=(len(of), 32))
    return unpacked(packed(vectors)), [f"{WORDS[topic]} {SHARED}" for topic in of]


def by_words(model: TopicModel) -> dict[str, int]:
    return {" ".join(sorted(topic.terms[:3])): topic.number for topic in model.topics}


def test_topics_are_found_and_named_by_what_tells_them_apart() -> None:
    vectors, texts = sample(3, [40, 30, 20, 10, 50])
    model = train_topics(vectors, texts, "m", 5, 1)
    assert set(by_words(model)) == {" ".join(sorted(words.split())) for words in WORDS}
    assert [topic.texts for topic in model.topics] == [50, 40, 30, 20, 10]
    assert facts_of(model, vectors)["largest_share"] == pytest.approx(50 / 150, abs=1e-5)


def test_numbers_stay_over_three_samples_and_new_topics_get_new_ones() -> None:
    first = train_topics(*sample(3, [40, 30, 20]), "m", 3, 1)
    vectors, texts = sample(4, [10, 60, 15, 30, 0], 0.1)
    second = train_topics(vectors, texts, "m", 4, 9, first)
    third = train_topics(*sample(5, [0, 20, 30, 25, 40], 0.2), "m", 4, 5, second)
    numbers = [by_words(model) for model in (first, second, third)]
    for before, after in ((numbers[0], numbers[1]), (numbers[1], numbers[2])):
        assert {words: after[words] for words in before if words in after} == {
            words: number for words, number in before.items() if words in after
        }
    assert len({number for found in numbers for number in found.values()}) == 5
    assert third.highest == 5
    assert facts_of(second, vectors, first)["kept_topics"] == 3
    assert facts_of(second, vectors, first)["agreement"] == pytest.approx(85 / 115, abs=0.02)


def test_a_file_has_what_was_trained_and_a_changed_one_is_refused(tmp_path: Path) -> None:
    vectors, texts = sample(3, [40, 30, 20])
    model = train_topics(vectors, texts, "m", 3, 1)
    path = tmp_path / "topics.json"
    path.write_bytes(dump_topics(model))
    read = read_topics(str(path))
    assert (read.topics, read.model, read.highest) == (model.topics, "m", 3)
    assert [part.tolist() for part in read.nearest(vectors)] == [part.tolist() for part in model.nearest(vectors)]
    path.write_bytes(path.read_bytes().replace(b"garden", b"warden"))
    with pytest.raises((ContractError, DigestMismatch)):
        read_topics(str(path))


def test_topics_of_another_models_vectors_are_no_base() -> None:
    first = train_topics(*sample(3, [40, 30, 20]), "m", 3, 1)
    with pytest.raises(RecipeError, match="of m"):
        train_topics(*sample(3, [40, 30, 20]), "other", 3, 1, first)
