"""Trains the trees that score blocks, and says how well they choose on pages of sites that they were not trained on."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.libraries import installed
from pipeline_tasks.text.blocks.choice import best_cut
from pipeline_tasks.text.blocks.coupling import counted_couplings, coupled
from pipeline_tasks.text.blocks.model import LEAF, POINT, Model, score_blocks
from refinery_models.extractor.pages import MAIN, MarkedPage
from refinery_models.extractor.probes import reading_digest

MOST_BLOCKS = 200
"""Blocks of a page that a model is trained on: long pages do not outweigh the others' variety."""

LEAST_FIT = 0.6
"""F1 of the blocks that are labelled main text, below which a page's marked text is not in its bytes."""

_POWER = 0.75  # a block weighs its words to this power: a long paragraph more than a label, less than all of those

_FEATURES_AT_ONCE = 0.3  # of all, which a split chooses among: trees differ more, and held-out pages gain a little

Features = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is trained: trees, leaves of each, the seed, and into how many folds sites are parted."""

    trees: int = 300
    leaves: int = 31
    seed: int = 1
    folds: int = 5
    rate: float = 0.06


@dataclass(frozen=True, slots=True)
class Figures:
    """F1, precision and recall of words, mean over so many pages."""

    pages: int
    f1: float
    precision: float
    recall: float

    @staticmethod
    def of(fits: Sequence[tuple[float, float, float]]) -> "Figures":
        """Return the means of the fits of some pages."""
        f1, precision, recall = (round(float(mean), 4) for mean in np.mean(fits, axis=0)) if fits else (0.0, 0.0, 0.0)
        return Figures(len(fits), f1, precision, recall)


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What a model chooses on pages of held-out sites, each scored by the model of the other folds.

    `ceiling` is what the labels themselves choose; pages without marked text are counted, and are in no figure.
    """

    held_out: Figures
    ceiling: Figures
    by_type: Mapping[str, Figures]
    by_language: Mapping[str, Figures]
    without_text: int
    left_out: int


def train(pages: Sequence[MarkedPage], settings: Settings, card: Mapping[str, Any]) -> Model:
    """Return the model of these pages; the card gets what follows from them. RecipeError without scikit-learn."""
    usable = [page for page in pages if is_usable(page)]
    libraries = installed_trainer()
    if {bool(label >= MAIN) for page in usable for label in page.labels} != {False, True}:
        message = "the pages have no block that is main text, or none that is not: nothing can be learned from them"
        raise RecipeError(message)
    features, targets, weights = _examples(usable)
    trees, base = _fitted(features, targets, weights, settings)
    facts = {
        "trained_on": {
            "pages": len(usable),
            "sites": len({page.site for page in usable}),
            "blocks": len(features),
            "digest": _digest(features, targets, weights),
        },
        "trees": settings.trees,
        "leaves": settings.leaves,
        "rate": settings.rate,
        "seed": settings.seed,
        "libraries": libraries,
        "reading": reading_digest(),
    }
    couplings = counted_couplings(((page.relations, page.labels >= MAIN) for page in usable), POINT)
    return packed(trees, base, couplings, {**card, **facts})


def installed_trainer() -> dict[str, str]:
    """Return the version of scikit-learn; RecipeError where it is not installed."""
    try:
        return installed(["scikit-learn"])
    except RecipeError as error:
        message = "scikit-learn is not installed here, which trains: pip install '.[map]' in a checkout"
        raise RecipeError(message) from error


def is_usable(page: MarkedPage) -> bool:
    """Return whether a page can be learned from: it has marked text, which is in its bytes."""
    return bool(len(page.gold)) and bool(len(page.labels)) and page.fit_of(page.labels >= MAIN)[0] >= LEAST_FIT


def fold_of(site: str, folds: int) -> int:
    """Return the fold of a site, by the digest of its name."""
    return int.from_bytes(hashlib.sha256(site.encode()).digest()[:8], "big") % folds


def held_out_report(pages: Sequence[MarkedPage], settings: Settings, say: Callable[[str], object]) -> TrainingReport:
    """Train a model per fold on the other folds' sites, choose each page's blocks by the one that never saw its site.

    `say` gets a line per fold.
    """
    fits: dict[str, tuple[float, float, float]] = {}
    scored = [page for page in pages if len(page.gold)]
    for fold in range(settings.folds):
        mine = [page for page in scored if fold_of(page.site, settings.folds) == fold]
        model = train([page for page in pages if fold_of(page.site, settings.folds) != fold], settings, {})
        fits.update((page.id, page.fit_of(chosen(page, model))) for page in mine)
        say(f"fold {fold + 1} of {settings.folds}: {len(mine)} pages, F1 {Figures.of([fits[p.id] for p in mine]).f1}")
    return TrainingReport(
        held_out=Figures.of([fits[page.id] for page in scored]),
        ceiling=Figures.of([page.fit_of(page.labels >= MAIN) for page in scored]),
        by_type=_by(scored, fits, lambda page: page.page_type),
        by_language=_by(scored, fits, lambda page: page.language),
        without_text=len(pages) - len(scored),
        left_out=sum(not is_usable(page) for page in scored),
    )


def chosen(page: MarkedPage, model: Model, beta: float = 1.0) -> npt.NDArray[np.bool_]:
    """Return which blocks of a page a model chooses."""
    scores = coupled(score_blocks(page.features, model), page.relations, model.couplings)
    return np.asarray(scores >= best_cut(scores, page.words, beta))


def _by(
    pages: Sequence[MarkedPage], fits: Mapping[str, tuple[float, float, float]], key: Callable[[MarkedPage], str]
) -> dict[str, Figures]:
    names = sorted({key(page) for page in pages})
    return {name: Figures.of([fits[page.id] for page in pages if key(page) == name]) for name in names}


def _examples(pages: Sequence[MarkedPage]) -> tuple[Features, npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """Return features, targets and weights of the blocks to train on; all blocks of a page weigh its weight."""
    features, targets, weights = [], [], []
    for page in pages:
        rows = _drawn(page)
        weight = (page.words[rows] + 2.0) ** _POWER
        features.append(page.features[rows])
        targets.append(page.labels[rows] >= MAIN)
        weights.append(page.weight * weight / weight.sum())
    every = np.concatenate(weights)
    return np.concatenate(features), np.concatenate(targets), every * (len(every) / every.sum())


def _drawn(page: MarkedPage) -> npt.NDArray[np.intp]:
    """Return at most `MOST_BLOCKS` of a page, in order, drawn by the digest of its id and their numbers."""
    count = len(page.labels)
    if count <= MOST_BLOCKS:
        return np.arange(count)
    start = int.from_bytes(hashlib.sha256(page.id.encode()).digest()[:8], "big")
    mixed = (np.arange(count, dtype=np.uint64) + np.uint64(start)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.sort(np.argsort(mixed ^ (mixed >> np.uint64(32)), kind="stable")[:MOST_BLOCKS])


def _digest(*arrays: npt.NDArray[Any]) -> str:
    hashed = hashlib.sha256()
    for values in arrays:
        hashed.update(np.ascontiguousarray(values).data)
    return hashed.hexdigest()


def _fitted(
    features: Features, targets: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64], settings: Settings
) -> tuple[list[npt.NDArray[Any]], float]:
    """Return the nodes of each tree as scikit-learn has them, and what is added to their sum.

    One thread: sums of several threads differ in their last bits, and so may trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    machine = HistGradientBoostingClassifier(
        max_iter=settings.trees,
        max_leaf_nodes=settings.leaves,
        learning_rate=settings.rate,
        random_state=settings.seed,
        max_bins=255,
        early_stopping=False,
        l2_regularization=1.0,
        max_features=_FEATURES_AT_ONCE,
    )
    with threadpool_limits(limits=1):
        machine.fit(features, targets, sample_weight=weights)
    trees = [tree.nodes for (tree,) in machine._predictors]  # noqa: SLF001 -- no public name gives its trees
    return trees, float(machine._baseline_prediction[0, 0])  # noqa: SLF001 -- as above


def packed(
    trees: Sequence[npt.NDArray[Any]], base: float, couplings: npt.NDArray[np.int16], card: Mapping[str, Any]
) -> Model:
    """Return trees of scikit-learn as ours: features are whole numbers, so that a threshold's floor decides alike."""
    rows: list[tuple[int, int, int, int]] = []
    roots = []
    for nodes in trees:
        roots.append(len(rows))
        _append_tree(nodes, rows)
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return Model(
        features=columns[0].astype(np.uint16),
        thresholds=columns[1].astype(np.uint8),
        jumps=columns[2].astype(np.uint16),
        values=columns[3].astype(np.int16),
        roots=np.array(roots, np.int32),
        couplings=couplings.ravel(),
        base=round(base * (1 << POINT)),
        card=card,
    )


def _append_tree(nodes: npt.NDArray[Any], rows: list[tuple[int, int, int, int]]) -> None:
    """Append the nodes of a tree, each left child behind its parent."""
    waiting = [(0, -1)]  # a node, and the row of the parent that jumps to it
    most = np.iinfo(np.int16).max
    while waiting:
        at, parent = waiting.pop()
        if parent >= 0:
            feature, threshold, _, value = rows[parent]
            rows[parent] = (feature, threshold, len(rows) - parent, value)
        node = nodes[at]
        if node["is_leaf"]:
            rows.append((LEAF, 0, 0, max(-most, min(most, round(float(node["value"]) * (1 << POINT))))))
            continue
        waiting += [(int(node["right"]), len(rows)), (int(node["left"]), -1)]
        rows.append((int(node["feature_idx"]), int(node["num_threshold"]), 0, 0))
