"""Signatures: the same on every machine forever, and true to the curve that they promise."""

import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base import hashing
from pipeline_tasks.text.near import minhash
from pipeline_tasks.text.near.shingle_sets import sizes, unpack

FOX = "the quick brown fox jumps over the lazy dog"
FOX_KEYS = [
    8206661974646607065,
    -3023201125196345132,
    7339985873675173097,
    -6922746144166625531,
    3659352889666700936,
    -8457078008400039169,
    4236350397215477780,
    -7080027522274131926,
    6662196851304514011,
    -5937988344217306169,
    7624885767208249454,
    979424416473035528,
    670937746045726828,
    8604463181666434049,
]
FOX_SHINGLES = [258213734129, 280679459868, 488019217017, 633207417826, 1067418153782]
FOX_SET = (
    "05000000f1e6bc1e1caccc59794a36a0e26b1a6e367314870000000000000010040000000000080000004000000000000000000000000010"
)
FOX_BY_CHARACTER = [3843899999983722340, 3969757442410522282, -5096198381282271150]


def test_generator_is_splitmix64() -> None:
    # The first outputs of seed 0, as published with the reference implementation.
    assert hashing.splitmix64(0, 2) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


def test_vectors_are_frozen_because_saved_signatures_outlive_releases() -> None:
    keys, packed = minhash.sign(pa.array([FOX]), minhash.Family())
    assert keys.to_pylist() == [FOX_KEYS]
    assert unpack(packed)[0].tolist() == FOX_SHINGLES
    assert packed[0].as_py().hex() == FOX_SET
    assert minhash.permutations(2, 1).tolist() == [
        [2433363436, 3203108257],
        [4170425071, 1908508305],
        [1908102361, 3276606463],
    ]


def test_vectors_of_characters_are_frozen_too() -> None:
    keys, packed = minhash.sign(pa.array([FOX]), minhash.Family(ngram=24, bands=3, rows=4, shingle="char"))
    assert keys.to_pylist() == [FOX_BY_CHARACTER]
    assert sizes(packed).tolist() == [len(FOX) - 24 + 1]


@given(st.lists(st.text(max_size=40) | st.none(), max_size=12), st.integers(0, 5))
def test_slices_and_nulls_are_signed_as_themselves(texts: list[str | None], start: int) -> None:
    family = minhash.Family(ngram=2, bands=3, rows=2)
    whole = pa.array(texts, pa.large_string())
    keys, packed = minhash.sign(whole.slice(start), family)
    alone = [minhash.sign(pa.array([text or ""]), family) for text in texts[start:]]
    assert keys.to_pylist() == [own_keys[0].as_py() for own_keys, _ in alone]
    assert packed.to_pylist() == [own[0].as_py() for _, own in alone]


@given(st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), min_size=1, max_size=200))
def test_sort_distinct_sorts_any_numbers(values: list[int]) -> None:
    out, tally = np.zeros(len(values), np.uint64), np.zeros(2 * len(values) + 3, np.int64)
    kept = minhash.sort_distinct(np.array(values, np.uint64), len(values), out, tally)
    assert out[:kept].tolist() == sorted(set(values))


def test_short_documents_have_no_signature_and_so_no_near_duplicates() -> None:
    keys, packed = minhash.sign(pa.array(["four words are few", "", "four words are few"]), minhash.Family())
    assert keys.to_pylist() == [[], [], []]
    assert packed.to_pylist() == [b"", b"", b""]


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=30), min_size=2, max_size=6))
def test_jaccard_is_that_of_the_sets_of_shingles(docs: list[list[str]]) -> None:
    _, packed = minhash.sign(pa.array([" ".join(words) for words in docs]), minhash.Family(ngram=3))
    sets = [{tuple(words[at : at + 3]) for at in range(len(words) - 2)} for words in docs]
    lefts, rights = np.arange(len(docs) - 1), np.arange(1, len(docs))
    expected = [
        len(left & right) / len(left | right) if left or right else 0.0 for left, right in itertools.pairwise(sets)
    ]
    assert minhash.jaccard(packed, lefts, packed.slice(0), rights).tolist() == expected


@pytest.mark.parametrize("similarity", [0.4, 0.6, 0.7, 0.8, 0.9])
def test_share_of_candidates_follows_the_curve(similarity: float) -> None:
    draws, pairs, size = random.Random(similarity), 1500, 180
    common = round(2 * size * similarity / (1 + similarity))
    left, right = [], []
    for _ in range(pairs):
        words = [f"{draws.getrandbits(48):x}" for _ in range(2 * size + 4 - common)]
        left.append(" ".join(words[: size + 4]))
        right.append(" ".join(words[: common + 4] + words[size + 4 :]))
    family = minhash.Family()
    (left_keys, left_packed), (right_keys, right_packed) = (
        minhash.sign(pa.array(left), family),
        minhash.sign(pa.array(right), family),
    )
    rows = np.arange(pairs)
    true = minhash.jaccard(left_packed, rows, right_packed, rows)
    assert np.allclose(true, common / (2 * size - common))
    hits = sum(
        any(a == b for a, b in zip(x, y, strict=True))
        for x, y in zip(left_keys.to_pylist(), right_keys.to_pylist(), strict=True)
    )
    expected = minhash.curve(float(true[0]), family.bands, family.rows)
    assert abs(hits / pairs - expected) < 4 * math.sqrt(expected * (1 - expected) / pairs)


def test_curve_and_midpoint_are_the_published_ones() -> None:
    assert [round(minhash.curve(s, 14, 8), 3) for s in (0.5, 0.7, 0.8)] == [0.053, 0.565, 0.924]
    assert [round(minhash.midpoint(b, 8), 3) for b in (14, 16, 32)] == [0.719, 0.707, 0.648]
