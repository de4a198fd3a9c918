"""Documents get the topic that their vector is nearest to; what is near to none, or has no vector, is unknown."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from refinery_models.topics import train_topics

from pipeline_tasks.errors import ContractError
from pipeline_tasks.scorers.topics import dump_topics
from pipeline_tasks.text.near.vectors import packed, unpacked
from tests.documents import documents
from tests.refining import commit_parent, refined, rows

MIDDLE = np.eye(8)


@pytest.fixture
def topics(tmp_path: Path) -> str:
    vectors = unpacked(packed(np.repeat(MIDDLE[:3], [9, 6, 3], axis=0)))
    texts = ["garden soil"] * 9 + ["engine fuel"] * 6 + ["court judge"] * 3
    path = tmp_path / "topics.json"
    path.write_bytes(dump_topics(train_topics(vectors, texts, "m", 3, 1)))
    return str(path)


def table(vectors: np.ndarray, model: str = "m") -> pa.Table:
    texts = [f"text {at}" for at in range(len(vectors))]
    names = pa.array([model] * len(vectors), pa.string())
    return documents(texts, embedding=packed(vectors), embedding_model=names)


def test_each_document_has_its_nearest_topic(topics: str, tmp_path: Path) -> None:
    vectors = np.stack([MIDDLE[0], MIDDLE[1] + 0.5 * MIDDLE[0], MIDDLE[2], MIDDLE[5], np.full(8, np.nan)])
    parent = commit_parent(tmp_path / "root", [table(vectors)])
    _, manifest = refined(tmp_path / "root", "topics", parent, {"topics": topics})
    found = {row["text"]: row for row in rows(tmp_path / "root", manifest).to_pylist()}
    assert [found[f"text {at}"]["topic"] for at in range(5)] == ["t0001", "t0002", "t0003", "unknown", "unknown"]
    assert [found[f"text {at}"]["topic_name"] for at in range(5)] == [
        "garden soil",
        "engine fuel",
        "court judge",
        None,
        None,
    ]
    assert [found[f"text {at}"]["topic_similarity"] for at in (0, 3, 4)] == [1.0, 0.0, None]
    assert found["text 1"]["topic_similarity"] == pytest.approx(1 / np.sqrt(1.25), abs=1e-3)


def test_vectors_of_another_model_have_no_topics(topics: str, tmp_path: Path) -> None:
    parent = commit_parent(tmp_path / "root", [table(MIDDLE, "other")])
    with pytest.raises(ContractError, match="vectors of other"):
        refined(tmp_path / "root", "topics", parent, {"topics": topics})
