"""A model's file: read as it was written, refused where it is damaged or of other features."""

from pathlib import Path

import numpy as np
import pytest
from refinery_models.extractor.probes import PAGES, reading_digest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.blocks import SHIPPED
from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.choice import best_cut
from pipeline_tasks.text.blocks.coupling import RELATIONS
from pipeline_tasks.text.blocks.features import FEATURES, NAMES, block_features
from pipeline_tasks.text.blocks.model import LEAF, Model, dump_model, load_model, parse_model, score_blocks


def model(**changes: object) -> Model:
    """Return two trees: the first asks for features 0 and 2, the second is a leaf."""
    fields = {
        "features": np.array([0, LEAF, 2, LEAF, LEAF, LEAF], np.uint16),
        "thresholds": np.array([10, 0, 200, 0, 0, 0], np.uint8),
        "jumps": np.array([2, 0, 2, 0, 0, 0], np.uint16),
        "values": np.array([0, 100, 0, -200, 300, 7], np.int16),
        "roots": np.array([0, 5], np.int32),
        "couplings": np.zeros(4 * RELATIONS, np.int16),
        "base": -1000,
        "card": {"data": "none"},
    }
    return Model(**{**fields, **changes})  # type: ignore[arg-type]


def test_scores_are_sums_of_leaves() -> None:
    rows = np.zeros((4, FEATURES), np.uint8)
    rows[:, 0] = [10, 11, 11, 255]
    rows[:, 2] = [255, 200, 201, 0]
    assert score_blocks(rows, model()).tolist() == [-893, -1193, -693, -1193]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(dump_model(model()))
    read = load_model(str(path))
    assert dump_model(read) == path.read_bytes()
    assert read.card == {"data": "none"}
    assert len(read.digest) == 64


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"refinery-extractor-2\n",
        b"refinery-extractor-2\n{}\n",
        dump_model(model())[:-1],
        dump_model(model()) + b"x",
        dump_model(model(jumps=np.array([2, 0, 9, 0, 0, 0], np.uint16))),
        dump_model(model(jumps=np.array([0, 0, 2, 0, 0, 0], np.uint16))),
        dump_model(model(features=np.array([FEATURES, LEAF, 2, LEAF, LEAF, LEAF], np.uint16))),
        dump_model(model(roots=np.array([0, 6], np.int32))),
        dump_model(model()).replace(b'"values":6', b'"values":5'),
        dump_model(model(couplings=np.zeros(RELATIONS, np.int16))),
    ],
)
def test_a_damaged_file_is_refused(content: bytes) -> None:
    with pytest.raises(RecipeError, match=r"x\.model.*refinery model extractor"):
        parse_model(content, "x.model")


def test_a_model_of_other_features_is_refused() -> None:
    content = dump_model(model()).replace(b'"words"', b'"wards"', 1)
    with pytest.raises(RecipeError, match="other features"):
        parse_model(content, "x.model")


def test_the_shipped_model_reads_a_page_and_names_its_sources() -> None:
    page = (
        "<title>The mill</title><nav><ul><li><a href=/>Home</a><li><a href=/a>About</a></ul></nav>"
        "<div><h1>The mill</h1><p>The mill by the river was built when the town was small, and it fed all of it.</p>"
        "<p>Its wheel turned until the railway came, which brought flour from the plains, and then it stood.</p></div>"
        "<footer><p><a href=/i>Imprint</a></p><p>All rights reserved.</p></footer>"
    )
    data = np.frombuffer(page.encode(), np.uint8)
    blocks = read_blocks(data)
    shipped = load_model(str(SHIPPED))
    scores = score_blocks(block_features(blocks, data), shipped)
    assert (scores >= best_cut(scores, blocks.words, 1.0)).tolist() == [False, False, True, True, True, False, False]
    assert "CC-BY-4.0" in " ".join(shipped.card["notices"])
    assert SHIPPED.stat().st_size < 3_000_000


def test_the_shipped_model_was_trained_by_this_reading_of_pages() -> None:
    """A change of blocks, measures, features or labels makes the model guess: train it anew, and ship that one."""
    assert load_model(str(SHIPPED)).card["reading"] == reading_digest()


def test_the_pages_that_tell_readings_apart_vary_in_what_the_model_reads() -> None:
    rows = np.concatenate([features_of(page) for page in PAGES])
    inner = load_model(str(SHIPPED)).features
    alike = {NAMES[nth] for nth in set(inner.tolist()) - {LEAF} if len(np.unique(rows[:, nth])) == 1}
    assert not alike


def features_of(page: str) -> np.ndarray:
    data = np.frombuffer(page.encode(), np.uint8)
    return block_features(read_blocks(data), data)
