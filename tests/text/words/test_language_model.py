"""Words in order gain, words in disorder lose; the model is the same for the same text, and damage to it is found."""

import hashlib
import json
import random
import re
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.words.language_model import (
    MAGIC,
    LanguageModel,
    dump_model,
    gains,
    order_scores,
    read_model,
    trigram_keys,
)
from pipeline_tasks.text.words.model_training import EXCERPT, MIN_EXCERPTS, Size, SortedCounts, excerpts, train
from pipeline_tasks.text.words.units import cut_units

PEOPLE = [
    "the old miller",
    "a young farmer",
    "my neighbour",
    "the teacher",
    "her brother",
    "an honest judge",
    "the captain",
    "a stranger",
]
DEEDS = [
    "walked slowly to",
    "looked for",
    "had never seen",
    "was afraid of",
    "wanted to buy",
    "often spoke about",
    "came back from",
]
PLACES = [
    "the river",
    "a small house near the wood",
    "the market in the town",
    "his boat",
    "the bridge",
    "an island in the north",
]
TIMES = [
    "before it was dark",
    "when the rain had stopped",
    "in the spring of that year",
    "because nobody else would",
    "at last",
]


def sentences(count: int, seed: int = 0) -> list[str]:
    """Return sentences of a small grammar: real prose is in `tests/stages/test_nonsense.py`."""
    draw = random.Random(seed)
    parts = PEOPLE, DEEDS, PLACES, TIMES
    drawn = (" ".join(draw.choice(part) for part in parts) for _ in range(count))
    return [sentence[0].upper() + sentence[1:] + "." for sentence in drawn]


@cache
def model() -> LanguageModel:
    return train(lambda: sentences(3000), "en")


def in_disorder(text: str) -> str:
    words = text.split()
    random.Random(1).shuffle(words)
    return " ".join(words)


def test_words_in_order_score_high_and_in_disorder_low() -> None:
    text = " ".join(sentences(40, seed=9))
    unseen = text.replace("miller", "wizard").replace("river", "volcano")
    scores = order_scores(model(), pa.array([text, unseen, in_disorder(text), "", "12 — 34", None]))
    assert scores[0] > 0.9
    assert scores[1] > 0.6
    assert scores[2] < 0.1
    assert np.isnan(scores[3:]).all()


def test_letters_are_the_units_of_scripts_without_spaces() -> None:
    said = [
        "今天天气很好",
        "我们去公园散步",
        "他在学校里学习中文",
        "昨天晚上下了大雨",
        "这本书很有意思",
        "请给我一杯热茶",
    ]
    draw = random.Random(2)
    text = ["。".join(draw.choice(said) for _ in range(12)) for _ in range(1400)]
    chinese = train(lambda: text, "zh")
    assert chinese.letters
    shuffled = list(text[0])
    random.Random(3).shuffle(shuffled)
    ordered, disordered = order_scores(chinese, pa.array([text[0], "".join(shuffled)]))
    assert ordered > 0.8
    assert disordered < 0.2


def test_units_are_words_of_letters_with_their_class() -> None:
    units = cut_units(pa.array(["Don't walk, 22 Talk!", "", "नमस्ते दुनिया"]), letters=False)
    assert units.bounds.tolist() == [0, 4, 4, 6]
    walk, talk = 2, 3
    assert units.spelled[walk] != units.spelled[talk]
    assert units.classes[walk] != units.classes[talk]  # a capital is another class
    (lower,) = cut_units(pa.array(["talk"]), letters=False).classes
    assert lower == units.classes[walk]


def test_the_same_text_gives_the_same_bytes_however_it_is_cut() -> None:
    text = sentences(3000)
    joined = ["\n".join(text[at : at + 7]) for at in range(0, len(text), 7)]
    assert dump_model(train(lambda: text, "en")) == dump_model(train(lambda: iter(joined), "en")) == dump_model(model())


def test_a_bound_on_ngrams_is_kept_and_forgets_the_rarest() -> None:
    small = train(lambda: sentences(3000), "en", Size(ngrams=200))
    assert len(small.trigrams.keys) <= 200
    assert small.trigrams.counts.min() >= model().trigrams.counts.min()
    counted = SortedCounts(2)
    counted.add(np.array([5, 5, 5, 7, 7, 9], np.uint64))
    counted.merge()
    assert (counted.keys.tolist(), counted.counts.tolist()) == ([5, 7], [3, 2])


def test_excerpts_hold_the_whole_text_and_end_between_words() -> None:
    text = sentences(100)
    pieces = list(excerpts(text))
    assert "".join(pieces) == "\n".join(text)
    assert len(pieces) > 2
    assert [len(piece) for piece in pieces[:-1] if not EXCERPT <= len(piece) < 2 * EXCERPT] == []
    assert [piece for piece in pieces[1:] if not piece[0].isspace()] == []


def test_trigrams_do_not_cross_texts() -> None:
    kinds, bounds = np.array([3, 4, 5], np.uint64), np.array([0, 0, 1, 3, 3])
    one, two, three = (int(key) for key in trigram_keys(kinds, bounds))
    assert (one, two, three) == (3, 4, 4 << 16 | 5)


@given(st.lists(st.text(max_size=60) | st.sampled_from(sentences(5)), max_size=6))
def test_any_text_has_a_measure_of_its_own_only(texts: list[str]) -> None:
    units = cut_units(pa.array(texts, pa.large_string()), letters=False)
    together = gains(model(), model().kinds(units), units.bounds)
    assert np.isfinite(together[np.diff(units.bounds) > 0]).all()
    for text, gain in zip(texts, together.tolist(), strict=True):
        alone = cut_units(pa.array(["x y", text], pa.large_string()).slice(1), letters=False)
        (expected,) = gains(model(), model().kinds(alone), alone.bounds).tolist()
        assert gain == expected or (np.isnan(gain) and np.isnan(expected))


def test_too_little_text_and_text_without_order_are_refused() -> None:
    count = len(list(excerpts(sentences(100))))
    with pytest.raises(RecipeError, match=f" {count} .* {MIN_EXCERPTS}"):
        train(lambda: sentences(100), "en")
    draw = random.Random(4)
    words = " ".join(PEOPLE + PLACES).split()
    noise = [" ".join(draw.choice(words) for _ in range(20)) for _ in range(3000)]
    assert len(list(excerpts(noise))) >= MIN_EXCERPTS
    with pytest.raises(RecipeError, match=" en "):
        train(lambda: noise, "en")


# --- File ---------------------------------------------------------------------------------------------------------------


def test_a_model_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "en.lm"
    path.write_bytes(dump_model(model()))
    assert dump_model(read_model(str(path))) == path.read_bytes()


@given(st.data())
def test_a_damaged_model_is_refused_with_its_path(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(dump_model(model()))
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[at:]
    else:
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("damaged") / "en.lm"
    path.write_bytes(content)
    try:
        read = read_model(str(path))
    except RecipeError as error:
        assert str(path) in str(error)  # noqa: PT017 -- a flip within the header's numbers may be another sound model
    else:
        assert at < content.index(b"\n", len(MAGIC))
        assert read.disordered < read.trusted


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lengths", [1]),
        ("lengths", [10**12] * 7),
        ("lengths", [-1] * 7),
        ("trusted", -0.99),
        ("trusted", float("nan")),
        ("disordered", "low"),
        ("letters", 1),
        ("language", None),
        ("sha256", "0" * 64),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path: Path, field: str, value: object) -> None:
    line, _, body = dump_model(model())[len(MAGIC) :].partition(b"\n")
    header = json.loads(line) | {field: value}
    path = tmp_path / "en.lm"
    path.write_bytes(MAGIC + json.dumps(header).encode() + b"\n" + body)
    with pytest.raises(RecipeError, match=re.escape(str(path))):
        read_model(str(path))


def test_arrays_out_of_order_are_refused(tmp_path: Path) -> None:
    line, _, body = dump_model(model())[len(MAGIC) :].partition(b"\n")
    swapped = body[8:16] + body[:8] + body[16:]
    header = json.loads(line) | {"sha256": hashlib.sha256(swapped).hexdigest()}
    path = tmp_path / "en.lm"
    path.write_bytes(MAGIC + json.dumps(header).encode() + b"\n" + swapped)
    with pytest.raises(RecipeError, match=f"{re.escape(str(path))} .*spelled"):
        read_model(str(path))
