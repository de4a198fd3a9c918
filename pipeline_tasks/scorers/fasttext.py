"""Scores texts by a fastText model, which reads a text whole: as one line, whose words any white space parts."""

import numpy as np
import pyarrow as pa

from pipeline_tasks.scorers.classifier import Classifier, require_label
from pipeline_tasks.scorers.scorer import Scores
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.words.fasttext_prediction import Predictor


class FastTextScorer:
    """A fastText model with the label whose probability is the score."""

    hardware = "cpu"

    def __init__(self, classifier: Classifier) -> None:
        self._label = str(classifier.label)
        self._predictor = Predictor(classifier.model, f"classifier {classifier.model}")
        require_label(self._label, self._predictor.labels, classifier.model)

    def scores(self, texts: pa.Array) -> Scores:
        """Return the probability of the label for each text."""
        offsets, data = views(texts)
        values = self._predictor.probability(data, np.stack([offsets[:-1], offsets[1:]], axis=1), self._label)
        return Scores(np.round(values, 6), np.where(np.isnan(values), np.nan, 1.0))
