"""Writes tiny static embeddings as model2vec has them: a vector for each word that is known."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers


def write_embeddings(folder: Path, words: Sequence[str], dimensions: int = 8) -> str:
    """Write a folder of static embeddings that follow from the words' places; return its path."""
    folder.mkdir()
    known = {word: at for at, word in enumerate(["[UNK]", *words])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    vectors = np.random.default_rng(3).standard_normal((len(known), dimensions)).astype(np.float32)
    save_file({"embeddings": vectors}, folder / "model.safetensors")
    return str(folder)
