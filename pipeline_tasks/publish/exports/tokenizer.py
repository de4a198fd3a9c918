"""Exports the tokenizer, which decodes the tokens."""

from pathlib import Path

from pipeline_tasks.publish.exports.source import Source


def write(source: Source, folder: Path) -> None:
    """Write `tokenizer.json`, for Hugging Face `tokenizers` or with tiktoken's ranks, or SentencePiece's `.model`."""
    (folder / source.tokenizer.file_name).write_bytes(source.tokenizer.definition)
