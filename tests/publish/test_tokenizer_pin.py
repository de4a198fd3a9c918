"""A dataset has one tokenizer: who pins first wins, damage is named, and a recipe that asks for another is refused."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.errors import ContractError, DeterminismViolation, RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.tokenizer_pin import (
    DEFAULT,
    PUBLISHED,
    TRAINED,
    Pin,
    has_digest,
    pin_of,
    pin_path,
    put_pin,
    read_pin,
    read_pin_alone,
    require_pinned,
    require_same,
)
from pipeline_tasks.sealed import SEAL, seal
from pipeline_tasks.stages.tokenize.params import Params, Training
from pipeline_tasks.store.shards.file import ShardWriter

DEFINITION, OTHER = b'{"model": 1}', b'{"model": 2}'


def pin(definition: bytes = DEFINITION, source: str = TRAINED, **fields: Any) -> Pin:
    row = {"definition": definition, "vocab_size": 8192, "documents": 9, "bytes": 1234, "kind": "tokenizers"}
    return pin_of(row | fields, "corpus", source, Params())


def test_a_pin_says_what_its_tokenizer_is() -> None:
    own = pin()
    assert own.digest == hashlib.sha256(DEFINITION).hexdigest()
    assert (own.recipe, own.source, own.vocab_size, own.documents, own.bytes) == ("corpus", TRAINED, 8192, 9, 1234)
    assert own.path == f"tokenizers/corpus/{own.digest}.json"
    assert pin(kind="sentencepiece").path.endswith(".model")
    assert "1,234 bytes" in str(own)
    assert "1,234 bytes" in str(pin(source=DEFAULT, documents=0))
    assert "bytes" not in str(pin(source="tiktoken:o200k_base", documents=0))


def test_who_pins_first_wins(any_root: str) -> None:
    assert read_pin(any_root, "corpus") is None
    assert put_pin(any_root, pin(), DEFINITION) == pin()
    assert put_pin(any_root, pin(OTHER), OTHER) == pin()
    assert read_pin(any_root, "corpus") == read_pin_alone(any_root, "corpus") == pin()
    assert read_pin(any_root, "other") is None


def test_a_definition_that_is_gone_or_changed_is_named(tmp_path: Path) -> None:
    put_pin(str(tmp_path), pin(), DEFINITION)
    path = tmp_path / pin().path
    path.chmod(0o644)
    path.write_bytes(OTHER)
    with pytest.raises(ContractError, match=re.escape(f"{path} ")):
        read_pin(str(tmp_path), "corpus")
    with pytest.raises(DeterminismViolation, match=re.escape(str(path))):
        put_pin(str(tmp_path), pin(), DEFINITION)
    path.unlink()
    with pytest.raises(ContractError, match=re.escape(f"{path} ")):
        read_pin(str(tmp_path), "corpus")
    assert read_pin_alone(str(tmp_path), "corpus") == pin()


@pytest.mark.parametrize("changes", [{"recipe": "other"}, {"more": 1}, {"digest": None}, {"vocab_size": "x"}])
def test_what_is_no_pin_of_a_dataset_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    put_pin(str(tmp_path), pin(), DEFINITION)
    path = tmp_path / pin_path("corpus")
    path.chmod(0o644)
    raw = {name: value for name, value in json.loads(path.read_bytes()).items() if name != SEAL} | changes
    path.write_bytes(seal({name: value for name, value in raw.items() if value is not None}))
    with pytest.raises(ContractError, match=re.escape(f"{path} ")):
        read_pin_alone(str(tmp_path), "corpus")


def test_a_file_is_known_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(DEFINITION)
    assert has_digest(str(tmp_path / "tokenizer.json"), pin().digest)
    assert not has_digest(str(tmp_path / "tokenizer.json"), pin(OTHER).digest)
    assert not has_digest(str(tmp_path / "none.json"), pin().digest)


@pytest.mark.parametrize(
    ("pinned", "params", "identity", "is_same"),
    [
        (pin(), Params(), "", True),
        (pin(), Params(train=Training(vocab_size=8192)), "", True),
        (pin(), Params(train=Training(vocab_size=4096)), "", False),
        (pin(source=PUBLISHED), Params(), "", True),
        (pin(source=PUBLISHED, vocab_size=300), Params(), "", False),
        (pin(source=DEFAULT, vocab_size=300), Params(train=Training(vocab_size=4096)), "", True),
        (pin(source="tiktoken:o200k_base"), Params(), "", False),
        (pin(source="tiktoken:o200k_base"), Params(tokenizer="tiktoken:o200k_base"), "tiktoken:o200k_base", True),
        (pin(source="tiktoken:o200k_base"), Params(tokenizer="tiktoken:gpt2"), "tiktoken:gpt2", False),
        (pin(), Params(tokenizer="a/tokenizer.json"), f"sha256:{pin().digest}", True),
        (pin(), Params(tokenizer="a/tokenizer.json"), f"sha256:{pin(OTHER).digest}", False),
        (pin(), Params(eos="</s>"), "", False),
        (pin(), Params(bos="<s>"), "", False),
        (replace(pin(), eos="</s>", bos="<s>"), Params(eos="</s>", bos="<s>"), "", True),
        (replace(pin(), eos="</s>"), Params(), "", False),
    ],
)
def test_a_recipe_may_ask_for_the_pinned_tokenizer_and_no_other(
    pinned: Pin, params: Params, identity: str, is_same: bool
) -> None:
    if is_same:
        require_same("/root", pinned, params, identity)
    else:
        with pytest.raises(RecipeError, match=r"corpus in /root "):
            require_same("/root", pinned, params, identity)


def tokenized(root: Path, definition: bytes) -> Manifest:
    """Return a manifest of `tokenize` that saved a tokenizer."""
    row = {"definition": [definition], "vocab_size": [300], "documents": [9], "bytes": [1234], "kind": ["tokenizers"]}
    table = pa.table(row)
    writer = ShardWriter(table.schema)
    writer.write(table.to_batches()[0])
    history = {"tokenizer": (writer.store(str(root), "tokenize/history"),)}
    return Manifest("tokenize", 1, "f", {"eos": "</s>"}, (), (), (), (), history, (), (), 0, 0, {}, {})


def test_who_publishes_first_pins_and_another_tokenizer_is_refused(tmp_path: Path) -> None:
    root = str(tmp_path)
    first, other = tokenized(tmp_path, DEFINITION), tokenized(tmp_path, OTHER)
    pinned = require_pinned(root, "corpus", first)
    assert (pinned.digest, pinned.source, pinned.vocab_size) == (pin().digest, PUBLISHED, 300)
    assert (pinned.eos, pinned.bos, pinned.documents) == ("</s>", "", 9)
    assert require_pinned(root, "corpus", first) == pinned == read_pin(root, "corpus")
    with pytest.raises(ContractError, match=re.escape(f"{root}: tokenize/f ")):
        require_pinned(root, "corpus", other)
    assert require_pinned(root, "others", other).digest == pin(OTHER).digest
