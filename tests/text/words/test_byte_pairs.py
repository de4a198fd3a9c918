"""Merges: those that the library's own trainer learns, from the same words."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from pipeline_tasks.text.words.byte_pairs import Learned, learn_merges

PROSE = Path(__file__).parents[3] / "docs"
END = "<|endoftext|>"


def of_library(texts: list[str], size: int, special: list[str], alphabet: list[str]) -> Learned:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator([texts], trainer)
    model = json.loads(bpe.to_str())["model"]
    return Learned(sorted(model["vocab"], key=model["vocab"].get), [(left, right) for left, right in model["merges"]])


def learned(texts: list[str], size: int, special: list[str]) -> tuple[Learned, Learned]:
    cutter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    counts = Counter(word for text in texts for word, _ in cutter.pre_tokenize_str(text))
    words = sorted(counts)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*special, *(letter for letter in alphabet if letter not in special)]
    ours = learn_merges(words, np.array([counts[word] for word in words], np.int64), tokens, size)
    return ours, of_library(texts, size, special, alphabet)


@given(
    texts=st.lists(st.text("ab c'\u00e9\u4f60", max_size=60), max_size=12),
    size=st.integers(250, 300),
    special=st.sampled_from([[END], ["ab"], ["a", "bab"], ["aa", "\u0120a"], ["\u4f60"]]),
)
def test_any_texts_give_the_merges_of_the_library(texts: list[str], size: int, special: list[str]) -> None:
    ours, library = learned(texts, size, special)
    assert ours == library


@pytest.mark.parametrize("size", [300, 2000, 100_000])
def test_prose_gives_the_merges_of_the_library(size: int) -> None:
    ours, library = learned([page.read_text() for page in sorted(PROSE.rglob("*.md"))], size, [END])
    assert ours == library
    assert len(ours.merges) > 40


def test_no_words_give_the_tokens_alone() -> None:
    assert learn_merges([], np.zeros(0, np.int64), ["a", "b"], 10) == Learned(["a", "b"], [])
