"""Reads pages whose text people marked, as rows of features and labels: by the same loops that extract."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.coupling import relations
from pipeline_tasks.text.blocks.features import block_features, shown_blocks
from pipeline_tasks.text.blocks.labels import label_blocks, word_keys
from pipeline_tasks.text.page.charset import decode
from pipeline_tasks.text.urls.sites import sites
from refinery_models.scorers.texts import digest_of_input, records_of

COLUMNS = ("id", "html", "main_content", "url", "page_type", "language", "weight")
"""What a record may have; the first three it must."""

MAIN = 128
"""The label, of 255, from which on a block is main text."""

_NEEDED = COLUMNS[:3]
_AT_ONCE = 32  # pages that are in memory with their markup


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """One page: features, relations and labels of the blocks that it shows, keys of words and of marked ones, facts."""

    id: str
    site: str
    page_type: str
    language: str
    weight: float
    features: npt.NDArray[np.uint8]
    relations: npt.NDArray[np.uint16]
    labels: npt.NDArray[np.uint8]
    words: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint64]
    last: npt.NDArray[np.int64]
    gold: npt.NDArray[np.uint64]

    def fit_of(self, kept: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
        """Return F1, precision and recall of the words of some blocks, as bags; 1 where both sides have none."""
        counts = np.diff(self.last, prepend=0)
        chosen = np.sort(self.keys[np.repeat(kept, counts)])
        if not len(chosen) or not len(self.gold):
            alike = float(len(chosen) == len(self.gold))
            return alike, alike, alike
        shared = _shared(chosen, np.sort(self.gold))
        precision, recall = shared / len(chosen), shared / len(self.gold)
        return 2 * precision * recall / max(precision + recall, 1e-9), precision, recall


def _shared(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> int:
    kinds, counts = np.unique(one, return_counts=True)
    others = np.searchsorted(other, kinds, "right") - np.searchsorted(other, kinds, "left")
    return int(np.minimum(counts, others).sum())


def read_pages(paths: Sequence[str]) -> tuple[list[MarkedPage], dict[str, str]]:
    """Return the pages of files (Parquet, JSON lines) in order of their ids, and the digest of each file by its name.

    RecipeError for a file that cannot be read, a record without a page or text, and an id that occurs twice.
    """
    pages: dict[str, MarkedPage] = {}
    inputs = {}
    for path in paths:
        inputs[path] = digest_of_input(path)
        for number, record in records_of(path, inputs[path], COLUMNS, _AT_ONCE):
            page = _page(record, f"{path}:{number}")
            if page.id in pages:
                message = f"{path}:{number}: the id {page.id} occurs twice; each page counts once, remove one"
                raise RecipeError(message)
            pages[page.id] = page
    return [pages[name] for name in sorted(pages)], inputs


def _page(record: Mapping[str, Any], where: str) -> MarkedPage:
    missing = [name for name in _NEEDED if record.get(name) is None]
    if missing:
        message = f"{where} has no {', '.join(missing)}; a marked page has {', '.join(_NEEDED)}"
        raise RecipeError(message)
    weight = record.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight >= 0:
        message = f"{where}: weight {str(weight)[:40]!r} is no number of 0 or more"
        raise RecipeError(message)
    html, url = record["html"], str(record.get("url") or "")
    page = utf8(html if isinstance(html, str) else decode(bytes(html), "text/html").text)
    blocks, gold = read_blocks(page), utf8(str(record["main_content"]))
    shown = shown_blocks(blocks)
    starts, ends = blocks.starts[shown], blocks.ends[shown]
    keys, last = word_keys(blocks.text, starts, ends)
    return MarkedPage(
        id=str(record["id"]),
        site=sites(pa.array([url])).to_pylist()[0] or url or str(record["id"]),
        page_type=str(record.get("page_type") or ""),
        language=str(record.get("language") or ""),
        weight=float(weight),
        features=block_features(blocks, page)[shown],
        relations=relations(blocks, shown),
        labels=label_blocks(blocks.text, starts, ends, gold),
        words=blocks.words[shown],
        keys=keys,
        last=last,
        gold=word_keys(gold, *_whole(gold))[0],
    )


def _whole(text: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    return np.zeros(1, np.int32), np.array([len(text)], np.int32)


def utf8(text: str) -> npt.NDArray[np.uint8]:
    """Return the bytes of a text; half surrogates are left out."""
    return np.frombuffer(text.encode("utf-8", "ignore"), np.uint8)
