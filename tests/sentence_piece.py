"""Trains small models of SentencePiece."""

import io
from collections.abc import Iterable
from typing import Any

import sentencepiece


def trained_model(texts: Iterable[str], **how: Any) -> bytes:
    """Return a model that is trained on texts; `how` are options of the library's trainer."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        **{"model_type": "bpe", "vocab_size": 320, "hard_vocab_limit": False, "minloglevel": 2, "num_threads": 1} | how,
    )
    return model.getvalue()
