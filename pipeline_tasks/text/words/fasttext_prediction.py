"""Predict labels of texts by a fastText model in compiled loops, on the bytes of a column.

Labels are those of fastText's `predict` of a text in one line, probabilities the same but for the rounding of sums:
fastText adds float32 vectors one after another. The losses are those of `loss.cc` in facebookresearch/fastText 0.9.2.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.cached import cached
from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.words import fasttext_model
from pipeline_tasks.text.words.fasttext_model import CENTROIDS, HIERARCHICAL, MOST_COUNT, SOFTMAX, Matrix, Model, Places
from pipeline_tasks.text.words.fasttext_words import BATCH, Lookup, decoded, lookup, memory, sum_line

FLOOR = 1e-5
"""What fastText adds to each probability, and to each branch's; so probabilities may exceed 1 a little."""

STEEP, STEPS = 8.0, 512
"""fastText has the logistic function of one-vs-all and negative sampling in steps: this many, from -STEEP to STEEP."""

NO_NODE, BEST = -1, -1
NO_TEXT = -1.0

Numbers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


class Tree(NamedTuple):
    """The tree of a hierarchical softmax: for each node its children and its parent, NO_NODE where there is none."""

    left: Places
    right: Places
    parent: Places


class Tables(NamedTuple):
    """A model, and what is computed of it once."""

    model: Model
    inputs: Matrix
    lookup: Lookup
    tree: Tree
    numbers: dict[str, int]


def huffman_tree(counts: tuple[int, ...]) -> Tree:
    """Return the Huffman tree of labels by their counts, which descend; labels are the first nodes, the root is last.

    The tie of a label and an inner node goes to the inner node, and the first child is on the left, as in fastText.
    """
    labels = len(counts)
    totals = [*counts, *[MOST_COUNT] * (labels - 1)]
    left, right, parent = np.full((3, len(totals)), NO_NODE, np.int32)
    label, inner = labels - 1, labels
    for node in range(labels, len(totals)):
        pair = []
        for _ in range(2):
            if label >= 0 and totals[label] < totals[inner]:
                pair.append(label)
                label -= 1
            else:
                pair.append(inner)
                inner += 1
        left[node], right[node] = pair
        parent[pair] = node
        totals[node] = totals[pair[0]] + totals[pair[1]]
    return Tree(left, right, parent)


def _tables(path: str, key: str) -> Tables:
    model = cached(fasttext_model.load, path, key)
    tree = huffman_tree(model.counts if model.arguments.loss == HIERARCHICAL else (1,))
    return Tables(
        model, decoded(model.inputs), lookup(model), tree, {label: number for number, label in enumerate(model.labels)}
    )


class Predictor:
    """The model at a path, with a memory of words of its own: for one thread."""

    def __init__(self, path: str, key: str) -> None:
        self._tables = cached(_tables, path, key)
        self._memory = memory(self._tables.model.arguments.dimensions)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of the model by number."""
        return self._tables.model.labels

    def best(self, data: npt.NDArray[np.uint8], bounds: Numbers) -> tuple[Numbers, Scores]:
        """Return the most probable label of each text data[begin:end] by number, and its probability, at most 1.

        `bounds` are pairs of begin and end, shape (texts, 2); a text that begins below 0 is not read, and has -1 and 0,
        as has a text without a word that the model knows. Texts are read as one line: blanks are those of fastText.
        """
        numbers, scores = self._predict(data, bounds, everywhere=False, label=BEST)
        return numbers, np.minimum(scores, 1.0)

    def probability(self, data: npt.NDArray[np.uint8], bounds: Numbers, label: str) -> Scores:
        """Return the probability of a label for each text, at most 1; NaN for what is white space or nothing.

        Any white space of Unicode parts words.
        """
        _, scores = self._predict(data, bounds, everywhere=True, label=self._tables.numbers[label])
        return np.where(scores == NO_TEXT, np.nan, np.minimum(scores, 1.0))

    def _predict(
        self, data: npt.NDArray[np.uint8], bounds: Numbers, *, everywhere: bool, label: int
    ) -> tuple[Numbers, Scores]:
        numbers, scores = np.full(len(bounds), -1, np.int64), np.zeros(len(bounds))
        if not len(bounds):
            return numbers, scores
        data = data.view()
        data.flags.writeable = False  # some buffers of Arrow are writable, and numba would compile the loop for both
        model, inputs, tables, tree, _ = self._tables
        arguments, matrices = model.arguments, (inputs, model.outputs)
        out = (numbers, scores)
        _predict(data, bounds, classes(), everywhere, label, arguments, tables, matrices, tree, self._memory, out)
        if np.isnan(scores).any():
            message = f"{model.path}: its weights are too large for a text; train the model again, or name another one"
            raise RecipeError(message)
        return numbers, scores


@inlined
def _dot(matrix, row, hidden):
    """Return the product of a row and the hidden vector, rounded to float32."""
    total = 0.0
    if len(matrix.codes) == 0:
        for column in range(len(hidden)):
            total += matrix.dense[row, column] * hidden[column]
        return np.float32(total)
    width, parts = matrix.width, matrix.codes.shape[1]
    for part in range(parts):
        first = part * width
        columns = min(width, len(hidden) - first)
        place = first * CENTROIDS + np.int64(matrix.codes[row, part]) * columns
        for column in range(columns):
            total += hidden[first + column] * matrix.centroids[place + column]
    return np.float32(total * matrix.norms[row])


@inlined
def _branches(matrix, node, labels, hidden):
    """Return the probabilities of the left and the right child of a node, each with its FLOOR."""
    right = np.float64(np.float32(1.0 / (1.0 + math.exp(-np.float64(_dot(matrix, node - labels, hidden))))))
    return 1.0 - right + FLOOR, right + FLOOR


@inlined
def _best_leaf(matrix, tree, labels, hidden, nodes, odds):
    """Return the most probable label of the tree and its probability, at least FLOOR; of equal ones the last."""
    best, most = np.int64(NO_NODE), 0.0
    nodes[0], odds[0], waiting = len(tree.left) - 1, 1.0, 1
    while waiting > 0:
        waiting -= 1
        node, probability = np.int64(nodes[waiting]), odds[waiting]
        if np.isnan(probability):
            return NO_NODE, probability
        if probability < FLOOR or probability < most:
            continue
        if tree.left[node] == NO_NODE:
            best, most = node, probability
            continue
        on_left, on_right = _branches(matrix, node, labels, hidden)
        nodes[waiting], odds[waiting] = tree.right[node], probability * on_right
        nodes[waiting + 1], odds[waiting + 1] = tree.left[node], probability * on_left
        waiting += 2
    return best, most


@inlined
def _leaf(matrix, tree, labels, hidden, nodes, label):
    """Return the probability of a label of the tree, 0 if it is less than FLOOR."""
    depth, node, probability = 0, np.int64(label), 1.0
    while tree.parent[node] != NO_NODE:
        nodes[depth] = node
        depth += 1
        node = np.int64(tree.parent[node])
    while depth > 0:
        depth -= 1
        on_left, on_right = _branches(matrix, node, labels, hidden)
        on_the_left = tree.left[node] == nodes[depth]
        node = np.int64(nodes[depth])
        probability *= on_left if on_the_left else on_right
        if probability < FLOOR:
            return 0.0
    return probability


@inlined
def _in_steps(value):
    """Return the logistic function of a number as fastText tabulates it."""
    if value < -STEEP:
        return np.float32(0)
    if value > STEEP:
        return np.float32(1)
    if np.isnan(value):
        return value
    step = np.int64((value + np.float32(STEEP)) * np.float32(STEPS / STEEP / 2))
    return np.float32(1.0 / (1.0 + math.exp(STEEP - step * (2 * STEEP / STEPS))))


@inlined
def _fill_outputs(matrix, loss, hidden, outputs):
    """Set `outputs` to the probabilities of all labels."""
    most = np.float32(-np.inf)
    for label in range(len(outputs)):
        outputs[label] = _dot(matrix, label, hidden)
        most = max(most, outputs[label])
    if loss != SOFTMAX:
        for label in range(len(outputs)):
            outputs[label] = _in_steps(outputs[label])
        return
    total = 0.0
    for label in range(len(outputs)):
        outputs[label] = np.float32(math.exp(np.float64(outputs[label] - most)))
        total += outputs[label]
    for label in range(len(outputs)):
        outputs[label] = np.float32(outputs[label] / total)


@inlined
def _most_probable(outputs):
    """Return the label with the highest probability, the last of equal ones, and that probability."""
    best = NO_NODE
    for label in range(len(outputs)):
        if np.isnan(outputs[label]):
            return NO_NODE, outputs[label]
        if best == NO_NODE or outputs[label] >= outputs[best]:
            best = label
    return best, outputs[best]


@compiled
def _predict(data, bounds, traits, everywhere, label, arguments, tables, matrices, tree, remembered, out):
    """Fill the numbers and scores of `out` with the best label, or with the score of `label`."""
    inputs, weights = matrices
    numbers, scores = out
    longest = 0
    for text in range(len(bounds)):
        longest = max(longest, bounds[text, 1] - bounds[text, 0])
    labels = max(len(weights.dense), len(weights.codes))
    total, outputs = np.empty(arguments.dimensions), np.empty(labels, np.float32)
    nodes, odds = np.empty(len(tree.left) + 2, np.int32), np.empty(len(tree.left) + 2)
    hashes = np.empty((longest // 2 if arguments.word_ngrams > 1 else 0) + 2, np.uint64)
    word_scratch = (np.empty(longest + 2, np.uint8), np.empty(BATCH, np.int64))
    scratch = (word_scratch, np.empty(arguments.dimensions, np.float32), hashes)
    for text in range(len(bounds)):
        begin, end = bounds[text]
        if begin < 0:
            continue
        rows, has_text = sum_line(
            data, begin, end, traits, everywhere, tables, arguments, inputs, remembered, scratch, total
        )
        if everywhere and not has_text:
            scores[text] = NO_TEXT
            continue
        if rows == 0:
            continue
        for column in range(len(total)):
            total[column] /= rows
        if arguments.loss == HIERARCHICAL:
            if label == BEST:
                number, score = _best_leaf(weights, tree, labels, total, nodes, odds)
            else:
                number, score = label, _leaf(weights, tree, labels, total, nodes, label)
            numbers[text], scores[text] = number, score
        else:
            _fill_outputs(weights, arguments.loss, total, outputs)
            number, score = label, outputs[max(label, 0)]
            if label == BEST:
                number, score = _most_probable(outputs)
            numbers[text], scores[text] = number, score + FLOOR
