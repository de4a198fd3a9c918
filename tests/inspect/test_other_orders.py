"""Stages in another order than the usual one: all that looks at a version goes from a manifest to that of its parent."""

import json
from pathlib import Path
from typing import Any

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import parent_of, read_manifest
from tests.chain import reply

STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ingest", {}),
    ("extract", {"min_chars": 5}),
    ("dedup_exact", {"buckets": 2}),
    ("filter_url", {}),
    ("dedup_minhash", {"buckets": 2, "policy": ["longest", "lowest_id"]}),
)


def test_a_version_whose_stages_are_in_another_order_is_whole_and_shown_in_it(tmp_path: Path) -> None:
    root, day = str(tmp_path / "root"), tmp_path / "2026-11-19"
    day.mkdir()
    texts = ["one page of some words", "another page of other words", "one page of some words"]
    lines = [{"text": text, "url": f"https://example.org/{at}", "date": "2026-11-19"} for at, text in enumerate(texts)]
    (day / "pages.jsonl").write_text("\n".join(map(json.dumps, lines)))
    landed = reply("land", root=root, input=str(day), recipe="web")
    named = {"root": root, "recipe": "web", "snapshot": landed["snapshot"], "landing": landed["landing"]}
    manifests = {"land": landed["manifest"]}
    parent = landed["manifest"]
    for stage, params in STEPS:
        parent = reply("refine", **named, stage=stage, params=params, parent=parent, history=[])["manifest"]
        manifests[stage] = parent
    reply("publish", **named, manifests=manifests)
    assert main(["verify", root]) == 0
    (version,) = version_log.versions(root, "web")
    steps = funnel(root, version)
    assert [step["stage"] for step in steps] == [stage for stage, _ in STEPS]
    assert [(step["rows_in"], step["rows"]) for step in steps] == [(3, 3), (3, 3), (3, 2), (2, 2), (2, 2)]
    filtered = read_manifest(root, manifests["filter_url"])
    before = parent_of(root, filtered)
    assert before is not None
    assert before.stage == "dedup_exact"
