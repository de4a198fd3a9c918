"""Reads held-out sets and tokenizes them.

A set is JSON lines with `text`, or with `context` and `continuation`, of which only the continuation is scored (a cloze
item with its right answer). `domain` and `language` name the groups that a document counts in; without a domain it is
that of its file.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.exports.tokenizer import Tokenizer
from refinery_ablate.held_out import MOST_SHARED, HeldOut, Ids, joined, shared_with

LEAST_DOCUMENTS = 20
"""Held-out documents from which on models are compared, also those of a domain or language by itself."""

FIELDS = ("text", "context", "continuation", "domain", "language")


def unseen(
    sets: Sequence[str], tokenizer: Tokenizer, trained_on: Sequence[Iterable[Ids]]
) -> tuple[HeldOut, dict[str, Any]]:
    """Return the held-out documents that no model sees, and how many there are, are left, and are in each dataset.

    `trained_on` are the sequences of each dataset. RecipeError for sets that cannot be read, and if too few are left.
    """
    every = tokenized(read_items(sets), asdict(tokenizer))
    shares = np.array([shared_with(every, sequences) for sequences in trained_on])
    left = every.taken(np.max(shares, axis=0) <= MOST_SHARED)
    if len(left) < LEAST_DOCUMENTS:
        message = (
            f"{len(left)} of {len(every)} held-out documents are in no arm; name sets with {LEAST_DOCUMENTS} or more"
        )
        raise RecipeError(message)
    facts = {"documents": len(every), "left": len(left), "in": (shares > MOST_SHARED).sum(axis=1).tolist()}
    return left, facts


def read_items(paths: Sequence[str]) -> list[dict[str, str]]:
    """Return the records of held-out sets, equal ones once; RecipeError names the file and line of one that is none.

    A copy is no further document: it would narrow intervals, and judge a mixture that the other copy chose.
    """
    every = (item for path in paths for item in _items_of(Path(path)))
    items = list({(item.get("context", ""), scored_in(item)): item for item in every}.values())
    if not items:
        message = f"{', '.join(paths)}: no held-out documents; give JSON lines with `text`"
        raise RecipeError(message)
    return items


def scored_in(item: Mapping[str, str]) -> str:
    """Return the text of a record that counts."""
    return item.get("text") or item["continuation"]


def _items_of(path: Path) -> Iterator[dict[str, str]]:
    domain = path.name.partition(".")[0]
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            item = {name: record[name] for name in FIELDS if record.get(name) is not None}
            is_item = all(isinstance(value, str) for value in item.values()) and (
                item.get("text", "") or ("context" in item and item.get("continuation", ""))
            )
        except (ValueError, TypeError, AttributeError):
            is_item = False
        if not is_item:
            message = f"{path}: line {number:,} has neither `text`, nor `context` and `continuation`, as texts"
            raise RecipeError(message)
        yield {"domain": domain, "language": "unknown", **item}


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            yield from stream
    except (OSError, EOFError, zlib.error) as error:
        message = f"{path} cannot be read ({error}); give JSON lines, plain or gzipped"
        raise RecipeError(message) from error


def tokenized(items: Iterable[Mapping[str, str]], tokenizer: Mapping[str, Any]) -> HeldOut:
    """Return documents by the tokenizer that the arms were built with."""
    import pyarrow as pa

    from pipeline_tasks.stages.tokenize.references import reference

    rows = list(items)
    encode = reference(tokenizer["kind"], tokenizer["definition"])
    before = [row.get("context", "") for row in rows]
    after = [scored_in(row) for row in rows]
    prefixes, prefix_ends = encode(pa.array(before, pa.large_string()))
    texts, text_ends = encode(pa.array(after, pa.large_string()))
    parts = [
        np.concatenate(
            [prefixes[prefix_ends[at] : prefix_ends[at + 1]], texts[text_ends[at] : text_ends[at + 1]]]
        ).astype(np.int32)
        for at in range(len(rows))
    ]
    return HeldOut(
        *joined(parts),
        np.diff(prefix_ends),
        np.array([len(text.encode()) for text in after], np.float64),
        tuple(row["domain"] for row in rows),
        tuple(row["language"] for row in rows),
    )
