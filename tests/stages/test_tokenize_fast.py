"""Fast libraries give the ids of the reference, for every character and in many scripts, or do not load a tokenizer."""

import gzip
import json
import random
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from pipeline_tasks.stages.tokenize import fast as fast_module
from pipeline_tasks.stages.tokenize.fast import BACKENDS, fast
from pipeline_tasks.stages.tokenize.references import reference
from pipeline_tasks.stages.tokenize.tiktoken_ranks import tiktoken_definition
from pipeline_tasks.stages.tokenize.unsettled import unsettled

LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT_2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
"""The patterns of Llama 3, and of tiktoken's r50k_base."""

TEXTS = [
    "The quick brown fox's 1234 tests, don't they? They'LL see: <|endoftext|> <s> </s>",
    "Größe, naïve façade; Ελληνικά γράμματα; Русский текст 2026 года.",
    "日本語の文章です。中文的句子没有空格。한국어 문장입니다.",
    "ภาษาไทยไม่มีช่องว่าง हिन्दी में लिखा हुआ पाठ العربية نص עברית טקסט",
    "    indented = code(with_tabs)\n\t\treturn x\r\n\r\n\n   \x00\x1c end ",
    "👩🏽\u200d🚀 emoji, e\u0301 combining, \u1112\u1161\u11ab jamo, \ufeff bom, \xa0nbsp, \u2028 line",
]
"""Texts of several scripts, on which the small tokenizers below are trained."""

PIECES = [
    *" abcABZ019.,!'/_-",
    *["  ", "   ", "\n", "\r\n", "\t", "\x00", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\ufeff", "\ufffd"],
    *["'s", "'LL", "'\u017f", "\u2019s", "é", "e\u0301", "\u0301", "\u0323", "ß", "İ", "\u01c5", "\u02b0", "²", "Ⅷ"],
    *["你", "の", "한", "\u1112\u1161\u11ab", "\u0627", "\u05bf", "क्ष", "\u0958", "ำ", "\u0e8a", "\u0344", "\u212b"],
    *["😀", "👩🏽\u200d🚀", "\u180e", "\u08cb", "\u1df8", "\u1ae0", "\U000113c2", "\U0001611e", "\U0010ffff"],
    *["<|endoftext|>", "<s>", "</s>", "<unk>", "<0x41>", "▁", "Ġ", "hello", "world"],
]
"""What libraries are known to see differently, and what surrounds it."""


def byte_level(normalizer: Any = None, pattern: str = "", **added: bool) -> bytes:
    tokenizer = Tokenizer(models.BPE())
    cut = pre_tokenizers.Split(Regex(pattern), "isolated") if pattern else None
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, last]) if cut else last
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS * 3,
        trainers.BpeTrainer(
            vocab_size=420, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False
        ),
    )
    if added:
        tokenizer.add_tokens([AddedToken("world", **added)])
    return str(tokenizer.to_str()).encode()


def byte_fallback() -> bytes:
    """Return a BPE as Llama 2 has it: `▁` for spaces, and pieces for single bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>", *[f"<0x{byte:02X}>" for byte in range(256)]]
    trainer = trainers.BpeTrainer(
        vocab_size=420, limit_alphabet=60, special_tokens=special, max_token_length=8, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return str(tokenizer.to_str()).encode()


def ranks() -> bytes:
    pieces = [bytes([byte]) for byte in range(256)] + [b"th", b"the", b" the", "é".encode()]
    numbered = {piece: rank for rank, piece in enumerate(pieces)}
    encoding = tiktoken.Encoding(
        "tiny", pat_str=GPT_2, mergeable_ranks=numbered, special_tokens={"<|endoftext|>": len(pieces)}
    )
    return tiktoken_definition(encoding)


@cache
def definitions() -> dict[str, tuple[str, bytes]]:
    return {
        "gpt2": ("tokenizers", byte_level()),
        "composed": ("tokenizers", byte_level(normalizers.NFC())),
        "llama3": ("tokenizers", byte_level(pattern=LLAMA_3)),
        "lower": ("tokenizers", byte_level(normalizers.Lowercase())),
        "added": ("tokenizers", byte_level(normalized=False)),
        "single words": ("tokenizers", byte_level(single_word=True)),
        "bytes": ("tokenizers", byte_fallback()),
        "tiktoken": ("tiktoken", ranks()),
    }


KNOWN = {
    "gigatoken": ["gpt2", "composed", "llama3", "added", "bytes", "tiktoken"],
    "fastokens": ["gpt2", "composed", "llama3", "lower", "added", "single words"],
}
"""The tokenizers that each library loads."""

LOADED = [(backend, name) for backend, names in KNOWN.items() for name in names]


def strings(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def same(backend: str, kind: str, definition: bytes, texts: Sequence[str]) -> bool:
    quick = fast(backend, kind, definition)
    assert quick is not None
    pairs = zip(quick(strings(texts)), reference(kind, definition)(strings(texts)), strict=True)
    return all(np.array_equal(ours, theirs) and ours.dtype == theirs.dtype for ours, theirs in pairs)


def test_what_each_library_loads() -> None:
    loaded = {backend: [name for name, known in definitions().items() if fast(backend, *known)] for backend in BACKENDS}
    assert loaded == KNOWN


@pytest.mark.parametrize(("backend", "name"), LOADED)
def test_texts_of_many_scripts_and_lengths(backend: str, name: str) -> None:
    lengths = ["", "a", " ", "a" * 5000, " " * 5000, "你好" * 3000, "word " * 20_000, "\n" * 3000, "é1" * 2000]
    assert same(backend, *definitions()[name], [*TEXTS, *lengths, *PIECES, "".join(PIECES)])


@pytest.mark.parametrize(("backend", "name"), LOADED)
@given(texts=st.lists(st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"])), max_size=8))
def test_any_text(backend: str, name: str, texts: list[list[str]]) -> None:
    assert same(backend, *definitions()[name], ["".join(pieces) for pieces in texts])


@pytest.mark.parametrize(
    ("backend", "name"), [pair for pair in LOADED if pair[1] in ("composed", "llama3", "tiktoken")]
)
def test_every_character_between_letters_digits_and_spaces(backend: str, name: str) -> None:
    texts = [f"a{sign}b 1{sign}2  {sign}{sign} A{sign}\n" for sign in map(chr, characters())]
    assert same(backend, *definitions()[name], texts)


def characters() -> list[int]:
    """Return the characters below U+20000, and one in 97 of those that are ideographs, syllables or for private use."""
    many = [*range(0x3400, 0xA000), *range(0xAC00, 0xD7A4), *range(0xE000, 0xF900), *range(0x17000, 0x18D00)]
    dense = frozenset(point for point in many if point % 97)
    return [point for point in range(0x20000) if not 0xD800 <= point < 0xE000 and point not in dense]


def test_characters_that_unicode_has_long_had_are_settled() -> None:
    flags = unsettled()
    assert not any(flags[ord(sign)] for text in TEXTS for sign in text)
    assert not flags[: ord("z")].any()
    newer = [point for point in range(0x20000) if unicodedata.category(chr(point)) == "Cn"]
    assert flags[newer].all()


@pytest.mark.parametrize(("backend", "name"), LOADED)
def test_a_text_that_is_no_utf_8_is_no_text_for_any_library(backend: str, name: str) -> None:
    broken = pa.array([b"abc\xff", b"\xed\xa0\x80"]).cast(pa.large_binary()).view(pa.large_string())
    encoder = fast(backend, *definitions()[name])
    assert encoder
    with pytest.raises(pa.ArrowInvalid):
        encoder(broken)


def test_words_that_gigatoken_met_do_not_change_ids_and_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_module, "RENEWED_BYTES", 2000)
    draw = random.Random(7)
    encoder: Any = fast("gigatoken", *definitions()["gpt2"])
    turns, met = [], []
    for _ in range(8):
        turns.append(["".join(draw.choices("abcdé 你\n", k=400)) for _ in range(3)])
        assert same("gigatoken", *definitions()["gpt2"], turns[-1])
        met.append(encoder.quick.met)
    largest = max(len("".join(texts).encode()) for texts in turns)
    assert largest <= max(met) < 2000 + largest < 8 * largest


def real_texts(shared_data: Path) -> list[str]:
    texts = []
    for name in ("lid/lid-sentences", "text/peps", "text/redpajama-pile-samples", "text/ccnet-head"):
        with gzip.open(shared_data / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            texts += [json.loads(line)["text"][:4000] for line in lines]
    return texts


@pytest.mark.parametrize("backend", BACKENDS)
def test_real_texts_in_two_hundred_languages(shared_data: Path, backend: str) -> None:
    definition = gzip.decompress((shared_data / "resources" / "gpt-neo-tokenizer.json.gz").read_bytes())
    assert same(backend, "tokenizers", definition, real_texts(shared_data))
