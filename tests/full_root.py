"""A root with an object of every kind but those of training datasets: the small root, and what other rooms store."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pipeline_tasks.cli.main import main
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import FOLDER as ABLATIONS
from pipeline_tasks.publish.logs.ablation_log import record_ablation
from pipeline_tasks.publish.logs.model_log import PublishedModel, commit_report, folder_of, publish_model
from pipeline_tasks.run.tasks.row_cache import CachedRows, KnownRows
from pipeline_tasks.sealed import reference, seal, sha256
from pipeline_tasks.service.work.earlier import earlier_than, store_earlier
from pipeline_tasks.store import access_log, storage
from pipeline_tasks.store.access_log import Look
from tests.publish.test_logs_at_once import ABLATION
from tests.small_root import DAYS, RECIPE, SmallRoot

SITE = "gone.example"


def build(small: SmallRoot, folder: Path) -> str:
    """Copy the small root, and store in it what its stages do not; return the copy."""
    root = str(shutil.copytree(small.root, folder / "root"))
    store = storage.connect(root)
    assert main(["takedown", root, "--site", SITE, "--reason", "a letter"]) == 0
    assert main(["erase", root, "--by", "a steward"]) == 0
    access_log.record(
        root, Look(by="a reader", through="command", what="read", of={"recipe": RECIPE}, purpose="a test")
    )
    said = {"recipe": RECIPE, "ids": ["a", "b"], "at": "2026-11-21"}
    for kind in ("maps", "readings", "intruders"):
        storage.commit(store, f"{kind}/{RECIPE}/0123456789abcdef01234567.json", seal({"kind": kind, **said}))
    evidence = seal({"means": [1.0, 2.0]})
    storage.commit(store, f"{ABLATIONS}/0123456789abcdef01234567.json", evidence)
    record_ablation(
        root, replace(ABLATION, evidence=reference(f"{ABLATIONS}/0123456789abcdef01234567.json", sha256(evidence)))
    )
    landed = version_log.current(root, RECIPE, DAYS[1]).manifests["land"]
    store_earlier(root, earlier_than(root, RECIPE, DAYS[1]), landed)
    _publish_model(root)
    for cache in ("edu", "fun"):
        _cache_rows(root, f"cache/score_quality/{cache}")
    for path in ("alerts/0123456789abcdef.txt", "requests/session/1", f"vectors/{RECIPE}/a.lance/data/1.lance"):
        storage.commit(store, path, b"something that may be lost\n")
    return root


def _publish_model(root: str) -> None:
    digest = sha256(b"a model")
    storage.commit(storage.connect(root), f"{folder_of('good', digest)}/model.bin", b"a model")
    report = commit_report(root, "good", digest, "training", seal({"documents": 3}))
    model = f"{folder_of('good', digest)}/model.bin"
    publish_model(root, PublishedModel(0, "good", model, digest, "fasttext", "good", report, report, "pass", "", ""))


def _cache_rows(root: str, prefix: str) -> None:
    texts = pa.array(["one text", "another", "a third one"])
    cached = CachedRows(root, prefix, ["score"], KnownRows(root, ()), "cpu")
    cached.add(pa.RecordBatch.from_pydict({"text": texts, "score": pa.array([0.1, 0.2, 0.3])}))
    cached.store()
