"""A root with a published snapshot whose documents have what `filter_toxicity`, `enrich` and `topics` say of them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from refinery_models.topics import train_topics

from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.scorers.topics import dump_topics
from pipeline_tasks.text.near.vectors import packed, unpacked
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.text.kinds.texts import SAMPLES
from tests.text.toxicity.examples import toxic

RECIPE, SNAPSHOT, PLAIN = "web", "2026-11-20", "2026-11-19"

OF_TYPES = ("recipe", "product", "forum", "recipe")
MIDDLE = np.eye(8)
URLS = tuple(f"https://{host}.example/{at}" for at, host in enumerate(("kitchen", "shop", "talk", "kitchen", "rude")))


def text_of(kind: str) -> str:
    """A text of a type, as the rules of `enrich` know it."""
    return next(sample.text for sample in SAMPLES if sample.kind == kind)


def offending() -> str:
    """An English text with words that offend."""
    return " ".join(example.text for example in toxic() if example.language == "en")[:600]


def described(root: Path) -> dict[str, str]:
    """Refine five documents, of which two are of one type and two of one topic; return the manifests by stage.

    Their types are recipe, product, forum, recipe and unknown; their topics t0001, t0001, t0002, t0003 and unknown.
    The last one offends.
    """
    texts = [*(f"{text_of(kind)} {at}" for at, kind in enumerate(OF_TYPES)), offending()]
    vectors = np.stack([MIDDLE[0], MIDDLE[0], MIDDLE[1], MIDDLE[2], MIDDLE[5]])
    table = documents(
        texts,
        list(URLS),
        language=pa.array(["en"] * 5, pa.string()),
        n_tokens=pa.array([10, 20, 30, 40, 50], pa.int64()),
        embedding=packed(vectors),
        embedding_model=pa.array(["m"] * 5, pa.string()),
    )
    topics = root / "topics.json"
    words = ["garden soil"] * 9 + ["engine fuel"] * 6 + ["court judge"] * 3
    trained = train_topics(unpacked(packed(np.repeat(MIDDLE[:3], [9, 6, 3], axis=0))), words, "m", 3, 1)
    topics.write_bytes(dump_topics(trained))
    path = commit_parent(root, [table.slice(0, 2), table.slice(2)], "scrub_pii")
    manifests = {}
    for stage, params in (
        ("filter_toxicity", {"action": "annotate"}),
        ("enrich", {}),
        ("topics", {"topics": str(topics)}),
    ):
        path, _ = refined(root, stage, path, params)
        manifests[stage] = path
    return manifests


def published(root: Path) -> version_log.Version:
    """Publish the described documents, and before them a snapshot that no such stage has seen."""
    given = commit_parent(root, [documents(["one two three"])], "given")
    publish(root, PLAIN, {"dedup_exact": refined(root, "dedup_exact", given)[0]}, 1)
    return publish(root, SNAPSHOT, described(root), 5)


def publish(root: Path, snapshot: str, manifests: dict[str, str], count: int) -> version_log.Version:
    """Append a version to the log."""
    entry = {"recipe": RECIPE, "snapshot": snapshot, "landing": "", "manifests": manifests, "verdicts": {}}
    return version_log.append(str(root), entry | {"prefix": "", "documents": count, "tokens": 0, "sequences": 0})
