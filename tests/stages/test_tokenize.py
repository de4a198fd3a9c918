"""Tokenizing: ids spelled out, one end token each, the same vocabulary for any sharding and on every later day."""

import gzip
import hashlib
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
import tiktoken
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stages.tokenize import encoding
from pipeline_tasks.stages.tokenize.choosing import load_tokenizer
from pipeline_tasks.stages.tokenize.decoding import decoder
from pipeline_tasks.stages.tokenize.encoding import choose_backend, encoded
from pipeline_tasks.stages.tokenize.fast import fast
from pipeline_tasks.stages.tokenize.params import Params
from pipeline_tasks.stages.tokenize.references import reference
from pipeline_tasks.stages.tokenize.tiktoken_ranks import tiktoken_definition
from tests.examples import fewest_examples
from tests.refining import commit_parent, refined, rows
from tests.sentence_piece import trained_model

WORDS = ["the cat sat", "on the mat", "", "the end", "a<|endoftext|>b", "héllo wörld, 你好", "  two  spaces\n"]


def table(texts: Sequence[str | None], name: str = "d", **columns: Sequence[Any]) -> pa.Table:
    located = {field.name: pa.nulls(len(texts), field.type) for field in LOCATOR}
    ids = [f"{name}{rank:031x}" for rank in range(len(texts))]
    return pa.table(
        {**located, "id": pa.array(ids, pa.string()), "text": pa.array(texts, pa.large_string()), **columns}
    )


def words_json(tmp_path: Path) -> str:
    """Write a word-level tokenizer.json that cuts at two tokens, as published files do, and return its path."""
    tokenizer = Tokenizer(models.WordLevel({"</s>": 0, "the": 1, "cat": 2, "sat": 3, "?": 4, "<s>": 5}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=7)
    path = tmp_path / "words.json"
    tokenizer.save(str(path))
    return str(path)


def tokenized(root: Path, shards: Sequence[pa.Table], params: dict[str, Any] | None = None, **how: Any) -> Any:
    return refined(root, "tokenize", commit_parent(root, shards), params, **how)


def tokenizer_row(root: Path, manifest: Manifest) -> dict[str, Any]:
    (row,) = rows(root, manifest, "tokenizer").to_pylist()
    return dict(row)


def test_a_trained_tokenizer_is_the_library_s_own_whatever_the_shards(tmp_path: Path) -> None:
    texts = [" ".join(WORDS[(first + step) % len(WORDS)] for step in range(9)) for first in range(40)]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    library.train_from_iterator(texts, trainer)
    params = {"train": {"vocab_size": 300, "min_bytes": 0}, "bos": "<s>"}
    trained = []
    for cuts in ([40], [7, 20, 40]):
        root = tmp_path / f"{len(cuts)} shards"
        shards = [table(texts[start:stop], f"{stop % 10}") for start, stop in zip([0, *cuts], cuts, strict=False)]
        row = tokenizer_row(root, tokenized(root, shards, params)[1])
        trained.append((row["definition"].decode(), row["documents"], row["bytes"]))
    assert trained == [(library.to_str(), 40, sum(len(text.encode()) for text in texts))] * 2


def test_ids_end_with_one_end_token_and_nothing_is_cut(tmp_path: Path) -> None:
    params = {"tokenizer": words_json(tmp_path)}
    shards = [table(["the cat sat", "dog the </s>"]), table([None, "sat"], "e")]
    manifest = tokenized(tmp_path, shards, params)[1]
    out = rows(tmp_path, manifest)
    assert out["tokens"].to_pylist() == [[1, 2, 3, 0], [4, 1, 4, 4, 4, 0], [3, 0]]
    assert out["n_tokens"].to_pylist() == [4, 6, 2]
    assert manifest.rejected == {"tokenize:empty": 1}
    assert out.schema.names == [*LOCATOR.names, "id", "tokens", "n_tokens", "n_bytes", "lost_chars"]


def test_bos_and_passed_columns(tmp_path: Path) -> None:
    docs = table(["the cat"], language=["en"], score=[0.5], title=["gone"], published=["2020-01-02"])
    manifest = tokenized(tmp_path, [docs], {"tokenizer": words_json(tmp_path), "bos": "<s>"})[1]
    (row,) = rows(tmp_path, manifest).to_pylist()
    assert (row["tokens"], row["language"], row["score"], "title" in row) == ([5, 1, 2, 0], "en", 0.5, False)
    assert row["published"] == "2020-01-02"


def test_a_file_is_known_by_content_and_not_by_place(tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    manifest = [tokenized(tmp_path, [table(["the cat"])], {"tokenizer": words_json(at)})[1] for at in
            (tmp_path, tmp_path / "moved")]  # fmt: skip
    assert manifest[0] == manifest[1]


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"eos": "<nope>"}, r"tokenize\.eos: .*'<nope>'"),
        ({"bos": "<nope>"}, r"tokenize\.bos: .*'<nope>'"),
    ],
)
def test_tokens_that_are_not_there_are_refused(tmp_path: Path, params: dict[str, str], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        tokenized(tmp_path, [table(["the"])], {"tokenizer": words_json(tmp_path), **params})


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"train": {"vocab": 9}}, ": train: .*'vocab'.*'vocab_size'"),
        ({"train": {"vocab_size": 256}}, ": train: vocab_size .*256"),
        ({"train": {"vocab_size": 10**12}}, f": train: vocab_size .*{10**12}"),
        ({"train": {"bytes": 0}}, ": train: bytes .*0"),
        ({"train": {}, "tokenizer": "a.json"}, r": .*a\.json .*`train`"),
        ({"backend": "quick"}, ": backend .*'quick'"),
        ({"tokenizer": "gpt2"}, r"\.tokenizer: 'gpt2' "),
        ({"tokenizer": "tiktoken:nope"}, r"\.tokenizer: .*'nope'"),
    ],
)
def test_senseless_requests_are_refused(tmp_path: Path, params: dict[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=f"tokenize{named}"):
        tokenized(tmp_path, [table(["the"])], params)


# --- Training -------------------------------------------------------------------------------------------------

SMALL = {"train": {"vocab_size": 300, "min_bytes": 0}}


def test_a_trained_tokenizer_decodes_every_text(tmp_path: Path) -> None:
    manifest = tokenized(tmp_path, [table(WORDS)], SMALL)[1]
    row = tokenizer_row(tmp_path, manifest)
    tokenizer = Tokenizer.from_str(row["definition"].decode())
    tokens = rows(tmp_path, manifest)["tokens"].to_pylist()
    assert [tokenizer.decode(ids[:-1], skip_special_tokens=False) for ids in tokens] == [text for text in WORDS if text]
    assert [(ids.count(row["eos_id"]), ids[-1]) for ids in tokens] == [(1, row["eos_id"])] * len(tokens)
    assert (row["vocab_size"], row["documents"]) == (tokenizer.get_vocab_size(), len(WORDS))


def test_text_that_spells_the_end_token_is_text(tmp_path: Path) -> None:
    manifest = tokenized(tmp_path, [table(["<|endoftext|>"])], SMALL)[1]
    (tokens,) = rows(tmp_path, manifest)["tokens"].to_pylist()
    assert len(tokens) > 2
    assert tokens.count(tokenizer_row(tmp_path, manifest)["eos_id"]) == 1


@fewest_examples
@given(cut=st.integers(0, len(WORDS)), batch=st.integers(1, 4))
def test_training_does_not_see_shards_or_their_order(
    tmp_path_factory: pytest.TempPathFactory, cut: int, batch: int
) -> None:
    apart, whole, docs = tmp_path_factory.mktemp("apart"), tmp_path_factory.mktemp("whole"), table(WORDS * 5)
    split = tokenized(apart, [docs.slice(cut), docs.slice(0, cut)], SMALL, batch_rows=batch)[1]
    full = tokenized(whole, [docs], SMALL)[1]
    assert [shard.digest for shard in split.history_shards] == [shard.digest for shard in full.history_shards]
    encoded = [rows(*of).drop_columns(["lost_chars"]).sort_by("id") for of in ((apart, split), (whole, full))]
    assert encoded[0].equals(encoded[1])  # which texts are compared depends on their place in a shard


def test_training_looks_at_a_share_when_there_is_too_much(tmp_path: Path) -> None:
    docs = table([f"word{rank} and more" for rank in range(400)])
    manifest = tokenized(tmp_path, [docs], {"train": {"vocab_size": 300, "bytes": 1000, "min_bytes": 0}})[1]
    share = 1000 / sum(len(text) for text in docs["text"].to_pylist())
    assert tokenizer_row(tmp_path, manifest)["documents"] == pytest.approx(400 * share, rel=0.4)


# --- Backends -------------------------------------------------------------------------------------------------


def chosen(texts: Sequence[str], definition: bytes, backend: str = "auto", size: int = 1000) -> dict[str, Any]:
    row = {"kind": "tokenizers", "definition": definition}
    return choose_backend(table(texts).to_batches(max_chunksize=size), row, backend)._asdict()


def gpt_neo(shared_data: Path) -> bytes:
    return gzip.decompress((shared_data / "resources" / "gpt-neo-tokenizer.json.gz").read_bytes())


def peps(shared_data: Path) -> list[str]:
    with gzip.open(shared_data / "text" / "peps.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def strings(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def test_auto_compares_a_sample_that_batches_do_not_change(shared_data: Path) -> None:
    definition, texts = gpt_neo(shared_data), ["some words"] * 3000
    choice = chosen(texts, definition)
    assert choice == {"backend": "gigatoken", "compared": 16 + 5}  # the first ones, and rows 512, 1024, ...
    assert chosen(texts, definition, size=7) == choice
    assert chosen(texts, definition, "reference") == {"backend": "reference", "compared": 0}


@pytest.mark.parametrize("place", [3, 512])
def test_one_difference_and_another_backend_does_the_work(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    definition = gpt_neo(shared_data)

    def wrong_for_cats(texts: pa.Array) -> Any:
        ids, offsets = reference("tokenizers", definition)(texts)
        return ids + np.int32("cat" in texts.to_pylist()), offsets

    with_cat = ["dog"] * 600
    with_cat[place] = "cat"
    monkeypatch.setattr(encoding, "fast", lambda name, *_: wrong_for_cats if name == "gigatoken" else None)
    assert chosen(["dog"] * 600, definition)["backend"] == "gigatoken"
    assert chosen(with_cat, definition)["backend"] == "reference"
    monkeypatch.setattr(
        encoding, "fast", lambda name, *known: wrong_for_cats if name == "gigatoken" else fast(name, *known)
    )
    assert chosen(with_cat, definition)["backend"] == "fastokens"


def test_auto_leaves_what_no_fast_library_knows_to_the_reference(tmp_path: Path) -> None:
    definition = Path(words_json(tmp_path)).read_bytes()
    assert chosen(["the cat"], definition)["backend"] == "reference"


def test_tiktoken_vocabularies_travel_whole() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, b" t": 258}
    encoding = tiktoken.Encoding(
        "tiny", pat_str=r"\s?\w+|.", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 259}
    )
    ids, offsets = reference("tiktoken", tiktoken_definition(encoding))(strings(["the", "", "a the"]))
    assert ids.tolist() == [257, ord("a"), ord(" "), 257]
    assert offsets.tolist() == [0, 1, 1, 4]


def test_encode_does_the_same_with_every_backend_in_any_batches(shared_data: Path) -> None:
    row = {"kind": "tokenizers", "definition": gpt_neo(shared_data), "eos_id": 0, "bos_id": None}
    out = [
        [
            ids
            for batch in encoded(table(WORDS).to_batches(max_chunksize=size), row, backend)
            for ids in batch["tokens"].to_pylist()
        ]
        for backend, size in (("gigatoken", 10), ("gigatoken", 1), ("fastokens", 10), ("reference", 10))
    ]
    assert out == [out[0]] * 4
    assert len(out[0]) == len(WORDS)


# --- Files --------------------------------------------------------------------------------------------------------------

TINY = tiktoken.Encoding(
    "tiny",
    pat_str=r"\s?\w+|.",
    mergeable_ranks={bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257},
    special_tokens={"<|endoftext|>": 258},
)


def loaded(path: Path) -> dict[str, Any]:
    (batch,) = load_tokenizer(iter(()), params=Params(str(path)))
    return dict(batch.to_pylist()[0])


def test_ranks_of_tiktoken_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "ranks.json").write_bytes(tiktoken_definition(TINY))
    row = loaded(tmp_path / "ranks.json")
    assert (row["kind"], row["vocab_size"], row["eos_id"]) == ("tiktoken", 259, 258)


def broken_files(tmp_path: Path) -> dict[str, bytes]:
    whole = Path(words_json(tmp_path)).read_bytes()
    ranks = tiktoken_definition(TINY)
    return {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "random": bytes(range(256)) * 40,
        "utf-16": whole.decode().encode("utf-16"),
        "json": b"{}",
        "list": b"[]",
        "deep": b"[" * 100_000,
        "ids": whole.replace(b'"the": 1', b'"the": -1'),
        "model": whole.replace(b'"WordLevel"', b'"Cake"'),
        "no vocabulary": b'{"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{},"merges":[]}}',
        "half of ranks": ranks[: len(ranks) // 2],
        "pattern of ranks": ranks.replace(b'"pat_str":"', b'"pat_str":"(('),
        "hexadecimal of ranks": ranks.replace(b'"7468":256', b'"74zz":256'),
    }


def test_a_file_that_is_no_tokenizer_is_refused_with_its_path(tmp_path: Path) -> None:
    paths = [tmp_path / "folder.json", tmp_path / "nothing.json"]
    paths[0].mkdir()
    for name, content in broken_files(tmp_path).items():
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_bytes(content)
    assert len(paths) == 2 + 13
    for path in paths:
        with pytest.raises(RecipeError, match=re.escape(str(path))):
            loaded(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), cut=st.integers(0, 40), inserted=st.binary(max_size=40), tiktokens=st.booleans())
def test_a_mutated_tokenizer_is_refused_or_loads(
    tmp_path: Path, place: float, cut: int, inserted: bytes, *, tiktokens: bool
) -> None:
    whole = tiktoken_definition(TINY) if tiktokens else Path(words_json(tmp_path)).read_bytes()
    at = int(place * len(whole))
    (tmp_path / "mutated.json").write_bytes(whole[:at] + inserted + whole[at + cut :])
    try:
        assert loaded(tmp_path / "mutated.json")["vocab_size"] > 0
    except RecipeError as error:
        assert f"{tmp_path}/mutated.json" in str(error)  # noqa: PT017 -- either outcome is right, and each is checked


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300))
def test_any_bytes_are_no_tokenizer(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "any.json").write_bytes(content)
    with pytest.raises(RecipeError):
        loaded(tmp_path / "any.json")


# --- SentencePiece --------------------------------------------------------------------------------------------


def model_of(tmp_path: Path, **how: Any) -> Path:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(trained_model(["the cat sat on the mat", "so the cat sat", "héllo wörld, 你好"] * 10, **how))
    return path


PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True}


def test_a_sentencepiece_model_is_read_from_a_file(tmp_path: Path) -> None:
    path = model_of(tmp_path, **PLAIN)
    row = loaded(path)
    assert (row["kind"], row["eos_id"], row["bos_id"]) == ("sentencepiece", 2, None)
    assert row["definition"] == path.read_bytes()
    assert row["name"] == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    (batch,) = load_tokenizer(iter(()), params=Params(str(path), bos="<s>", eos="<unk>"))
    assert (batch["bos_id"].to_pylist(), batch["eos_id"].to_pylist()) == ([1], [0])


def test_a_sentencepiece_model_encodes_as_its_library_and_special_pieces_are_text(tmp_path: Path) -> None:
    path = model_of(tmp_path, **PLAIN)
    texts = [*WORDS, "</s> and <s>", "a\x00b", "🦦 otter", "the " * 3000]
    manifest = tokenized(tmp_path, [table(texts)], {"tokenizer": str(path), "bos": "<s>"})[1]
    row, tokens = tokenizer_row(tmp_path, manifest), rows(tmp_path, manifest)["tokens"].to_pylist()
    library = sentencepiece.SentencePieceProcessor(model_file=str(path))
    assert tokens == [[1, *library.encode(text), 2] for text in texts if text]
    assert {(ids.count(1), ids.count(2)) for ids in tokens} == {(1, 1)}
    decode = decoder(row["kind"], row["definition"])
    assert [decode(ids) for ids in tokens] == [f"<s>{text}</s>" for text in texts if text]


def test_a_model_without_an_end_piece_needs_one(tmp_path: Path) -> None:
    path = model_of(tmp_path, **PLAIN, eos_id=-1)
    with pytest.raises(RecipeError, match=rf"tokenize\.eos: {re.escape(str(path))} "):
        loaded(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(place=0.9440820674440247, cut=27, inserted=b"\x01\x80")  # a piece that is no UTF-8
@given(place=st.floats(0, 1), cut=st.integers(0, 40), inserted=st.binary(max_size=40))
def test_a_mutated_model_is_refused_or_loads(tmp_path: Path, place: float, cut: int, inserted: bytes) -> None:
    path = tmp_path / "tokenizer.model"
    whole = path.read_bytes() if path.exists() else model_of(tmp_path, **PLAIN).read_bytes()
    at = int(place * len(whole))
    (tmp_path / "mutated.model").write_bytes(whole[:at] + inserted + whole[at + cut :])
    try:
        assert loaded(tmp_path / "mutated.model")["vocab_size"] > 0
    except RecipeError as error:
        assert f"{tmp_path}/mutated.model" in str(error)  # noqa: PT017 -- either outcome is right, and each is checked


@pytest.mark.parametrize("content", [b"", b"x", b"{}", b"dGhl 0\n"])
def test_other_bytes_are_no_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.model").write_bytes(content)
    with pytest.raises(RecipeError, match=re.escape(str(tmp_path / "other.model"))):
        loaded(tmp_path / "other.model")


def test_merges_that_are_skipped_at_random_are_left_out(tmp_path: Path) -> None:
    definition = json.loads(Path(words_json(tmp_path)).read_bytes())
    definition["model"] = {
        "type": "BPE",
        "dropout": 0.5,
        "vocab": {"</s>": 0, "a": 1, "b": 2, "ab": 3},
        "merges": [["a", "b"]],
    }
    (tmp_path / "random.json").write_text(json.dumps(definition))
    encode_texts = reference("tokenizers", loaded(tmp_path / "random.json")["definition"])
    assert encode_texts(strings(["ab"] * 50))[0].tolist() == [3] * 50


# --- What decoding gives back ---------------------------------------------------------------------------------


def lost(tmp_path: Path, texts: Sequence[str], params: dict[str, Any]) -> list[int | None]:
    manifest = tokenized(tmp_path, [table(texts)], params)[1]
    return list(rows(tmp_path, manifest)["lost_chars"].to_pylist())


def test_compared_rows_say_how_many_characters_are_lost(tmp_path: Path) -> None:
    assert lost(tmp_path, [text for text in WORDS if text], SMALL) == [0] * 6
    counts = lost(tmp_path / "many", ["the cat"] * 600, SMALL)
    assert [row for row, count in enumerate(counts) if count is not None] == [*range(16), 512]


def test_a_tokenizer_without_unknown_token_drops_characters_and_is_caught(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(["the cat sat"], trainers.BpeTrainer(special_tokens=["</s>"], show_progress=False))
    tokenizer.save(str(tmp_path / "drops.json"))
    texts = ["the cat sat", "the otter sat", "caté", "a 你好 t"]
    assert lost(tmp_path, texts, {"tokenizer": str(tmp_path / "drops.json")}) == [0, 5, 1, 2]  # `otter`, `é`, `你好`


def test_normal_forms_and_white_space_are_no_loss_and_unknown_words_are(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"</s>": 0, "the": 1, "caté": 2, "?": 3}, unk_token="?"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "lower.json"))
    texts = ["The   CATE\u0301\n", "the dog", "the caté the"]
    assert lost(tmp_path, texts, {"tokenizer": str(tmp_path / "lower.json")}) == [0, 3, 0]
    model = model_of(tmp_path, normalization_rule_name="nmt_nfkc_cf", character_coverage=0.98)
    assert lost(tmp_path / "model", ["The  cat", "\uff54\uff48\uff45 cat", "the 🦦"], {"tokenizer": str(model)}) == [
        0,
        0,
        1,
    ]


def test_a_word_that_the_compared_part_cuts_is_no_loss(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(400)]
    tokenizer = Tokenizer(
        models.WordLevel({word: rank for rank, word in enumerate(["</s>", "?", *words])}, unk_token="?")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "words.json"))
    draws = random.Random(7)
    texts = [" ".join(draws.choices(words, k=300)) for _ in range(1100)]
    counts = lost(tmp_path, texts, {"tokenizer": str(tmp_path / "words.json")})
    assert [count for count in counts if count is not None] == [0] * 18  # 16 at the start, and rows 512 and 1024
    longer = ["the " + "a" * 2000, " " + "b" * 2000, "c" * 2000]
    assert min(lost(tmp_path / "longer", longer, {"tokenizer": str(tmp_path / "words.json")})) > 0


def test_bytes_and_tokens_are_summed_by_language(tmp_path: Path) -> None:
    docs = table(["the cat", "où là", "the end"], language=["en", "fr", "en"])
    kept = tokenized(tmp_path, [docs], SMALL)[1].metrics["kept"]
    assert kept["language_bytes"]["bins"] == {"en": 14, "fr": 7}
    assert sum(kept["language_tokens"]["bins"].values()) == kept["n_tokens"]["sum"]
    assert (kept["n_bytes"]["sum"], kept["lost_chars"]["bins"]) == (21, {"0": 3})


def test_a_text_that_encodes_to_the_end_token_is_rejected(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"</s>": 0, "the": 1, "cat": 2, "<s>": 3}, unk_token="the"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "split.json"))
    params = {"tokenizer": str(tmp_path / "split.json"), "bos": "<s>"}
    manifest = tokenized(tmp_path, [table(["the cat", "cat </s> the", "", "<s> </s>"])], params)[1]
    assert rows(tmp_path, manifest)["tokens"].to_pylist() == [[3, 1, 2, 0]]
    assert manifest.rejected == {"tokenize:empty": 1, "tokenize:reserved": 2}
