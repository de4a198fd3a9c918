"""A small root with one snapshot that `filter_quality` has judged, from its landed file to a published version."""

import json
from pathlib import Path

from pipeline_tasks.publish.logs import version_log
from tests.chain import reply
from tests.stages.test_filter_quality import PROSE

RECIPE, SNAPSHOT, TOKENS = "web", "2026-11-19", 1000
STAGES = ("ingest", "extract", "filter_language", "filter_quality", "dedup_exact")
LINES = PROSE.split("\n")
TEXTS = [
    *("\n".join(LINES[start : start + count]) for count in range(2, len(LINES) + 1) for start in (0, 1)),
    *(PROSE.replace(".", " ...", count) for count in range(9)),
    "\n".join([*LINES, *LINES[:3]]),
]


def judged_root(folder: Path) -> str:
    """Land, refine and publish the texts below `folder`; return the root."""
    landing, root = folder / "landing" / SNAPSHOT, str(folder / "root")
    landing.mkdir(parents=True)
    pages = [{"text": text, "url": f"https://example.org/{at}"} for at, text in enumerate(TEXTS)]
    (landing / "a.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    landed = reply("land", root=root, input=str(landing))
    named = {"root": root, "recipe": RECIPE, "snapshot": SNAPSHOT, "landing": landed["landing"], "engine": "local"}
    manifests, parent = {"land": landed["manifest"]}, landed["manifest"]
    for stage in STAGES:
        params = {"min_chars": 1} if stage == "extract" else {}
        parent = reply("refine", **named, stage=stage, params=params, parent=parent)["manifest"]
        manifests[stage] = parent
    entry = {"recipe": RECIPE, "snapshot": SNAPSHOT, "landing": landed["landing"], "manifests": manifests}
    counts = {"documents": 9, "tokens": TOKENS, "sequences": 1}
    version_log.append(root, entry | {"verdicts": {}, "prefix": ""} | counts)
    return root
