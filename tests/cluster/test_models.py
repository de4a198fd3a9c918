"""The `refine` DAG scores documents on Ray's actors, and leaves the bytes that one process leaves.

What only this proves: the scheduler's drivers, two partitions at once, a model in the object store, and actors on two
nodes fit together. It starts a topology of its own, whose recipe has a model. Minutes, and 8 GB.
"""

import json
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline_tasks.ledger import Ledger
from tests.cluster.airflow_api import Airflow
from tests.cluster.stack import BUCKET, Stack, command, embedded_run, land
from tests.cluster.topology import Topology, topology
from tests.shop import prose, shop, write
from tests.static_embeddings import write_embeddings

pytestmark = [pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(3600)]

DAY = "2026-11-20"
FILES = ("a.jsonl", "b.jsonl")
MODEL = f"s3://{BUCKET}/models/prose"


def recipe(label: str) -> dict[str, Any]:
    classifier = {"model": MODEL, "label": label, "minimum": 0.5, "accepted": "a test that plants texts"}
    return {
        "name": "web",
        "stages": {
            "ingest": {},
            "extract": {},
            "filter_language": {"keep": ["en"], "threshold": 0.0},
            "score_quality": {"classifiers": {"prose": classifier}},
        },
        "run": {"partitions": 2, "resources": {"score_quality": {"actors": 2}}},
    }


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """Texts to train on, texts that are good, and those that are planted."""
    known = prose()
    half = len(known) // 2
    return {"train": known[:half], "good": known[half : half + 150], "planted": shop(known[half + 150 :])[:30]}


@pytest.fixture(scope="module")
def model(texts: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A linear head over static embeddings that was trained here, and the label of good texts."""
    folder = tmp_path_factory.mktemp("model")
    words = sorted({word for text in texts["train"] for word in text.split()})
    static = write_embeddings(folder / "static", words, 64)
    sides = (
        write(folder / "good.jsonl", texts["train"], "good"),
        write(folder / "shop.jsonl", shop(texts["train"]), "s"),
    )
    places = ["--positives", str(sides[0]), "--negatives", str(sides[1]), "--output", str(folder / "head")]
    command({}, "train-quality-model", *places, "--embeddings", static)
    return folder / "head", json.loads((folder / "head.training.json").read_text())["label"]


@pytest.fixture(scope="module")
def crawl(texts: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl") / DAY
    pages = [*texts["good"], *texts["planted"]]
    promised = []
    for rank, name in enumerate(FILES):
        body = write(folder / name, pages[rank::2], name[0]).read_bytes()
        promised.append({"path": name, "bytes": len(body), "sha256": sha256(body).hexdigest()})
    (folder / "snapshot.json").write_text(json.dumps({"snapshot": DAY, "files": promised}))
    return folder


@pytest.fixture(scope="module")
def here(model: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    written = tmp_path_factory.mktemp("recipe") / "web.yaml"
    written.write_text(json.dumps(recipe(model[1])))
    with tempfile.TemporaryDirectory(prefix="refinery-cluster-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)  # Postgres runs as a user of its own
        with topology(Path(name), written) as running:
            yield running
        assert running.containers.processes() == []


def test_a_model_on_actors_rejects_what_was_planted_with_the_bytes_of_one_process(
    here: Topology, model: tuple[Path, str], crawl: Path, texts: dict[str, list[str]], tmp_path: Path
) -> None:
    airflow = Airflow.login(here.api, here.secrets["ADMIN_PASSWORD"])
    airflow.unpause()
    stack = Stack(here.s3, airflow, {})
    land(here.s3, model[0], [path.name for path in model[0].iterdir()], "models/prose")
    land(here.s3, crawl, [*FILES, "snapshot.json"], f"landing/{DAY}")
    embedded_run(here.s3, str(here.recipe), DAY)
    stack.expected[DAY] = stack.digests("embedded")
    stack.end(stack.run("scored", DAY, {"*": "local", "score_quality": "ray"}), DAY, when="score_quality on actors")
    command(here.s3, "rejects", f"s3://{BUCKET}/scored", "--stage", "score_quality", "--to", str(tmp_path / "rejects"))
    rejected = {text for path in (tmp_path / "rejects").iterdir() for text in pq.read_table(path)["text"].to_pylist()}
    assert len(rejected & set(texts["planted"])) >= 28
    assert len(rejected & set(texts["good"])) <= 3
    with Ledger.open(here.placed(here.services["airflow-scheduler"]["environment"]["REFINERY_LEDGER"])) as ledger:
        (waits,), (computed,) = (ledger.query(name, recipe="web", snapshot=DAY) for name in ("models", "hardware"))
    print(waits, computed)
    assert (waits["engine"], waits["actors"]) == ("ray", 1)
    assert waits["model_seconds"] > 0
    assert (computed["computed"], computed["hardware"], computed["share"]) == ("prose", "cpu", 1.0)
