"""Scores blocks by trees over their features: whole numbers throughout, so that every machine has the same scores.

A model is one file: a line of JSON, the card, and the trees behind it as plain arrays. The card says what the model was
trained on; the digest of the file is the identity of what is extracted by it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.sealed import canonical, sha256
from pipeline_tasks.text.base.cached import cached
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.blocks.coupling import RELATIONS
from pipeline_tasks.text.blocks.features import FEATURES, NAMES

MAGIC = b"refinery-extractor-2\n"
POINT = 12
"""Binary digits of a score behind the point: 4096 is a log-odds of 1."""

LEAF = 0xFFFF
"""The feature of a node that is a leaf."""

_THRESHOLD, _JUMP, _VALUE = 16, 24, 40  # where the parts of a packed node begin, behind its feature
_MAX_CARD = 1 << 20
_ARRAYS = (
    ("features", "<u2"),
    ("thresholds", "u1"),
    ("jumps", "<u2"),
    ("values", "<i2"),
    ("roots", "<i4"),
    ("couplings", "<i2"),
)


@dataclass(frozen=True, slots=True)
class Model:
    """Trees in one row of nodes, each tree from its root on, a left child right behind its parent.

    A block goes left where its feature is at most the threshold, else `jumps` nodes on. `values` are those of leaves,
    as log-odds with `POINT` binary digits behind the point; `base` is added to their sum. `couplings` are what
    neighbors say of each other (`coupling`). `digest` is that of the file.
    """

    features: npt.NDArray[np.uint16]
    thresholds: npt.NDArray[np.uint8]
    jumps: npt.NDArray[np.uint16]
    values: npt.NDArray[np.int16]
    roots: npt.NDArray[np.int32]
    couplings: npt.NDArray[np.int16]
    base: int
    card: Mapping[str, Any]
    digest: str = ""
    nodes: npt.NDArray[np.int64] = field(init=False)  # the four of each node in one number: a step reads one place

    def __post_init__(self) -> None:
        """Pack the nodes; ValueError where a row of theirs is longer than another."""
        parts = (self.features, self.thresholds, self.jumps, self.values)
        if len({len(part) for part in parts}) > 1:
            message = "the arrays of nodes differ in length"
            raise ValueError(message)
        feature, threshold, jump, value = (part.astype(np.int64) for part in parts)
        nodes = feature | threshold << _THRESHOLD | jump << _JUMP | value << _VALUE
        object.__setattr__(self, "nodes", nodes)


def score_blocks(features: npt.NDArray[np.uint8], model: Model) -> npt.NDArray[np.int32]:
    """Return the score of each block, by its row of features: log-odds that it is main text, times 2^`POINT`."""
    scores = np.full(len(features), model.base, np.int32)
    _add_trees(features, model.nodes, model.roots, scores)
    return scores


@compiled
def _add_trees(rows, nodes, roots, scores):
    for tree in range(len(roots)):
        root = np.int64(roots[tree])
        for block in range(len(rows)):
            at = root
            node = nodes[at]
            while node & LEAF != LEAF:
                is_left = rows[block, node & LEAF] <= node >> _THRESHOLD & 0xFF
                at += 1 if is_left else node >> _JUMP & 0xFFFF
                node = nodes[at]
            scores[block] += node >> _VALUE


def dump_model(model: Model) -> bytes:
    """Return the file of a model: equal bytes for equal trees and cards."""
    arrays = [np.ascontiguousarray(getattr(model, name), kind) for name, kind in _ARRAYS]
    sizes = {name: len(values) for (name, _), values in zip(_ARRAYS, arrays, strict=True)}
    head = canonical({"card": model.card, "base": model.base, "sizes": sizes, "names": NAMES})
    return b"".join([MAGIC, head, b"\n", *(values.tobytes() for values in arrays)])


def load_model(path: str) -> Model:
    """Return the model of a file, cached per process.

    RecipeError if it is none, has other features than this release reads, or trees that lead out of it.
    """
    return cached(_load, path)


def _load(path: str) -> Model:
    return parse_model(Path(path).read_bytes(), path)


def parse_model(content: bytes, path: str) -> Model:
    """Return the model that `dump_model` wrote; RecipeError names `path`, as in `load_model`."""
    way_out = "train it again by `refinery model extractor`"
    end = content.find(b"\n", len(MAGIC), len(MAGIC) + _MAX_CARD)
    if not content.startswith(MAGIC) or end < 0:
        message = f"{path} is no model of an extractor; {way_out}"
        raise RecipeError(message)
    try:
        head = json.loads(content[len(MAGIC) : end])
        is_known = tuple(head["names"]) == NAMES
        arrays, at = {}, end + 1
        for name, kind in _ARRAYS:
            arrays[name] = np.frombuffer(content, kind, head["sizes"][name], at)
            at += arrays[name].nbytes
        model = Model(**arrays, base=int(head["base"]), card=head["card"], digest=sha256(content))
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged ({error}); {way_out}"
        raise RecipeError(message) from error
    if not is_known:
        message = f"{path} was trained on other features than this release reads; {way_out}"
        raise RecipeError(message)
    if at != len(content) or not _is_whole(model):
        message = f"{path} is damaged: its trees lead out of it; {way_out}"
        raise RecipeError(message)
    return model


def _is_whole(model: Model) -> bool:
    """Return whether each tree's nodes are its own, and lead on to a leaf."""
    count = len(model.nodes)
    inner = np.flatnonzero(model.features != LEAF)
    targets = inner + model.jumps[inner]
    is_forward = bool((model.jumps[inner] > 1).all() and (targets < count).all() and (inner + 1 < count).all())
    is_known = bool((model.features[inner] < FEATURES).all())
    roots, is_coupled = model.roots, len(model.couplings) == 4 * RELATIONS
    return is_forward and is_known and is_coupled and bool((roots >= 0).all() and (roots < count).all())
