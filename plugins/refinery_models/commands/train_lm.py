"""Train the n-gram model of a language on trusted text, for the perplexity of `score_quality`."""

import argparse
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_tasks.cli.whole_file import replace_whole
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters.packs import known_language

if TYPE_CHECKING:
    from pyarrow import NativeFile

PIECE = 1 << 16
"""Characters of a line of plain text that are read at once."""

MAX_RECORD = 1 << 26
"""Bytes of the longest line of JSON."""

JSON_SUFFIXES, COMPRESSED = (".jsonl", ".ndjson"), (".gz", ".bz2", ".zst", ".lz4")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the text, its language, the file to write, and the bounds of the model."""
    parser.add_argument("text", nargs="+", help="trusted text: plain, or .jsonl with `text`; .gz, .bz2, .zst, .lz4 too")
    parser.add_argument(
        "--language",
        "--lang",
        dest="lang",
        required=True,
        metavar="CODE",
        help="its language, as `filter_language` writes it (en)",
    )
    parser.add_argument(
        "--to", "--output", dest="output", required=True, metavar="FILE", help="file to write; it must not exist"
    )
    parser.add_argument("--ngrams", type=int, default=1_000_000, help="most n-grams of each length (1,000,000)")


def answer(options: argparse.Namespace) -> int:
    """Train and write the model; print its size and calibration."""
    from pipeline_tasks.text.words.language_model import dump_model
    from pipeline_tasks.text.words.model_training import Size, train

    language = known_language(options.lang, "--language")
    if options.ngrams < 1:
        message = f"--ngrams must be at least 1, not {options.ngrams}"
        raise RecipeError(message)
    if Path(options.output).exists():
        message = f"--to {options.output} exists; name a new file, as recipes may name this one"
        raise RecipeError(message)
    model = train(lambda: read_texts(options.text), language, Size(ngrams=options.ngrams))
    content = dump_model(model)
    replace_whole(Path(options.output), content)
    trigrams = f"{len(model.trigrams.keys):,} trigrams of {len(model.unigrams):,} kinds"
    sys.stdout.write(f"{options.output}: {language}, {trigrams}, {len(content):,} bytes\n")
    sys.stdout.write(f"order gains {model.trusted:.2f} bits in trusted text, {model.disordered:.2f} in disorder\n")
    return 0


def read_texts(paths: Sequence[str]) -> Iterator[str]:
    """Yield the lines of plain files, and the texts of JSON records, in order; memory is bounded by a line.

    RecipeError for a file that cannot be read, is not UTF-8, or has a record without text.
    """
    import pyarrow as pa

    for path in paths:
        try:
            with pa.input_stream(path, compression="detect") as stream:
                name = path.removesuffix(Path(path).suffix) if path.endswith(COMPRESSED) else path
                yield from _records(stream, path) if name.endswith(JSON_SUFFIXES) else _lines(stream)
        except UnicodeDecodeError as error:
            message = f"{path} is not UTF-8: {error.reason} at byte {error.start} of a line; convert it"
            raise RecipeError(message) from error
        except (OSError, EOFError) as error:
            message = f"cannot read {path}: {error}"
            raise RecipeError(message) from error


def _lines(stream: "NativeFile") -> Iterator[str]:
    with io.TextIOWrapper(stream, encoding="utf-8") as lines:
        while line := lines.readline(PIECE):
            yield line.rstrip("\n")


def _records(stream: "NativeFile", path: str) -> Iterator[str]:
    with io.BufferedReader(stream) as lines:
        number = 0
        while line := lines.readline(MAX_RECORD):
            number += 1
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                message = f"{path}:{number} is no JSON ({error}) or longer than {MAX_RECORD:,} bytes"
                raise RecipeError(message) from error
            text = record.get("text") if isinstance(record, dict) else None
            if not isinstance(text, str):
                message = f"{path}:{number} has no `text`; name files of plain text, or of records with one"
                raise RecipeError(message)
            yield text
