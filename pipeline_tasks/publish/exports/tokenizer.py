"""Exports the tokenizer, which decodes the tokens."""

from pathlib import Path

from pipeline_tasks.publish.exports.source import Source


def write(source: Source, folder: Path) -> None:
    """Write `tokenizer.json`: the tokenizer's definition, for Hugging Face `tokenizers` or as tiktoken's ranks."""
    (folder / "tokenizer.json").write_bytes(source.tokenizer.definition)
